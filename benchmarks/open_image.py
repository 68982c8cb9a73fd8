"""A million ACLs opened by commands, nodes and 16 processes, with the image file of their checkpoint and without."""

import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.codec import encode_record
from aclog.metalog.committed_log import Appended
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import METADATA_DIRECTORY, image_path, list_checkpoints
from aclog.snapshots.checkpoints import read_checkpoint, read_state, write_checkpoint, write_image_file
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import recover
from benchmarks import shapes
from benchmarks.open_process import DECISIONS
from benchmarks.report import Row
from tests.support.nodes.server_properties import CLUSTER_ID, Ports, server_properties

COMMAND_SECONDS, COMMAND_MB, NODE_SECONDS, PRIVATE_MB, SMALL_CPU_SECONDS = 0.4, 120.0, 0.5, 10.0, 0.3
FOLLOWING = 10_000
"""Records in the log after the checkpoint that a node starts with."""
PROCESSES = 16
SMALL = 1_000
_RECORDS_A_BATCH = 1_000
_QUEUED = 100_000
"""Records that wait to be committed: a log refuses to queue more than a few large batches."""
_ROUNDS = 5
_MB = 1 << 20
_LAUNCHER = """
import json, os, sys, time
quiet = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
began = time.perf_counter()
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, used = os.wait4(process, 0)
wall, cpu, code = time.perf_counter() - began, used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)
print(json.dumps({"wall": wall, "cpu": cpu, "mb": used.ru_maxrss / 1024, "code": code}))
"""
"""Starts and measures a command: the peak memory of a child begins with that of its parent, so that must be small."""


def _estate(directory: Path, count: int) -> Path:
    """Write a checkpoint of so many ACLs and its image file; return the checkpoint."""
    directory.mkdir()
    acls = AclsImage.from_columns(shapes.columns(shapes.million(count)))
    path = write_checkpoint(Image(acls=acls, provenance=Provenance(end_offset=count, epoch=1, timestamp=1)), directory)
    write_image_file(path)
    return path


def _command(checkpoint: Path) -> dict[str, float]:
    """Ask one request as a user does, and return seconds and MB."""
    request = ["--principal", "User:service-1", "--operation", "READ", "--topic", "orders.0000000001"]
    command = [sys.executable, "-m", "aclog", "authorize", "--snapshot", str(checkpoint), *request]
    launch = [sys.executable, "-S", "-c", _LAUNCHER, *command]
    found: dict[str, float] = json.loads(subprocess.run(launch, check=True, capture_output=True, text=True).stdout)
    if found.pop("code") != 1:  # denied
        raise AssertionError("aclog authorize failed")
    return found


def _without(checkpoint: Path, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Measure while the image file is away."""
    image = image_path(checkpoint)
    aside = image.with_suffix(".aside")
    image.rename(aside)
    try:
        return measure()
    finally:
        aside.rename(image)


def _best(measure: Callable[[], dict[str, float]], rounds: int) -> dict[str, float]:
    found = [measure() for _ in range(rounds)]
    return {name: min(each[name] for each in found) for name in found[0]}


def _commands(checkpoint: Path, count: int) -> Iterator[Row]:
    ours = _best(lambda: _command(checkpoint), _ROUNDS)
    theirs = _without(checkpoint, lambda: _best(lambda: _command(checkpoint), 2))
    what = f"aclog authorize, one request, {count:,} rules, image file vs. checkpoint"
    yield Row(what=f"{what}: wall time", ours=ours["wall"], unit="s", target=COMMAND_SECONDS)
    yield Row(what="the same beside the checkpoint alone", ours=ours["wall"], theirs=theirs["wall"], unit="s")
    yield Row(what="CPU time", ours=ours["cpu"], theirs=theirs["cpu"], unit="s")
    yield Row(what="peak memory", ours=ours["mb"], unit="MB", target=COMMAND_MB)
    yield Row(what="the same beside the checkpoint alone", ours=ours["mb"], theirs=theirs["mb"], unit="MB")


def _cpu_ms(call: Callable[[], object]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {"wall": 1e3 * (time.perf_counter() - wall), "cpu": 1e3 * (time.process_time() - cpu)}


def _opening(checkpoint: Path, count: int) -> Iterator[Row]:
    ours = _best(lambda: _cpu_ms(lambda: read_state(checkpoint)), _ROUNDS)
    theirs = _best(lambda: _cpu_ms(lambda: read_checkpoint(checkpoint)), 2)
    for name, what in (("wall", "wall time"), ("cpu", "CPU time of all threads")):
        yield Row(
            what=f"opening {count:,} rules, digests included: {what}", ours=ours[name], theirs=theirs[name], unit="ms"
        )
    sizes = [path.stat().st_size / _MB for path in (image_path(checkpoint), checkpoint)]
    yield Row(what="size of the image file vs. the checkpoint", ours=sizes[0], theirs=sizes[1], unit="MB")
    wrote = _cpu_ms(lambda: write_image_file(checkpoint))
    yield Row(what="writing it, reading the checkpoint included: wall time", ours=wrote["wall"] / 1e3, unit="s")


def _shared(checkpoint: Path, count: int) -> Iterator[Row]:
    command = [sys.executable, "-m", "benchmarks.open_process", "share", str(checkpoint)]
    with ExitStack() as stack:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(PROCESSES)]  # type: ignore[call-overload]
        for _ in ("open", "count"):
            for process in processes:
                process.stdin.write("\n")
                process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for process in processes]
    what = f"{PROCESSES} processes with {count:,} rules, {DECISIONS:,} decisions each: added to one, median,"
    for name, target in (("private", PRIVATE_MB), ("anonymous", PRIVATE_MB), ("pss", None)):
        ours = median(answer[name] for answer in answers)
        told = {"private": "private pages", "anonymous": "memory of no file", "pss": "with its share of the file"}
        yield Row(what=f"{what} {told[name]}", ours=ours, unit="MB", target=target)


def home(directory: Path, count: int) -> Path:
    """Return the server.properties of a node whose log has a checkpoint of so many ACLs, and more records after it."""
    directory.mkdir()
    properties = directory / "server.properties"
    properties.write_text(server_properties(Ports.free(), log_dirs=str(directory / "data")), encoding="utf-8")
    command = [sys.executable, "-m", "aclog", "format", str(properties), "-t", CLUSTER_ID, "--standalone"]
    subprocess.run(command, check=True, cwd=directory, stdout=subprocess.DEVNULL)
    _measured("node", properties)  # its first start: features and voters go into the log
    log = directory / "data" / METADATA_DIRECTORY
    values = [
        encode_record(shapes.record(shapes.with_id(n, acl))) for n, acl in enumerate(shapes.million(count + FOLLOWING))
    ]
    _append(log, values[:count], _RECORDS_A_BATCH)
    write_image_file(write_checkpoint(recover(log).image, log))
    _append(log, values[count:], 1)
    return properties


def _append(directory: Path, values: list[bytes], records: int) -> None:
    with open_log(directory, force=True) as log:
        pending: deque[Future[Appended]] = deque()
        for start in range(0, len(values), records):
            # A log refuses to queue more than a few large batches.
            if len(pending) * records >= _QUEUED:
                pending.popleft().result()
            pending.append(log.append(values[start : start + records], timestamp=1))
        for each in pending:
            each.result()


def _measured(what: str, path: Path) -> dict[str, float]:
    """Run the measured process."""
    command = [sys.executable, "-m", "benchmarks.open_process", what, str(path)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def _nodes(directory: Path, count: int) -> Iterator[Row]:
    properties = home(directory, count)
    newest = list_checkpoints(properties.parent / "data" / METADATA_DIRECTORY)[-1].path
    theirs = _without(newest, lambda: _measured("node", properties))
    ours = _best(lambda: _measured("node", properties), 3)
    if not ours["rules"] == theirs["rules"] == count + FOLLOWING:
        raise AssertionError(f"{ours['rules']} rules, {theirs['rules']} without the image file")
    what = f"a node with {count:,} rules in a checkpoint and {FOLLOWING:,} records after it: ready after its imports"
    yield Row(what=f"{what}, wall time", ours=ours["wall"], unit="s", target=NODE_SECONDS)
    yield Row(what="the same beside the checkpoint alone", ours=ours["wall"], theirs=theirs["wall"], unit="s")
    yield Row(what="CPU time", ours=ours["cpu"], theirs=theirs["cpu"], unit="s")
    yield Row(what="peak memory", ours=ours["mb"], theirs=theirs["mb"], unit="MB")


def run(directory: Path, count: int) -> Iterator[Row]:
    """Yield all rows; the files are in `directory`."""
    checkpoint = _estate(directory / "estate", count)
    yield from _commands(checkpoint, count)
    small = _best(lambda: _command(_estate_once(directory / "small")), _ROUNDS)
    yield Row(what=f"aclog authorize, {SMALL:,} rules: CPU time", ours=small["cpu"], unit="s", target=SMALL_CPU_SECONDS)
    yield from _opening(checkpoint, count)
    yield from _shared(checkpoint, count)
    yield from _nodes(directory / "node", count)


def _estate_once(directory: Path) -> Path:
    return list_checkpoints(directory)[-1].path if directory.exists() else _estate(directory, SMALL)
