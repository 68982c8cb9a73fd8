"""One access log in several layouts, read by aclog, by its reader of one layout, by ripgrep, and by DuckDB.

Each reads the whole file in a process of its own, with one thread, and takes the principal, the decision, the
operation, the host and the resource of every line; the sides alternate, and the best of the rounds counts, in seconds
of CPU time per million lines. The time to start is not counted, except for ripgrep.

Then each reads several files of the same lines with all cores, in seconds of wall time and of CPU time of all of its
processes per million lines, with their start: of the default layout all of them, of the other layouts aclog.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from benchmarks.report import Row
from tests.support.processes.debian_packages import unpack

ROOT: Final = Path(__file__).parents[1]
_LAYOUT: Final = "aclog/usage/accesses/layouts.py"
"""The file whose first commit made aclog read other layouts than Apache's."""
_LOGGER: Final = "kafka.authorizer.logger"
_RULE: Final = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=*, patternType=LITERAL, principal=User:*, host=*, "
    "operation=READ, permissionType=ALLOW])"
)
_PRINCIPALS, _TOPICS, _THREADS = 60, 10, 8
_REGEX: Final = (
    r"Principal = (.*) is (Allowed|Denied) operation = ([A-Z_]+) from host = (\S+) on resource = (\w+):LITERAL:(.*) "
    r"for request = (\w+) with resourceRefCount = (\d+) based on rule (.*)"
)
_FIELDS: Final = ("principal", "decision", "operation", "host", "kind", "name", "request", "count", "rule")

_LAYOUTS: Final[dict[str, tuple[Callable[[datetime, str, int], str], float]]] = {
    "default": (lambda at, m, _: f"[{_plain(at)}] DEBUG {m} ({_LOGGER})", 1),
    "Strimzi": (lambda at, m, n: f"{_plain(at)} DEBUG {m} ({_LOGGER}) [data-plane-kafka-request-handler-{n}]", 1 / 2),
    "logback, ISO 8601": (lambda at, m, n: f"{_iso(at)}Z DEBUG [thread-{n}] {_LOGGER} - {m}", 1 / 2),
    "kubectl": (lambda at, m, n: f"{_iso(at)}{n:06}Z [{_plain(at)}] DEBUG {m} ({_LOGGER})", 1 / 2),
    "JSON of docker": (
        lambda at, m, n: json.dumps(
            {"log": f"[{_plain(at)}] DEBUG {m} ({_LOGGER})\n", "stream": "stdout", "time": f"{_iso(at)}{n:06}Z"}
        ),
        1 / 3,
    ),
    "JSON of ECS": (
        lambda at, m, n: json.dumps(
            {"@timestamp": f"{_iso(at)}Z", "log.level": "DEBUG", "message": m, "process.thread.name": f"thread-{n}"}
        ),
        1 / 3,
    ),
}
"""Each layout, and which share of the default layout's speed it must have."""


def _plain(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}"


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}"


def write(directory: Path, lines: int) -> dict[str, Path]:
    """Write the same accesses in each layout; return the files."""
    random, at = Random(38), datetime(2026, 3, 1, 10, tzinfo=UTC)
    files = {name: directory / f"{number}.log" for number, name in enumerate(_LAYOUTS)}
    opened = {name: path.open("w", encoding="utf-8") for name, path in files.items()}
    for _ in range(lines):
        at += timedelta(milliseconds=random.randrange(5))
        client, thread = random.randrange(_PRINCIPALS), random.randrange(_THREADS)
        message = (
            f"Principal = User:client-{client} is Allowed operation = READ from host = 10.0.0.{client} on resource = "
            f"Topic:LITERAL:topic-{client + random.randrange(_TOPICS)} for request = Fetch with resourceRefCount = 1 "
            f"based on rule {_RULE}"
        )
        for name, file in opened.items():
            file.write(_LAYOUTS[name][0](at, message, thread) + "\n")
    for file in opened.values():
        file.close()
    return files


_READ: Final = """
import json, sys, time
from datetime import UTC
import pyarrow as pa
pa.set_cpu_count(1)
from aclog.usage.accesses.access_log import find_accesses, read_part
start, rows = time.process_time(), 0
for part in find_accesses([sys.argv[1]], UTC).parts:
    for batch in read_part(part):
        rows += batch.rows.num_rows
print(json.dumps([rows, time.process_time() - start]))
"""
_READ_ALL: Final = """
import json, os, sys
from datetime import UTC
from functools import partial
from aclog.usage.accesses.access_log import find_accesses
from aclog.usage.judging import cover_log, each_in_processes
parts = find_accesses([sys.argv[1]], UTC).parts
print(json.dumps([sum(each.lines for each in cover_log(parts, partial(each_in_processes, workers=os.cpu_count()))), 0]))
"""
"""As `aclog accesses coverage` reads them."""
_SQL: Final = """
import json, sys, time
import duckdb
database = duckdb.connect()
database.execute(f"SET threads = {sys.argv[4]}")
database.execute("SET enable_progress_bar = false")
start = time.process_time()
names = json.loads(sys.argv[3])
lengths = " + ".join(f"length(r.{name})" for name in names)
lines = "read_csv(?, delim=chr(1), columns={'line': 'VARCHAR'}, header=false, quote='', escape='', auto_detect=false)"
rows, _ = database.execute(
    f"SELECT count(*), sum({lengths}) FROM (SELECT regexp_extract(line, ?, {names}) AS r FROM {lines}) "
    "WHERE r.principal <> ''", [sys.argv[2], sys.argv[1]]
).fetchone()
print(json.dumps([rows, time.process_time() - start]))
"""
_RE: Final = """
import json, re, sys, time
start, rows, find = time.process_time(), 0, re.compile(sys.argv[2]).search
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        rows += find(line).groups() is not None
print(json.dumps([rows, time.process_time() - start]))
"""


def _child(program: str, *arguments: str, lines: int, path: Path = ROOT) -> float:
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows, seconds = json.loads(done.stdout)
    if rows != lines:
        raise AssertionError(f"{rows} accesses of {lines}")
    return float(seconds)


class Spent(NamedTuple):
    """The seconds that a call took."""

    wall: float
    cpu: float
    """Of the processes that it started."""

    def least(self, other: "Spent") -> "Spent":
        """Return the lesser of each."""
        return Spent(min(self.wall, other.wall), min(self.cpu, other.cpu))


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spent(measure: Callable[[], object]) -> Spent:
    start, before = time.perf_counter(), _cpu_of_children()
    measure()
    return Spent(time.perf_counter() - start, _cpu_of_children() - before)


def _write_parts(directory: Path, source: Path, copies: int) -> int:
    """Write a file per core, with lines of another one; return the number of all lines."""
    directory.mkdir()
    text, lines = source.read_bytes(), 0
    first = text[: text.index(b"\n") + 1]
    for core in range(_CORES):
        own = first.replace(b"topic-", b"own-%d-" % core)  # copies of a file would count once
        (directory / f"{core}.log").write_bytes(own + text * copies)
        lines += 1 + copies * text.count(b"\n")
    return lines


_CORES: Final = os.cpu_count() or 1


def _ripgrep(program: str, path: Path, lines: int, threads: int = 1) -> float:
    replacement = "\t".join(f"${number}" for number in range(1, len(_FIELDS) + 1))
    command = [
        program,
        "--no-config",
        f"--threads={threads}",
        "--only-matching",
        "--replace",
        replacement,
        _REGEX,
        str(path),
    ]
    before = _cpu_of_children()
    done = subprocess.run(command, capture_output=True, check=True)
    seconds = _cpu_of_children() - before
    if (found := done.stdout.count(b"\n")) != lines:
        raise AssertionError(f"{found} accesses of {lines}")
    return seconds


@contextmanager
def _former(directory: Path) -> Iterator[Path | None]:
    """Check out the last commit with a reader of one layout; None if the history does not have it."""
    place = directory / "former"
    command = [*_GIT, "worktree", "add", "--quiet", "--detach", str(place), f"{_first()}^"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run([*_GIT, "worktree", "remove", "--force", str(place)], check=False)


_GIT: Final = ("git", "-C", str(ROOT))


def _first() -> str:
    """Return the commit that added other layouts; empty if the history does not have it."""
    find = [*_GIT, "log", "--diff-filter=A", "--format=%H", "--", _LAYOUT]
    return (subprocess.run(find, capture_output=True, text=True, check=False).stdout.split() or [""])[-1]


def _commit(name: str) -> str:
    show = [*_GIT, "rev-parse", "--short", name]
    return subprocess.run(show, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _program(directory: Path) -> str | None:
    """Return ripgrep: the machine's, or Debian's package; None without either."""
    if own := shutil.which("rg"):
        return own
    home = directory / "packages"
    unpacked = home / "usr" / "bin" / "rg"
    return str(unpacked) if unpack(home, "download", "ripgrep") and unpacked.exists() else None


def run(directory: Path, lines: int, rounds: int) -> Iterator[Row]:
    """Measure; `lines` per file."""
    files, ripgrep = write(directory, lines), _program(directory)
    with _former(directory) as former:
        sides: dict[str, Callable[[], float]] = {
            name: (lambda path=path: _child(_READ, str(path), lines=lines)) for name, path in files.items()
        }
        default = files["default"]
        if former is not None:
            sides["former"] = lambda: _child(_READ, str(default), lines=lines, path=former)
        if ripgrep is not None:
            sides["ripgrep"] = lambda: _ripgrep(ripgrep, default, lines)
        else:
            sides["re"] = lambda: _child(_RE, str(default), _REGEX, lines=lines)
        fields = json.dumps(_FIELDS)
        sides["duckdb"] = lambda: _child(_SQL, str(default), _REGEX, fields, "1", lines=lines)
        best = dict.fromkeys(sides, float("inf"))
        for _ in range(rounds):
            for name, measure in sides.items():
                best[name] = min(best[name], measure() * 1_000_000 / lines)
    own, before = _commit("HEAD"), _commit(f"{_first()}^")
    what = {
        "former": (f"the former reader of one layout ({own} and {before})", 1.0),
        "ripgrep": ("ripgrep with groups", None),
        "re": ("Python's re, as no ripgrep is there", None),
        "duckdb": ("DuckDB's regexp_extract", None),
    }
    for name, (label, target) in what.items():
        if name in best:
            what_is = f"default layout, beside {label}"
            yield Row(what=what_is, ours=best["default"], unit="s", theirs=best[name], target=target)
    for name, (_, share) in _LAYOUTS.items():
        if name != "default":
            what_is = f"{name}, beside the default layout"
            yield Row(what=what_is, ours=best[name], unit="s", theirs=best["default"], target=share)
    yield from _with_all_cores(directory, files, ripgrep, rounds)


def _with_all_cores(directory: Path, files: Mapping[str, Path], ripgrep: str | None, rounds: int) -> Iterator[Row]:
    places = {name: directory / f"parts-{number}" for number, name in enumerate(files)}
    copies = 3 if rounds > 1 else 1
    lines = {name: _write_parts(place, files[name], copies) for name, place in places.items()}
    fields, default = json.dumps(_FIELDS), places["default"]
    sides: dict[str, Callable[[], object]] = {
        name: (lambda name=name: _child(_READ_ALL, str(places[name]), lines=lines[name])) for name in files
    }
    others: dict[str, Callable[[], object]] = {
        "DuckDB's regexp_extract": lambda: _child(
            _SQL, str(default / "*.log"), _REGEX, fields, str(_CORES), lines=lines["default"]
        )
    }
    if ripgrep is not None:
        others["ripgrep with groups"] = lambda: _ripgrep(ripgrep, default, lines["default"], _CORES)
    best = dict.fromkeys((*sides, *others), Spent(float("inf"), float("inf")))
    for number in range(rounds):
        for name, measure in sides.items():
            best[name] = best[name].least(_spent(measure))
        for name, measure in others.items() if not number else ():  # they take far longer
            best[name] = _spent(measure)
    scale = 1_000_000 / lines["default"]
    for unit in Spent._fields:
        what = f"{_CORES} cores, {unit} time"
        ours = getattr(best["default"], unit) * scale
        for name in others:
            theirs = getattr(best[name], unit) * scale
            yield Row(what=f"default layout, {what}, beside {name}", ours=ours, unit="s", theirs=theirs)
        for name, (_, share) in _LAYOUTS.items():
            if name != "default":
                own = getattr(best[name], unit) * scale
                what_is = f"{name}, {what}, beside the default layout"
                yield Row(what=what_is, ours=own, unit="s", theirs=ours, target=share)
