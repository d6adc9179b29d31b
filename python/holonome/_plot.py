"""Figures of runs by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._display import curves

if TYPE_CHECKING:
    import matplotlib.axes

    from ._run import Array, Run

#: Curves that are told apart by a legend.
_NAMED = 8


def plot(
    run: Run,
    x: str | None,
    y: Sequence[str],
    ax: matplotlib.axes.Axes | None,
    style: dict[str, Any],
) -> matplotlib.axes.Axes:
    """Draw ``y`` over ``x``; see `Run.plot`."""
    import matplotlib.pyplot as plt

    if x is None:
        return _picture(run, ax, style)
    if ax is None:
        ax = plt.gca()
    if not y:
        x, y = "t", (x,)
    horizontal = _columns(run, x)
    for name in y:
        vertical = _columns(run, name)
        if len(horizontal) not in (1, len(vertical)):
            raise ValueError(f"{x} has {len(horizontal)} components, and {name} {len(vertical)}")
        for k, (label, values) in enumerate(vertical):
            ax.plot(horizontal[k % len(horizontal)][1], values, **{"label": label, **style})
    ax.set_xlabel(_labelled(run, x))
    count = len(ax.get_lines())
    if count == 1:
        ax.set_ylabel(_labelled(run, y[0]))
    elif count <= _NAMED:
        ax.legend()
    if x != "t" and _are_places(run, [x, *y]):
        ax.set_aspect("equal", adjustable="datalim")
    return ax


def _columns(run: Run, name: str) -> list[tuple[str, Array]]:
    """Components of a quantity by their names."""
    if name == "t":
        return [("t", run.t)]
    array = run[name]
    flat = array.reshape(len(run.t), -1)
    names = run.components(name) if name in list(run) else [name] * flat.shape[1]
    if len(names) == flat.shape[1] > 1 and len(set(names)) == 1:
        names = [
            f"{name}.{'xyz'[k]}" if flat.shape[1] <= 3 else f"{name}[{k + 1}]"
            for k in range(flat.shape[1])
        ]
    return list(zip(names, flat.T))


def _labelled(run: Run, name: str) -> str:
    """A quantity with the label of its unit, if that is known."""
    unit = run.units(name)
    return f"{name} ({unit})" if unit else name


def _are_places(run: Run, names: Sequence[str]) -> bool:
    """True if all are components of positions, so that both axes have one scale."""
    positions = [name for name in run if run.description(name).startswith("position")]
    return all(any(name.startswith((f"{p}.", f"{p}[")) for p in positions) for name in names)


def _picture(
    run: Run, ax: matplotlib.axes.Axes | None, style: dict[str, Any]
) -> matplotlib.axes.Axes:
    """The motion, and beside it the drift of the invariants."""
    import matplotlib.pyplot as plt

    drifts = [name for name in run if name.startswith(("drift.", "residual."))]
    beside = None
    if ax is None:
        figure = plt.figure(figsize=(10, 4) if drifts else (6, 4), layout="constrained")
        if drifts:
            axes = figure.subplots(1, 2)
            ax, beside = axes[0], axes[1]
        else:
            ax = figure.subplots()
    assert ax is not None
    across, up, found = curves(run)
    for label, x, y in found:
        ax.plot(x, y, **{"label": label, "linewidth": 1, **style})
    ax.set_xlabel(_labelled(run, across))
    ax.set_ylabel(_labelled(run, up))
    if across != "t":
        ax.set_aspect("equal", adjustable="datalim")
    if 1 < len(found) <= _NAMED:
        ax.legend()
    if beside is not None:
        for name in drifts:
            values = np.abs(run[name].reshape(len(run.t), -1)).max(axis=1)
            # Rounding jumps to and fro; the largest so far shows whether it grows.
            largest = np.fmax.accumulate(values)
            beside.semilogy(run.t, np.where(largest > 0, largest, np.nan), linewidth=1, label=name)
        beside.set_xlabel(_labelled(run, "t"))
        beside.set_title("largest drift so far")
        beside.legend(fontsize="small", loc="lower right")
    return ax
