"""Ensembles."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import xarray

import holonome as ho

from .conftest import OSCILLATOR


def test_over_is_an_outer_product(double: ho.Model) -> None:
    c, y = np.geomspace(1e-3, 1, 3), np.linspace(0, 0.5, 4)
    grid = double.sweep(until=2, over={"c": c, "p[2].y": y}, record=["r[2]"], samples=5)
    assert isinstance(grid, xarray.Dataset)
    assert grid["r[2]"].dims[:3] == ("c", "p[2].y", "time") and grid["r[2]"].shape == (3, 4, 5, 3)
    assert np.array_equal(grid["c"], c) and np.array_equal(grid["p[2].y"], y)
    for j in (0, 2):
        for k in (0, 3):
            alone = double.set({"c": c[j], "p[2].y": y[k]}).run(until=2, samples=5)
            here = grid["r[2]"].sel(c=c[j]).isel({"p[2].y": k})
            assert np.allclose(here, alone["r[2]"], atol=1e-9)


def test_each_has_arrays_along_trajectories(oscillator: ho.Model) -> None:
    k, p = np.array([1.0, 4.0, 9.0]), np.array([0.0, 1.0, 0.5])
    found = oscillator.sweep(until=3, each={"k": k, "p": p}, record=["q"])
    exact = np.cos(np.sqrt(k) * 3) + p / np.sqrt(k) * np.sin(np.sqrt(k) * 3)
    assert found["q"].dims == ("trajectory", "time")
    # The method's tolerance is 1e-9 a step.
    assert np.allclose(found["q"].isel(time=-1), exact, atol=1e-7)
    assert np.array_equal(found["k"], k) and not found["failed"].any()
    assert found.attrs["drift.H.largest"] < 1e-13


def test_families_vary_whole(double: ho.Model) -> None:
    starts = np.zeros((4, 2, 3))
    starts[:, 0, 0] = np.linspace(0, 1, 4)
    starts[:, 1, 0] = starts[:, 0, 0]
    cloud = double.sweep(until=1, each={"p": starts})
    assert np.array_equal(cloud["p"].isel(time=0), starts)
    one = double.sweep(until=1, each={"p[2]": starts[:, 1], "p[1]": starts[:, 0]})
    assert np.array_equal(cloud["r"], one["r"])


def test_formulas_vary_too(oscillator: ho.Model) -> None:
    found = oscillator.sweep(until=1, vary={"k": "1 + i"}, trajectories=3, record=["q"])
    assert np.allclose(found["q"][:, -1], np.cos(np.sqrt([1, 2, 3])), atol=1e-8)


def test_values_set_before_hold_for_all(oscillator: ho.Model) -> None:
    found = oscillator.set(q=2).sweep(until=1, over={"k": [1, 4]}, record=["q"])
    assert np.array_equal(found["q"].isel(time=0), [2, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"over": {"kk": [1]}}, TypeError, "did you mean 'k'"),
        ({"each": {"k": [1, 2], "q": [1, 2, 3]}}, ho.OptionError, "2 for k, 3 for q"),
        ({"each": {"k": [[1, 2], [3, 4]]}}, ho.OptionError, "shape"),
        ({}, ho.OptionError, "trajectories"),
        ({"vary": {"k": "1 + i"}}, ho.OptionError, "trajectories"),
        ({"over": {"k": [1]}, "untill": 1}, TypeError, "did you mean 'until'"),
    ],
)
def test_wrong_arguments_are_refused(
    oscillator: ho.Model, arguments: dict[str, object], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        oscillator.sweep(**arguments)  # type: ignore[arg-type]


def test_progress_of_an_ensemble(oscillator: ho.Model) -> None:
    seen: list[tuple[int, int, int]] = []
    each = {"q": np.linspace(0, 1, 20_000)}
    oscillator.sweep(until=200, each=each, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (20_000, 20_000, 0)
    oscillator.sweep(until=1, each={"q": [0.1, 0.2]}, progress=lambda *now: seen.append(now))
    assert seen[-1] == (2, 2, 0)


def test_without_xarray_there_are_arrays_by_name() -> None:
    code = f"""
import sys
sys.modules["xarray"] = None
import holonome as ho
grid = ho.Model('''{OSCILLATOR}''').sweep(until=1, over={{"k": [1, 2, 3]}}, record=["q"])
print(type(grid).__name__, grid["q"].shape, grid["k"].tolist())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.split("\n")[0] == "dict (3, 2) [1.0, 2.0, 3.0]", out.stderr
