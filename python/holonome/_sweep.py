"""Ensembles."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
    formulas = list(core.formulas.items())
    with shown(progress, "trajectory") as callback:
        result, stopped = _holonome.Sweep.solve(
            core.problem,
            formulas,
            model._given,
            count,
            list((vary or {}).items()),
            [*_product(grid), *((name, array.ravel()) for name, array in given.items())],
            options,
            callback,
        )
    _warn(result.warnings(), 4)
    ensemble = Ensemble(result)
    if stopped is not None:
        raise stopped
    return _dataset(ensemble, grid)


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


def _product(grid: Mapping[str, Array]) -> list[tuple[str, Array]]:
    """Values of every trajectory of an outer product, the last name fastest."""
    meshes = np.meshgrid(*grid.values(), indexing="ij") if grid else []
    return [(name, np.ravel(mesh)) for name, mesh in zip(grid, meshes)]


def _dataset(ensemble: Ensemble, grid: Mapping[str, Array]) -> Any:
    """The arrays of an ensemble with the dimensions of its grid."""
    lengths = [len(array) for array in grid.values()]

    def shaped(name: str) -> tuple[list[str], Array]:
        dims, array = ensemble.dims(name), ensemble[name]
        if not grid:
            return dims, array
        return [*grid, *dims[1:]], array.reshape(*lengths, *array.shape[1:])

    try:
        import xarray
    except ImportError:
        arrays = {name: shaped(name)[1] for name in ensemble}
        return {**arrays, "time": ensemble.t, **grid}
    # A value that is a coordinate is no variable besides.
    names = [name for name in ensemble if name not in grid]
    variables = {name: (*shaped(name), {"long_name": ensemble.description(name)}) for name in names}
    coordinates = ensemble._coordinates(names)
    coordinates["time"] = ("time", ensemble.t, {"long_name": "time"})
    coordinates.update({name: (name, array) for name, array in grid.items()})
    return xarray.Dataset(variables, coordinates, ensemble._attributes())


def opened(stored: _holonome.Stored) -> Any:
    """The ensemble in a folder, as `Model.sweep` returns one."""
    return _dataset(Ensemble(stored), {})
