"""Options of runs: their names and types, and checks of keyword arguments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack


class SharedOptions(TypedDict, total=False):
    """Options that all runs of a comparison share; all have defaults.

    Numbers may be constant formulas as text: ``until="2*pi"``.
    """

    max_step: float | str
    """Longest adaptive step."""
    max_steps: int
    """Number of steps after which the run fails, rejected ones included."""
    metric: str
    """Metric in which projections move a state: ``"error"`` or ``"euclidean"``."""
    start: float | str
    """Time of the initial state; the model's by default, or 0."""
    until: float | str
    """End of the run; the model's by default, or 100."""
    until_event: str
    """Event that ends the run before, ``"low"``, or its n-th crossing, ``"low,3"``."""
    every: float | str
    """Time between samples."""
    samples: int
    """Number of samples, first and last included; 1001 by default, or one per equal step."""
    at: Sequence[float]
    """Times of the samples, in the order of the run, in place of evenly spaced ones."""
    record: list[str]
    """Names of the quantities to keep: ``"q"``, ``"r[2]"``, ``"r[2].x"``, ``"H"``, ``"drift.H"``."""
    gain: float | str | dict[str, float]
    """Gains of ``feedback``: one number, numbers by name, or ``"auto"``."""
    reference: str
    """State whose invariants are the targets: ``"q=(0,1,0),p=(1,0,-1)"``."""
    projection_tolerance: float
    """Largest residual that projections accept; round-off by default."""
    newton_tolerance: float
    """Largest residual, relative to its terms, that implicit methods accept."""
    penalty: float | str
    """Strength of a penalty in place of the constraints, or ``"auto"``."""
    penalty_tolerance: float
    """Error of the positions at the end, from which a penalty is found."""
    slow_manifold: bool
    """True if a penalised run starts on the slow manifold; true by default."""
    beta: float
    """Newmark's beta."""
    thermostat: str
    """Heat bath: ``"gla"`` adds friction and noise after each step."""
    friction: float
    """Friction of the heat bath, force per velocity."""
    inverse_temperature: float
    """Inverse temperature 1/kT of the heat bath."""
    fixman: bool
    """True to add Fixman's potential."""
    allow_unstable: bool
    """True to run with gains that are refused as unstable."""
    landing: bool
    """True if adaptive steps end at the switching surfaces of the field; true by default."""
    singular: str
    """Reaction to a singular configuration of the constraints: ``"stop"`` (the default) or
    ``"continue"``, along the branch of the momentum."""
    error: bool
    """True to measure the orbit's error by a second run."""
    interpolant: bool
    """True to keep every step, so that ``run.at`` need not run again."""
    seed: int
    """Seed of ``normal()``, ``uniform()`` and the heat bath's noise; 0 by default."""
    project_initial: bool
    """True to move the initial state onto the constraint set."""
    allow_unverified: bool
    """True to run without holding a claimed integral or constraint that fails its test."""
    stiff: str
    """Stiff term of the potential energy: the name of a ``let``."""


class RunOptions(SharedOptions, total=False):
    """Options of a run; all have defaults.

    Numbers may be constant formulas as text: ``until="2*pi"``.
    """

    method: str
    """``BASE``, ``TREATMENT:BASE`` or ``COMPOSITION(METHOD)``; the model's by default, or
    ``"corrected:dop853"``, for a long run the fastest of three by trial."""
    step: float | str
    """Length of equal steps; the model's by default, or adaptive steps."""
    rtol: float
    """Relative tolerance of a step's error, per vector of the state; 1e-9 by default."""
    atol: float
    """Absolute floor of the tolerance; none by default."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest one, or all of them."""
    import difflib

    known = list(known)
    close = difflib.get_close_matches(name, known, 1, 0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known are: " + ", ".join(known) if known else "there are none"


def check_options(
    function: str,
    given: Mapping[str, Any],
    others: Iterable[str] = (),
    known: type[SharedOptions] = RunOptions,
) -> None:
    """Refuse unknown keyword arguments of a function.

    Raises
    ------
    TypeError
        With the nearest name.
    """
    names = _NAMES[known]
    if given.keys() <= names:
        return
    for name in given:
        if name not in names:
            told = nearest(name, [*names, *others])
            raise TypeError(f"{function}() has no option {name!r}: {told}")


_NAMES: dict[type[SharedOptions], frozenset[str]] = {
    kind: frozenset(kind.__annotations__) for kind in (SharedOptions, RunOptions)
}


def frozen(value: Any) -> Any:
    """A form of an option that can be a key."""
    if isinstance(value, (str, float, int)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(frozen(one) for one in value)
    if isinstance(value, dict):
        return tuple((name, frozen(one)) for name, one in value.items())
    if hasattr(value, "tolist"):
        return frozen(value.tolist())
    return os.fspath(value) if isinstance(value, os.PathLike) else value
