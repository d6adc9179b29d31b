"""Ensembles that several processes compute: they share a folder, and get numbers of blocks."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _holonome
from ._errors import OptionError

#: Ensembles that this process has opened, by their paths: a block begins within milliseconds.
_OPENED: dict[str, _holonome.StoredSweep] = {}

#: Attempts at a block after the first one.
RETRIES = 3


def compute_block(path: str, block: int) -> int:
    """Compute a block of the ensemble in a folder, which holds all that is needed; a block that is
    done is left as it is. Returns its number: results are in the folder only."""
    stored = _OPENED.get(path)
    if stored is None:
        stored = _OPENED.setdefault(path, _holonome.StoredSweep.open(path))
    stopped = stored.compute([block], None)
    if stopped is not None:
        raise stopped
    return block


def compute_on(client: Any, path: Path, blocks: Sequence[int]) -> None:
    """Compute blocks by the workers of a ``dask.distributed.Client``, all of which reach the
    folder. A worker that is lost costs the blocks that it was computing."""
    if not hasattr(client, "map") or not hasattr(client, "gather"):
        raise OptionError(f"on: a dask.distributed.Client, or 'slurm', not {type(client).__name__}")
    if not blocks:
        return
    folder = os.path.abspath(path)
    futures = client.map(
        compute_block, [folder] * len(blocks), list(blocks), retries=RETRIES, pure=False
    )
    client.gather(futures)


def write_batch_script(stored: _holonome.StoredSweep) -> Path:
    """Write a batch script for Slurm beside the folder of an ensemble: an array of tasks, each of
    which computes a share of the blocks. Returns its path; ``sbatch`` submits it."""
    folder = os.path.abspath(stored.path)
    script = Path(f"{folder}.sbatch")
    tasks = max(1, min(stored.blocks, 256))
    name = shlex.quote(Path(folder).name)
    command = f"{shlex.quote(sys.executable)} -m holonome._command"
    script.write_text(
        f"""#!/bin/sh
#SBATCH --job-name={name}
#SBATCH --array=0-{tasks - 1}
#SBATCH --requeue
#SBATCH --cpus-per-task=1
exec {command} resume {shlex.quote(folder)} --worker env --threads "${{SLURM_CPUS_PER_TASK:-1}}"
"""
    )
    return script
