"""Names of members and components of arrays: ``r[2]``, ``r[2].x``, ``R[1,3]``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LETTERS = ("x", "y", "z")


class Axis(NamedTuple):
    """A dimension of an array: its name, its role, and labels by the names of indices."""

    name: str
    role: str
    """``"index"``, ``"component"``, ``"row"`` or ``"column"``."""
    labels: list[tuple[str, list[int]]]

    @property
    def length(self) -> int:
        """Number of places."""
        return len(self.labels[0][1]) if self.labels else 0

    def letters(self) -> list[str] | None:
        """Letters of the components of a short vector."""
        if self.role == "component" and self.length <= len(LETTERS):
            return list(LETTERS[: self.length])
        return None


def suffixes(axes: Sequence[Axis]) -> list[str]:
    """What follows an array's name in the names of its components, in their order."""
    indices = [axis for axis in axes if axis.role == "index"]
    inner = [axis for axis in axes if axis.role != "index"]
    # The members of a family with dependent ranges have several labels along one dimension.
    members = [list(zip(*(values for _, values in axis.labels))) for axis in indices]
    outer = [
        f"[{','.join(str(one) for group in member for one in group)}]" if indices else ""
        for member in itertools.product(*members)
    ]
    return [before + after for before in outer for after in _inner_suffixes(inner)]


def _inner_suffixes(axes: Sequence[Axis]) -> list[str]:
    if len(axes) == 1 and (letters := axes[0].letters()):
        return [f".{letter}" for letter in letters]
    if not axes:
        return [""]
    numbers = itertools.product(*(range(1, axis.length + 1) for axis in axes))
    return [f"[{','.join(map(str, places))}]" for places in numbers]


def selected(
    array: NDArray[np.float64], axes: Sequence[Axis], selection: str
) -> NDArray[np.float64] | None:
    """Part of an array that ``selection`` names, whose last dimensions are ``axes``."""
    wanted = selection.replace(" ", "")
    flat = array.reshape(*array.shape[: array.ndim - len(axes)], -1)
    names = suffixes(axes)
    if wanted in names:
        return flat[..., names.index(wanted)]
    # A member: all components that follow its name.
    places = [place for place, name in enumerate(names) if name.startswith(wanted)]
    inner = [axis.length for axis in axes if axis.role != "index"]
    if not places or not wanted.endswith("]") or len(places) != int(np.prod(inner)):
        return None
    return flat[..., places[0] : places[-1] + 1].reshape(*flat.shape[:-1], *inner)
