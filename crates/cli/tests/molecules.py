"""Reads trajectories that `holonome export` wrote with MDAnalysis, and compares them with the CSV of the same run.

Usage: molecules.py FOLDER, which holds run.csv, run.xyz, run.pdb, run.dcd and run.xtc.
"""

import csv
import sys
import warnings

import MDAnalysis
import numpy as np

# What a file does not say (masses, boxes, chains) is not what is tested.
warnings.simplefilter("ignore")

folder = sys.argv[1]
with open(f"{folder}/run.csv", newline="") as file:
    header, *rows = csv.reader(file)
columns = [k for k, name in enumerate(header) if name.startswith("x[")]
values = np.array(rows, dtype="float64")
expected = values[:, columns].reshape(len(rows), -1, 3)
times = values[:, header.index("t")]

# MDAnalysis keeps positions in single precision: half a unit in the last place of 4 Å or less. A PDB file has three
# decimals. An XTC file has thousandths of its unit, nm, which MDAnalysis turns into Å.
single = 4 * 2.0**-24
TOLERANCES = {"xyz": single, "pdb": 5e-4 + single, "dcd": 2 * single, "xtc": 5e-3 + 2 * single}
for kind, tolerance in TOLERANCES.items():
    files = [f"{folder}/run.{kind}"] if kind in ("xyz", "pdb") else [f"{folder}/run.pdb", f"{folder}/run.{kind}"]
    universe = MDAnalysis.Universe(*files)
    assert len(universe.trajectory) == len(rows), (kind, len(universe.trajectory))
    assert len(universe.atoms) == expected.shape[1], (kind, len(universe.atoms))
    largest = 0.0
    for frame, positions in zip(universe.trajectory, expected):
        largest = max(largest, float(np.abs(frame.positions - positions).max()))
    assert largest <= tolerance, (kind, largest, tolerance)
    # The samples differ by more than that: a frame that is read twice shows.
    assert np.abs(np.diff(expected, axis=0)).max() > 2 * tolerance
    if kind == "xtc":
        read = np.array([frame.time for frame in universe.trajectory])
        assert np.abs(read - times).max() <= 1e-6, (read, times)
    print(kind, "differs by", largest, "at most")
