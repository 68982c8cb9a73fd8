"""Stopping a broker that waits for its controllers."""

import asyncio
import socket

from aclog.cli import serve
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
            waiting = asyncio.create_task(serve._id_of_cluster(config, stop))
            accepted, _ = await asyncio.to_thread(silent.accept)
            stop.set()
            async with asyncio.timeout(5):  # the connection timeout is ten seconds
                assert await waiting is None
            accepted.close()

    asyncio.run(scenario())
