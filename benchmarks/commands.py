"""What commands cost from start to end: CPU of the whole process, beside a Python that does nothing."""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import shapes
from benchmarks.report import Row

RULES = 1_000
AUTHORIZE_TARGET, HELP_TARGET = 0.3, 0.2
"""Seconds of CPU."""


def run(rounds: int) -> Iterator[Row]:
    """Yield the median of each command, of as many runs; Python alone is run between them."""
    with tempfile.TemporaryDirectory() as scratch:
        rules, log = Path(scratch, "rules.jsonl"), Path(scratch, "log")
        with rules.open("w") as file:
            lines = (json.dumps(shapes.as_json(acl)) + "\n" for acl in shapes.million(RULES))
            file.writelines(lines)
        subprocess.run(_aclog("import", str(rules), "--log", str(log)), check=True, stdout=subprocess.DEVNULL)
        asked = ("--principal", "User:service-7", "--operation", "READ", "--topic", "orders.17")
        commands = {
            "--version": (("--version",), HELP_TARGET),
            "--help": (("--help",), HELP_TARGET),
            f"authorize --acls, {RULES:,} rules": (("authorize", "--acls", str(rules), *asked), AUTHORIZE_TARGET),
            f"authorize --log, {RULES:,} rules": (("authorize", "--log", str(log), *asked), AUTHORIZE_TARGET),
            f"acls list --acls --format jsonl, {RULES:,} rules": (
                ("acls", "list", "--acls", str(rules), "--format", "jsonl"),
                None,
            ),
        }
        for name, (words, target) in commands.items():
            ours, alone = zip(
                *((_cpu(_aclog(*words)), _cpu([sys.executable, "-c", "pass"])) for _ in range(rounds)), strict=True
            )
            found, nothing = sorted(ours)[rounds // 2], sorted(alone)[rounds // 2]
            yield Row(what=f"aclog {name}: CPU", ours=found, unit="s", target=target)
            yield Row(what=f"aclog {name}: times the CPU of `python -c pass`", ours=found / nothing, unit="x")


def _aclog(*words: str) -> list[str]:
    return [sys.executable, "-m", "aclog", *words]


def _cpu(command: list[str]) -> float:
    """Return the CPU of a child process, all its threads, in seconds. A denied request ends with 1."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    assert done.returncode in {0, 1}, command
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
