"""Models."""

from __future__ import annotations

import math
import os
import warnings as python_warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _holonome
from ._errors import HolonomeWarning, OptionError, RunError
from ._options import RunOptions, SharedOptions, check_options, frozen, nearest
from ._progress import shown
from ._run import Run

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

    from ._compare import Comparison
    from ._derived import Check, Integrals
    from ._flow import Flow
    from ._run import Array

    Value = Union[ArrayLike, str]
    Progress = Union[bool, Callable[[float, float, float], object]]

#: The last run that did not reach its end: interrupted, or failed.
last: Run | None = None

#: Number of compiled models that are kept for runs with other values.
_KEPT = 16


class _Core:
    """A model's text as the compiled half has read it, and what was compiled of it."""

    def __init__(self, problem: _holonome.Problem, formulas: Mapping[str, str]) -> None:
        self.problem = problem
        self.formulas = dict(formulas)
        self.compiled: dict[Any, list[_holonome.Simulation]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name, _, shape, _ in problem.values:
            self.shapes[name] = tuple(shape)
        self.sizes = dict(problem.sizes)

    def width(self, name: str) -> int | None:
        """Number of numbers that a name selects."""
        shape = self.shapes.get(name)
        if shape is not None:
            return math.prod(shape)
        part = self.problem.selected(name)
        return None if part is None else part[2]

    def whole(self, name: str) -> str:
        """Name of the value of which a name selects a part."""
        part = None if name in self.shapes else self.problem.selected(name)
        return name if part is None else part[0]

    def known(self) -> list[str]:
        """Names of all values."""
        return [*self.shapes, *self.sizes]


class Model:
    """A mechanical system, given by its text; immutable.

    Parameters
    ----------
    text : str
        The model in the language of ``docs/language.md``.
    name : str
        Its name, for titles.
    tables : mapping of str to str, optional
        Texts of the data files and included files that it reads, by path.
    values : mapping, optional
        Values in place of those in the text, as for `set`.

    Raises
    ------
    ModelError
        With all mistakes in the text at once.

    Examples
    --------
    >>> import holonome as ho
    >>> pendulum = ho.Model('''
    ...     parameter l = 1
    ...     coordinate q : R^2 = (0, -l)
    ...     momentum   p of q  = (1, 0)
    ...     hamiltonian dot(p, p)/2 + q.y
    ...     constraint  rod : dot(q, q) = l^2
    ... ''')
    >>> pendulum.set(l=4).run(until=10)["q"][0]
    array([ 0., -4.])
    """

    def __init__(
        self,
        text: str,
        *,
        name: str = "model",
        tables: Mapping[str, str] | None = None,
        values: Mapping[str, Value] | None = None,
    ) -> None:
        formulas, numbers = _parted(_with_sizes(values or {}))
        problem = _holonome.Problem.from_text(
            name, text, dict(tables or {}), list(formulas.items()), _flat(numbers)
        )
        self._take(_Core(problem, formulas), dict(_flat(numbers)))

    def _take(self, core: _Core, numbers: Mapping[str, Array]) -> None:
        self._core = core
        self._numbers = dict(numbers)

    @classmethod
    def _new(cls, core: _Core, numbers: Mapping[str, Array]) -> Model:
        model = cls.__new__(cls)
        model._take(core, numbers)
        return model

    @classmethod
    def _of(cls, problem: _holonome.Problem) -> Model:
        """Model of a problem with its settings."""
        numbers = {name: np.array(values) for name, values in problem.numbers}
        return cls._new(_Core(problem, dict(problem.formulas)), numbers)

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._core.problem.name

    @property
    def text(self) -> str:
        """Text of the model."""
        return self._core.problem.text

    @property
    def warnings(self) -> list[str]:
        """Findings on the model, in a line each."""
        return self._settled.warnings

    @cached_property
    def _settled(self) -> _holonome.Problem:
        """The model read with all values, and what follows from them."""
        core = self._core
        if not self._numbers:
            return core.problem
        return _holonome.Problem.from_text(
            self.name, self.text, core.problem.tables, list(core.formulas.items()), self._given
        )

    @property
    def _given(self) -> list[tuple[str, Array]]:
        return list(self._numbers.items())

    def _values(self, kind: str) -> dict[str, Array]:
        return {
            name: np.array(numbers).reshape(shape)
            for name, own, shape, numbers in self._settled.values
            if own == kind
        }

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters by name, as arrays: family indices first."""
        return self._values("parameter")

    @property
    def variables(self) -> dict[str, Array]:
        """The initial values of the variables by name, as arrays: family indices first."""
        return self._values("variable")

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name."""
        return dict(self._settled.sizes)

    @property
    def dimension(self) -> int:
        """Number of numbers of a state."""
        return self._core.problem.dimension

    @property
    def state(self) -> Array:
        """The initial state: all variables one after the other, positions first; see `names`."""
        return self.pack(self.variables)

    @property
    def names(self) -> list[str]:
        """Names of the components of a state, in its order."""
        return self._core.problem.component_names

    def pack(self, variables: Mapping[str, ArrayLike]) -> Array:
        """One state of the values of all variables; leading axes stay.

        Examples
        --------
        >>> import holonome as ho
        >>> text = "coordinate q : R^2 = (1, 0)\\nmomentum p of q = (0, 1)\\nhamiltonian dot(p, p)/2"
        >>> ho.Model(text).pack({"q": [1, 2], "p": [3, 4]})
        array([1., 2., 3., 4.])
        """
        parts = []
        for name, shape in self._variable_shapes().items():
            if name not in variables:
                raise OptionError(f"a state has {name}, and it is not given")
            array = np.asarray(variables[name], dtype=float)
            outer = array.shape[: array.ndim - len(shape)]
            if array.shape[array.ndim - len(shape) :] != shape:
                raise OptionError(f"{name} has shape {shape}, not {array.shape}")
            parts.append(array.reshape(*outer, -1))
        return np.concatenate(parts, axis=-1)

    def unpack(self, state: ArrayLike) -> dict[str, Array]:
        """The variables of a state by name; leading axes stay."""
        array = np.asarray(state, dtype=float)
        variables, first = {}, 0
        for name, shape in self._variable_shapes().items():
            width = int(np.prod(shape, dtype=int))
            part = array[..., first : first + width]
            variables[name] = part.reshape(*array.shape[:-1], *shape)
            first += width
        return variables

    def _variable_shapes(self) -> dict[str, tuple[int, ...]]:
        values = self._core.problem.values
        return {name: tuple(shape) for name, kind, shape, _ in values if kind == "variable"}

    def set(self, values: Mapping[str, Value] | None = None, /, **named: Value) -> Model:
        """The model with other values; what follows from a value follows.

        Parameters
        ----------
        values : mapping, optional
            Values by names that are no identifiers: ``{"p[2].y": 0.5}``.
        **named
            Values by name: numbers, arrays of the value's shape, or formulas as text.

        Returns
        -------
        Model

        Raises
        ------
        TypeError
            If there is no such name: with the nearest one.
        OptionError
            If a value has another shape.

        Examples
        --------
        >>> import holonome as ho
        >>> text = "parameter k = 1\\ncoordinate q : R = 1\\nmomentum p of q = 0"
        >>> model = ho.Model(text + "\\nhamiltonian (p^2 + k*q^2)/2")
        >>> model.set(k=4, q="1/2").parameters["k"]
        array(4.)
        """
        formulas, numbers = _parted({**(values or {}), **named})
        core = self._core
        for name in (*formulas, *numbers):
            if name not in core.shapes and name not in core.sizes and core.width(name) is None:
                raise TypeError(f"this model has no {name!r}: {nearest(name, core.known())}")
        for name in [name for name in numbers if name in core.sizes]:
            formulas[name] = _whole(name, numbers.pop(name))
        for name, array in numbers.items():
            self._check_shape(name, array)
        kept = dict(self._numbers)
        for name in formulas:
            # A formula is that of a whole value, and replaces what was given of it.
            kept = {one: value for one, value in kept.items() if core.whole(one) != name}
        stated = {**core.formulas, **formulas}
        for name, array in numbers.items():
            self._put(name, array.ravel(), kept, stated)
        if stated != core.formulas:
            problem = core.problem
            read = _holonome.Problem.from_text(
                problem.name, problem.text, problem.tables, list(stated.items()), []
            )
            core = _Core(read, stated)
        return Model._new(core, kept)

    def _put(
        self, name: str, numbers: Array, kept: dict[str, Array], formulas: dict[str, str]
    ) -> None:
        """Let numbers count before all that was given of a value before."""
        core = self._core
        if name in core.shapes:
            formulas.pop(name, None)
            for part in [one for one in kept if one != name and core.whole(one) == name]:
                del kept[part]
            kept[name] = numbers
            return
        selected = core.problem.selected(name)
        assert selected is not None
        whole, first, count = selected
        if formulas.pop(whole, None) is not None:
            kept[whole] = np.array({**self.parameters, **self.variables}[whole]).ravel()
        for one in list(kept):
            if one.startswith((f"{name}[", f"{name}.")):
                del kept[one]  # a component of the member that is given now
            elif name.startswith((f"{one}[", f"{one}.")):
                outer = core.problem.selected(one)
                assert outer is not None
                kept[one] = kept[one].copy()
                kept[one][first - outer[1] : first - outer[1] + count] = numbers
                return
        kept[name] = numbers

    def _check_shape(self, name: str, array: Array) -> None:
        shape = self._core.shapes.get(name)
        if array.shape == shape:
            return
        width = self._core.width(name)
        # A part of a value is a row of numbers; a single number may be in brackets.
        if array.size != width or (shape is not None and width != 1):
            wanted = f"shape {shape}" if shape is not None else f"{width} numbers"
            raise OptionError(f"{name} has {wanted}, and the value has shape {array.shape}")

    def run(
        self,
        *,
        progress: Progress = False,
        out: str | os.PathLike[str] | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Integrate the model.

        Parameters
        ----------
        progress : bool or callable
            True for a bar (tqdm where it is installed); a callable gets the time, the end and the
            largest drift every few hundredths of a second.
        out : path, optional
            A new folder to store the run in while it is computed, so that it survives the process:
            ``holonome resume`` goes on with it. In memory by default.
        **options
            See `RunOptions`: ``until``, ``method``, ``rtol``, ``step``, ``samples``, ``record``, ...

        Returns
        -------
        Run

        Raises
        ------
        TypeError
            If there is no such option: with the nearest one.
        OptionError
            If options make no sense, or not for this model.
        RunError
            If a step has no result; the trajectory up to there is its ``partial``.
        KeyboardInterrupt
            On Ctrl-C; the trajectory up to there is ``holonome.last``.

        Warns
        -----
        HolonomeWarning
            If the result may not be what it seems.

        Examples
        --------
        >>> import holonome as ho
        >>> model = ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian (p^2+q^2)/2")
        >>> run = model.run(until="2*pi", method="gauss16", step="2*pi/20", samples=2)
        >>> bool(abs(run["q"][-1] - 1) < 1e-14)
        True
        """
        check_options("run", options, ("progress", "out"))
        given: dict[str, Any] = options  # type: ignore[assignment]
        if not progress:
            return self._run(given, None, out)
        with shown(progress, "t") as callback:
            return self._run(given, callback, out)

    def _run(self, given: dict[str, Any], callback: Any, out: Any) -> Run:
        if out is not None:
            return self._run_into(Path(out), given, callback)
        try:
            solution, stopped = self._solved(given, callback)
        except RunError as error:
            self._keep_partial(error, given)
            raise
        run = Run(solution, self, given)
        found = solution.warnings()
        if found:
            _warn(found, 4)
        if stopped is not None:
            _set_last(run)
            raise stopped
        return run

    def _solved(
        self, options: dict[str, Any], callback: Any
    ) -> tuple[_holonome.Solution, BaseException | None]:
        """Result of a run in memory, by what was compiled before where there is such."""
        key, simulation, values = self._borrowed(options)
        try:
            return simulation.solve(values, callback)
        finally:
            self._give_back(key, simulation)

    def _store(self, options: dict[str, Any], solution: _holonome.Solution, path: Path) -> None:
        key, simulation, values = self._borrowed(options)
        try:
            simulation.store(values, solution, path)
        finally:
            self._give_back(key, simulation)

    def _borrowed(
        self, options: dict[str, Any]
    ) -> tuple[Any, _holonome.Simulation, list[Array] | None]:
        """What was compiled for these options, and the values to set in it. It belongs to the caller
        until it is given back with the key. Without a key it has its values, and is used up."""
        core, numbers = self._core, self._numbers
        key = (tuple(numbers), *options, *map(frozen, options.values()))
        try:
            return key, core.compiled[key].pop(), list(numbers.values())
        except (IndexError, KeyError):
            pass  # in use by another thread, or never compiled
        formulas = list(core.formulas.items())
        simulation = core.problem.compile_settable(list(numbers), formulas, options)
        if simulation is not None:
            return key, simulation, list(numbers.values())
        return None, core.problem.compile(formulas, self._given, options), None

    def _give_back(self, key: Any, simulation: _holonome.Simulation) -> None:
        if key is None:
            return
        compiled = self._core.compiled
        kept = compiled.get(key)
        if kept is None:
            if len(compiled) >= _KEPT:
                compiled.pop(next(iter(compiled)), None)
            kept = compiled.setdefault(key, [])
        kept.append(simulation)

    def _run_into(self, out: Path, options: dict[str, Any], callback: Any) -> Run:
        core = self._core
        simulation = core.problem.compile(
            list(core.formulas.items()), self._given, {**options, "out": out}
        )
        try:
            path, summary, stopped = simulation.run(callback)
        except RunError as error:
            error.partial = Run(_holonome.Stored(out), self, options, out)
            _set_last(error.partial)
            raise
        import json

        run = Run(_holonome.Stored(path), self, options, path)
        _warn(json.loads(summary).get("warnings") or [], 5)
        if stopped is not None:
            _set_last(run)
            raise stopped
        return run

    def _keep_partial(self, error: RunError, options: dict[str, Any]) -> None:
        solution = error.__dict__.pop("_solution", None)
        if solution is not None:
            error.partial = Run(solution, self, options)
            _set_last(error.partial)

    def sweep(
        self,
        *,
        over: Mapping[str, ArrayLike] | None = None,
        each: Mapping[str, ArrayLike] | None = None,
        vary: Mapping[str, str] | None = None,
        trajectories: int | None = None,
        out: str | os.PathLike[str] | None = None,
        on: Any = None,
        progress: bool | Callable[[int, int, int], object] = False,
        **options: Unpack[RunOptions],
    ) -> Any:
        """Integrate an ensemble: the model with values that differ between trajectories.

        Parameters
        ----------
        over : mapping of str to array_like
            Values of scalars (``"c"``, ``"p[2].y"``), each along a dimension of its own: the
            ensemble is their outer product.
        each : mapping of str to array_like
            Values of each trajectory, along a dimension ``trajectory`` that comes first.
        vary : mapping of str to str
            Formulas of the trajectory's number ``i``.
        trajectories : int
            Number of trajectories; needed with ``vary`` alone.
        out : path, optional
            A folder for the result, for ensembles that memory does not hold; the same call again
            goes on with it.
        on : optional
            Where to compute an ensemble with ``out``: a ``dask.distributed.Client``, or
            ``"slurm"`` to write a batch script.
        progress : bool or callable
            True for a bar; a callable gets the numbers of trajectories done, of all, and of those
            that failed.
        **options
            See `RunOptions`. Two samples by default, the start and the end.

        Returns
        -------
        xarray.Dataset
            With the dimensions of ``over`` or ``trajectory``, then ``time``, then those of each
            array. A dictionary of arrays where xarray is not installed.

        Examples
        --------
        >>> import holonome as ho
        >>> text = "parameter k = 1\\ncoordinate q : R = 1\\nmomentum p of q = 0"
        >>> model = ho.Model(text + "\\nhamiltonian (p^2 + k*q^2)/2")
        >>> grid = model.sweep(until=2, over={"k": [1, 4, 9], "p": [0, 1]}, record=["q"])
        >>> grid["q"].shape
        (3, 2, 2)
        """
        from ._sweep import sweep

        check_options(
            "sweep", options, ("over", "each", "vary", "trajectories", "out", "on", "progress")
        )
        given: dict[str, Any] = dict(options)
        return sweep(self, over, each, vary, trajectories, out, on, progress, given)

    def flow(self, time: float | str, **options: Unpack[RunOptions]) -> Flow:
        """The flow of the model over a time: a function from state to state, compiled once.

        Parameters
        ----------
        time : float
            How far a state flows.
        **options
            See `RunOptions`: ``method``, ``step`` or ``rtol``, ...

        Returns
        -------
        Flow

        Examples
        --------
        >>> import holonome as ho, numpy as np
        >>> model = ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian (p^2+q^2)/2")
        >>> flow = model.flow(np.pi/2, method="gauss16", step=np.pi/20)
        >>> flow([1.0, 0.0]).round(12) + 0.0
        array([ 0., -1.])
        >>> x1, M = flow([1.0, 0.0], derivative=True)
        >>> M.round(12) + 0.0
        array([[ 0.,  1.],
               [-1.,  0.]])
        """
        from ._flow import Flow

        check_options("flow", options)
        return Flow(self, time, dict(options))

    @cached_property
    def field(self) -> _holonome.Field:
        """The right-hand side ``x' = field(t, x)`` as a function, for integrators of others. Of a
        model with constraints it is the Dirac extension, which keeps their values.

        Examples
        --------
        >>> import holonome as ho
        >>> model = ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian (p^2+q^2)/2")
        >>> model.field(0.0, [1.0, 0.5])
        array([ 0.5, -1. ])
        """
        core = self._core
        return _holonome.Field(core.problem, list(core.formulas.items()), self._given)

    def compare(
        self,
        methods: Iterable[str],
        steps: Iterable[float] = (),
        rtol: Iterable[float] = (),
        atol: Iterable[float] = (),
        budgets: Iterable[int] = (),
        **options: Unpack[SharedOptions],
    ) -> Comparison:
        """Compare methods: their errors against a converged reference, orders, drifts, costs.

        Parameters
        ----------
        methods : iterable of str
            The methods.
        steps, rtol, atol, budgets : iterable of numbers
            Fixed steps; tolerances; or budgets of evaluations that each method spends.
        **options
            See `SharedOptions`: ``until``, ...

        Returns
        -------
        Comparison

        Examples
        --------
        >>> import holonome as ho
        >>> model = ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian (p^2+q^2)/2")
        >>> compared = model.compare(["rk4", "stormer-verlet-a"], steps=[0.1, 0.05], until=10)
        >>> [round(row["order"]) for row in compared.rows if row["order"] is not None]
        [4, 2]
        """
        from ._compare import Comparison

        check_options(
            "compare", options, ("methods", "steps", "rtol", "atol", "budgets"), SharedOptions
        )
        core = self._core
        import json

        made = core.problem.compare(
            list(methods),
            [float(step) for step in steps],
            [float(one) for one in rtol],
            [float(one) for one in atol],
            [int(one) for one in budgets],
            list(core.formulas.items()),
            self._given,
            dict(options),
        )
        if made is None:
            raise KeyboardInterrupt
        comparison = Comparison(json.loads(made))
        _warn(comparison.warnings, 3)
        return comparison

    def check(self, verbose: bool = False) -> Check:
        """What the engine derives of the model: degrees of freedom, hidden constraints, methods
        that suit it, advice.

        Parameters
        ----------
        verbose : bool
            True to show the rest as well: ranks, what does not apply and why.

        Examples
        --------
        >>> import holonome as ho
        >>> model = ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian (p^2+q^2)/2")
        >>> model.check().degrees_of_freedom
        1
        """
        from ._derived import Check

        return Check(*self._settled.check(), verbose)

    def integrals(self, degree: int | None = None) -> Integrals:
        """Search first integrals that the model does not state.

        Parameters
        ----------
        degree : int, optional
            Largest number of factors of a term.

        Examples
        --------
        >>> import holonome as ho
        >>> text = "coordinate q : R^2 = (1, 0)\\nmomentum p of q = (0, 1)"
        >>> model = ho.Model(text + "\\nhamiltonian dot(p, p)/2 - 1/norm(q)")
        >>> "q.x*p.y - q.y*p.x" in [found.formula for found in model.integrals()]
        True
        """
        from ._derived import Integrals

        return Integrals(*self._settled.integrals(degree))

    def __repr__(self) -> str:
        variables = ", ".join(self._variable_shapes())
        return f"<Model {self.name}: {variables}; {self.dimension} numbers>"

    def _repr_html_(self) -> str:
        from ._display import model_html

        return model_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        problem, formulas = self._core.problem, self._core.formulas
        return (_restored, (problem.name, problem.text, problem.tables, formulas, self._numbers))


def _restored(
    name: str,
    text: str,
    tables: dict[str, str],
    formulas: dict[str, str],
    numbers: dict[str, Array],
) -> Model:
    problem = _holonome.Problem.from_text(name, text, tables, list(formulas.items()), [])
    return Model._new(_Core(problem, formulas), numbers)


def _parted(values: Mapping[str, Value]) -> tuple[dict[str, str], dict[str, Array]]:
    """Formulas, and numbers as copies."""
    formulas: dict[str, str] = {}
    numbers: dict[str, Array] = {}
    for name, value in values.items():
        if isinstance(value, str):
            formulas[name] = value
        else:
            array: NDArray[np.float64] = np.array(value, dtype=float, order="C")
            numbers[name] = array
    return formulas, numbers


def _with_sizes(values: Mapping[str, Value]) -> dict[str, Value]:
    """Values with whole numbers as texts: before a model is read, its sizes are not known, and sizes
    are set by texts."""

    def is_whole(value: Value) -> bool:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)

    return {name: str(value) if is_whole(value) else value for name, value in values.items()}


def _whole(name: str, value: Array) -> str:
    """The text of a size."""
    if value.size != 1 or not float(value.ravel()[0]).is_integer():
        raise OptionError(f"the size {name} is an integer, not {value}")
    return str(int(value.ravel()[0]))


def _flat(numbers: Mapping[str, Array]) -> list[tuple[str, Array]]:
    return [(name, array.ravel()) for name, array in numbers.items()]


def _warn(warnings: Iterable[str], level: int) -> None:
    """Give warnings at the line that called into this package, so many calls above."""
    for warning in warnings:
        python_warnings.warn(HolonomeWarning(warning), stacklevel=level)


def _set_last(run: Run) -> None:
    global last
    last = run


def load(path: str | os.PathLike[str], values: Mapping[str, Value] | None = None) -> Model:
    """Read a model file.

    Parameters
    ----------
    path : path
        The file.
    values : mapping, optional
        Values in place of those in the file, as for `Model.set`.

    Raises
    ------
    ModelError
        With all mistakes in the text at once.
    OptionError
        If it cannot be read.
    """
    formulas, numbers = _parted(_with_sizes(values or {}))
    problem = _holonome.Problem.load(os.fspath(path), list(formulas.items()), _flat(numbers))
    return Model._new(_Core(problem, formulas), dict(_flat(numbers)))
