"""What users do with results: xarray, pandas, matplotlib, SciPy, IPython."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbclient
import nbformat
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import holonome as ho

from .conftest import OSCILLATOR


def test_xarray_and_pandas(double: ho.Model, tmp_path: Path) -> None:
    run = double.run(until=2, samples=11)
    data = run.to_xarray()
    assert data["r"].dims == ("time", "i", "component_3") and data["r"].attrs["long_name"]
    assert np.array_equal(data["r"].sel(i=2, component_3="z"), run["r[2].z"])
    local = data["height"] - data["r"].sel(component_3="z")
    assert local.dims == ("time", "i") and not local.any()
    data.to_netcdf(tmp_path / "double.nc")
    frame = run.to_pandas()
    assert frame.shape[0] == 11 and np.array_equal(frame["r[2].z"], run["r[2].z"])
    assert frame.index.name == "t" and "H" in frame


def test_matplotlib(double: ho.Model) -> None:
    run = double.run(until=5)
    ax = run.plot("r[2].x", "r[2].z")
    (line,) = ax.get_lines()
    assert np.array_equal(line.get_xdata(), run["r[2].x"]) and ax.get_xlabel() == "r[2].x"
    plt.figure()
    ax = run.plot("t", "H", "height[1]", linestyle="--")
    assert [line.get_label() for line in ax.get_lines()] == ["H", "height[1]"]
    plt.figure()
    assert len(run.plot("r").get_lines()) == 6
    picture = run.plot()
    assert len(picture.figure.axes) == 2 and len(picture.get_lines()) == 2
    plt.close("all")


def test_scipy_integrates_the_field(double: ho.Model) -> None:
    run = double.run(until=2, samples=5, rtol=1e-11)
    other = solve_ivp(double.field, (0, 2), double.state, rtol=1e-11, atol=1e-12, t_eval=run.t)
    assert np.allclose(double.unpack(other.y.T)["r"], run["r"], atol=1e-8)
    other = solve_ivp(
        double.field, (0, 2), double.state, method="Radau", vectorized=True, rtol=1e-6, t_eval=run.t
    )
    assert np.allclose(double.unpack(other.y.T)["r"], run["r"], atol=1e-3)


def test_scipy_finds_a_value_by_runs(oscillator: ho.Model) -> None:
    # The stiffness with which half a period takes the time 1 is pi^2.
    def miss(k: float) -> float:
        return float(oscillator.set(k=k).run(until=1, samples=2, rtol=1e-12)["p"][-1])

    assert abs(brentq(miss, 8, 12, xtol=1e-13) - np.pi**2) < 1e-8


def test_a_notebook_runs(tmp_path: Path) -> None:
    cells = [
        "import holonome as ho, numpy as np, warnings; warnings.simplefilter('error')",
        f"%%holo oscillator\n{OSCILLATOR}",
        "run = oscillator.set(k=4).run(until=10, progress=True); run",
        "ax = run.plot(); assert ax.get_lines()",
        "run.to_xarray()",
        "%load_ext holonome",
    ]
    made: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{k}",
            "source": cell,
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        for k, cell in enumerate(cells)
    ]
    notebook = nbformat.from_dict(  # type: ignore[no-untyped-call]
        {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    )
    nbclient.NotebookClient(notebook, timeout=120).execute(cwd=str(tmp_path))
    shown = [output for cell in notebook.cells for output in cell.outputs]
    pages = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert any("hamiltonian" in page for page in pages) and any("<svg" in page for page in pages)


def test_a_script_of_a_user_is_typed(tmp_path: Path) -> None:
    script = tmp_path / "user.py"
    script.write_text(
        textwrap.dedent(
            """
            import numpy as np
            import holonome as ho

            model = ho.Model("coordinate q : R = 1\\nmomentum p of q = 0\\nhamiltonian (p^2 + q^2)/2")
            run: ho.Run = model.set(p=0.5).run(until=10, rtol=1e-10, samples=11)
            end: float = float(run["q"][-1])
            drift: float = run.drift["H"].largest
            flow = model.flow(1.0, method="gauss16", step=0.1)
            x1 = flow(np.array([1.0, 0.0]))
            names: list[str] = [one.formula for one in model.integrals()]
            print(end, drift, x1.sum(), names, run.cost.steps, run.warnings, model.check().advice)
            try:
                ho.load("none.holo")
            except ho.HolonomeError as error:
                print(error.facts)
            """
        )
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(script)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    wrong = tmp_path / "wrong.py"
    wrong.write_text(script.read_text().replace("rtol=1e-10", "rtoll=1e-10"))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(wrong)], capture_output=True, text=True
    )
    assert checked.returncode == 1 and "rtoll" in checked.stdout


def test_a_picture_of_few_samples_is_smooth(double: ho.Model) -> None:
    run = double.run(until=3, method="gauss8", step=0.05)
    assert len(run.t) == 61
    ax = run.plot()
    try:
        x = np.asarray(ax.get_lines()[1].get_xdata())
        times = np.linspace(0, 3, len(x))
        assert len(x) > 1000 and np.array_equal(x, run.at(times)["r"][:, 1, 0])
        # Chosen samples are drawn as they are.
        few = double.run(until=3, samples=5)
        assert np.shape(few.plot().get_lines()[0].get_xdata()) == (5,)
    finally:
        plt.close("all")
