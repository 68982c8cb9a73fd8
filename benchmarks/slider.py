"""How long a step of the console's slider over the past takes, over HTTP, with the log at rest and with a live one.

The log holds the rules, then batches of one change each (benchmarks.follow_changes). The console runs as a process, and
one viewer asks for `/changes` between two moments that nobody asked for before. Narrow: up to 100 rules differ, which a
page compares at once. Wide: thousands differ; the page lists the changes, and compares when it is asked for.
"""

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from attrs import evolve

from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import FileLog, open_log
from aclog.metalog.filelog.files import EPOCHS_FILE
from benchmarks.follow_changes import write_log
from benchmarks.measurement import cpu_seconds, percentile
from benchmarks.report import Row
from benchmarks.shapes import million, record, with_id

TARGET_MS = 50
_STEPS = 300
_NARROW = 100
_PER_SECOND = 100
_READ_S = 300


def run(rules: int, changes: int, scratch: Path) -> Iterator[Row]:
    """Step through a log with so many rules and changes."""
    begin = write_log(scratch, rules, changes)
    (scratch / EPOCHS_FILE).write_text("0\n1\n1 0\n", encoding="ascii")
    # Ours from here on: its end is published, and need not be looked for in a segment that grows.
    with open_log(scratch) as log, _console(scratch) as (process, ask):
        _wait(ask, changes)
        resident = _resident_mb(process.pid)
        for what, width in (("narrow", _NARROW), ("wide", changes)):
            before = cpu_seconds(process.pid)
            found = _steps(ask, begin, changes, width)
            used = (cpu_seconds(process.pid) - before) * 1000 / _STEPS
            yield Row(what=f"processor time of a {what} step, {rules:,} rules", ours=used, unit="ms", target=TARGET_MS)
            yield from _rows(what, f"{rules:,} rules", found)
        with _appending(log, rules):
            live = _steps(ask, begin, changes, _NARROW)
        yield from _rows("narrow", f"{_PER_SECOND} changes a second", live)
    yield Row(what="resident, all read", ours=resident, unit="MB")


def _rows(what: str, where: str, found: list[float]) -> Iterator[Row]:
    yield Row(what=f"a {what} step, {where}: median", ours=percentile(found, 0.5), unit="ms", target=TARGET_MS)
    yield Row(what=f"a {what} step, {where}: p99", ours=percentile(found, 0.99), unit="ms")


def _steps(ask: Callable[[str], bytes], begin: int, changes: int, width: int) -> list[float]:
    """Return the milliseconds of each step."""
    random, found = Random(width), []
    for _ in range(_STEPS):
        first = begin + random.randrange(changes - 1)
        last = min(first + random.randint(1, width), begin + changes)
        started = time.perf_counter()
        ask(f"/changes?from={first}&to={last}")
        found.append((time.perf_counter() - started) * 1000)
    return found


@contextmanager
def _console(directory: Path) -> Iterator[tuple["subprocess.Popen[str]", Callable[[str], bytes]]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "aclog", "console", "--log", str(directory), "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8") as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("console at ")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_READ_S)

            def ask(path: str) -> bytes:
                connection.request("GET", path)
                response = connection.getresponse()
                body = response.read()
                assert response.status in (200, 503), body
                return body

            yield process, ask
            connection.close()
        finally:
            process.terminate()


def _wait(ask: Callable[[str], bytes], changes: int) -> None:
    """Wait until all of the history is read."""
    end = time.monotonic() + _READ_S
    while True:
        body = ask("/changes")
        if b"as_of=" in body and b"still being read" not in body:
            return
        assert time.monotonic() < end, f"{changes} changes are not read in time"
        time.sleep(0.5)


@contextmanager
def _appending(log: FileLog, rules: int) -> Iterator[None]:
    """Append a change to the log, again and again."""
    stopping = threading.Event()
    thread = threading.Thread(target=_append, args=(log, rules, stopping))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _append(log: FileLog, rules: int, stopping: threading.Event) -> None:
    like = next(iter(million(1)))
    number, due = 0, time.monotonic()
    while not stopping.is_set():
        added = with_id(4 * rules + number, evolve(like, resource_name=f"live.{number}"))
        log.append([encode_record(record(added))], timestamp=time.time_ns() // 1_000_000).result()
        number += 1
        due += 1 / _PER_SECOND
        stopping.wait(max(due - time.monotonic(), 0))


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024
