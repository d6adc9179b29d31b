"""The cell magic ``%%holo``."""

from __future__ import annotations

from typing import Any

from ._model import Model


def holo(line: str, cell: str) -> Model:
    """Make a model of a cell: ``%%holo pendulum`` binds it to the name ``pendulum``, or to
    ``model`` without one."""
    from IPython import get_ipython

    name = line.strip() or "model"
    if not name.isidentifier():
        raise ValueError(f"%%holo takes the name of a variable, not {name!r}")
    model = Model(cell, name=name)
    get_ipython().user_ns[name] = model
    return model


def register(shell: Any) -> None:
    """Make the magic known to a shell of IPython."""
    shell.register_magic_function(holo, "cell", "holo")
