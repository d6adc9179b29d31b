"""Runs: arrays, drifts, between the samples, folders, warnings, failures, interrupts."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import holonome as ho

from .conftest import OSCILLATOR


def test_arrays_are_those_of_the_samples(double: ho.Model) -> None:
    run = double.run(until=6, rtol=1e-10, samples=101)
    assert run.t.shape == (101,) and run["r"].shape == (101, 2, 3) and run["H"].shape == (101,)
    assert np.array_equal(run["r[2]"], run["r"][:, 1]) and np.array_equal(
        run["r[2].x"], run["r"][:, 1, 0]
    )
    assert np.array_equal(run["height[1]"], run["r"][:, 0, 2])
    assert not run["r"].flags.writeable and run["r"].base is not None, "they are not copied"
    assert list(run)[:2] == ["r", "p"] and "r" in run and "r[2].z" in run and "nothing" not in run
    with pytest.raises(KeyError, match="did you mean 'r'|known are"):
        run["rr"]
    with pytest.raises(KeyError):
        run["r[3]"]
    x = run["r"]
    del run
    assert np.isfinite(x).all(), "an array outlives its run"


def test_multipliers_have_the_shape_of_their_constraints(double: ho.Model) -> None:
    run = double.run(until=1, method="rattle", step=0.01, samples=11)
    assert run["lambda.upper"].shape == (11,)


def test_drifts_and_costs(double: ho.Model) -> None:
    run = double.run(until=6)
    assert {"H", "upper", "lower", "upper.hidden"} <= set(run.drift)
    assert run.drift["upper"].largest < 1e-14 and run.drift["H"].initial is not None
    assert run.cost.steps > 10 and run.cost.field > run.cost.steps and run.cost.seconds > 0
    assert run.method == "corrected:dop853" and not run.interrupted and run.warnings == []


def test_a_run_is_that_of_the_library(oscillator: ho.Model) -> None:
    run = oscillator.run(until="2*pi", step="2*pi/100", method="stormer-verlet-a", samples=101)
    q, p, h = 1.0, 0.0, 2 * np.pi / 100
    for k in range(1, 101):
        p -= h / 2 * q
        q += h * p
        p -= h / 2 * q
        assert abs(run["q"][k] - q) < 1e-13 and abs(run["p"][k] - p) < 1e-13


def test_between_the_samples(oscillator: ho.Model) -> None:
    for kept in (False, True):
        run = oscillator.run(until=10, samples=3, interpolant=kept)
        times = np.array([[0.5, 1.0], [2.5, 9.99]])
        assert np.allclose(run.at(times)["q"], np.cos(times), atol=1e-8)
        assert np.allclose(run.at(times, derivative=1)["q"], -np.sin(times), atol=1e-8)
        assert run.at(0.3)["q"].shape == ()
        with pytest.raises(ho.OptionError, match="outside"):
            run.at(10.5)
        with pytest.raises(ho.OptionError, match="derivative=2"):
            run.at(1.0, derivative=2)


def test_folders(double: ho.Model, tmp_path: Path) -> None:
    run = double.set(c=0.5).run(until=3)
    saved = run.save(tmp_path / "runs" / "double")
    direct = double.set(c=0.5).run(until=3, out=tmp_path / "direct")
    opened = ho.open(tmp_path / "runs" / "double")
    for other in (saved, direct, opened):
        assert other.path is not None
        for name in run:
            assert np.array_equal(other[name], run[name]), name
        assert other.drift.keys() == run.drift.keys()
        assert other.model.parameters["c"] == 0.5
        assert np.array_equal(other.at(1.23)["r"], run.at(1.23)["r"])
        assert other.report(tmp_path / "page.html").stat().st_size > 1000
    with pytest.raises(ho.OptionError, match="empty|exists"):
        run.save(tmp_path / "direct")
    with pytest.raises(ho.HolonomeError):
        ho.open(tmp_path)
    run.report(tmp_path / "memory.html")
    assert "double" in (tmp_path / "memory.html").read_text()


def test_runs_are_copied_as_arrays(double: ho.Model) -> None:
    run = double.run(until=2, samples=5)
    other = pickle.loads(pickle.dumps(run))
    assert all(np.array_equal(other[name], run[name]) for name in run) and len(other) == len(run)
    assert other.drift == run.drift and np.array_equal(other.at(1.1)["r"], run.at(1.1)["r"])


def test_warnings_are_python_warnings(oscillator: ho.Model) -> None:
    with pytest.warns(ho.HolonomeWarning, match="energy drifts"):
        run = oscillator.run(until=100, method="explicit-euler", step=0.1)
    assert run.warnings
    with pytest.warns(ho.HolonomeWarning) as caught:
        oscillator.run(until=100, method="explicit-euler", step=0.1)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"untill": 3}, TypeError, "did you mean 'until'"),
        ({"method": "rk5"}, ho.OptionError, "rk5"),
        ({"step": -1}, ho.OptionError, "step"),
        ({"step": 0.1, "rtol": 1e-5}, ho.OptionError, "exclude"),
        ({"record": ["qq"]}, ho.OptionError, "record.*qq"),
        ({"until": "2*"}, ho.OptionError, "until"),
        ({"until": [1]}, TypeError, "until"),
        ({"samples": 1.5}, TypeError, ""),
        ({"metric": "taxi"}, ho.OptionError, "taxi"),
    ],
)
def test_wrong_options_are_refused(
    oscillator: ho.Model, options: dict[str, object], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        oscillator.run(**options)  # type: ignore[arg-type]


WALL = "coordinate q : R = 0\nmomentum p of q = 1\nhamiltonian p^2/2 + sqrt(1.5 - q)"


@pytest.mark.parametrize("stored", [False, True])
def test_a_failed_run_keeps_what_it_had(tmp_path: Path, stored: bool) -> None:
    out = tmp_path / "fall" if stored else None
    with pytest.raises(ho.RunError) as caught:
        ho.Model(WALL).run(until=5, method="rk4", step=0.01, samples=501, out=out)
    error = caught.value
    assert error.t is not None and 0.5 < error.t < 1.5 and "t = " in error.reason
    assert error.partial is not None and error.partial is ho.last
    assert 50 < len(error.partial.t) < 150 and len(error.partial["q"]) == len(error.partial.t)


def test_progress_is_shown_and_may_stop(oscillator: ho.Model) -> None:
    seen: list[tuple[float, float, float]] = []

    def watch(t: float, until: float, drift: float) -> None:
        seen.append((t, until, drift))
        if len(seen) == 3:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        oscillator.run(until=1e9, method="rk4", step=0.01, samples=2, progress=watch)
    assert len(seen) == 3 and 0 < seen[0][0] < seen[2][0] < seen[0][1] == 1e9
    assert ho.last is not None and ho.last.interrupted
    oscillator.run(until=1, progress=True)
    # A run of a millisecond is shown at its end.
    ends: list[tuple[float, float, float]] = []
    run = oscillator.run(until=1, progress=lambda *now: ends.append(now))
    assert ends == [(1.0, 1.0, run.drift["H"].largest)]


INTERRUPTED = """
import os, signal, threading, time, holonome as ho
model = ho.Model('''%s''')
model.run(until=1, method="rk4", step=0.01)
def kill():
    global sent
    sent = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.5, kill).start()
try:
    %s
except KeyboardInterrupt:
    print(time.perf_counter() - sent, ho.last is not None and ho.last.t[-1] > 0)
"""


def test_ctrl_c_stops_soon_and_keeps_the_trajectory() -> None:
    run = 'model.run(until=1e9, method="rk4", step=0.01, every=1e5)'
    out = subprocess.run(
        [sys.executable, "-c", INTERRUPTED % (OSCILLATOR, run)], capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    delay, kept = out.stdout.split()
    # Signals are looked for every 0.04 s; the rest is for a busy machine.
    assert float(delay) < 1.0 and kept == "True"


def test_the_interpreter_goes_on_while_a_run_computes(oscillator: ho.Model) -> None:
    done = threading.Event()

    def compute() -> None:
        oscillator.run(until=2e5, method="rk4", step=0.01, samples=2)
        done.set()

    thread = threading.Thread(target=compute)
    thread.start()
    turns = 0
    while not done.is_set():
        time.sleep(0.001)
        turns += 1
    thread.join()
    assert turns > 3


def test_threads_share_a_model(oscillator: ho.Model) -> None:
    alone = [oscillator.set(k=k).run(until=50, samples=11)["q"] for k in range(1, 9)]
    found: dict[int, np.ndarray] = {}

    def compute(k: int) -> None:
        for _ in range(5):
            found[k] = oscillator.set(k=k).run(until=50, samples=11)["q"]

    threads = [threading.Thread(target=compute, args=(k,)) for k in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[k], alone[k - 1]) for k in range(1, 9))


def test_a_run_shows_itself(double: ho.Model) -> None:
    run = double.run(until=5)
    assert "upper.hidden" in repr(run) and "corrected:dop853" in repr(run)
    html = run._repr_html_()
    assert html.count("<polyline") == 2 and "upper.hidden" in html and len(html) < 1e6
    long = double.run(until=5, samples=200_001, record=["r"])
    assert len(long._repr_html_()) < 1e6


def test_comparisons(oscillator: ho.Model) -> None:
    compared = oscillator.compare(["rk4", "stormer-verlet-a"], steps=[0.1, 0.05], until=10)
    assert [row["method"] for row in compared.rows] == ["rk4"] * 2 + ["stormer-verlet-a"] * 2
    assert abs(compared.table["order"][1] - 4) < 0.2 and abs(compared.table["order"][3] - 2) < 0.2
    assert compared.table["error_final"].notna().all() and "rk4" in repr(compared)
    assert "rk4" in compared._repr_html_()
    with pytest.raises(TypeError, match="no option 'method'"):
        oscillator.compare(["rk4"], method="rk4")  # type: ignore[call-arg]


def test_the_command_is_that_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "oscillator.holo").write_text(OSCILLATOR)
    command = [sys.executable, "-m", "holonome._command"]
    done = subprocess.run(
        [*command, "run", "oscillator.holo", "--until", "5"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "stored in runs/oscillator-1" in done.stdout + done.stderr
    assert ho.open(tmp_path / "runs" / "oscillator-1").t[-1] == 5
    wrong = subprocess.run([*command, "run", "none.holo"], cwd=tmp_path, capture_output=True)
    assert wrong.returncode == 2 and b"none.holo" in wrong.stderr


def test_the_error_of_the_orbit(oscillator: ho.Model) -> None:
    run = oscillator.run(until=10, method="rk4", step=0.01, error=True, samples=11)
    # The motion is q = cos(t), p = -sin(t). The estimate is that of order 4, right to its first digit.
    actual = {"q": np.cos(run.t), "p": -np.sin(run.t)}
    assert list(run.error) == ["q", "p"] and "error of q" in repr(run)
    for name, error in run.error.items():
        largest = np.abs(run[name] - actual[name]).max()
        assert largest / 1.1 < error.largest < 1.1 * largest and error.final <= error.largest
    assert oscillator.run(until=1, samples=2).error == {}


MEASURED = """
coordinate q[i in 1..2] : R^2 = (1, 0.5*i)
momentum p of q = (0, 1)
hamiltonian sum(i in 1..2 : dot(p[i], p[i])/2 + i*dot(q[i], q[i])/2)
measure centre = mean(q[1])
measure shape  = histogram(i in 1..2 : q[i].x, -2, 2, 8)
measure memory = autocorrelation(q[1].x) every 0.5
"""


def test_measures_have_their_results(tmp_path: Path) -> None:
    import xarray as xr

    run = ho.Model(MEASURED).run(until=50, samples=3, out=tmp_path / "run")
    assert list(run.measures) == ["centre", "shape", "memory"]
    centre, shape = run.measures["centre"], run.measures["shape"]
    assert (
        centre.statistic == "mean(centre)" and centre.span == (0.0, 50.0) and centre.samples > 1000
    )
    assert centre.of == ["centre.x", "centre.y"] and centre["mean"].shape == (2,)
    # A circle of the period 2 pi is at its middle on average: what is left is a part of one round.
    assert np.abs(centre["mean"]).max() < 1.5 * 2 * np.pi / 50
    assert np.allclose(np.sum(shape["density"] * (shape["to"] - shape["from"])), 1)
    with pytest.raises(KeyError, match="from, to, density"):
        shape["mean"]
    with xr.open_datatree(tmp_path / "run", engine="zarr") as tree:
        groups = tree["measures"]
        assert np.array_equal(groups["centre/value"], centre["mean"])
        assert groups["centre/value"].dims == ("component_2",)
        assert list(groups["centre/value"].component_2.values) == ["x", "y"]
        assert np.array_equal(groups["shape/value"], shape["density"])
        assert np.array_equal(groups["shape/bin"], (shape["from"] + shape["to"]) / 2)
        assert groups["memory"].sizes["lag"] == len(run.measures["memory"]["time"])
        assert groups["memory"].attrs["measure"] == "autocorrelation(memory)"
    assert np.array_equal(ho.open(tmp_path / "run").measures["centre"]["mean"], centre["mean"])


def test_events_have_their_times(tmp_path: Path) -> None:
    model = ho.Model(
        """
        coordinate q[i in 1..2] = i
        momentum p[i] of q
        hamiltonian sum(i in 1..2 : p[i]^2 + q[i]^2)/2
        event zero[i in 1..2] : q[i] = 0 falling
        event up : q[1] = 0 rising
        """
    )
    run = model.run(until=9)
    quarters = np.pi / 2 * np.array([1, 1, 5, 5])
    assert run.events["zero"].t == pytest.approx(quarters, abs=1e-7)
    assert sorted(run.events["zero"].member[:2]) == [1, 2]
    assert list(run.events["up"].number) == [1] and run.ended_by is None
    # A state there, and the same from a folder.
    assert run.at(run.events["up"].t)["q"][0, 0] == pytest.approx(0, abs=1e-7)
    run.save(tmp_path / "run")
    stored = ho.open(tmp_path / "run")
    assert np.array_equal(stored.events["zero"].t, run.events["zero"].t)
    ended = model.run(until=9, until_event="up")
    assert ended.ended_by == "up" and ended.summary["t"] == pytest.approx(1.5 * np.pi, abs=1e-7)
    with pytest.raises(ho.OptionError, match="'down', which the model does not have"):
        model.run(until_event="down")
