"""KIP-801's start: until a node has replayed its log, early listeners admit super users only, and no other is open."""

import asyncio
import subprocess
import sys
import time
from collections import Counter

import pytest
from confluent_kafka.admin import AclBindingFilter, AclPermissionType, AdminClient, ResourcePatternType, ResourceType
from confluent_kafka.admin import AclOperation as Operation

from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import KafkaPrincipal
from aclog.client.connection import connect
from aclog.client.errors import LoginError, UnreachableError
from aclog.config.node_config import HostPort
from aclog.config.server_properties import load_config
from aclog.credentials import scram
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.primitives import compact_string, unsigned_varint
from aclog.metalog.records import UserScramCredentialRecord
from aclog.protocol.api_keys import (
    API_VERSIONS,
    CREATE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ENVELOPE,
    FETCH,
    FETCH_SNAPSHOT,
    METADATA,
)
from aclog.protocol.messages import build
from aclog.protocol.responses import (
    AUTHORIZER_NOT_READY,
    EnvelopeRequest,
    decode_envelope_response,
    encode_envelope_request,
    encode_principal,
)
from aclog.server.broker.lifecycle import BEFORE_REPLAY
from aclog.server.storage import ensure_formatted
from tests.support.builders.acls import acl, acl_record, cluster_acl
from tests.support.builders.long_log import batch, begin_log, coming_and_going
from tests.support.kafka.acls_tool import TO_BROKERS, AclsTool
from tests.support.kafka.tools import MAINS
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.acl_client import AclClient, by_principal, login
from tests.support.nodes.api_sweep import refused_as_not_ready, swept
from tests.support.nodes.cluster import HOST, Cluster
from tests.support.nodes.node_requests import frame
from tests.support.nodes.server_properties import PLAIN, SCRAM, Ports
from tests.support.nodes.tcp_proxy import TcpProxy
from tests.support.nodes.topic_cluster import COMBINED, CONTROLLERS, TopicCluster
from tests.support.processes.waiting import SECONDS, wait_until

pytestmark = pytest.mark.server

CLUSTER_AUTHORIZATION_FAILED = 31
PAIRS = 100_000
"""Twice as many batches of one record: they take a while to replay, and no time to write."""
FIRST = acl("seen-from-the-start", principal="User:alice")
LAST = acl("seen-at-the-end", principal="User:alice")
MAY_DESCRIBE = cluster_acl("User:alice", AclOperation.DESCRIBE)
NOT_READY = "AUTHORIZER_NOT_READY"
EARLY = {"alice": NOT_READY, "scram": "login later", "admin": NOT_READY}
"""What an early listener answers before the replay is over."""
JAAS = f'{PLAIN} required username="admin" password="admin-secret" user_admin="admin-secret" user_alice="alice-secret";'


def scram_record(user, password, iterations=4096, salt=b"a salt of tests"):
    mechanism = ScramMechanism.SCRAM_SHA_256
    salted = scram.salted_password(mechanism, password, salt, iterations)
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=salt,
        stored_key=scram.stored_key(mechanism, scram.client_key(mechanism, salted)),
        server_key=scram.server_key(mechanism, salted),
        iterations=iterations,
    )


def with_early_listener(late, early):
    """Properties of a node with a listener that waits, and one for clients that does not."""
    return {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,EARLY:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "early.start.listeners": early,
        "listener.name.client.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": JAAS,
        "listener.name.early.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.early.plain.sasl.jaas.config": JAAS,
        "listener.name.early.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    } | late


def envelope(user):
    """A CreateAcls of a user, as a broker passes it on."""
    creation = build(CREATE_ACLS, 3, "request", creations=())
    principal = encode_principal(KafkaPrincipal(type="User", name=user), token_authenticated=False)
    body = EnvelopeRequest(
        request_data=frame(CREATE_ACLS, 3, creation), request_principal=principal, client_host_address=bytes(4)
    )
    return encode_envelope_request(body)


class Watcher:
    """Asks a node that starts everything that may be asked, and notes what came of it, while it is not ready."""

    def __init__(self, node, early_port, late_port):
        self.node, self.early_port, self.late_port = node, early_port, late_port
        self.before, self.after = Counter(), Counter()

    async def ask(self, user, port, mechanism="PLAIN"):
        """What a user gets at a port."""
        try:
            async with await AclClient.open(port, user, mechanism=mechanism) as client:
                found = await client.describe(by_principal("User:alice"))
        except LoginError:
            return "wrong password"
        except UnreachableError as error:
            if "closed the connection" in str(error):  # clients try again then, as after any lost connection
                return "login later"
            return "refused" if "no connection" in str(error) else str(error)
        if found.code:
            return NOT_READY if (found.code, (found.message or "")[: len(NOT_READY)]) == (-1, NOT_READY) else found.code
        return "all" if LAST in found.acls else "some"

    async def asked_while_not_ready(self, what, asking):
        """Note an answer; before the node is ready if it was not ready when the answer was there."""
        answer = await asking
        ready = await asyncio.to_thread(self.node.is_ready)
        (self.after if ready else self.before)[what, answer] += 1

    async def look(self):
        early, late = self.early_port, self.late_port
        await self.asked_while_not_ready("alice", self.ask("alice", early))
        await self.asked_while_not_ready("scram", self.ask("carol", early, mechanism="SCRAM-SHA-256"))
        await self.asked_while_not_ready("late", self.ask("admin", late))
        await self.asked_while_not_ready("admin", self.ask("admin", early))

    async def run(self, awaited, *more):
        """Until the node is ready, which it gets once all that is awaited was noted."""
        deadline = time.monotonic() + SECONDS
        while not self.after:
            assert time.monotonic() < deadline, self.before
            await self.look()
            for what, ask in more:
                await self.asked_while_not_ready(what, ask())
            if awaited <= set(self.before):
                self.node.go_on()


def prepared(node, write):
    """Format a node's directory as it would itself, and have a log written there."""
    config = load_config(node.home / "server.properties")
    ensure_formatted(config)
    write(node.log_directory)


@pytest.mark.tier("test")
def test_a_controller_with_a_long_log_admits_super_users_only(tmp_path, zygote):
    ports = Ports.free()
    properties = {
        "process.roles": "broker,controller",
        "allow.everyone.if.no.acl.found": "true",
        **with_early_listener({}, "CONTROLLER,EARLY"),
    }
    with Cluster(tmp_path, zygote) as cluster:
        node = cluster.controller
        at = {"CONTROLLER": node.ports.controller, "CLIENT": node.ports.broker, "EARLY": ports.broker}
        properties["listeners"] = ",".join(f"{name}://{HOST}:{port}" for name, port in at.items())
        properties["advertised.listeners"] = properties["listeners"]
        node.configure(properties)
        last = batch([acl_record(2, LAST), scram_record("carol", "carol-secret")], base_offset=2 * PAIRS)
        prepared(node, lambda directory: begin_log(directory, coming_and_going(FIRST, PAIRS), last))
        watcher = Watcher(node, at["EARLY"], at["CLIENT"])
        node.hold_replay()
        node.spawn()
        _client, patient = patient_client(at["EARLY"])
        asyncio.run(watch_controller(watcher, at["CONTROLLER"]))
        before = watcher.before
        assert set(before) <= {
            *((who, "refused") for who in ("alice", "scram", "late", "admin", "controller")),  # not listening yet
            ("alice", NOT_READY),
            ("alice at the controller", NOT_READY),
            ("scram", "login later"),
            ("admin", NOT_READY),
            ("envelope 0", -1),
            ("envelope 1", AUTHORIZER_NOT_READY),
            ("super user's envelope 1", AUTHORIZER_NOT_READY),
            ("stranger's envelope 1", AUTHORIZER_NOT_READY),
            ("quorum", "leader 1"),
            ("quorum", NOT_READY),  # the log is not open yet
        }, before
        assert asyncio.run(everybody(watcher)) == {"alice": "all", "scram": "all", "late": "all", "admin": "all"}
        assert [rule.name for rule in patient.result(SECONDS)] == [LAST.resource_name], "it tried until it was let in"


def patient_client(port):
    """confluent-kafka's client, whose first login comes too early; and what it will see at last."""
    settings = {
        "bootstrap.servers": f"{HOST}:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "carol",
        "sasl.password": "carol-secret",
        "log_level": 0,
    }
    client = AdminClient(settings)
    wanted = AclBindingFilter(
        ResourceType.TOPIC, None, ResourcePatternType.ANY, "User:alice", None, Operation.ANY, AclPermissionType.ANY
    )
    return client, client.describe_acls(wanted, request_timeout=SECONDS)


async def everybody(watcher):
    return {
        "alice": await watcher.ask("alice", watcher.early_port),
        "scram": await watcher.ask("carol", watcher.early_port, mechanism="SCRAM-SHA-256"),
        "late": await watcher.ask("alice", watcher.late_port),
        "admin": await watcher.ask("admin", watcher.early_port),
    }


async def watch_controller(watcher, port):
    """Also by the controller's own listener, where brokers come."""
    await listening(port)
    brokers = await connect(HostPort(host=HOST, port=port), login("broker"))
    stranger = await connect(HostPort(host=HOST, port=port), login("alice"))

    async def pass_on(version, user, sender=brokers):
        payload, position = await sender.send(ENVELOPE, version, envelope(user))
        answer = decode_envelope_response(payload, position)
        return answer.error_code if answer.response_data is None else "answered"

    async def quorum():
        part = build(DESCRIBE_QUORUM, 2, "request", "PartitionData", partition_index=0)
        topic = build(DESCRIBE_QUORUM, 2, "request", "TopicData", topic_name="__cluster_metadata", partitions=(part,))
        answer = await brokers.ask(build(DESCRIBE_QUORUM, 2, "request", topics=(topic,)))
        if answer.error_code:
            return NOT_READY if (answer.error_message or "").startswith(NOT_READY) else int(answer.error_code)
        return f"leader {answer.topics[0].partitions[0].leader_id}"

    async def alice():
        return await watcher.ask("alice", port)

    await watcher.run(
        EARLY.items()
        | {("late", "refused"), ("quorum", "leader 1"), ("envelope 0", -1)}
        | {("envelope 1", AUTHORIZER_NOT_READY), ("stranger's envelope 1", AUTHORIZER_NOT_READY)},
        ("envelope 0", lambda: pass_on(0, "alice")),
        ("envelope 1", lambda: pass_on(1, "alice")),
        ("super user's envelope 1", lambda: pass_on(1, "admin")),
        ("stranger's envelope 1", lambda: pass_on(1, "admin", stranger)),
        ("quorum", quorum),
        ("alice at the controller", alice),
    )
    await brokers.close()
    await stranger.close()


def test_a_broker_that_has_not_caught_up_admits_super_users_only(tmp_path, zygote):
    """Its way to the controller is shut when it has had the first part of the log, with all that alice would need."""
    late = Ports.free().broker
    with TcpProxy(0) as proxy, Cluster(tmp_path, zygote, controller_at=proxy.port) as cluster:
        controller, broker = cluster.controller, cluster.add_broker()
        proxy.target = controller.ports.controller
        changes = {"allow.everyone.if.no.acl.found": "true", **with_early_listener({}, "EARLY")}
        changes["listeners"] = f"EARLY://{HOST}:{broker.ports.broker},CLIENT://{HOST}:{late}"
        broker.configure(changes)
        prepared(controller, write_fat_log)
        controller.spawn()
        controller.wait_until_ready()
        proxy.budget = 9 << 20
        broker.spawn()
        watcher = Watcher(broker, broker.ports.broker, late)
        asyncio.run(watch_broker(watcher, broker))
        assert not watcher.after
        assert {*EARLY.items(), ("late", "refused")} == set(watcher.before), watcher.before
        asyncio.run(nothing_is_told(broker.ports.broker))
        proxy.release()
        broker.wait_until_ready()
        carol = CLUSTER_AUTHORIZATION_FAILED  # is let in, and has no right
        assert asyncio.run(everybody(watcher)) == {"alice": "all", "scram": carol, "late": "all", "admin": "all"}


def write_fat_log(directory):
    """What alice needs comes first, then 16 MB of records that no one here looks into, then one more rule of hers."""
    batches = [batch([acl_record(2, FIRST), acl_record(3, MAY_DESCRIBE), scram_record("carol", "carol-secret")])]
    batches.extend(batch([large_topic(number)], base_offset=3 + number) for number in range(16))
    begin_log(directory, *batches, batch([acl_record(4, LAST)], base_offset=19))


def committed(node):
    try:
        return node.metric("aclog_last_committed_record_offset")
    except OSError:
        return -1


def large_topic(number):
    """A TopicRecord with a tagged field of a megabyte."""
    name = compact_string(f"topic-{number}")
    return b"\x01\x02\x00" + name + number.to_bytes(16) + b"\x01\x63" + unsigned_varint(1 << 20) + bytes(1 << 20)


async def nothing_is_told(port):
    """A super user asks all that a listener advertises; what is forwarded waits for the controller.

    Fetch is no answer about the state: it hands brokers the log.
    """
    answers = await swept(
        lambda: connect(HostPort(host=HOST, port=port), login("admin")),
        but=(BEFORE_REPLAY | {FETCH, FETCH_SNAPSHOT}) - {METADATA, DESCRIBE_CLUSTER},
    )
    assert {api for api, _ in answers} >= {API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_ACLS}
    closed = {(DESCRIBE_ACLS, 1), (DESCRIBE_ACLS, 2), (DESCRIBE_USER_SCRAM_CREDENTIALS, 0), (DESCRIBE_CLUSTER, 2)}
    assert {each for each in answers if answers[each] is None} <= closed
    for (api, version), answer in answers.items():
        if api == API_VERSIONS:
            assert getattr(answer, "finalized_features", ()) == (), version
            assert getattr(answer, "finalized_features_epoch", -1) == -1, version
        elif api in (METADATA, DESCRIBE_CLUSTER):
            assert len(getattr(answer, "brokers", ())) <= 1, "they tell where this broker is"
        else:
            assert refused_as_not_ready(answer), (api, version, answer)


def test_a_combined_node_whose_log_is_out_of_reach_tells_nothing(tmp_path, zygote):
    """Its log is on a topic of a Kafka that is not there."""
    away = {number: f"{HOST}:{Ports.free().broker}" for number in CONTROLLERS}
    with TopicCluster(tmp_path, zygote, away, brokers=0) as cluster:
        node = cluster.controllers[COMBINED]
        node.configure({"early.start.listeners": "CONTROLLER,CLIENT"})
        node.spawn()
        port = node.ports.broker
        asyncio.run(listening(port))
        asyncio.run(nothing_is_told(port))
        asyncio.run(nothing_is_told(node.ports.controller))
        tool = AclsTool.of(ToolPipe(), tmp_path)
        failed(tool.run(TO_BROKERS, f"{HOST}:{port}", "--list"))
        at = [TO_BROKERS, f"{HOST}:{port}", "--command-config", str(tool.config)]
        failed(tool.pipe.run(MAINS["configs"], [*at, "--describe", "--entity-type", "users"]))
        # In a process of its own: at an error to DescribeUserScramCredentials librdkafka 2.16 would corrupt its memory.
        asked = [sys.executable, "-c", CONFLUENT_ASKS, str(port)]
        lists = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=120)
        assert (lists.returncode, lists.stdout.split()) == (0, ["KafkaException"] * 2), lists
        assert not node.is_ready()


def failed(printed):
    """An administrator sees an error, and no list that could be taken for the rules."""
    assert printed.code == 1, printed
    assert "Current ACLs" not in printed.out
    assert NOT_READY in printed.out + printed.err


CONFLUENT_ASKS = """
import sys
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBindingFilter, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType
)
client = AdminClient({
    "bootstrap.servers": f"127.0.0.1:{sys.argv[1]}", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
    "sasl.username": "admin", "sasl.password": "admin-secret", "log_level": 0,
})
every = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
for ask in (client.describe_acls, client.describe_user_scram_credentials):
    try:
        print(repr(ask(*([every] if ask == client.describe_acls else []), request_timeout=3).result(30)), flush=True)
    except KafkaException:
        print("KafkaException", flush=True)
"""


async def listening(port):
    while True:
        try:
            return await (await AclClient.open(port)).close()
        except UnreachableError:
            await asyncio.sleep(0.01)


async def watch_broker(watcher, broker):
    """Five looks after it has learned how much there is to replay."""
    await asyncio.to_thread(wait_until, lambda: committed(broker) >= 19, lambda: broker.output)
    for _ in range(5):
        await watcher.look()


def test_a_broker_forwards_again_until_the_controller_is_ready(tmp_path, zygote):
    with Cluster(tmp_path, zygote) as cluster:
        broker = cluster.add_broker()
        cluster.start()
        cluster.controller.kill()
        cluster.controller.hold_replay()
        cluster.controller.spawn()
        assert asyncio.run(create_while_not_ready(broker, cluster.controller)) == [(0, "")], broker.output


async def create_while_not_ready(broker, controller):
    async with await AclClient.open(broker.ports.broker) as client:
        creating = asyncio.create_task(client.create([LAST]))
        await asyncio.to_thread(wait_until, lambda: envelopes(controller) >= 2, "what is forwarded again")
        assert not await asyncio.to_thread(controller.is_ready)
        assert not creating.done()
        controller.go_on()
        return await creating


def envelopes(controller):
    """How many a controller has answered; none while it cannot be asked."""
    try:
        return controller.metric('aclog_request_duration_seconds_count{api="Envelope"}')
    except (OSError, KeyError):
        return 0
