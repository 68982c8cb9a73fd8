"""Kills of a migration: nothing is visible afterwards, or everything, and the next run completes it.

    python -m tests.scenarios.migration.kills --kills 30 --acls 12000 --out benchmarks/results/migration-kills.txt

First it dies in each system call that changes something, one run per call; then it is killed (SIGKILL) at random
moments, while ACLs, users and tokens are being changed in ZooKeeper.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kazoo.client import KazooClient

from aclog.snapshots.publisher import recover
from tests.scenarios.migration.estate import Changes, fill, in_image, in_store
from tests.scenarios.migration.running import DIED, Dying, finish, image_in, start
from tests.support.zookeeper.server import ZooKeeperServer, zookeeper_client

NEVER = 1 << 40
"""More system calls than any command makes."""
QUIET = "1"
"""Seconds without a change before the switchover."""


def seen(log: Path, wanted: set[tuple]) -> str:
    """Return what a reader sees after a kill; an AssertionError if it is neither nothing nor everything."""
    found = in_image(image_in(log))
    if found:
        assert found == wanted, f"a partial migration is visible: {len(found)} entries, {len(found ^ wanted)} wrong"
        return "all visible"
    if not log.is_dir():
        return "no log yet"
    return "transaction open" if is_open(log) else "nothing begun"


def is_open(log: Path) -> bool:
    """Return whether the log ends inside a transaction."""
    try:
        return recover(log).applier.in_transaction
    except Exception:  # noqa: BLE001 - not a log yet
        return False


def run_again(connect: str, log: Path, wanted: set[tuple]) -> None:
    """Run the migration again, and check that it succeeds and is complete."""
    code, out, err = finish(start("migrate", "--zookeeper", connect, "--log", log))
    assert code == 0, (code, out, err)
    assert in_image(image_in(log)) == wanted


def kill_at_call(dying: Dying, connect: str, log: Path, number: int, wanted: set[tuple]) -> str | None:
    """Die at a call, check, and run again; return what was visible, None if there are fewer calls."""
    command = ("migrate", "--zookeeper", connect, "--log", log)
    code = dying.run(number, *command)
    assert code in {0, DIED}, f"exit code {code} at call {number}"
    what = seen(log, wanted)
    assert dying.run(NEVER, *command) == 0
    assert in_image(image_in(log)) == wanted
    shutil.rmtree(log)
    return what if code == DIED else None


def kill_at_random(client: KazooClient, connect: str, log: Path, numbers: random.Random, seconds: float) -> str:
    """Kill it within `seconds`, during whose first part changes are made; check, and run again."""
    moment = numbers.uniform(0, seconds)
    with Changes(connect, seed=numbers.randrange(1 << 30)) as changes:
        begun = time.monotonic()
        process = start(
            "migrate", "--zookeeper", connect, "--log", log, "--until-quiet", QUIET, stderr=subprocess.DEVNULL
        )
        time.sleep(min(moment, numbers.uniform(0, seconds / 3)))
        changes.stop()
    time.sleep(max(0.0, begun + moment - time.monotonic()))
    process.kill()
    process.communicate()
    wanted = in_store(client)
    what = seen(log, wanted)
    run_again(connect, log, wanted)
    shutil.rmtree(log, ignore_errors=True)
    return f"{moment:6.2f} s, {changes.done:5d} concurrent changes: {what}"


def campaign(home: Path, *, kills: int, acls: int, seed: int) -> Iterator[str]:
    """Run the campaign; yield a line per kill, and summaries."""
    numbers, counts = random.Random(seed), Counter()
    with ZooKeeperServer(home / "zookeeper") as server, zookeeper_client(server.connect) as root:
        for chroot in ("/small", "/large"):
            root.ensure_path(chroot)
        small, large = f"{server.connect}/small", f"{server.connect}/large"
        with zookeeper_client(small) as client, Dying() as dying:
            fill(client, acls=1000, users=20, tokens=20)
            wanted, number = in_store(client), 0
            while (what := kill_at_call(dying, small, home / "log", number, wanted)) is not None:
                counts[what] += 1
                yield f"call {number:3d}: {what}"
                number += 1
        yield f"killed in each of {number} system calls: {dict(counts)}"
        counts.clear()
        with zookeeper_client(large) as client:
            fill(client, acls=acls, users=200, tokens=200)
            seconds = measured(large, home / "log")
            for number in range(kills):
                line = kill_at_random(client, large, home / "log", numbers, seconds)
                counts[line.rpartition(": ")[2]] += 1
                yield f"kill {number:3d} after {line}"
        yield f"killed at {kills} random moments of {seconds:.1f} s, {acls} ACLs: {dict(counts)}"
        yield "after each kill nothing was visible, or everything; after the next run, everything"


def measured(connect: str, log: Path) -> float:
    """Return the seconds of an undisturbed migration."""
    begun = time.monotonic()
    code, out, err = finish(start("migrate", "--zookeeper", connect, "--log", log, "--until-quiet", QUIET))
    assert code == 0, (code, out, err)
    shutil.rmtree(log)
    return time.monotonic() - begun


def main() -> None:
    """Run the campaign, and keep its output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--acls", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    flags = parser.parse_args()
    lines = []
    home = Path(tempfile.mkdtemp(prefix="aclog-migration-"))
    for line in campaign(home, kills=flags.kills, acls=flags.acls, seed=flags.seed):
        print(line, flush=True)
        lines.append(line)
    shutil.rmtree(home)
    if flags.out is not None:
        flags.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
