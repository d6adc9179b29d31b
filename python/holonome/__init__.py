"""holonome: mechanical systems with constraints and conserved quantities.

You write the physics as formulas; derivatives, hidden constraints and machine code are derived, and
trajectories stay on the constraint set.

Examples
--------
>>> import holonome as ho
>>> pendulum = ho.Model('''
...     coordinate q : R^3 = (0, 1, 0)
...     momentum   p of q  = (1, 0, -1)
...     hamiltonian dot(p, p)/2 + q.z
...     constraint  rod : dot(q, q) = 1
... ''')
>>> run = pendulum.run(until=20)
>>> run.drift["rod"].largest < 1e-14
True
"""

from __future__ import annotations

import sys as _sys
from typing import TYPE_CHECKING, Any

from . import _holonome, _model
from ._errors import (
    Diagnostic,
    HolonomeError,
    HolonomeWarning,
    ModelError,
    OptionError,
    RunError,
)
from ._model import Model, load
from ._options import RunOptions, SharedOptions
from ._run import Cost, Drift, Events, Measure, OrbitError, Run, open

if TYPE_CHECKING:
    from ._compare import Comparison
    from ._derived import Check, Integral, Integrals
    from ._flow import Flow
    from ._sympy import from_sympy

__version__: str = _holonome.__version__

__all__ = [
    "Check",
    "Comparison",
    "Cost",
    "Diagnostic",
    "Drift",
    "Events",
    "Flow",
    "HolonomeError",
    "HolonomeWarning",
    "Integral",
    "Integrals",
    "Measure",
    "Model",
    "ModelError",
    "OptionError",
    "OrbitError",
    "Run",
    "RunError",
    "RunOptions",
    "SharedOptions",
    "from_sympy",
    "last",
    "load",
    "methods",
    "open",
    "set_threads",
]

#: The last run that did not reach its end: interrupted by Ctrl-C, or failed.
last: Run | None


#: Modules of names that are imported when they are used.
_LATER = {
    "Check": "_derived",
    "Comparison": "_compare",
    "Flow": "_flow",
    "Integral": "_derived",
    "Integrals": "_derived",
    "from_sympy": "_sympy",
}


def __getattr__(name: str) -> Any:
    if name == "last":
        return _model.last
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module 'holonome' has no attribute {name!r}")


def methods() -> dict[str, str]:
    """Names of all methods with their descriptions.

    Examples
    --------
    >>> import holonome as ho
    >>> "rattle" in ho.methods()
    True
    """
    import json

    return dict(json.loads(_holonome.methods()))


def set_threads(count: int) -> None:
    """Set the number of threads on which ensembles and large sums are computed; before the first
    of them, and once. Results do not depend on it."""
    _holonome.set_threads(count)


def load_ipython_extension(shell: Any) -> None:
    """Make ``%%holo`` known: ``%load_ext holonome``. An import in a notebook does that, too."""
    from ._magic import register

    register(shell)


if "IPython" in _sys.modules:
    _shell = getattr(_sys.modules["IPython"], "get_ipython", lambda: None)()
    if _shell is not None:
        load_ipython_extension(_shell)
