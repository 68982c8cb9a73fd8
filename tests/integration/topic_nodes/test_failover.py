"""The active controller is killed, paused and stopped: changes go on, and nothing that was acknowledged is lost."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

import pytest

from aclog.client.errors import UnreachableError
from aclog.metalog.batches import iter_batches
from aclog.metalog.codec import decode_values
from aclog.metalog.errors import MetadataError
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.topiclog import TopicReader, TopicSettings
from tests.support.builders.acls import acl
from tests.support.kafka.acls_tool import TO_BROKERS, TO_CONTROLLERS, AclsTool
from tests.support.kafka.shared import SharedKafka
from tests.support.nodes.acl_client import AclClient, exactly
from tests.support.nodes.cluster import HOST
from tests.support.nodes.server_properties import password
from tests.support.nodes.topic_cluster import COMBINED, CONTROLLERS, TopicCluster
from tests.support.nodes.wire_client import ClosedError, WireClient
from tests.support.processes.waiting import SECONDS, wait_until

pytestmark = pytest.mark.slow(5)

NOT_CONTROLLER, METADATA = 41, 3
BROKER_ID = 11
QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
_NUMBERS = count()


def fresh(what: str) -> str:
    """A topic name that no test has used."""
    return f"{what}-{next(_NUMBERS)}"


def brokers(cluster: TopicCluster) -> str:
    """The broker, and the controller that is one too."""
    return f"{HOST}:{cluster.brokers[0].ports.broker}"


def added(tool: AclsTool, cluster: TopicCluster, *names: str) -> None:
    """By brokers and by controllers in turn; each time the tool says that all is well."""
    places = ((TO_BROKERS, brokers(cluster)), (TO_CONTROLLERS, cluster.bootstrap_controllers))
    for number, name in enumerate(names):
        printed = tool.add(*places[number % 2], name)
        assert printed.code == 0, printed


async def described(port: int) -> set[str]:
    async with await AclClient.open(port) as client:
        return {each.resource_name for each in (await client.describe()).acls}


def shown(port: int) -> set[str]:
    """The names that a node lists; none while it cannot be asked."""
    try:
        return asyncio.run(described(port))
    except MetadataError:
        return set()


def wait_everywhere(cluster: TopicCluster, *names: str) -> None:
    """All nodes that run show these."""
    ports = [node.ports.controller for node in cluster.controllers.values() if node.running]
    for port in (*ports, cluster.brokers[0].ports.broker):
        wait_until(lambda port=port: set(names) <= shown(port), f"{names} at {port}")


def in_the_log(kafka: SharedKafka, cluster: TopicCluster) -> list[str]:
    """The name of every rule that was ever added, in order."""
    from aclog.config.server_properties import load_config

    settings = load_config(cluster.controllers[1].home / "server.properties").topic
    assert isinstance(settings, TopicSettings)
    found = []
    with TopicReader(settings) as reader:
        reader.wait_known(SECONDS)
        offset = 0
        while offset < reader.high_watermark():
            data = reader.read(offset)
            for position, header in iter_batches(data):
                offset = header.base_offset + header.record_count
                records = () if header.is_control else decode_values(data, position, header)
                found += [each.resource_name for each in records if isinstance(each, AccessControlEntryRecord)]
    return found


@contextmanager
def suspended(cluster: TopicCluster, node_id: int) -> Iterator[None]:
    """A controller that is paused, and woken again."""
    cluster.controllers[node_id].suspend()
    try:
        yield
    finally:
        cluster.controllers[node_id].resume()


def others(node_id: int) -> list[int]:
    return [each for each in CONTROLLERS if each != node_id]


def named(port: int) -> set[int]:
    """The brokers that Metadata of one names; none while it cannot be asked."""
    with suppress(OSError, ClosedError), WireClient(port).plain("admin", password("admin")) as client:
        asked = {"topics": (), "allow_auto_topic_creation": False}
        asked |= {"include_cluster_authorized_operations": False, "include_topic_authorized_operations": False}
        return {each.node_id for each in client.ask(METADATA, 8, **asked).brokers}
    return set()


@pytest.mark.slow(17)
def test_brokers_are_named_across_a_takeover_and_fenced_by_the_new_controller(cluster: TopicCluster) -> None:
    broker, combined = cluster.brokers[0], cluster.controllers[COMBINED]
    both = {BROKER_ID, COMBINED}
    wait_until(lambda: named(broker.ports.broker) == both == named(combined.ports.broker), "both brokers")
    active = cluster.wait_active()
    # The one that is a broker, too, dies while no controller leads: the next one finds out by its silence.
    cluster.controllers[active].kill()
    if active != COMBINED:
        combined.kill()
    assert cluster.wait_active(others(active))
    wait_until(lambda: named(broker.ports.broker) == {BROKER_ID}, "the one that lives")
    for node in (cluster.controllers[active], combined):
        if not node.running:
            node.spawn()
            node.wait_until_ready()
    wait_until(lambda: named(broker.ports.broker) == both == named(combined.ports.broker), "both again")


async def written_until_it_dies(port: int, acknowledged: set[str]) -> None:
    """Add rules at a controller by several connections, each of which has a request out at any time."""

    async def write(client: AclClient, what: str) -> None:
        for number in count():
            if await client.create([acl(f"{what}-{number}")]) != [(0, "")]:
                return  # it is not the active one any more, and answers still
            acknowledged.add(f"{what}-{number}")

    clients = [await AclClient.open(port) for _ in range(4)]
    outcomes = await asyncio.gather(*(write(each, fresh("during")) for each in clients), return_exceptions=True)
    assert all(isinstance(each, UnreachableError) for each in outcomes), outcomes
    for client in clients:
        await client.close()


@pytest.mark.tier("test")
def test_killed(cluster: TopicCluster, topic_kafka: SharedKafka, acls_tool: AclsTool) -> None:
    before, after = [fresh("before") for _ in range(2)], [fresh("after") for _ in range(4)]
    added(acls_tool, cluster, *before)
    active = cluster.wait_active()
    during: set[str] = set()

    def kill_under_writes() -> None:
        wait_until(lambda: len(during) > 20, "writes are acknowledged")
        cluster.controllers[active].kill()

    killing = threading.Thread(target=kill_under_writes)
    killing.start()
    asyncio.run(written_until_it_dies(cluster.controllers[active].ports.controller, during))
    killing.join()
    added(acls_tool, cluster, *after)
    assert cluster.wait_active(others(active)) != active
    acknowledged = (*before, *during, *after)
    wait_everywhere(cluster, *acknowledged)
    cluster.controllers[active].spawn()
    cluster.controllers[active].wait_until_ready()
    wait_everywhere(cluster, *acknowledged)
    names = in_the_log(topic_kafka, cluster)
    assert {name: names.count(name) for name in acknowledged} == dict.fromkeys(acknowledged, 1)


def test_paused_and_woken(cluster: TopicCluster, topic_kafka: SharedKafka, acls_tool: AclsTool) -> None:
    before, ghost, later = fresh("before"), fresh("ghost"), fresh("later")
    added(acls_tool, cluster, before)
    active = cluster.wait_active()

    async def asked_while_it_slept() -> None:
        """Requests that lie in the sockets of one that sleeps: it takes them as it wakes, and knows of nothing."""
        port = cluster.controllers[active].ports.controller
        clients = [await AclClient.open(port, timeout=60) for _ in range(3)]
        with suspended(cluster, active):
            asked = (
                clients[0].create([acl(ghost)]),
                clients[1].create([acl(before)]),
                clients[2].delete([exactly(acl(before))]),
            )
            waiting = [asyncio.ensure_future(each) for each in asked]
            await asyncio.to_thread(cluster.wait_active, others(active))
            assert (await asyncio.to_thread(acls_tool.remove, TO_BROKERS, brokers(cluster), before)).code == 0
        created, again, deleted = await asyncio.gather(*waiting, return_exceptions=True)
        for client in clients:
            await client.close()
        for each in (created, again):
            assert isinstance(each, UnreachableError) or each[0][0] == NOT_CONTROLLER, each
        assert isinstance(deleted, UnreachableError) or deleted[0][0][0] == NOT_CONTROLLER, deleted

    asyncio.run(asked_while_it_slept())
    added(acls_tool, cluster, later)
    wait_everywhere(cluster, later)
    names = in_the_log(topic_kafka, cluster)
    assert ghost not in names
    assert names.count(before) == 1
    for node in (*cluster.controllers.values(), cluster.brokers[0]):
        port = node.ports.broker if node in cluster.brokers else node.ports.controller
        assert not {ghost, before} & shown(port)
    assert cluster.active([active]) is None or cluster.active(others(active)) is None


def test_stopped_in_good_order(cluster: TopicCluster, acls_tool: AclsTool) -> None:
    active = cluster.wait_active()
    name = fresh("stopped")
    stopping = threading.Thread(target=cluster.controllers[active].stop)
    stopping.start()
    added(acls_tool, cluster, name)
    stopping.join()
    assert cluster.wait_active(others(active))
    wait_everywhere(cluster, name)


def test_a_node_that_is_a_broker_too_forwards_to_whoever_is_active(cluster: TopicCluster, acls_tool: AclsTool) -> None:
    port = cluster.controllers[COMBINED].ports.broker
    if cluster.wait_active() == COMBINED:
        name = fresh("own")
        assert acls_tool.add(TO_BROKERS, f"{HOST}:{port}", name).code == 0
        cluster.controllers[COMBINED].stop()
        cluster.wait_active(others(COMBINED))
        cluster.controllers[COMBINED].spawn()
        cluster.controllers[COMBINED].wait_until_ready()
        wait_until(lambda: name in shown(port), f"{name} at the broker")
    name = fresh("forwarded")
    assert cluster.wait_active() != COMBINED
    assert acls_tool.add(TO_BROKERS, f"{HOST}:{port}", name).code == 0
    wait_until(lambda: name in shown(port), f"{name} at the broker")


def test_a_new_controller_begins_with_the_checkpoint_of_the_active_one(
    cluster: TopicCluster, acls_tool: AclsTool
) -> None:
    async def many(port: int) -> None:
        async with await AclClient.open(port) as client:
            for part in range(3):
                outcomes = await client.create([acl(f"many-{part}-{number}") for number in range(4000)])
                assert {code for code, _ in outcomes} == {0}

    active = cluster.wait_active()
    asyncio.run(many(cluster.controllers[active].ports.controller))
    checkpoints = cluster.controllers[active].log_directory
    wait_until(lambda: any(checkpoints.glob("*.checkpoint")), "a checkpoint")
    new = cluster.controllers[others(active)[0]]
    new.stop()
    for path in new.log_directory.glob("*.checkpoint"):
        path.unlink()
    told = len(new.output)
    new.spawn()
    new.wait_until_ready()
    assert "starting from another controller's checkpoint" in new.output[told:]
    assert any(new.log_directory.glob("*.checkpoint"))
    names = {f"many-{part}-{number}" for part in range(3) for number in range(4000)}
    wait_until(lambda: names <= shown(new.ports.controller), "all rules")


def test_a_standby_stops_in_good_order(cluster: TopicCluster) -> None:
    node = cluster.controllers[others(cluster.wait_active())[0]]
    assert node.stop() == 0
    last = node.output.rpartition("stopping")[2]
    assert not {"critical", "error"} & set(last.replace("[", " ").split())


def test_kafkas_own_tool_describes_the_quorum(cluster: TopicCluster, acls_tool: AclsTool) -> None:
    active = cluster.wait_active()
    config = ("--command-config", str(acls_tool.config))
    for place in ((TO_BROKERS, brokers(cluster)), (TO_CONTROLLERS, cluster.bootstrap_controllers)):
        printed = acls_tool.pipe.run(QUORUM_TOOL, [*place, *config, "describe", "--status"])
        assert printed.code == 0, printed
        told = dict(line.split(":", 1) for line in printed.out.splitlines() if ":" in line)
        assert int(told["LeaderId"]) == active, printed
        assert all(f'"id": {node_id}' in told["CurrentVoters"] for node_id in CONTROLLERS), printed
