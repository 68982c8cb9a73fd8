"""Replay of a million ACL records into a ready authorizer vs. Kafka's own readers, and its memory.

`python -m benchmarks.replay DIRECTORY` is the measured process: it prints one line of JSON.
"""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.control_records import LeaderChange, LeaderChangeVoter, control_batch
from aclog.metalog.errors import plural
from aclog.metalog.filelog.file_log import SEGMENT_BYTES
from aclog.metalog.filelog.files import segment_name, write_epochs
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import recover
from benchmarks import shapes
from benchmarks.report import Row
from benchmarks.rival import Rival

RATE_TARGET = 5.0
SINGLE_TARGET = 8.0
"""Of a log as a real cluster's is: most batches hold one record."""
BYTES_TARGET = 350.0
SMALL_BATCHES = (100, 10, 1)
"""Records per batch in the logs with small batches."""


def write_estates(directory: Path, count: int) -> dict[str, Path]:
    """Write the same ACLs as a checkpoint and as logs with small batches, each in a directory of its own."""
    checkpoint = directory / "checkpoint"
    checkpoint.mkdir()
    acls = AclsImage.from_columns(shapes.columns(shapes.million(count)))
    write_checkpoint(Image(acls=acls, provenance=Provenance(end_offset=count, epoch=1, timestamp=1)), checkpoint)
    found = {"a checkpoint": checkpoint}
    values = [encode_record(shapes.record(shapes.with_id(n, acl))) for n, acl in enumerate(shapes.million(count))]
    for size in SMALL_BATCHES:
        found[f"a log, {plural(size, 'record')} per batch"] = _write_log(directory / f"log-{size}", values, size)
    return found


def _write_log(directory: Path, values: list[bytes], records: int) -> Path:
    directory.mkdir()
    write_epochs(directory, [EpochStart(epoch=1, start_offset=0)])
    voter = (LeaderChangeVoter(voter_id=1),)
    change = LeaderChange(version=0, leader_id=1, voters=voter, granting_voters=voter)
    batches = [control_batch(change, base_offset=0, leader_epoch=1, timestamp=1)]
    base, offset, size = 0, 1, 0
    for start in range(0, len(values), records):
        batch = build_batch(values[start : start + records], base_offset=offset, leader_epoch=1, timestamp=1)
        if size + len(batch) > SEGMENT_BYTES:
            (directory / segment_name(base)).write_bytes(b"".join(batches))
            batches, base, size = [], offset, 0
        batches.append(batch)
        offset, size = offset + len(values[start : start + records]), size + len(batch)
    (directory / segment_name(base)).write_bytes(b"".join(batches))
    return directory


def _ready(path: Path) -> StandardAuthorizer:
    authorizer = StandardAuthorizer()
    authorizer.configure({})
    authorizer.load(recover(path).image.acls)
    authorizer.complete_initial_load()
    pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name="orders.1")
    action = Action(operation=AclOperation.READ, resource_pattern=pattern)
    authorizer.authorize(RequestContext(principal="User:service-1", host="10.0.0.1"), [action])
    return authorizer


def measure(path: Path, rounds: int = 7) -> dict[str, float]:
    """Return thread and process CPU seconds (best of the rounds), and the growth of RSS in bytes after the first."""
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    threads, processes, growth, rules = [], [], 0, 0
    for number in range(rounds):
        start, all_start = time.thread_time(), time.process_time()
        authorizer = _ready(path)
        threads.append(time.thread_time() - start)
        processes.append(time.process_time() - all_start)
        if number == 0:
            gc.collect()
            growth, rules = process.memory_info().rss - before, authorizer.acl_count()
        del authorizer
    return {"thread": min(threads), "process": min(processes), "growth": growth, "rules": rules}


def run(rival: Rival, directory: Path, count: int) -> Iterator[Row]:
    """Yield a row of CPU time and a row of memory for each form of the ACLs."""
    for name, path in write_estates(directory, count).items():
        command = [sys.executable, "-m", "benchmarks.replay", str(path)]
        ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        where = {"endOffset": count, "epoch": 1} if name == "a checkpoint" else {}
        theirs = rival.ask("replay", directory=str(path), rounds=3, **where)
        if not ours["rules"] == theirs["acls"] == count:
            raise AssertionError(f"{ours['rules']} ACLs here, {theirs['acls']} in Kafka, {count} written")
        seconds = theirs["nanos"] / 1e9
        what = f"replay {count:,} ACLs from {name}"
        target = SINGLE_TARGET if name.endswith(" 1 record per batch") else RATE_TARGET
        yield Row(what=what, ours=ours["process"], theirs=seconds, unit="s", target=target)
        yield Row(what=f"{what}: memory", ours=ours["growth"] / count, unit="B/ACL", target=BYTES_TARGET)


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
