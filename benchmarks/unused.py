"""`aclog unused` at a million rules, from the start of its process to its last line: windows of a day to ten years."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from aclog.authorizer.acls_image import AclsImage
from aclog.snapshots.checkpoints import write_checkpoint, write_image_file
from aclog.snapshots.image import Image, Provenance
from aclog.usage.unused import StateRules
from benchmarks import shapes, usage_index
from benchmarks.report import Row

_WINDOWS = (1, 30, 365, 3_650)
_TARGET = 1.0
"""Seconds."""


def run(scratch: Path, days: int) -> Iterator[Row]:
    """Yield rows for an index of so many days, on each of which another tenth of the rules is used."""
    log, index = scratch / "log", scratch / "index"
    log.mkdir()
    acls = AclsImage.from_columns(shapes.columns(shapes.million(usage_index.RULES)))
    path = write_checkpoint(Image(acls=acls, provenance=Provenance(end_offset=1, epoch=1, timestamp=1)), log)
    write_image_file(path)
    ids = StateRules.of(acls).ids
    usage_index.build(index, days, ids[np.random.default_rng(2).permutation(len(ids))])
    yield from measure(log, index, days)


def measure(log: Path, index: Path, days: int) -> Iterator[Row]:
    """Yield rows for a log of a million rules, and the index of so many days of them."""
    what = f"aclog unused, 1M rules, an index of {days:,} days"
    command = [sys.executable, "-m", "aclog", "unused", "--log", str(log), "--index", str(index), "--gap", "2d"]
    for length in _WINDOWS:
        if length <= days:
            took = [_seconds([*command, "--days", str(length)]) for _ in range(7)]
            yield Row(what=f"{what}: --days {length}, text", ours=median(took), unit="s", target=_TARGET)
            yield Row(what=f"{what}: --days {length}, text: the slowest of 7", ours=max(took), unit="s", target=_TARGET)
    last = max(length for length in _WINDOWS if length <= days)
    jsonl = [*command, "--days", str(last), "--format", "jsonl"]
    yield Row(what=f"{what}: --days {last}, a million JSON lines", ours=_seconds(jsonl), unit="s")


def _seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
    took = time.perf_counter() - start
    if code not in {0, 1}:
        raise AssertionError("aclog unused failed")
    return took
