"""Exports of the command line, read by the programs that they are for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import xarray as xr

import holonome as ho

from .conftest import DOUBLE, OSCILLATOR


def command(*words: str | Path) -> bytes:
    line = [sys.executable, "-m", "holonome._command", *map(str, words)]
    done = subprocess.run(line, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def stored(folder: Path, kind: str) -> Path:
    """A run, or an ensemble, of each kind."""
    (folder / "double.holo").write_text(DOUBLE)
    (folder / "oscillator.holo").write_text(OSCILLATOR)
    double, oscillator = folder / "double.holo", folder / "oscillator.holo"
    sweep: list[str | Path] = [
        "sweep",
        oscillator,
        "--until",
        "3",
        "--quiet",
        "--out",
        folder / "run",
    ]
    grid: list[str | Path] = ["--over", "k=1..2,3", "--over", "q=list(1,2.5)"]
    many: list[str | Path] = ["--over", "k=1..2,300", "--over", "q=1..2,300", "--record", "q"]
    commands: dict[str, list[str | Path]] = {
        "run": [
            "run",
            double,
            "--until",
            "3",
            "--samples",
            "7",
            "--quiet",
            "--out",
            folder / "run",
        ],
        "ensemble": [*sweep, "--vary", "k=1 + i/N", "--trajectories", "5", "--samples", "4"],
        "grid": [*sweep, *grid, "--samples", "4"],
        "part of a grid": [*sweep, *many, "--blocks", "0..1"],
        "nothing recorded": [*sweep, *grid, "--record", "none"],
    }
    command(*commands[kind])
    return folder / "run"


KINDS = ["run", "ensemble", "grid", "part of a grid", "nothing recorded"]


@pytest.mark.parametrize("kind", KINDS)
def test_netcdf_has_what_the_store_has(kind: str, tmp_path: Path) -> None:
    run, file = stored(tmp_path, kind), tmp_path / "run.nc"
    command("export", run, "--netcdf", file)
    assert command("export", run, "--netcdf", "-") == file.read_bytes()
    with xr.open_zarr(run) as store:
        for engine in ("netcdf4", "scipy"):
            with xr.open_dataset(file, engine=engine) as read:
                own = {"done"} if "done" in store else set()
                own |= {
                    name for name in store.variables if kind == "nothing recorded" and name in "kq"
                }
                assert set(read.variables) == set(store.variables) - own
                for name, array in read.variables.items():
                    wanted = store[name]
                    assert (
                        array.dims == wanted.dims
                        and array.attrs.items()
                        >= {
                            key: value
                            for key, value in wanted.attrs.items()
                            if "holonome" not in key and key not in ("first", "index_name")
                        }.items()
                    )
                    if array.dtype.kind == "f":
                        missing = np.isnan(wanted.values)
                        assert np.array_equal(array.values, wanted.values, equal_nan=True)
                        assert missing.any() == (kind == "part of a grid" and array.ndim > 1)
                    else:
                        assert list(array.values) == list(wanted.values)
                shared = store.attrs.keys() & read.attrs.keys()
                assert {"model", "source", "method"} <= shared
                assert (
                    ("cost.field" in shared) == ("status" in shared) == (kind != "part of a grid")
                )
                assert all(np.all(store.attrs[key] == read.attrs[key]) for key in shared)


@pytest.mark.parametrize("kind", KINDS)
def test_parquet_is_the_table_of_the_csv(kind: str, tmp_path: Path) -> None:
    run, file, csv = stored(tmp_path, kind), tmp_path / "run.parquet", tmp_path / "run.csv"
    command("export", run, "--parquet", file)
    command("export", run, "--csv", csv)
    table = pd.read_parquet(file)
    assert table.equals(pd.read_csv(csv)) and len(table) > 0
    metadata = pyarrow.parquet.read_metadata(file)
    attributes = {key.decode(): value.decode() for key, value in metadata.metadata.items()}
    assert "hamiltonian" in attributes["source"]
    if kind != "part of a grid":
        assert attributes["status"] == "finished"


def test_an_ensemble_that_has_not_begun_is_exported(tmp_path: Path) -> None:
    (tmp_path / "oscillator.holo").write_text(OSCILLATOR)
    sweep: list[str | Path] = [
        "sweep",
        tmp_path / "oscillator.holo",
        "--until",
        "3",
        "--out",
        tmp_path / "run",
    ]
    # Exports have the trajectories that are done from the first one on.
    command(*sweep, "--vary", "q=1 + i/N", "--trajectories", "40000", "--blocks", "1..2")
    command("export", tmp_path / "run", "--netcdf", tmp_path / "run.nc")
    command("export", tmp_path / "run", "--parquet", tmp_path / "run.parquet")
    for engine in ("netcdf4", "scipy"):
        with xr.open_dataset(tmp_path / "run.nc", engine=engine) as read:
            assert dict(read.sizes) == {"trajectory": 0, "time": 2}
            assert read["q"].dims == ("trajectory", "time")
    assert pd.read_parquet(tmp_path / "run.parquet").shape[0] == 0


def test_labels_beyond_32_bits_make_the_larger_format(tmp_path: Path) -> None:
    most = 3_000_000_000
    text = f"coordinate q[i in {most}..{most + 2}] : R = 1\nmomentum p of q = 0\n"
    text += f"hamiltonian sum(i in {most}..{most + 2} : (p[i]^2 + q[i]^2)/2)"
    ho.Model(text).run(until=1, samples=3).save(tmp_path / "run")
    command("export", tmp_path / "run", "--netcdf", tmp_path / "run.nc")
    assert (tmp_path / "run.nc").read_bytes().startswith(b"CDF\x05")
    with xr.open_dataset(tmp_path / "run.nc") as read:
        assert list(read["i"].values) == [most, most + 1, most + 2] and read["q"].shape == (3, 3)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("codec", ["plain", "zstd", "gzip"])
def test_values_of_trajectories_come_from_zarr(
    version: Literal[2, 3], codec: str, tmp_path: Path
) -> None:
    import numcodecs
    import zarr
    import zarr.codecs

    starts = np.random.default_rng(1).normal(size=(7, 2))
    compressors: dict[tuple[int, str], Any] = {
        (2, "zstd"): numcodecs.Zstd(),
        (2, "gzip"): numcodecs.GZip(),
        (3, "zstd"): zarr.codecs.ZstdCodec(checksum=True),
        (3, "gzip"): zarr.codecs.GzipCodec(),
    }
    group = zarr.open_group(tmp_path / "starts.zarr", mode="w", zarr_format=version)
    # Chunks that the array does not fill, a value that is not stored, and bytes in another order.
    kinds = {"q": "<f8", "small": "<f4", "big": ">f8", "whole": "<i8"}
    for name, kind in kinds.items():
        array = group.create_array(
            name,
            shape=starts.shape,
            chunks=(3, 1),
            dtype=kind,
            fill_value=0,
            compressors=compressors.get((version, codec)),
        )
        array[:] = np.where(np.arange(7)[:, None] < 3, 0, (4 * starts).round() / 2)
    (tmp_path / "plane.holo").write_text(
        "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian (dot(p, p) + dot(q, q))/2"
    )
    for name in kinds:
        out = tmp_path / f"{name}.runs"
        each = f"q={tmp_path / 'starts.zarr'}:{name}"
        command("sweep", tmp_path / "plane.holo", "--each", each, "--until", "1", "--out", out)
        with xr.open_zarr(out) as runs:
            assert np.array_equal(runs["q"].isel(time=0), np.asarray(group[name], dtype=float))


def test_zarr_that_is_not_read_is_named(tmp_path: Path) -> None:
    import zarr

    (tmp_path / "oscillator.holo").write_text(OSCILLATOR)
    group = zarr.open_group(tmp_path / "starts.zarr", mode="w", zarr_format=2)
    import numcodecs

    group.create_array("q", shape=(3,), dtype="f8", compressors=numcodecs.Blosc())
    group.create_array("words", shape=(3,), dtype="i1", compressors=None)
    line = [sys.executable, "-m", "holonome._command", "sweep", str(tmp_path / "oscillator.holo")]
    for name, reason in {
        ":q": "with blosc, and only Zstandard and gzip are read",
        ":words": "|i1",
        ":none": "has no array none",
        "": "name one of its arrays behind a colon",
    }.items():
        each = f"q={tmp_path / 'starts.zarr'}{name}"
        done = subprocess.run(
            [*line, "--each", each, "--until", "1"], capture_output=True, text=True
        )
        assert done.returncode == 2 and reason in done.stderr, done.stderr
