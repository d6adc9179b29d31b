"""Flows: state to state."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import _holonome
from ._errors import HolonomeWarning

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import ArrayLike

    from ._model import Model
    from ._run import Array


class Flow(_holonome.Flow):
    """The state after a time as a function of the state; made by `Model.flow`.

    ``flow(x0)`` moves states of shape ``(..., n)``: the variables one after the other, positions
    first (`names`); a mapping has the variables by name. The result has the same shape. Every state
    keeps invariants of its own: a method that corrects holds the values that they have there. An
    ``OptionError`` names a state that is not finite, or off the constraint set, and a ``RunError`` a
    step without a result.

    ``flow(x0, derivative=True)`` is the pair of the states and of their derivatives M by ``x0``, of
    shape ``(..., n, n)``: ``M[..., i, j]`` is that of component i after the time by component j
    before. It is the derivative of the computed map: of the steps' formulas, of their equations by
    implicit differentiation, and of their treatment, whose metric is taken as constant. So a
    symplectic method has a symplectic M. On a constraint set M maps tangent vectors of the set to
    such; along others it is what the formulas give there. The method needs a fixed step.

    Attributes
    ----------
    model : Model
        The model.
    time : float or str
        How far a state flows.
    names : list of str
        Names of the components of a state, in its order.
    """

    def __new__(cls, model: Model, time: float | str, options: dict[str, Any]) -> Flow:
        """Compile the flow of a model over a time."""
        core = model._core
        start = options.get("start", 0.0)
        until = time if start == 0.0 else float(start) + float(time)
        formulas, given = list(core.formulas.items()), model._given
        return super().__new__(cls, core.problem, formulas, given, {**options, "until": until})

    def __init__(self, model: Model, time: float | str, options: dict[str, Any]) -> None:
        self.model, self.time, self.options = model, time, options
        for warning in self.warnings:
            python_warnings.warn(HolonomeWarning(warning), stacklevel=3)

    @property
    def names(self) -> list[str]:
        """Names of the components of a state, in its order."""
        return self.model.names

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, x0: ArrayLike | Mapping[str, ArrayLike], derivative: Literal[False] = False
        ) -> Array: ...

        @overload
        def __call__(
            self, x0: ArrayLike | Mapping[str, ArrayLike], derivative: Literal[True]
        ) -> tuple[Array, Array]: ...

        @overload
        def __call__(
            self, x0: ArrayLike | Mapping[str, ArrayLike], derivative: bool = False
        ) -> Array | tuple[Array, Array]: ...

        def __call__(
            self, x0: ArrayLike | Mapping[str, ArrayLike], derivative: bool = False
        ) -> Array | tuple[Array, Array]: ...

    def _states(self, x0: ArrayLike | Mapping[str, ArrayLike]) -> Array:
        """States as an array, the variables one after the other."""
        if isinstance(x0, Mapping):
            x0 = self.model.pack(x0)
        return np.ascontiguousarray(x0, dtype=float)

    def __repr__(self) -> str:
        method = self.options.get("method", "corrected:dop853")
        return f"<Flow of {self.model.name} over {self.time} by {method}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Flow, (self.model, self.time, self.options))
