"""Many concurrent clients, some misbehaving: the others are served, and resource use stays bounded."""

import asyncio

from aclog.protocol.api_keys import DESCRIBE_ACLS, DESCRIBE_CLUSTER
from tests.support.nodes.served_listener import run

CLIENTS, REQUESTS, BAD = 150, 30, 12


async def large(request):
    await asyncio.sleep(0)
    return bytes(4 << 20)


async def asks(served):
    client = await served.connect()
    for _ in range(REQUESTS):
        assert await client.who() == "User:ANONYMOUS"
    client.close()


async def comes_and_goes(served):
    for number in range(10):
        client = await served.connect()
        client.request(DESCRIBE_CLUSTER, 1)
        if number % 2:
            client.send(b"\0\0\1\0half of a frame")
        client.close()


def test_many_clients_among_misbehaving_ones():
    async def scenario(served):
        slow = [await served.connect(limit=1024) for _ in range(BAD)]
        for client in slow:
            client.request(DESCRIBE_ACLS, 2)
        half = [await served.connect() for _ in range(BAD)]
        for client in half:
            client.send(b"\0\1\0\0" + bytes(50_000))
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(asks(served))
            for _ in range(BAD):
                group.create_task(comes_and_goes(served))
        assert served.sample("aclog_unsent_bytes") <= 16 << 20
        assert served.sample("aclog_request_duration_seconds_count", api="DescribeCluster") >= CLIENTS * REQUESTS
        assert served.sample("aclog_connections_closed_total", listener="CLIENT", reason="slow_reader") >= BAD - 4
        assert served.sample("aclog_connections_closed_total", listener="CLIENT", reason="error") == 0
        for client in (*slow, *half):
            client.close()
        await served.settled(lambda: served.admission.connections == 0)

    run(scenario, handlers={DESCRIBE_ACLS: large}, in_flight_bytes=16 << 20, in_flight_requests=20)
