"""Stopping a node that does not run yet, and a broker that waits for its controllers."""

import asyncio
import socket
import subprocess
import sys

import pytest

from aclog.cli import serve_run
from aclog.config.node_config import ClientSecurity, HostPort, NodeConfig, Role


def test_a_broker_stops_while_its_controller_is_silent(tmp_path):
    async def scenario():
        with socket.create_server(("127.0.0.1", 0)) as silent:
            at = HostPort(host="127.0.0.1", port=silent.getsockname()[1])
            config = NodeConfig(
                roles=frozenset({Role.BROKER}), node_id=1, metadata_log_dir=tmp_path, listeners=(),
                controller_listener_names=("C",), controller_quorum=(at,), controller_client=ClientSecurity(),
            )  # fmt: skip
            stop = asyncio.Event()
            waiting = asyncio.create_task(serve_run._id_of_cluster(config, stop))
            accepted, _ = await asyncio.to_thread(silent.accept)
            stop.set()
            async with asyncio.timeout(5):  # the connection timeout is ten seconds
                assert await waiting is None
            accepted.close()

    asyncio.run(scenario())


STOPPED_BY_ITS_IMPORTS = """
import signal, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "aclog.server.node":
            signal.raise_signal(signal.SIGTERM)
sys.meta_path.insert(0, Finder)
sys.argv = ["aclog", "serve", "no.properties"]
from aclog.__main__ import main
main()
"""


@pytest.mark.process
def test_sigterm_before_the_node_is_imported_ends_with_success(tmp_path):
    command = [sys.executable, "-c", STOPPED_BY_ITS_IMPORTS]
    ended = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr, list(tmp_path.iterdir())) == (0, "", "", [])
