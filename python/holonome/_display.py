"""What notebooks and terminals show of models and runs."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from ._errors import HolonomeError

if TYPE_CHECKING:
    from ._model import Model
    from ._run import Array, Run

#: Points of a drawn curve: enough for the eye, and some kilobytes.
_POINTS = 1500


def model_html(model: Model) -> str:
    """A model: its text, and what was derived."""
    findings = "".join(f"<li>{html.escape(warning)}</li>" for warning in model.warnings)
    warned = f"<ul style='color:#a60'>{findings}</ul>" if findings else ""
    try:
        report = model.check().text
    except HolonomeError as error:
        report = str(error)
    text, derived = html.escape(model.text.strip()), html.escape(report)
    return (
        f"<div><b>{html.escape(model.name)}</b>{warned}<pre>{text}</pre>"
        f"<details open><summary>derived</summary><pre>{derived}</pre></details></div>"
    )


def run_text(run: Run) -> str:
    """A run in a few lines."""
    head = f"{run.summary.get('model', 'run')} by {run.method}"
    ended = "stopped at" if run.interrupted else "to"
    t = run.t[-1] if len(run.t) else float("nan")
    lines = [f"{head}: {len(run.t)} samples {ended} t = {t:g}, {run.cost.steps} steps"]
    rows = [["", "initial", "final drift", "largest"]] + _drift_rows(run)
    rows += _error_rows(run)
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines += [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in rows
        if len(rows) > 1
    ]
    lines += [f"  warning: {warning}" for warning in run.warnings]
    lines.append(
        "  arrays: " + ", ".join(f"{name} {run[name].shape[1:] or ''}".strip() for name in run)
    )
    return "\n".join(lines)


def _drift_rows(run: Run) -> list[list[str]]:
    def initial(value: object) -> str:
        if isinstance(value, (int, float)):
            return f"{value:.6g}"
        return "" if value is None else f"{np.size(value)} numbers"  # type: ignore[arg-type]

    return [
        [drift.name, initial(drift.initial), f"{drift.final:.1e}", f"{drift.largest:.1e}"]
        for drift in run.drift.values()
    ]


def _error_rows(run: Run) -> list[list[str]]:
    return [
        [f"error of {one.name}", "", f"{one.final:.1e}", f"{one.largest:.1e}"]
        for one in run.error.values()
    ]


def run_html(run: Run) -> str:
    """A run: its motion, the drift of its invariants, its warnings."""
    head, *_ = run_text(run).splitlines()
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in [*_drift_rows(run), *_error_rows(run)]
    )
    table = (
        f"<table><thead><tr><th></th><th>initial</th><th>final drift</th><th>largest</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
        if rows
        else ""
    )
    warned = "".join(f"<li>{html.escape(warning)}</li>" for warning in run.warnings)
    warned = f"<ul style='color:#a60'>{warned}</ul>" if warned else ""
    names = ", ".join(html.escape(name) for name in run)
    return (
        f"<div><p><b>{html.escape(head)}</b></p>{_motion_svg(run)}{table}{warned}"
        f"<p style='color:#777'>{names}</p></div>"
    )


def curves(run: Run) -> tuple[str, str, list[tuple[str, Array, Array]]]:
    """The curves of a run's motion that a picture shows: labels of both axes, and the curves."""
    for name in run:
        if run.description(name).split(" ")[0] != "position":
            continue
        axes = run.axes(name)
        if not axes or axes[-1].role != "component" or axes[-1].length not in (2, 3):
            break
        times, (array,) = run._curve([name])
        array = array.reshape(len(times), -1, axes[-1].length)
        # In space: across and up.
        down = 1 if axes[-1].length == 2 else 2
        across = 0
        if axes[-1].length == 3 and _span(array[..., 0]) < _span(array[..., 1]):
            across = 1
        members = range(min(array.shape[1], 12))
        letters = "xyz"
        found = [(f"{name}[{k + 1}]", array[:, k, across], array[:, k, down]) for k in members]
        if array.shape[1] == 1:
            found = [(name, array[:, 0, across], array[:, 0, down])]
        return letters[across], letters[down], found
    over_time = [name for name in run if run.description(name).split(" ")[0] in _SHOWN]
    found = []
    for name in over_time:
        times, (array,) = run._curve([name])
        flat = array.reshape(len(times), -1)
        found += [
            (label, times, flat[:, k])
            for k, label in zip(range(flat.shape[1]), run.components(name))
        ]
    return "t", "", found[:12]


_SHOWN = ("observable", "position", "state")


def _span(array: Array) -> float:
    finite = array[np.isfinite(array)]
    return float(finite.max() - finite.min()) if finite.size else 0.0


_COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#b07d2b", "#6a4c93", "#2a9d8f")


def _motion_svg(run: Run) -> str:
    """The motion as a small picture without dependencies."""
    across, up, found = curves(run)
    if not found or len(run.t) < 2:
        return ""
    xs = np.concatenate([x for _, x, _ in found])
    ys = np.concatenate([y for _, _, y in found])
    finite = np.isfinite(xs) & np.isfinite(ys)
    if not finite.any():
        return ""
    (x0, x1), (y0, y1) = (_range(values[finite]) for values in (xs, ys))
    width, height, margin = 480.0, 300.0, 36.0
    sx, sy = (width - 2 * margin) / (x1 - x0), (height - 2 * margin) / (y1 - y0)
    if across != "t":
        sx = sy = min(sx, sy)
    paths = []
    for k, (label, x, y) in enumerate(found):
        step = max(1, len(x) // max(1, _POINTS * 4 // max(4, len(found))))
        places = np.column_stack([margin + (x - x0) * sx, height - margin - (y - y0) * sy])[::step]
        text = " ".join(f"{a:.1f},{b:.1f}" for a, b in places if np.isfinite(a) and np.isfinite(b))
        colour = _COLOURS[k % len(_COLOURS)]
        paths.append(
            f"<polyline fill='none' stroke='{colour}' stroke-width='1' points='{text}'>"
            f"<title>{html.escape(label)}</title></polyline>"
        )
    labels = (
        f"<text x='{width / 2}' y='{height - 4}' text-anchor='middle'>{html.escape(across)}: "
        f"{x0:.4g} to {x1:.4g}</text>"
        f"<text x='12' y='{height / 2}' text-anchor='middle' transform='rotate(-90 12 {height / 2})'>"
        f"{html.escape(up) + ': ' if up else ''}{y0:.4g} to {y1:.4g}</text>"
    )
    return (
        f"<svg viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}' "
        f"style='background:#fff;font:11px sans-serif'>{''.join(paths)}{labels}</svg>"
    )


def _range(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return low - 0.5, high + 0.5
    return low, high
