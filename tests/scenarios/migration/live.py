"""20,000 rules out of a real ZooKeeper while changes go on: what the log holds is what the store held at the switch.

python -m tests.scenarios.migration.live --acls 20000 --seconds 10
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.scenarios.migration.estate import Changes, fill, in_image, in_store
from tests.scenarios.migration.running import finish, image_in, start
from tests.support.zookeeper.server import ZooKeeperServer, zookeeper_client


def migrate_live(connect: str, log: Path, *, acls: int, others: int, seconds: float) -> str:
    """Migrate while somebody writes for so long after the copy; a line that says how it went.

    The changes end before the switch is asked for, so that the store's state at the switch can be told.
    """
    with zookeeper_client(connect) as client:
        fill(client, acls=acls, users=others, tokens=others)
        with Changes(connect) as changes:
            begun = time.monotonic()
            process = start("migrate", "--zookeeper", connect, "--log", log, "--follow", stdin=subprocess.PIPE)
            followed = 0
            while "copied into" not in (line := process.stderr.readline()):
                assert line, "the migration ended before it had copied"
            copied, before = time.monotonic() - begun, changes.done
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                followed += "followed:" in process.stderr.readline()
            assert in_image(image_in(log)) == set(), "something was visible before the switch"
            changes.stop()
        asked = time.monotonic()
        process.stdin.write("switch\n")
        process.stdin.flush()
        code, out, err = finish(process)
        took = time.monotonic() - asked
        wanted = in_store(client)
    assert code == 0, (code, out, err)
    found = in_image(image_in(log))
    assert found == wanted, sorted(found ^ wanted)[:5]
    return (
        f"{acls} ACLs, {others} SCRAM users, {others} tokens: copied in {copied:.1f} s; {changes.done} changes "
        f"meanwhile, {changes.done - before} of them after the copy, followed in {followed} steps; switched and "
        f"compared {took:.1f} s after it was asked for; nothing was visible before; {len(found)} entries equal: "
        f"{out.strip().splitlines()[-1]}"
    )


def main() -> None:
    """Run it once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--acls", type=int, default=20_000)
    parser.add_argument("--others", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    flags = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="aclog-migration-"))
    with ZooKeeperServer(home / "zookeeper") as server:
        connect = f"{server.connect}/kafka"
        with zookeeper_client(server.connect) as client:
            client.ensure_path("/kafka")
        print(migrate_live(connect, home / "log", acls=flags.acls, others=flags.others, seconds=flags.seconds))


if __name__ == "__main__":
    sys.exit(main())
