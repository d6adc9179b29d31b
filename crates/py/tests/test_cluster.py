"""Ensembles in folders: gone on with, and computed by workers that are killed, with the same bits."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from distributed import LocalCluster

import holonome as ho

from .conftest import OSCILLATOR

#: Enough trajectories for several blocks, and steps for a block to take a while.
COUNT = 30_000
OPTIONS: ho.RunOptions = {
    "until": 100.0,
    "method": "rk4",
    "step": 0.01,
    "record": ["q"],
    "samples": 3,
}
ARGUMENTS = f"each={{'q': np.linspace(0, 1, {COUNT})}}, out='cloud', **{OPTIONS!r}"
SCRIPT = f"""
import numpy as np, holonome as ho
model = ho.Model('''{OSCILLATOR}''', name="oscillator")
print("begun", flush=True)
model.sweep({ARGUMENTS})
"""


def bits(folder: Path) -> dict[str, str]:
    """Checksums of all arrays of a store, by the files that hold their numbers."""
    sums = {}
    for file in sorted(folder.rglob("c.*")):
        sums[str(file.relative_to(folder))] = hashlib.sha256(file.read_bytes()).hexdigest()
    return sums


def model() -> ho.Model:
    return ho.Model(OSCILLATOR, name="oscillator")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ensemble by one process."""
    out = tmp_path_factory.mktemp("whole") / "cloud"
    made = model().sweep(each={"q": np.linspace(0, 1, COUNT)}, out=out, **OPTIONS)
    assert isinstance(made, xarray.Dataset) and made["q"].shape == (COUNT, 3)
    assert len(list((out / "done").glob("c.*"))) > 2, "there are several blocks"
    memory = model().sweep(each={"q": np.linspace(0, 1, COUNT)}, **OPTIONS)
    assert np.array_equal(made["q"], memory["q"])
    return out


def test_the_same_call_again_finds_it_done(whole: Path) -> None:
    before = bits(whole)
    again = model().sweep(each={"q": np.linspace(0, 1, COUNT)}, out=whole, **OPTIONS)
    assert again["q"].shape == (COUNT, 3) and bits(whole) == before
    assert np.array_equal(ho.open(whole)["q"], again["q"])
    with pytest.raises(ho.OptionError, match="another ensemble"):
        model().sweep(each={"q": np.linspace(0, 2, COUNT)}, out=whole, **OPTIONS)
    with pytest.raises(ho.OptionError, match="another ensemble"):
        model().set(k=2).sweep(each={"q": np.linspace(0, 1, COUNT)}, out=whole, **OPTIONS)


def test_a_grid_in_a_folder(tmp_path: Path) -> None:
    over: dict[str, Any] = {"k": [1.0, 4.0, 9.0], "q": np.linspace(0, 1, 5)}
    stored = model().sweep(until=3, over=over, out=tmp_path / "grid", record=["p"])
    memory = model().sweep(until=3, over=over, record=["p"])
    assert stored["p"].dims == memory["p"].dims == ("k", "q", "time")
    assert np.array_equal(stored["p"], memory["p"]) and np.array_equal(stored["k"], over["k"])
    assert np.array_equal(stored["p"].sel(k=4, method="nearest"), memory["p"][1])


def test_a_killed_script_goes_on(whole: Path, tmp_path: Path) -> None:
    for pause in (0.3, 0.6, None):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT], cwd=tmp_path, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        if pause is not None:
            time.sleep(pause)
            process.kill()
        process.wait()
        process.stdout.close()
    assert process.returncode == 0 and bits(tmp_path / "cloud") == bits(whole)


def test_a_worker_of_dask_is_killed(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "cloud"
    cluster: Any = LocalCluster  # it has no types
    made = cluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with made, made.get_client() as client:
        workers = list(client.run(os.getpid).values())
        killer = subprocess.Popen(["sh", "-c", f"sleep 0.4; kill -9 {workers[0]}"])
        found = model().sweep(each={"q": np.linspace(0, 1, COUNT)}, out=out, on=client, **OPTIONS)
        killer.wait()
    assert found["q"].shape == (COUNT, 3) and bits(out) == bits(whole)


def test_a_stand_in_for_slurm_kills_and_requeues(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "cloud"
    script = model().sweep(each={"q": np.linspace(0, 1, COUNT)}, out=out, on="slurm", **OPTIONS)
    text = script.read_text()
    assert "--array=0-" in text and "--requeue" in text
    count = int(text.split("--array=0-")[1].split()[0]) + 1

    def submit(task: int) -> subprocess.Popen[bytes]:
        numbers = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": str(count)}
        return subprocess.Popen(["sh", str(script)], env={**os.environ, **numbers})

    tasks = [submit(task) for task in range(count)]
    time.sleep(0.4)
    for task in tasks[:2]:
        task.send_signal(signal.SIGKILL)
    for number, task in enumerate(tasks):
        if task.wait() != 0:
            assert submit(number).wait() == 0
    assert bits(out) == bits(whole)
    status = [sys.executable, "-m", "holonome._command", "status", str(out)]
    assert subprocess.run(status, capture_output=True).returncode == 0


def test_what_is_no_client_is_refused(tmp_path: Path) -> None:
    each = {"q": np.linspace(0, 1, 4)}
    with pytest.raises(ho.OptionError, match="Client"):
        model().sweep(until=1, each=each, out=tmp_path / "cloud", on="pbs")
    with pytest.raises(ho.OptionError, match="out"):
        model().sweep(until=1, each=each, on="slurm")
