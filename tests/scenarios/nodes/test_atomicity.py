"""A batch of 1,000 rules is seen whole or not at all, on the controller and on two brokers, while 8 clients read."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.support.builders.acls import acl
from tests.support.nodes.acl_client import EVERYTHING, AclClient, by_principal, exactly
from tests.support.nodes.cluster import Cluster

pytestmark = pytest.mark.server

RULES = [acl(f"orders-{number}", principal="User:batch") for number in range(1000)]
OTHERS = [acl(f"others-{number}", principal="User:other") for number in range(50)]
ROUNDS = 6


class Reader:
    """Reads for ever, and keeps what numbers of the batch's rules it has seen."""

    def __init__(self, client: AclClient, wanted) -> None:
        self.client, self.wanted = client, wanted
        self.seen: set[int] = set()
        self.reads = 0

    async def run(self) -> None:
        while True:
            found = await self.client.describe_as_sent(self.wanted)
            assert not found.error_code
            self.seen.add(sum(each.principal == "User:batch" for resource in found.resources for each in resource.acls))
            self.reads += 1


@pytest.fixture
def cluster(tmp_path, zygote):
    with Cluster(tmp_path, zygote) as found:
        found.add_broker()
        found.add_broker()
        yield found.start()


def test_a_batch_is_seen_whole_or_not_at_all(cluster):
    asyncio.run(read_beside_writes(cluster))


async def read_beside_writes(cluster):
    brokers = [node.ports.broker for node in cluster.brokers]
    controller = cluster.controller.ports.controller
    async with AsyncExitStack() as stack:
        writer = await stack.enter_async_context(await AclClient.open(brokers[0]))
        assert all(not code for code, _ in await writer.create(OTHERS))
        filters = [by_principal("User:batch"), EVERYTHING]
        readers = []
        for number, port in enumerate([brokers[0], brokers[1], controller, brokers[1]] * 2):
            client = await stack.enter_async_context(await AclClient.open(port))
            readers.append(Reader(client, filters[number % 3 == 0]))
        tasks = [asyncio.create_task(reader.run()) for reader in readers]
        try:
            await write(writer, readers, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert [reader.seen for reader in readers] == [{0, len(RULES)}] * 8


async def write(writer, readers, tasks):
    """Create the batch and delete it, by one filter or by a thousand, again and again."""
    every = [exactly(rule) for rule in RULES]
    for number in range(ROUNDS):
        assert all(not code for code, _ in await writer.create(RULES))
        await all_have_read(readers, tasks)
        deleted = await writer.delete(every if number % 2 else [by_principal("User:batch")])
        assert sum(count for _, count in deleted) == len(RULES)
        await all_have_read(readers, tasks)


async def all_have_read(readers, tasks):
    """Until each has begun and ended a read since now, so that it has seen what stands between two changes."""
    wanted = [reader.reads + 2 for reader in readers]
    while any(reader.reads < least for reader, least in zip(readers, wanted, strict=True)):
        for task in tasks:
            if task.done():
                task.result()
        await asyncio.sleep(0.005)
