"""Comparisons of methods."""

from __future__ import annotations

import html
from typing import Any


class Comparison:
    """Methods side by side on one model; made by `Model.compare`.

    Attributes
    ----------
    facts : dict
        Everything, as the command line's ``--json`` prints it.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts

    @property
    def warnings(self) -> list[str]:
        """Warnings."""
        return list(self.facts.get("warnings") or [])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each method with each step or tolerance: ``method``, ``step``, ``rtol``,
        ``steps``, ``error_final`` and ``error_largest`` (distances from the reference), ``order``
        (measured against the row above), ``H`` and the names of other invariants (their largest
        drift), ``field``, ``gradient``, ``seconds``, ``failure``."""
        return [_row(row) for row in self.facts["rows"]]

    @property
    def table(self) -> Any:
        """The rows as a ``pandas.DataFrame``; as a list of dictionaries without pandas."""
        try:
            import pandas
        except ImportError:
            return self.rows
        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        columns = ["method", "step", "rtol", "error_final", "error_largest", "order", "seconds"]
        used = [name for name in columns if any(row.get(name) is not None for row in self.rows)]
        lines = [used] + [[_cell(row.get(name)) for name in used] for row in self.rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(used))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        table = self.table
        if hasattr(table, "to_html"):
            return str(table.to_html(index=False, float_format=lambda value: f"{value:.3g}"))
        return f"<pre>{html.escape(repr(self))}</pre>"


def _row(facts: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {name: facts.get(name) for name in ("method", "step", "rtol", "steps")}
    error = facts.get("error") or {}
    row["error_final"], row["error_largest"] = _error(error, "final"), _error(error, "max")
    row["order"] = facts.get("order")
    drift = facts.get("drift") or {}
    if drift.get("hamiltonian"):
        row["H"] = drift["hamiltonian"].get("max")
    for kind in ("constraints", "integrals"):
        row.update({name: one.get("max") for name, one in (drift.get(kind) or {}).items()})
    cost = facts.get("cost") or {}
    row.update(field=cost.get("field"), gradient=cost.get("gradient"))
    row["seconds"] = cost.get("wall_seconds")
    failure = facts.get("failure")
    row["failure"] = failure.get("message") if failure else None
    return row


def _error(error: dict[str, Any], which: str) -> Any:
    value = error.get("positions", error)
    value = value.get(which) if isinstance(value, dict) else value
    return value if isinstance(value, (int, float)) else None


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
