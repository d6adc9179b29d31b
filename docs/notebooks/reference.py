"""Writes docs/python/reference.md: the public names of holonome with their docstrings.

Usage, with a Python that has holonome and its extras: ``python docs/notebooks/reference.py``.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import holonome

PAGE = Path(__file__).resolve().parent.parent / "python" / "reference.md"

#: Chapters of the page; a name that is in none makes a chapter at the end.
_CHAPTERS = {
    "Models": ["Model", "load", "from_sympy", "Check", "Integral", "Integrals"],
    "Runs": ["Run", "Drift", "OrbitError", "Measure", "Events", "Cost", "open", "last"],
    "Options": ["RunOptions", "SharedOptions", "methods", "set_threads"],
    "Flows and comparisons": ["Flow", "Comparison"],
    "Errors and warnings": [
        "HolonomeError",
        "ModelError",
        "Diagnostic",
        "OptionError",
        "RunError",
        "HolonomeWarning",
    ],
}

#: Sections of docstrings whose entries are names with their types.
_LISTS = {"Parameters", "Attributes", "Returns", "Raises", "Warns"}


def reference() -> str:
    """Text of the page."""
    named = [name for names in _CHAPTERS.values() for name in names]
    others = sorted(set(holonome.__all__) - set(named))
    chapters = {**_CHAPTERS, **({"Others": others} if others else {})}
    lines = [
        "<!-- Made from the docstrings by docs/notebooks/reference.py. -->",
        "",
        "# Reference of the Python package",
        "",
        *_wrapped(
            "Everything that `import holonome as ho` gives. Values and arrays have the names that "
            "they have in the model; options are those of [RunOptions](#runoptions)."
        ),
    ]
    for chapter, names in chapters.items():
        lines += ["", f"## {chapter}"]
        for name in names:
            if name in holonome.__all__:
                lines += ["", f"### {name}", "", *_entry(name)]
    return "\n".join(lines) + "\n"


def _entry(name: str) -> list[str]:
    if name == "last":
        return _wrapped(
            "The last run that did not reach its end: interrupted by Ctrl-C, or failed. `None` "
            "before there is one."
        )
    found = getattr(holonome, name)
    if not inspect.isclass(found):
        return [*_signature(f"ho.{name}", found), *_documented(found)]
    if hasattr(found, "__total__"):
        return [*_documented(found), *_keys(found)]
    lines: list[str] = []
    if name == "Model":
        lines += _signature("ho.Model", found.__init__)
    lines += _documented(found)
    for base in [one for one in found.__bases__ if one.__name__ in holonome.__all__]:
        lines += ["", f"A `{base.__name__}`."]
    fields = (
        {one.name for one in dataclasses.fields(found)} if dataclasses.is_dataclass(found) else {}
    )
    for own, member in _members(found):
        if own not in fields:
            lines += ["", f"#### {name}.{own}", "", *_member(own, member)]
    return lines


def _members(kind: type) -> list[tuple[str, Any]]:
    """Public members with docstrings, those of private bases too, in the order of the source."""
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if base.__module__.startswith("holonome") and not issubclass(base, BaseException):
            # The order of what is compiled differs between builds.
            compiled = base.__module__.endswith("._holonome")
            members = sorted(vars(base).items()) if compiled else vars(base).items()
            found.update((own, one) for own, one in members if own not in found)
    # The docstring of a compiled class tells of its call.
    called = inspect.isfunction(found.get("__call__"))
    shown = {
        own: one
        for own, one in found.items()
        if not own.startswith("_") or (own == "__call__" and called)
    }
    return [(own, one) for own, one in shown.items() if getattr(_plain(one), "__doc__", None)]


def _plain(member: Any) -> Any:
    """The function in a property or a method of a class."""
    return getattr(member, "fget", None) or getattr(member, "func", None) or member


def _member(own: str, member: Any) -> list[str]:
    function = _plain(member)
    if not inspect.isfunction(function):
        return _documented(function)
    head = [] if function is not member else _signature(own, function)
    return [*head, *_documented(function)]


def _signature(name: str, function: Any) -> list[str]:
    """The call without types, which the parameters' descriptions have."""
    signature = inspect.signature(function)
    parameters = [
        one.replace(annotation=one.empty)
        for own, one in signature.parameters.items()
        if own != "self"
    ]
    bare = signature.replace(parameters=parameters, return_annotation=signature.empty)
    call = f"{name.replace('__call__', 'flow')}{bare}"
    inside = call.partition("(")[2][:-1]
    wrapped = textwrap.fill(inside, 90, initial_indent="    ", subsequent_indent="    ")
    text = call if len(call) <= 96 else f"{call.partition('(')[0]}(\n{wrapped}\n)"
    return ["```text", *text.splitlines(), "```", ""]


def _keys(kind: type) -> list[str]:
    """Keys of a typed dictionary with the text below each."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    lines: list[str] = [""]
    for key, text in zip(body.body, body.body[1:]):
        if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(key.target, ast.Name) and isinstance(text.value, ast.Constant)
            told = _inline(str(text.value.value))
            lines += _item(f"**{key.target.id}** (`{ast.unparse(key.annotation)}`): {told}")
    for base in (ast.unparse(one) for one in body.bases):
        if base in holonome.__all__:
            lines += ["", f"All of [{base}](#{base.lower()}) besides."]
    return lines


def _documented(documented: Any) -> list[str]:
    """A docstring as Markdown."""
    text = inspect.getdoc(documented) or ""
    first, *rest = re.split(r"(?m)^(\w[\w ]*)\n-{3,}\n", text)
    lines = _paragraphs(first)
    for title, body in zip(rest[::2], rest[1::2]):
        lines += ["", f"*{title}*", ""]
        if title == "Examples":
            lines += ["```pycon", *body.strip().splitlines(), "```"]
        elif title in _LISTS:
            lines += _list(body)
        else:
            lines += _paragraphs(body)
    return lines


def _list(body: str) -> list[str]:
    lines: list[str] = []
    entries = re.split(r"(?m)^(?=\S)", body.strip("\n"))
    for entry in [one for one in entries if one.strip()]:
        head, _, told = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        shown = ", ".join(f"**{one.strip()}**" for one in names.replace("*", r"\*").split(","))
        described = " ".join(textwrap.dedent(told).split())
        text = shown + (f" (`{kind}`)" if kind else "") + (f": {described}" if described else "")
        lines += _item(_inline(text))
    return lines


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines += [""] * bool(lines) + _wrapped(_inline(" ".join(paragraph.split())))
    return lines


def _inline(text: str) -> str:
    return text.replace("``", "`")


def _item(text: str) -> list[str]:
    return textwrap.wrap(
        text, 106, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 106, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(reference())
