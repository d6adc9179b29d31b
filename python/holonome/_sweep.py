"""Ensembles."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _holonome
from ._errors import OptionError
from ._options import nearest
from ._progress import shown
from ._run import Arrays

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._model import Model
    from ._run import Array


class Ensemble(Arrays):
    """Arrays of an ensemble by name, with their dimensions."""

    _noun = "ensemble"


def sweep(
    model: Model,
    over: Mapping[str, ArrayLike] | None,
    each: Mapping[str, ArrayLike] | None,
    vary: Mapping[str, str] | None,
    trajectories: int | None,
    out: str | os.PathLike[str] | None,
    on: Any,
    progress: Any,
    options: dict[str, Any],
) -> Any:
    """Integrate an ensemble; see `Model.sweep`."""
    from ._model import _warn

    core = model._core
    grid = {name: _along(model, name, values, "over") for name, values in (over or {}).items()}
    given = {name: _along(model, name, values, "each") for name, values in (each or {}).items()}
    count = _count(grid, given, vary, trajectories)
    values = (
        count,
        list((vary or {}).items()),
        [(name, array.ravel()) for name, array in given.items()],
        list(grid.items()),
    )
    formulas = list(core.formulas.items())
    if out is not None:
        stored = _holonome.StoredSweep.create(
            core.problem, formulas, model._given, values, {**options, "out": os.fspath(out)}
        )
        return _stored(stored, on, progress)
    if on is not None:
        raise OptionError("on: workers share a folder: name it by out")
    with shown(progress, "trajectory") as callback:
        result, stopped = _holonome.Sweep.solve(
            core.problem, formulas, model._given, values, options, callback
        )
    _warn(result.warnings(), 4)
    if stopped is not None:
        raise stopped
    return _dataset(Ensemble(result), list(grid.values()))


def _stored(stored: _holonome.StoredSweep, on: Any, progress: Any) -> Any:
    """Compute what is missing of an ensemble in a folder, here or elsewhere, and open it."""
    from ._model import _warn

    if on == "slurm":
        from ._cluster import write_batch_script

        return write_batch_script(stored)
    done = set(stored.done())
    missing = [block for block in range(stored.blocks) if block not in done]
    if on is not None:
        from ._cluster import compute_on

        compute_on(on, stored.path, missing)
    else:
        with shown(progress, "trajectory") as callback:
            stopped = stored.compute(missing, callback)
        if stopped is not None:
            raise stopped
    summary = stored.finish()
    if summary is None:
        raise OptionError(f"blocks of {stored.path} are missing: call this again")
    import json

    _warn(json.loads(summary).get("warnings") or [], 5)
    return opened(stored.path)


def _along(model: Model, name: str, values: ArrayLike, what: str) -> Array:
    """Values of a name along its first dimension."""
    width = model._core.width(name)
    if width is None:
        raise TypeError(f"{what}: this model has no {name!r}: {nearest(name, model._core.known())}")
    array = np.array(values, dtype=float)
    if array.ndim == 0 or array.size != len(array) * width:
        shape = model._core.shapes.get(name, (width,) if width > 1 else ())
        wanted = ", ".join(["N", *map(str, shape)])
        raise OptionError(f"{what}: values of {name} have the shape ({wanted}), not {array.shape}")
    if what == "over" and width != 1:
        raise OptionError(f"over: {name} has {width} numbers: vary its components, or use each")
    return array


def _count(
    grid: Mapping[str, Array],
    each: Mapping[str, Array],
    vary: Mapping[str, str] | None,
    trajectories: int | None,
) -> int:
    counts = {name: len(array) for name, array in each.items()}
    if grid:
        counts["over"] = int(np.prod([len(array) for array in grid.values()], dtype=int))
    if trajectories is not None:
        counts["trajectories"] = int(trajectories)
    if not counts:
        what = (
            "vary needs trajectories" if vary else "an ensemble needs over, each, or trajectories"
        )
        raise OptionError(f"{what}=N")
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} for {name}" for name, count in counts.items())
        raise OptionError(f"the numbers of trajectories differ: {told}")
    return next(iter(counts.values()))


def _dataset(ensemble: Ensemble, grid: Sequence[Array]) -> Any:
    """The arrays of an ensemble with their dimensions, those of a grid first."""
    names = list(ensemble)
    axes = ensemble.dims(names[0])[: len(grid)] if names else []
    try:
        import xarray
    except ImportError:
        arrays = {name: ensemble[name] for name in names}
        return {**arrays, "time": ensemble.t, **dict(zip(axes, grid))}
    variables = {
        name: (
            ensemble.dims(name),
            ensemble[name],
            ensemble._described_by(name, ensemble.description(name)),
        )
        for name in names
    }
    coordinates = ensemble._coordinates(names)
    coordinates["time"] = ("time", ensemble.t, ensemble._described_by("t", "time"))
    coordinates.update({name: (name, values) for name, values in zip(axes, grid)})
    return xarray.Dataset(variables, coordinates, ensemble._attributes())


def opened(path: str | os.PathLike[str]) -> Any:
    """The ensemble in a folder: an ``xarray.Dataset`` whose arrays are read when they are used, or
    arrays by name where xarray or zarr is not installed."""
    try:
        import xarray
        import zarr  # noqa: F401 - xarray needs it
    except ImportError:
        ensemble = Ensemble(_holonome.Stored(os.fspath(path)))
        return {**{name: ensemble[name] for name in ensemble}, "time": ensemble.t}
    dataset = xarray.open_zarr(path, consolidated=True)
    names = {
        name: array.attrs["model_name"]
        for name, array in dataset.variables.items()
        if "model_name" in array.attrs and name not in dataset.dims
    }
    return dataset.rename(names).drop_vars("done", errors="ignore")
