"""Controllers killed under load: every acknowledged change is in the log exactly once, and the log is valid."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aclog.metalog.filelog.verify import verify
from aclog.server.controller.activation import LOG_DIRECTORY
from tests.support.nodes.controllers import formatted, running, with_policy

ROOT = Path(__file__).parents[3]

WRITER = """
import asyncio, sys
from pathlib import Path
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.interface import RequestContext
from aclog.server.loops import committed
from tests.support.nodes.controllers import directory_config, running, with_policy

CONTEXT = RequestContext(principal="User:admin", host="127.0.0.1")
POLICY = dict(bytes_between=6000, interval_ms=0, retention_bytes=20_000, segment_bytes=5000)

def rule(name):
    return StandardAcl(resource_type=2, resource_name=name, pattern_type=3, principal="User:a", host="*", operation=3,
                       permission_type=3)

async def main(directory, round):
    async with running(with_policy(directory_config(Path(directory)), **POLICY)) as server:
        print("started", flush=True)
        async def client(number):
            for turn in range(100_000):
                name = f"{round}-{number}-{turn}"
                results = await committed(server.serving.controller.create_acls(CONTEXT, [rule(name)]))
                assert results[0].error is None
                print(name, flush=True)
        await asyncio.gather(*map(client, range(8)))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def killed_after(directory, turn, lines):
    """Return the acknowledged changes of a writer that was killed after some of them."""
    command = [sys.executable, "-c", WRITER, str(directory), str(turn)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout.readline() == "started\n"
        acknowledged = [writer.stdout.readline() for _ in range(lines)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += writer.stdout.read().splitlines(keepends=True)
    return {line.strip() for line in acknowledged if line.endswith("\n")}


@pytest.mark.slow(4)
async def test_acknowledged_changes_are_in_the_log_exactly_once(tmp_path):
    config = with_policy(
        formatted(tmp_path), bytes_between=6000, interval_ms=0, retention_bytes=20_000, segment_bytes=5000
    )
    acknowledged = set()
    for turn, lines in enumerate((3, 90, 250)):
        acknowledged |= killed_after(tmp_path, turn, lines)
        async with running(config) as server:
            names = [each.acl.resource_name for each in server.publisher.current.acls]
            assert len(names) == len(set(names))
            assert acknowledged <= set(names)
            assert len(server.publisher.current.features) == 6
        assert not list(verify(tmp_path / LOG_DIRECTORY))
    assert len(acknowledged) >= 343
