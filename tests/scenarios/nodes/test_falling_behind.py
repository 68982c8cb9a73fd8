"""Brokers that were stopped, suspended or cut off while the log moved past its retention come back to its state."""

import asyncio
from contextlib import ExitStack
from random import Random

import pytest

from aclog.metalog.batches import iter_batches
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import checkpoint_batches
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl
from tests.support.nodes.acl_client import AclClient, by_principal, exactly
from tests.support.nodes.cluster import SHORT_LOG, Cluster
from tests.support.nodes.in_process_node import InnerNode
from tests.support.nodes.tcp_proxy import TcpProxy
from tests.support.processes.waiting import wait_until

pytestmark = pytest.mark.server

CHANGES = 100


def rules_of(port):
    async def describe():
        async with await AclClient.open(port) as client:
            found = await client.describe()
            assert found.count == len(found.acls)
            return found.acls

    return asyncio.run(describe())


def in_the_log(cluster):
    """The image that the controller's directory adds up to."""
    return recover(cluster.controller.log_directory).image


def change_until_gone(cluster, offset):
    """Change rules until the log no longer holds `offset`, and some more; returns its end offset."""

    async def change():
        async with await AclClient.open(cluster.controller.ports.controller) as client:
            number = 0
            while list_segments(cluster.controller.log_directory)[0].base_offset <= offset:
                rules = [acl(f"t{number}-{part}", principal=f"User:u{part}") for part in range(40)]
                assert all(not code for code, _ in await client.create(rules))
                if number % 2:
                    await client.delete([by_principal(f"User:u{part}") for part in range(0, 40, 3)])
                number += 1
                assert number < 500, "retention takes nothing away"
            await client.create([acl("last")])

    asyncio.run(change())
    return cluster.controller.applied


def test_brokers_that_fell_behind_come_back_to_the_same_image(tmp_path, zygote):
    with TcpProxy(0) as proxy, Cluster(tmp_path, zygote, controller_at=proxy.port, **SHORT_LOG) as cluster:
        proxy.target = cluster.controller.ports.controller
        stopped, suspended = cluster.add_broker(), cluster.add_broker()
        cluster.start()
        with InnerNode(cluster.spare_broker() / "server.properties") as inner:
            asyncio.run(create_first(cluster.controller.ports.controller))
            before = cluster.controller.applied
            for broker in (stopped, suspended):
                broker.wait_applied(before)
            assert stopped.stop() == 0
            suspended.suspend()
            proxy.hold()
            end = change_until_gone(cluster, before)
            assert list_checkpoints(cluster.controller.log_directory)[0].end_offset > before
            proxy.release()
            stopped.spawn()
            suspended.resume()
            for broker in (stopped, suspended):
                broker.wait_applied(end)
            # Brokers whose heartbeats were held are fenced and unfenced: the log moves on by some records.
            wait_until(lambda: inner.checkpoint == b"".join(checkpoint_batches(in_the_log(cluster))))
            assert inner.image.end_offset > end
            every = frozenset(rule.acl for rule in in_the_log(cluster).acls)
            assert [rules_of(node.ports.broker) for node in (stopped, suspended)] == [every, every]
            assert rules_of(cluster.controller.ports.controller) == every


def living(image):
    """How many brokers of an image are unfenced."""
    return sum(not broker.fenced for broker in image.cluster.brokers())


async def create_first(port):
    async with await AclClient.open(port) as client:
        assert await client.create([acl("first")]) == [(0, "")]


def test_all_nodes_agree_at_every_committed_offset(tmp_path, zygote):
    # Nobody is fenced because the machine is busy: two batches that are fetched together are published as one.
    with Cluster(tmp_path, zygote, broker_session_timeout_ms="600000") as cluster:
        cluster.add_broker()
        cluster.start()
        with ExitStack() as stack:
            inners = [
                stack.enter_context(InnerNode(cluster.spare_broker(number) / "server.properties"))
                for number in range(2)
            ]
            # Registrations come by themselves, and one may be fetched together with a change.
            wait_until(lambda: all(living(inner.image) == 1 + len(inners) for inner in inners))
            first = cluster.controller.applied + 1
            asyncio.run(change_and_compare(cluster, inners))
            last = cluster.controller.applied + 1
        expected = digests_of(cluster.controller.log_directory)
        for inner in inners:
            assert inner.digests.items() <= expected.items()
            # What follows is the brokers' fencing as they end.
            assert {end for end in expected if first < end <= last} <= set(inner.digests)
        assert len(set(expected.values())) > CHANGES / 3


async def change_and_compare(cluster, inners):
    """One change after the other; after each, every node that can be asked shows the same rules at the same offset."""
    nodes, chance, standing = cluster.nodes, Random(4), set()
    ports = [cluster.controller.ports.controller, *(broker.ports.broker for broker in cluster.brokers)]
    clients = [await AclClient.open(port) for port in ports]
    for number in range(CHANGES):
        client = chance.choice(clients)
        if standing and chance.random() < 0.4:
            going = chance.sample(sorted(standing, key=str), min(len(standing), chance.randrange(1, 4)))
            await client.delete([exactly(rule) for rule in going])
            standing -= set(going)
        else:
            coming = [acl(f"t{number}-{part}", host=f"10.0.0.{part}") for part in range(chance.randrange(1, 6))]
            assert all(not code for code, _ in await client.create(coming))
            standing |= set(coming)
        end = await asyncio.to_thread(lambda: cluster.controller.applied) + 1
        for node in nodes:
            await asyncio.to_thread(node.wait_applied, end - 1)
        while any(inner.image.end_offset < end for inner in inners):
            await asyncio.sleep(0.002)
        assert [(await each.describe()).acls for each in clients] == [standing] * len(clients)
    for client in clients:
        await client.close()


def digests_of(directory):
    """The digest of the rules after each batch of a log."""
    reader, applier, found = open_reader(directory), Applier(), {}
    data = reader.read(0, 1 << 30)
    for position, header in iter_batches(data):
        image = applier.apply(data[position : position + header.size])
        found[image.end_offset] = image.acls.digest()
    assert applier.next_offset == reader.high_watermark()
    return found
