"""Progress of computations: a bar, or a callable."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def shown(progress: Any, unit: str) -> Iterator[Callable[..., object] | None]:
    """What the compiled half calls with the progress, if anything.

    Parameters
    ----------
    progress : bool or callable
        True for a bar by tqdm, or nothing where that is not installed.
    unit : str
        ``"t"`` if the first two arguments are times; otherwise they are counts.
    """
    if not progress:
        yield None
    elif callable(progress):
        yield progress
    else:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            yield None
            return
        with tqdm(unit=unit, total=1.0 if unit == "t" else None, leave=False) as bar:
            if unit == "t":
                bar.bar_format = "{l_bar}{bar}| [{elapsed}<{remaining}{postfix}]"
            yield _on(bar, unit)


def _on(bar: Any, unit: str) -> Callable[..., object]:
    def of_run(t: float, until: float, drift: float) -> None:
        bar.set_postfix_str(f"t = {t:.6g} of {until:.6g}, drift {drift:.1e}", refresh=False)
        bar.update(t / until - bar.n if until else 0.0)

    def of_sweep(done: int, of: int, failed: int) -> None:
        bar.total = of
        if failed:
            bar.set_postfix_str(f"{failed} failed", refresh=False)
        bar.update(done - bar.n)

    return of_run if unit == "t" else of_sweep
