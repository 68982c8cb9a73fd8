"""Commands that write many rules at once, from start to end, beside a replay of what they wrote."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import shapes
from benchmarks.report import Row
from tests.support.kafka.tools import client_properties
from tests.support.nodes.aclog_node import AclogProcess
from tests.support.nodes.server_properties import Ports

TARGET = 15.0
"""Seconds for a million rules, on an idle machine."""
_REPLAY = "import sys; from aclog.snapshots.publisher import recover; assert len(recover(sys.argv[1]).image.acls)"


def run(scratch: Path, counts: Sequence[int]) -> Iterator[Row]:
    """Yield seconds of each command for each number of rules, and those of a process that replays the log."""
    for count in counts:
        directory = scratch / str(count)
        directory.mkdir()
        yield from _of(directory, count)


def _of(directory: Path, count: int) -> Iterator[Row]:
    rules, log, copy = directory / "rules.jsonl", directory / "log", directory / "copy"
    with rules.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(shapes.as_json(acl)) + "\n" for acl in shapes.million(count))
    commands = {
        "import into a new log": ("import", rules, "--log", log),
        "import of what the log has": ("import", rules, "--log", log),
        "log copy to a directory": ("log", "copy", log, copy),
    }
    for what, words in commands.items():
        yield _row(what, _seconds("-m", "aclog", *words), count)
    yield Row(what=f"replay of that log by a process of its own, {count:,} rules", ours=_replay(log), unit="s")
    yield from _on_a_node(directory, rules, count)


def _on_a_node(directory: Path, rules: Path, count: int) -> Iterator[Row]:
    """Yield the import into a formatted directory, and the first sync from the node that starts there."""
    node = AclogProcess(directory / "formatted", Ports.free()).format()
    filled = _seconds("-m", "aclog", "import", rules, "--log", node.log_directory, "--force")
    yield _row("import into a formatted directory", filled, count)
    with node:
        server = ("--bootstrap-server", f"localhost:{node.ports.broker}")
        login = ("--command-config", client_properties(directory, "admin"))
        synced = directory / "synced"
        first = _seconds("-m", "aclog", "sync", *server, *login, "--to", synced, "--once")
        yield _row("first sync of a node", first, count)
        listed = _seconds("-m", "aclog", "acls", "list", *server, *login, "--format", "jsonl")
        yield Row(what=f"acls list of that node, {count:,} rules", ours=listed, unit="s")


def _row(what: str, seconds: float, count: int) -> Row:
    target = TARGET if count == 1_000_000 else None
    return Row(what=f"{what}, {count:,} rules", ours=seconds, unit="s", target=target)


def _replay(log: Path) -> float:
    return _seconds("-c", _REPLAY, log)


def _seconds(*words: object) -> float:
    """Return the seconds of a Python process from start to end."""
    begin = time.monotonic()
    subprocess.run([sys.executable, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin
