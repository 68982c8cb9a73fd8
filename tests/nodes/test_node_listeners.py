"""Closing the listeners of a node."""

import asyncio

from attrs import evolve

from aclog.config.node_config import NodeConfig, Role
from aclog.protocol.api_keys import DESCRIBE_CLUSTER
from aclog.server.node import NodeListeners
from tests.support.nodes.served_listener import PLAINTEXT, Client, Served


def test_all_listeners_stop_at_once_not_one_after_the_other(tmp_path):
    asked, clients, accepted, go_on = [], [], [], asyncio.Event()

    async def stuck(_request):
        asked.append(1)
        await go_on.wait()
        return b""

    async def scenario():
        listeners = (PLAINTEXT, evolve(PLAINTEXT, name="OTHER"))
        served = Served(handlers={DESCRIBE_CLUSTER: stuck})
        listening = NodeListeners(
            config=NodeConfig(
                roles=frozenset({Role.BROKER}), node_id=1, metadata_log_dir=tmp_path, listeners=listeners,
                controller_listener_names=(),
            ),
            controller=None, broker=served.dispatcher, admission=served.admission,
            credentials=served.server.credentials,
            advertised={},
        )  # fmt: skip
        await listening.open(early=False)
        ports = dict(listening.ports)
        for port in ports.values():
            clients.append(client := Client(*await asyncio.open_connection("127.0.0.1", port)))
            client.request(DESCRIBE_CLUSTER, 1)
        await served.settled(lambda: len(asked) == 2)
        closing = asyncio.create_task(listening.close(60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for port in ports.values():
            try:
                _, late = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                continue
            late.transport.abort()
            accepted.append(port)
        go_on.set()
        await closing
        for client in clients:
            client.close()
        assert accepted == []

    asyncio.run(scenario())
