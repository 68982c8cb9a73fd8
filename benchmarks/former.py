"""Whole commands beside those of an earlier commit, in turn and on the same files: CPU time and memory.

`make bench-former FORMER=COMMIT` makes the earlier checkout and its environment. A command that takes more than
`LIMIT_S` seconds of wall time is ended there, and its figure is the CPU time until then.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from benchmarks import distinct_accesses, shapes
from benchmarks.questions.growth import access_line
from benchmarks.questions.kinds import KINDS
from benchmarks.report import Row
from tests.support.builders.acls import acl_record

LIMIT_S = 120.0
_LOOK_S = 0.02
"""How often the memory of a command is read, in seconds."""
_TOGETHER = 5_000
"""Batches of one record that are written at once."""


@frozen(kw_only=True)
class Sizes:
    """How large the estates and files are."""

    estate: int
    """Rules of the estates `public` and `one client`."""
    log: int
    """ACLs of the log, each in a batch of its own."""
    rules: int
    """Rules of the accesses."""
    accesses: int
    """Distinct accesses."""
    small: int
    """Rules of the file by which a single request is decided."""
    rounds: int


FULL = Sizes(estate=4_000, log=1_000_000, rules=100_000, accesses=200_000, small=1_000, rounds=3)
QUICK = Sizes(estate=200, log=1_000, rules=500, accesses=1_000, small=100, rounds=1)

_ACCESSES = "--accesses @accesses.log --accesses-timezone UTC"
_ONE = "--principal User:service-7 --operation READ --topic orders.17"
_COMMANDS = {
    "check no-public, {estate:,} rules of `public`": "check no-public --acls @public.jsonl",
    "who-can over a prefix, {estate:,} hosts of one client": (
        "who-can --acls @one-client.jsonl --operation WRITE --topic metrics. --resource-pattern-type prefixed"
    ),
    "diff of a rule, {estate:,} hosts of one client": "diff --acls @one-client.jsonl --to-acls @fewer.jsonl",
    "log verify, {log:,} batches": "log verify @log",
    "when, of a name, {log:,} batches": f"when --log @log {_ONE}",
    "authorize --log, {log:,} batches": f"authorize --log @log {_ONE}",
    "acls list --log, {log:,} ACLs": "acls list --log @log --format jsonl",
    "usage, {accesses:,} distinct accesses, {rules:,} rules": f"usage --acls @rules.jsonl {_ACCESSES}",
    "denied, {accesses:,} distinct accesses, {rules:,} rules": f"denied --acls @rules.jsonl {_ACCESSES}",
    "suggest, {accesses:,} distinct accesses, {rules:,} rules": f"suggest --acls @rules.jsonl {_ACCESSES}",
    "usage-index, {accesses:,} distinct accesses, {rules:,} rules": (
        f"usage-index --log @rules {_ACCESSES} --index @SIDE-index"
    ),
    "authorize --acls, {small:,} rules": f"authorize --acls @small.jsonl {_ONE}",
    "explain --acls, {small:,} rules": f"explain --acls @small.jsonl {_ONE}",
    "acls list --acls of a topic, {small:,} rules": "acls list --acls @small.jsonl --topic orders.17",
    "--help": "--help",
}
"""By what is measured: the command line; `@name` is a file, and SIDE the side that runs."""


@frozen
class Spent:
    """What one run of a command took."""

    cpu: float
    """Seconds, of all threads."""
    peak: float
    """The most resident memory, in MB."""
    is_ended: bool = False
    """Whether it was ended because it took too long."""


def run(scratch: Path, sizes: Sizes, former: str | None) -> Iterator[Row]:
    """Yield CPU time and memory of each command; `former` is the Python of the other checkout, None: this one's."""
    _write(scratch, sizes)
    sides = {"ours": sys.executable, "former": former or sys.executable}
    for what, words in _COMMANDS.items():
        runs: Mapping[str, list[Spent]] = {side: [] for side in sides}
        for _ in range(sizes.rounds):
            for side, python in sides.items():
                if not any(each.is_ended for each in runs[side]):
                    runs[side].append(_spent(python, _arguments(words, scratch, side), scratch / side))
        ours, theirs = runs["ours"], runs["former"]
        label = what.format_map({name: getattr(sizes, name) for name in Sizes.__annotations__})
        if theirs[-1].is_ended:
            label += f" (the former ended after {LIMIT_S:.0f} s)"
        for name, unit in ("cpu", "s"), ("peak", "MB"):
            medians = [statistics.median(getattr(each, name) for each in side) for side in (ours, theirs)]
            yield Row(
                what=f"{label}: {'CPU' if name == 'cpu' else 'memory'}", ours=medians[0], unit=unit, theirs=medians[1]
            )


def _arguments(words: str, scratch: Path, side: str) -> list[str]:
    named = words.replace("SIDE", side).split()
    return [str(scratch / word[1:]) if word.startswith("@") else word for word in named]


def _spent(python: str, arguments: Sequence[str], home: Path) -> Spent:
    """Run a command with a cache directory of its own. Raises AssertionError: it fails."""
    home.mkdir(exist_ok=True)
    shutil.rmtree(home.with_name(f"{home.name}-index"), ignore_errors=True)  # of the run before: nothing would be new
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["XDG_CACHE_HOME"] = str(home)
    errors = home / "errors"
    with errors.open("w") as stderr:
        command = [python, "-m", "aclog", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, cwd=home, env=environment)
    end, peak = time.monotonic() + LIMIT_S, 0
    while True:
        peak = _most_resident(process.pid) or peak  # not ru_maxrss, which has that of this process until the exec
        number, status, used = os.wait4(process.pid, os.WNOHANG)
        if number:
            break
        if time.monotonic() > end:
            process.kill()
        time.sleep(_LOOK_S)
    process.returncode = os.waitstatus_to_exitcode(status)
    is_ended = process.returncode == -signal.SIGKILL
    if not is_ended and process.returncode not in (0, 1):
        raise AssertionError(f"{' '.join(command)}: exit code {process.returncode}: {errors.read_text()[-500:]}")
    return Spent(used.ru_utime + used.ru_stime, peak / 1024, is_ended)


def _most_resident(number: int) -> int:
    """Return the most memory that a process has had so far, in kB; 0 if it has ended."""
    lines = Path(f"/proc/{number}/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _write(scratch: Path, sizes: Sizes) -> None:
    """Write the files that the commands read."""
    for kind in ("public", "one client"):
        _write_rules(scratch / f"{kind.replace(' ', '-')}.jsonl", KINDS[kind](sizes.estate))
    _write_rules(scratch / "fewer.jsonl", list(KINDS["one client"](sizes.estate))[:-1])
    _write_rules(scratch / "small.jsonl", shapes.million(sizes.small))
    acls = list(shapes.million(sizes.rules))
    _write_rules(scratch / "rules.jsonl", acls)
    _write_log(scratch / "rules", acls)
    _write_log(scratch / "log", shapes.million(sizes.log))
    columns = distinct_accesses.accesses(acls, sizes.accesses).to_pydict()
    with (scratch / "accesses.log").open("w", encoding="utf-8") as file:
        for first, *texts in zip(*(columns[name] for name in ("first", *REQUEST_COLUMNS)), strict=True):
            file.write(access_line(first // 1_000_000, texts, "Allowed"))


def _write_rules(path: Path, acls: Iterable[StandardAcl]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(shapes.as_json(acl)) + "\n" for acl in dict.fromkeys(acls))


def _write_log(path: Path, acls: Iterable[StandardAcl]) -> None:
    """Write a log with one record in each batch, as Kafka's controller writes the changes of single requests."""
    with open_log(path, create=True, timestamp=1) as log:
        pending = []
        for number, acl in enumerate(acls):
            pending.append(log.append([encode_record(acl_record(number + 1, acl))], timestamp=2 + number))
            if len(pending) == _TOGETHER:
                pending = [each.result(60) for each in pending][:0]
        for each in pending:
            each.result(60)
