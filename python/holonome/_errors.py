"""Errors and warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._run import Run


class HolonomeWarning(UserWarning):
    """A result may not be what it seems: the message says why, and what to do."""


class HolonomeError(Exception):
    """Base of all errors of this package.

    Attributes
    ----------
    facts : dict
        The facts of the error, for programs: ``kind``, ``message`` and those that apply.
    """

    facts: dict[str, Any] = {}


@dataclass(frozen=True)
class Diagnostic:
    """A mistake in a model, or a warning about it, with its place.

    Attributes
    ----------
    line, column : int
        The place, both from 1.
    text : str
        The mistake.
    help : str or None
        The remedy.
    label : str
        Note on the place.
    file : str
        The text in which it is: the model's, or an included file.
    severity : str
        ``"error"`` or ``"warning"``.
    """

    line: int
    column: int
    text: str
    help: str | None = None
    label: str = ""
    file: str = ""
    severity: str = "error"


class ModelError(HolonomeError, ValueError):
    """A model with mistakes; ``str`` shows each in its line, with a caret.

    Attributes
    ----------
    diagnostics : list of Diagnostic
        All findings, in the order of the text.

    Examples
    --------
    >>> import holonome as ho
    >>> try:
    ...     ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian p^2/2 + k*q^2")
    ... except ho.ModelError as error:
    ...     print(error.diagnostics[0].line, error.diagnostics[0].column)
    3 21
    """

    def __init__(self, message: str, diagnostics: list[Diagnostic] | None = None) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics or []


class OptionError(HolonomeError, ValueError):
    """An option or a value that makes no sense, or not for this model."""


class RunError(HolonomeError, RuntimeError):
    """A run that failed, or whose results could not be stored.

    Attributes
    ----------
    t : float or None
        Time that was reached.
    reason : str
        Why it failed.
    partial : Run or None
        The trajectory up to there.
    """

    def __init__(self, message: str, t: float | None = None, partial: Run | None = None) -> None:
        super().__init__(message)
        self.t = t
        self.reason = message
        self.partial = partial


def raised(kind: str, message: str, facts: str, partial: Any) -> HolonomeError:
    """Exception for an error of the compiled half, which calls this."""
    import json

    known: dict[str, Any] = json.loads(facts)
    error: HolonomeError
    if kind == "model":
        found = known.get("diagnostics") or []
        error = ModelError(message, [_diagnostic(one) for one in found])
    elif partial is not None or "t" in known or kind in ("full", "write"):
        error = RunError(message, known.get("t"))
        error.__dict__["_solution"] = partial
    else:
        error = OptionError(message)
    error.facts = known
    return error


def _diagnostic(facts: dict[str, Any]) -> Diagnostic:
    return Diagnostic(
        line=facts["line"],
        column=facts["column"],
        text=facts["message"],
        help=facts.get("help"),
        label=facts.get("label", ""),
        file=facts.get("file", ""),
        severity=facts.get("severity", "error"),
    )
