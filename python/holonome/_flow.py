"""Flows: state to state."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _holonome
from ._errors import HolonomeWarning, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._model import Model
    from ._run import Array


class Flow:
    """The state after a time as a function of the state; made by `Model.flow`.

    Every state keeps invariants of its own: a method that corrects holds the values that they have
    there.

    Attributes
    ----------
    model : Model
        The model.
    time : float or str
        How far a state flows.
    names : list of str
        Names of the components of a state, in its order.
    """

    def __init__(self, model: Model, time: float | str, options: dict[str, Any]) -> None:
        core = model._core
        start = options.get("start", 0.0)
        until = time if start == 0.0 else float(start) + float(time)
        self.model, self.time, self.options = model, time, options
        formulas, given = list(core.formulas.items()), model._given
        self._flow = _holonome.Flow(core.problem, formulas, given, {**options, "until": until})
        self.dim = self._flow.dim
        for warning in self._flow.warnings:
            python_warnings.warn(HolonomeWarning(warning), stacklevel=3)

    @property
    def names(self) -> list[str]:
        """Names of the components of a state, in its order."""
        return self.model.names

    def __call__(self, x0: ArrayLike | Mapping[str, ArrayLike]) -> Array:
        """Move states.

        Parameters
        ----------
        x0 : array_like of shape (..., n), or mapping
            States; the variables one after the other, positions first (`names`). A mapping has the
            variables by name.

        Returns
        -------
        x1 : ndarray of shape (..., n)
            The states after the time.

        Raises
        ------
        OptionError
            If a state is not finite, or off the constraint set.
        RunError
            If a step has no result.
        """
        if isinstance(x0, Mapping):
            x0 = self.model.pack(x0)
        states = np.asarray(x0, dtype=float)
        if states.ndim == 0 or states.shape[-1] != self.dim:
            raise OptionError(f"a state has {self.dim} numbers, and x0 has shape {states.shape}")
        flat = states.ravel()
        return self._flow.apply(flat).reshape(states.shape)

    def __repr__(self) -> str:
        method = self.options.get("method", "corrected:dop853")
        return f"<Flow of {self.model.name} over {self.time} by {method}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Flow, (self.model, self.time, self.options))
