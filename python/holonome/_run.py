"""Results of runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from . import _holonome
from ._errors import HolonomeError, OptionError
from ._names import Axis, selected, suffixes
from ._options import nearest

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import xarray
    from numpy.typing import ArrayLike, NDArray

    from ._model import Model

    Array = NDArray[np.float64]


class Source(Protocol):
    """What gives the arrays of a result: memory, a folder, or copies."""

    def names(self) -> list[str]: ...
    def times(self) -> Any: ...
    def array(self, name: str) -> Any: ...
    def described(self, name: str) -> tuple[list[str], list[Any], str] | None: ...
    def summary(self) -> str: ...


class Copies:
    """Arrays of a result that came from another process."""

    def __init__(self, result: Arrays) -> None:
        self._names = list(result)
        self._times = np.array(result.t)
        self._arrays = {name: np.array(result[name]) for name in self._names}
        self._described = {name: result.source.described(name) for name in self._names}
        self._summary = result.source.summary()

    def names(self) -> list[str]:
        return self._names

    def times(self) -> Array:
        return self._times

    def array(self, name: str) -> Array | None:
        return self._arrays.get(name)

    def described(self, name: str) -> tuple[list[str], list[Any], str] | None:
        return self._described.get(name)

    def summary(self) -> str:
        return self._summary


@dataclass(frozen=True)
class Drift:
    """How far a quantity that should stay constant went from its value at the start.

    Attributes
    ----------
    name : str
        ``"H"``, an integral, a constraint ``"rod"``, its hidden constraint ``"rod.hidden"``.
    kind : str
        ``"hamiltonian"``, ``"integral"``, ``"constraint"``, ``"hidden"``, ...
    initial : float, list or None
        The value at the start; none for constraints, whose value should be 0.
    final, largest : float
        The deviation at the end, and the largest one over all steps and samples.
    relative_final, relative_largest : float or None
        Both over the scale of the terms that cancel in the quantity.
    held : bool
        False for a claim that the motion does not keep.
    """

    name: str
    kind: str
    initial: Any
    final: float
    largest: float
    relative_final: float | None
    relative_largest: float | None
    held: bool = True


@dataclass(frozen=True)
class Measure:
    """Result of a ``measure`` of the model: an average along the run.

    ``measure["mean"]`` is a column as an array with a place for each number of a mean, bin of a
    histogram, or time of an autocorrelation.

    Attributes
    ----------
    name : str
        The name in the model.
    statistic : str
        What is measured, as in ``"histogram(x, -1, 1, 40)"``.
    span : tuple of float
        Times of the first and the last sample.
    samples : int
        Number of samples.
    of : list of str
        Quantities of the rows of a mean; empty if columns tell what they belong to.
    columns : dict of str to ndarray
        Columns by name: ``mean``, ``error``, ``independent``; ``from``, ``to``, ``density``; ...
    """

    name: str
    statistic: str
    span: tuple[float, float]
    samples: int
    of: list[str]
    columns: dict[str, Array]

    def __getitem__(self, column: str) -> Array:
        try:
            return self.columns[column]
        except KeyError:
            names = ", ".join(self.columns)
            raise KeyError(f"the measure {self.name} has the columns {names}") from None


@dataclass(frozen=True)
class Events:
    """Events of one name, in the order in which the run met them.

    Attributes
    ----------
    name : str
        The name in the model.
    t : ndarray
        Times, found to round-off; ``run.at(events.t)`` are the states there.
    number : ndarray of int
        Numbers of the crossings, from 1 on: 2, 4, ... of an event ``every 2``.
    member : list
        Members of a family: an index, or a list of indices; empty for a single event.
    """

    name: str
    t: Array
    number: Array
    member: list[Any]

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class OrbitError:
    """Error of a variable along the orbit, the largest over a family's members, as a run with
    ``error=True`` measures it.

    Attributes
    ----------
    name : str
        The variable.
    final, largest : float
        At the end, and the largest one over the samples.
    relative : float or None
        The largest one over the size of the variable.
    """

    name: str
    final: float
    largest: float
    relative: float | None


@dataclass(frozen=True)
class Cost:
    """What a run took: counts of evaluations, and time.

    Attributes
    ----------
    steps : int
        Accepted steps.
    field, gradient, hessian, linear_solves, newton_iterations, rejected : int
        Evaluations of the whole field, of forces, of second derivatives; linear systems; iterations
        of Newton's method; rejected steps.
    handed_over : int
        Steps within close encounters that were handed over to another method.
    seconds : float
        Time in the loop over steps.
    """

    steps: int
    field: int
    gradient: int
    hessian: int
    linear_solves: int
    newton_iterations: int
    rejected: int
    handed_over: int
    seconds: float


#: Number of samples below which curves are drawn with values between them, if the run takes no
#: longer than so many seconds.
_SMOOTH, _AT_ONCE = 1000, 0.1


def number(value: Any) -> float:
    """A number of a summary, in which ``None`` stands for what is not finite."""
    return float("nan") if value is None else float(value)


class Arrays(Mapping[str, "Array"]):
    """Arrays by name, with their dimensions: what runs and ensembles have in common."""

    _noun = "run"

    def __init__(self, source: Source) -> None:
        self.source = source
        self._arrays: dict[str, Array] = {}

    @cached_property
    def t(self) -> Array:
        """Times of the samples."""
        return np.asarray(self.source.times())

    @cached_property
    def _names(self) -> list[str]:
        return self.source.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._names or self._selected(name) is not None)

    def __getitem__(self, name: str) -> Array:
        known = self._arrays.get(name)
        if known is not None:
            return known
        if name in self._names:
            array: Array = np.asarray(self.source.array(name))
        elif name in ("t", "time"):
            return self.t
        else:
            part = self._selected(name)
            if part is None:
                raise KeyError(f"this {self._noun} has no {name!r}: {nearest(name, self._names)}")
            array = part
        self._arrays[name] = array
        return array

    def _selected(self, name: str, arrays: Mapping[str, Array] | None = None) -> Array | None:
        """A member or a component of one of the arrays, which are those of the run unless given."""
        arrays = self if arrays is None else arrays
        for base in arrays:
            if name.startswith(base) and name[len(base) : len(base) + 1] in ("[", "."):
                part = selected(arrays[base], self.axes(base), name[len(base) :])
                if part is not None:
                    return part
        return None

    def axes(self, name: str) -> list[Axis]:
        """Dimensions of an array besides time and trajectories."""
        described = self.source.described(name)
        if described is None:
            return []
        return [Axis(own, role, list(labels)) for own, role, labels in described[1]]

    def dims(self, name: str) -> list[str]:
        """Names of the dimensions of an array."""
        described = self.source.described(name)
        assert described is not None
        return [*described[0], *(axis[0] for axis in described[1])]

    def description(self, name: str) -> str:
        """Description of an array in one line."""
        described = self.source.described(name)
        return described[2] if described else ""

    def units(self, name: str) -> str | None:
        """Label of the unit of an array, ``t`` for the time, if the model names units and that of
        the array is known: ``"kg m/s"``."""
        known: dict[str, str] = self.summary.get("units", {})
        # A member or a component has the unit of the whole.
        return known.get(name, known.get(name.split("[")[0].split(".")[0]))

    def _described_by(self, name: str, description: str) -> dict[str, str]:
        """Attributes of an array in a dataset."""
        units = self.units(name)
        return {"long_name": description, **({"units": units} if units else {})}

    def components(self, name: str) -> list[str]:
        """Names of the components of an array: ``["q.x", "q.y", "q.z"]``."""
        return [name + suffix for suffix in suffixes(self.axes(name))]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Everything that is known of the end, as the command line's ``--json`` prints it."""
        import json

        summary: dict[str, Any] = json.loads(self.source.summary())
        return summary

    @cached_property
    def drift(self) -> dict[str, Drift]:
        """Drift of every invariant by its name."""
        by_kind = self.summary.get("drift") or {}
        single = {
            "hamiltonian": "H",
            "penalised_hamiltonian": "H.penalised",
            "modified_energy": "modified_energy",
        }
        drifts: dict[str, Drift] = {}
        for kind, entry in by_kind.items():
            if kind in single:
                drifts[single[kind]] = _drift(single[kind], kind, entry)
                continue
            for name, facts in (entry or {}).items():
                own = f"{name}.{kind}" if kind.startswith("hidden") else name
                drifts[own] = _drift(own, kind.rstrip("s"), facts)
        return drifts

    @cached_property
    def error(self) -> dict[str, OrbitError]:
        """Error of every variable by its name, of a run with ``error=True``; empty otherwise."""
        measured = (self.summary.get("orbit_error") or {}).get("families") or {}
        return {
            name: OrbitError(
                name, number(facts["final"]), number(facts["max"]), facts.get("relative")
            )
            for name, facts in measured.items()
        }

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """Results of the measures of the model by name."""
        tables = self.summary.get("measures") or []
        return {table["name"]: _measure(table) for table in tables if table.get("name")}

    @cached_property
    def events(self) -> dict[str, Events]:
        """Events of the model by name.

        Examples
        --------
        >>> import holonome as ho
        >>> text = "coordinate q = 1\\nmomentum p of q\\nhamiltonian (p^2 + q^2)/2\\n"
        >>> run = ho.Model(text + "event low : q = 0 falling").run(until=10)
        >>> [round(float(t), 6) for t in run.events["low"].t]
        [1.570796, 7.853982]
        """
        return {
            name: Events(
                name=name,
                t=np.array([number(entry["t"]) for entry in entries]),
                number=np.array([entry["number"] for entry in entries], dtype=int),
                member=[entry["member"] for entry in entries if "member" in entry],
            )
            for name, entries in (self.summary.get("events") or {}).items()
        }

    @property
    def ended_by(self) -> str | None:
        """Name of the event that ended the run, if one did."""
        name: str | None = self.summary.get("ended_by")
        return name

    @cached_property
    def cost(self) -> Cost:
        """Counts of evaluations, and time."""
        cost = self.summary.get("cost") or {}
        counts = (
            "field",
            "gradient",
            "hessian",
            "linear_solves",
            "newton_iterations",
            "rejected",
            "handed_over",
        )
        return Cost(
            steps=self.summary.get("steps") or 0,
            **{name: cost.get(name) or 0 for name in counts},
            seconds=number(cost.get("wall_seconds")),
        )

    @property
    def warnings(self) -> list[str]:
        """Warnings: about the model, the options, the results."""
        return list(self.summary.get("warnings") or [])

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.summary.get("method", ""))

    @property
    def interrupted(self) -> bool:
        """True if it was stopped before its end."""
        return bool(self.summary.get("interrupted", False))

    def _attributes(self) -> dict[str, Any]:
        """Attributes that every file format takes: texts, numbers, lists of them."""
        attributes: dict[str, Any] = {"method": self.method}
        for name, drift in self.drift.items():
            attributes[f"drift.{name}.final"] = drift.final
            attributes[f"drift.{name}.largest"] = drift.largest
        for name, count in self.cost.__dict__.items():
            attributes[f"cost.{name}"] = count
        if self.warnings:
            attributes["warnings"] = self.warnings
        return attributes

    def _coordinates(self, names: Sequence[str]) -> dict[str, Any]:
        coordinates: dict[str, Any] = {}
        for name in names:
            for axis in self.axes(name):
                letters = axis.letters()
                if letters is not None:
                    coordinates[axis.name] = (axis.name, letters)
                    continue
                for label, values in axis.labels:
                    own = label if len(axis.labels) == 1 else f"{axis.name}_{label}"
                    coordinates[own] = (axis.name, values)
        return coordinates

    def to_xarray(self) -> xarray.Dataset:
        """All arrays as an ``xarray.Dataset`` with labelled dimensions; needs xarray."""
        import xarray

        variables = {
            name: (self.dims(name), self[name], self._described_by(name, self.description(name)))
            for name in self
        }
        coordinates = self._coordinates(list(self))
        coordinates["time"] = ("time", self.t, self._described_by("t", "time"))
        dataset = xarray.Dataset(variables, coordinates, self._attributes())
        return dataset


def _measure(table: dict[str, Any]) -> Measure:
    rows = table["rows"]
    columns = {name: np.array([number(row.get(name)) for row in rows]) for name in table["columns"]}
    return Measure(
        name=table["name"],
        statistic=table["measure"],
        span=(number(table["from"]), number(table["until"])),
        samples=table["samples"],
        of=[row["of"] for row in rows if "of" in row],
        columns=columns,
    )


def _drift(name: str, kind: str, facts: dict[str, Any]) -> Drift:
    relative = facts.get("relative") or {}
    return Drift(
        name=name,
        kind=kind,
        initial=facts.get("initial"),
        final=number(facts.get("final")),
        largest=number(facts.get("max")),
        relative_final=relative.get("final"),
        relative_largest=relative.get("max"),
        held=facts.get("held", True),
    )


class Run(Arrays):
    """Result of a run: its arrays by name, the drift of its invariants, its cost.

    ``run["q"]`` is an array with a row for each sample, read-only and not copied: of shape
    ``(samples,)`` for a scalar, ``(samples, 3)`` for a vector, ``(samples, 2, 3)`` for a family of
    two vectors. ``run["r[2]"]`` is a member, ``run["r[2].x"]`` a component. ``run.t`` are the
    times.

    Examples
    --------
    >>> import holonome as ho
    >>> model = ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian (p^2 + q^2)/2")
    >>> run = model.run(until=10, samples=11)
    >>> run["q"].shape, float(run.t[-1])
    ((11,), 10.0)
    >>> run.drift["H"].largest < 1e-14
    True
    """

    def __init__(
        self,
        source: Source,
        model: Model | None = None,
        options: Mapping[str, Any] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(source)
        self._model = model
        self.options: dict[str, Any] = dict(options or {})
        self.path: Path | None = None if path is None else Path(path)

    @property
    def model(self) -> Model:
        """The model that was run, with its values."""
        if self._model is None:
            from ._model import Model

            assert isinstance(self.source, _holonome.Stored)
            self._model = Model._of(self.source.problem())
        return self._model

    @cached_property
    def _interpolated(self) -> _holonome.Solution:
        """This run with all of its steps: the same numbers, computed again unless kept."""
        if isinstance(self.source, _holonome.Solution) and self.source.has_interpolant():
            return self.source
        if isinstance(self.source, _holonome.Stored):
            return self.source.again().solve(None, None)[0]
        if self._model is None:
            raise OptionError(
                "this run has no model to be computed again: run with interpolant=True"
            )
        options = {**self.options, "interpolant": True}
        return self._model._solved({**options, "error": False}, None)[0]

    def at(self, times: ArrayLike, derivative: int = 0) -> dict[str, Array]:
        """The variables between the samples.

        Parameters
        ----------
        times : array_like
            One time, or an array of them.
        derivative : int
            0 for the values, 1 for their rates of change.

        Returns
        -------
        dict
            Arrays by the names of the variables, of shape ``times.shape + (…)``.

        Notes
        -----
        States between steps have the order of the method, whatever the number of samples: dense output
        if the method has it, else the polynomial through parts of the step. They meet the constraints
        that samples meet. Rates are those of the model at these states. Where an event sets the state,
        the state is that after it. A run that did not keep its steps (``interpolant=True``) is computed
        once more when this is first called, with the same numbers.

        Examples
        --------
        >>> import holonome as ho
        >>> model = ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian (p^2+q^2)/2")
        >>> run = model.run(until=10)
        >>> round(float(run.at(1.0)["q"]), 6), run.at([1, 2, 3], derivative=1)["q"].shape
        (0.540302, (3,))
        """
        if derivative not in (0, 1):
            raise OptionError(
                f"derivative={derivative}: this gives values (0) and rates of change (1)"
            )
        asked = np.asarray(times, dtype=float)
        found = self._interpolated.at(asked.ravel().tolist(), derivative == 1)
        return {name: array.reshape(asked.shape + array.shape[1:]) for name, array in found}

    @cached_property
    def _smooth(self) -> tuple[Array, dict[str, Array]] | None:
        """Times and variables of smooth curves, where nobody chose the samples, these are few, and
        the run is computed again in no time."""
        few = len(self.t) < _SMOOTH and self.cost.seconds < _AT_ONCE
        chosen = {"samples", "every", "record"} & self.options.keys()
        if not isinstance(self.source, _holonome.Solution) or not few or chosen:
            return None
        if self._model is None or len(self.t) < 2 or self.summary.get("interrupted"):
            return None
        times = np.linspace(self.t[0], self.t[-1], 2 * _SMOOTH + 1)
        try:
            return times, self.at(times)
        except HolonomeError:
            return None

    def _curve(self, names: Sequence[str]) -> tuple[Array, list[Array]]:
        """Times and values of quantities for curves: between the samples as well, where variables
        have few of them."""
        if self._smooth is not None:
            times, arrays = self._smooth
            found = [arrays[n] if n in arrays else self._selected(n, arrays) for n in names]
            if all(array is not None for array in found):
                return times, [array for array in found if array is not None]
        return self.t, [self[name] for name in names]

    def to_pandas(self) -> pandas.DataFrame:
        """All arrays as a ``pandas.DataFrame``: a row for each sample, a column for each component,
        named as in the model (``q.x``, ``r[2].y``); needs pandas."""
        import pandas

        columns: dict[str, Array] = {}
        for name in self:
            flat = self[name].reshape(len(self.t), -1)
            columns.update(zip(self.components(name), flat.T))
        frame: pandas.DataFrame = pandas.DataFrame(columns, index=pandas.Index(self.t, name="t"))
        return frame

    def save(self, path: str | os.PathLike[str]) -> Run:
        """Store this run in a folder, which must be new: a Zarr group that `open`, xarray and the
        command line read. Returns the run in it."""
        target = Path(path)
        if self.path is not None:
            import shutil

            shutil.copytree(self.path, target, dirs_exist_ok=False)
        elif isinstance(self.source, _holonome.Solution) and self._model is not None:
            self._model._store(self.options, self.source, target)
        else:
            raise OptionError("this run came as arrays alone: save it where it was made")
        return Run(_holonome.Stored(target), path=target)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page of this run to an HTML file: motion, drifts, what was derived."""
        target = Path(path)
        if self.path is not None:
            _holonome.write_report(self.path, target)
            return target
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            stored = self.save(Path(folder) / (self.summary.get("model") or "run"))
            assert stored.path is not None
            _holonome.write_report(stored.path, target)
        return target

    def plot(
        self, x: str | None = None, *y: str, ax: matplotlib.axes.Axes | None = None, **style: Any
    ) -> matplotlib.axes.Axes:
        """Draw quantities with matplotlib.

        Parameters
        ----------
        x, *y : str
            Names of components: ``run.plot("r[2].x", "r[2].z")`` draws one over the other,
            ``run.plot("t", "H", "J")`` over time, ``run.plot("q")`` all components of ``q`` over
            time. Without names, the motion and the drift of its invariants.
        ax : matplotlib.axes.Axes, optional
            Where to draw; the current axes by default.
        **style
            Passed on to ``Axes.plot``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from ._plot import plot

        return plot(self, x, y, ax, style)

    def __repr__(self) -> str:
        from ._display import run_text

        return run_text(self)

    def _repr_html_(self) -> str:
        from ._display import run_html

        return run_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        model = self._model if self.path is None else self.model
        return (_restored, (Copies(self), model, self.options))


def _restored(source: Copies, model: Model | None, options: dict[str, Any]) -> Run:
    return Run(source, model, options)


def open(path: str | os.PathLike[str]) -> Any:  # noqa: A001 - the name of the contract
    """Open the run or the ensemble in a folder.

    Returns
    -------
    Run or xarray.Dataset
        A run; of an ensemble what `Model.sweep` returns.

    Raises
    ------
    OptionError
        If the folder holds neither.
    """
    stored = _holonome.Stored(os.fspath(path))
    if stored.is_sweep():
        from ._sweep import opened

        return opened(path)
    return Run(stored, path=path)
