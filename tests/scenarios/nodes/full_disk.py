"""`make campaign-full-disk`: a node and the audits of a decision point and a console on a disk that fills up.

    python -m tests.scenarios.nodes.full_disk --rounds 5 --out FILE

Takes root: each round mounts a tmpfs of a few megabytes. A client adds rules until the disk is full; the rules that
were acknowledged must be in the log after a kill, and again when there is room. An audit file on a full disk stops
all answers, and the first answer when there is room needs no restart.
"""

import argparse
import asyncio
import itertools
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aclog.authorizer.acl import StandardAcl
from aclog.console.shared import LineFile
from aclog.metalog.errors import MetadataError
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl
from tests.support.nodes.acl_client import AclClient
from tests.support.nodes.aclog_node import AclogNode, NodeError
from tests.support.nodes.server_properties import Ports

_MOUNT, _UMOUNT = "/bin/mount", "/bin/umount"
_LARGE = "x" * 200
_AT_ONCE = 200


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    """A tmpfs of this size at a directory."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run([_MOUNT, "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run([_UMOUNT, "-l", str(place)], check=True)


def give_room(place: Path, size: str) -> None:
    """Make the disk larger."""
    subprocess.run([_MOUNT, "-o", f"remount,size={size}", str(place)], check=True)


async def fill(port: int, prefix: str, outcomes: Counter[str]) -> set[StandardAcl]:
    """Add rules until one is refused, or the connection ends; the acknowledged ones."""
    acknowledged = set[StandardAcl]()
    with suppress(MetadataError):
        async with await AclClient.open(port, timeout=20) as client:
            for number in itertools.count():
                rules = [acl(f"{prefix}-{number}-{each}-{_LARGE}") for each in range(_AT_ONCE)]
                answers = await client.create(rules)
                acknowledged.update(rule for rule, (code, _) in zip(rules, answers, strict=True) if code == 0)
                refused = {(code, message) for code, message in answers if code}
                if refused:
                    outcomes.update(f"refused: error {code}: {message}" for code, message in refused)
                    return acknowledged
    outcomes["the connection ended"] += 1
    return acknowledged


def node_round(home: Path, number: int, outcomes: Counter[str]) -> list[str]:
    """Fill the disk of a node; return what is wrong."""
    wrong = []
    node = AclogNode(home / "node", Ports.free())
    disk = home / "node" / "data"
    with small_disk(disk, f"{2 + number % 3}m"):
        node.start()
        acknowledged = asyncio.run(fill(node.ports.broker, f"a{number}", outcomes))
        with suppress(subprocess.TimeoutExpired):
            node._running().wait(timeout=15)
        if "000.log: cannot append: the disk is full: free space on it" not in node.output:
            wrong.append(f"round {number}: no error with the file: {node.output[-800:]!r}")
        ended = node._running().poll()
        outcomes[f"the node {'runs' if ended is None else f'ended with {ended}'} on a full disk"] += 1
        if number % 2 or ended is not None:
            if ended is None:
                node.kill()
            with suppress(NodeError):
                node.spawn()
                node.wait_until_ready(30)
                outcomes["a restart on the full disk serves"] += 1
            node.kill()
        give_room(disk, "32m")
        if node._process is None or node._running().poll() is not None:
            node.start()
        more = asyncio.run(_few(node.ports.broker, f"b{number}"))
        outcomes[f"with room: {len(more)} of 5 rules acknowledged"] += 1
        node.kill()
        present = {rule.acl for rule in recover(node.log_directory).image.acls}
        if missing := (acknowledged | more) - present:
            wrong.append(f"round {number}: {len(missing)} acknowledged rules are lost")
        outcomes["acknowledged rules"] += len(acknowledged) + len(more)
    return wrong


async def _few(port: int, prefix: str) -> set[StandardAcl]:
    acknowledged = set()
    for number in range(5):
        rule = acl(f"{prefix}-{number}")
        with suppress(MetadataError):
            async with await AclClient.open(port, timeout=20) as client:
                [(code, _)] = await client.create([rule])
                if code == 0:
                    acknowledged.add(rule)
    return acknowledged


def audit_round(home: Path, number: int, outcomes: Counter[str]) -> list[str]:
    """Fill the disk of an audit file line by line; return what is wrong."""
    disk, written = home / "audit", []
    with small_disk(disk, "64k"):
        file = LineFile(disk / "audit.jsonl")
        for line in itertools.count():
            text = f'{{"line":{line},"more":"{"y" * (17 + number)}"}}'
            try:
                file.append(text)
            except OSError as error:
                outcomes[f"audit: {str(error).replace(str(disk), 'DIR')}"] += 1
                break
            written.append(text)
        for attempt in (lambda: file.append("{}"), file.check):
            with suppress(OSError):
                attempt()
                return [f"audit {number}: written on a full disk"]
        give_room(disk, "1m")
        file.check()
        file.append('{"line":"with room"}')
        file.close()
        lines = [line for line in (disk / "audit.jsonl").read_text().split("\n") if line]
        torn = len(lines) - len(written) - 1
        outcomes["audit lines"] += len(written)
        if lines[: len(written)] != written or lines[-1] != '{"line":"with room"}' or torn > 1:
            return [f"audit {number}: {torn} lines in part"]
    return []


def main() -> int:
    """Run and report; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    outcomes, wrong = Counter[str](), list[str]()
    for number in range(chosen.rounds):
        with tempfile.TemporaryDirectory() as home:
            wrong += node_round(Path(home), number, outcomes)
        with tempfile.TemporaryDirectory() as home:
            wrong += audit_round(Path(home), number, outcomes)
    lines = [f"{chosen.rounds} rounds on full disks, {len(wrong)} wrong"]
    lines += [f"  {count:>8,}  {text}" for text, count in sorted(outcomes.items())]
    text = "\n".join([*lines, *wrong])
    print(text)
    if chosen.out is not None:
        chosen.out.write_text(text + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
