"""What the engine derives of a model."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload


class Check:
    """What is derived of a model; made by `Model.check`. Prints as ``holonome check`` does, or
    ``holonome check --verbose``.

    Attributes
    ----------
    facts : dict
        Everything, as the command line's ``--json`` prints it.
    text, long_text : str
        For people; the long one has the details.
    """

    def __init__(self, text: str, long_text: str, facts: str, verbose: bool = False) -> None:
        self.text, self.long_text = text, long_text
        self._shown = long_text if verbose else text
        self.facts: dict[str, Any] = json.loads(facts)

    @property
    def degrees_of_freedom(self) -> int | None:
        """Degrees of freedom; of a vector field the dimension of its manifold."""
        degrees: int | None = self.facts.get("degrees_of_freedom")
        return degrees

    @property
    def advice(self) -> list[str]:
        """Which method to take, and why."""
        return list(self.facts.get("advice") or [])

    @property
    def notes(self) -> list[str]:
        """Remarks."""
        return list(self.facts.get("notes") or [])

    def __repr__(self) -> str:
        return self._shown.rstrip()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._shown)}</pre>"


@dataclass(frozen=True)
class Integral:
    """A first integral that was found.

    Attributes
    ----------
    formula : str
        In the language of models.
    degree : int
        Largest number of factors of its terms.
    residual : float
        Largest rate over the sum of the absolute values of its terms, at other points than those of
        the search.
    holds : str
        For which values of the parameters it is one.
    """

    formula: str
    degree: int
    residual: float
    holds: str


class Integrals(Sequence[Integral]):
    """First integrals that a model does not state; made by `Model.integrals`."""

    def __init__(self, text: str, facts: str) -> None:
        self.text = text
        self.facts: dict[str, Any] = json.loads(facts)
        self._found = [
            Integral(one["formula"], one["degree"], one["residual"], one["holds"])
            for one in self.facts["integrals"]
        ]

    @overload
    def __getitem__(self, place: int) -> Integral: ...

    @overload
    def __getitem__(self, place: slice) -> list[Integral]: ...

    def __getitem__(self, place: int | slice) -> Integral | list[Integral]:
        return self._found[place]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Integral]:
        return iter(self._found)

    def __repr__(self) -> str:
        return self.text.rstrip()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"
