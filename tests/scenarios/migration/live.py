"""A migration of 20,000 ACLs during changes: the log equals the store at the switchover.

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
    """Migrate while changes continue for `seconds` after the copy; return a summary.

    Changes end before the switchover is requested, so that the state of the store at the switchover is known.
    """
    with zookeeper_client(connect) as client:
        fill(client, acls=acls, users=others, tokens=others)
        with Changes(connect) as changes:
            begun = time.monotonic()
            process = start("migrate", "--zookeeper", connect, "--log", log, "--follow", stdin=subprocess.PIPE)
            followed = 0
            while "copied into" not in (line := process.stderr.readline()):
                assert line, "the migration ended before the copy"
            copied, before = time.monotonic() - begun, changes.done
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                followed += "followed:" in process.stderr.readline()
            assert in_image(image_in(log)) == set(), "something was visible before the switchover"
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
        f"meanwhile, {changes.done - before} of them after the copy, followed in {followed} steps; switched over and "
        f"compared in {took:.1f} s; nothing was visible before; {len(found)} entries equal: "
        f"{out.strip().splitlines()[-1]}"
    )


def main() -> None:
    """Run one migration."""
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
