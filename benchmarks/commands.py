"""What commands cost from start to end: CPU of the whole process, beside a Python that does nothing.

Python keeps what it compiled, as it does for users: the first run of a command compiles, and the median leaves it out.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve

from aclog.authorizer.acl import StandardAcl
from benchmarks import shapes
from benchmarks.report import Row

RULES = 1_000
AUTHORIZE_TARGET, NAME_TARGET, HELP_TARGET = 0.3, 0.15, 0.08
"""Seconds of CPU; the second is for questions about one name of a checkpoint with an image file."""
UPGRADED = 100_000
"""So many rules, one of a hundred of them with a range for a host, are compared before and after an upgrade to 4.4."""
UPGRADE_TARGET = 2.0


def run(rounds: int) -> Iterator[Row]:
    """Yield the median of each command, of as many runs; Python alone is run between them."""
    with tempfile.TemporaryDirectory() as scratch:
        rules, log = Path(scratch, "rules.jsonl"), Path(scratch, "log")
        _write(shapes.million(RULES), rules, log)
        ranges, upgraded = Path(scratch, "ranges.jsonl"), Path(scratch, "upgraded")
        _write(map(_with_a_range, range(UPGRADED), shapes.million(UPGRADED)), ranges, upgraded)
        subprocess.run(
            _aclog("snapshot", "create", "--log", str(log), "--out", scratch), check=True, stdout=subprocess.DEVNULL
        )
        (snapshot,) = map(str, Path(scratch).glob("*.checkpoint"))
        asked = ("--principal", "User:service-7", "--operation", "READ", "--topic", "orders.17")
        commands = {
            "--version": (("--version",), HELP_TARGET),
            "--help": (("--help",), HELP_TARGET),
            f"authorize --snapshot, {RULES:,} rules": (("authorize", "--snapshot", snapshot, *asked), NAME_TARGET),
            f"explain --snapshot, {RULES:,} rules": (("explain", "--snapshot", snapshot, *asked), NAME_TARGET),
            f"acls list --snapshot --topic, {RULES:,} rules": (
                ("acls", "list", "--snapshot", snapshot, "--topic", "orders.17"),
                NAME_TARGET,
            ),
            f"authorize --acls, {RULES:,} rules": (("authorize", "--acls", str(rules), *asked), AUTHORIZE_TARGET),
            f"authorize --log, {RULES:,} rules": (("authorize", "--log", str(log), *asked), AUTHORIZE_TARGET),
            f"acls list --acls --format jsonl, {RULES:,} rules": (
                ("acls", "list", "--acls", str(rules), "--format", "jsonl"),
                None,
            ),
            f"diff --log --to-kafka-version 4.4, {UPGRADED:,} rules, {UPGRADED // 100:,} with ranges": (
                ("diff", "--log", str(upgraded), "--kafka-version", "4.3", "--to-kafka-version", "4.4"),
                UPGRADE_TARGET,
            ),
        }
        for name, (words, target) in commands.items():
            ours, alone = zip(
                *((_cpu(_aclog(*words)), _cpu([sys.executable, "-c", "pass"])) for _ in range(rounds)), strict=True
            )
            found, nothing = sorted(ours)[rounds // 2], sorted(alone)[rounds // 2]
            yield Row(what=f"aclog {name}: CPU", ours=found, unit="s", target=target)
            yield Row(what=f"aclog {name}: times the CPU of `python -c pass`", ours=found / nothing, unit="x")


def _write(acls: Iterable[StandardAcl], rules: Path, log: Path) -> None:
    with rules.open("w") as file:
        file.writelines(json.dumps(shapes.as_json(acl)) + "\n" for acl in acls)
    subprocess.run(_aclog("import", str(rules), "--log", str(log)), check=True, stdout=subprocess.DEVNULL)


def _with_a_range(at: int, acl: StandardAcl) -> StandardAcl:
    return evolve(acl, host=f"10.{at // 100 % 256}.0.0/{16 + at // 100 % 9}") if at % 100 == 0 else acl


def _aclog(*words: str) -> list[str]:
    return [sys.executable, "-m", "aclog", *words]


def _cpu(command: list[str]) -> float:
    """Return the CPU of a child process, all its threads, in seconds. A denied request ends with 1."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=environment)
    assert done.returncode in {0, 1}, command
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
