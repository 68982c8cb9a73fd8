"""Migration from a real Kafka 3.9 with ZooKeeper to a real Kafka 4.3.1, and 4.4.0."""

import asyncio
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.client.connection import connect
from aclog.client.errors import LoginError
from aclog.config.node_config import ClientSecurity, HostPort, SecurityProtocol
from aclog.credentials.scram import ScramMechanism, credential_record, salted_password
from aclog.credentials.tokens import token_hmac
from aclog.metalog.records import DelegationTokenRecord
from aclog.snapshots.publisher import recover
from aclog.zookeeper.acl_store import AclStore
from aclog.zookeeper.client import ZkSettings
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.migration import AccessState, StoreWatch
from aclog.zookeeper.session import ZkClient
from aclog.zookeeper.stores import ScramStore, TokenStore
from aclog.zookeeper.znodes import AclEntry, resource_path
from tests.support.cli.command import aclog
from tests.support.kafka.jvm import KAFKA_44, KAFKA_VERSION
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import AdminClient
from tests.support.kafka.tools import client_properties
from tests.support.nodes.server_properties import CLUSTER_ID, Ports, server_properties
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.zookeeper.kafka import SECRET, ZooKeeperKafka
from tests.support.zookeeper.server import ZooKeeperServer

ACL = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:ann", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip
ACLS = [
    ACL,
    {**ACL, "permissionType": "DENY", "host": "10.0.0.1", "operation": "ALTER_CONFIGS"},
    {**ACL, "resourceName": "*", "principal": "User:*"},
    {**ACL, "resourceName": "ord", "patternType": "PREFIXED", "operation": "ALL", "principal": "User:CN=ü, O=ñ"},
    {**ACL, "resourceType": "GROUP", "resourceName": "g 1 % + ~", "operation": "DESCRIBE"},
    {**ACL, "resourceType": "CLUSTER", "resourceName": "kafka-cluster", "operation": "IDEMPOTENT_WRITE"},
    {**ACL, "resourceType": "TRANSACTIONAL_ID", "resourceName": "tx", "patternType": "PREFIXED", "operation": "WRITE"},
    {**ACL, "resourceType": "DELEGATION_TOKEN", "resourceName": "some-token", "operation": "DESCRIBE"},
    {**ACL, "resourceType": "USER", "resourceName": "User:bob", "operation": "CREATE_TOKENS"},
]
USERS = ("sam", "a b", "a/b", "p%q+r*s~t", "ünï", "🔑", "<default>")


@pytest.fixture(scope="module")
def store(zookeeper: ZooKeeperServer) -> str:
    """The connect string of the old Kafka, a chroot of a real ZooKeeper."""
    return f"{zookeeper.connect}/{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def old(store, tmp_path_factory) -> Iterator[int]:
    """The port of a Kafka 3.9 with ACLs, users and tokens, created by Kafka's Admin client."""
    with ZooKeeperKafka(tmp_path_factory.mktemp("old"), store) as kafka, AdminClient(kafka.port) as admin:
        admin("createAcls", acls=ACLS)
        for user in USERS:
            admin("alterScram", users=[scram(user, "SCRAM-SHA-256")])
        admin("alterScram", users=[scram("sam", "SCRAM-SHA-512")])
        admin("createToken", owner="User:ann b", renewers=["User:bob", "User:c%d"])
        admin("createToken")
        yield kafka.port


def scram(user: str, mechanism: str) -> dict[str, object]:
    """Return an alteration for AdminPipe."""
    return {"user": user, "mechanism": mechanism, "iterations": 4096, "password": "secret"}


@pytest.fixture
def client(store, old) -> Iterator[ZkClient]:
    """Our client on the old Kafka's store."""
    client = open_client(ZkSettings(connect=store))
    yield client
    client.close()


def read(client: ZkClient) -> AccessState:
    """Read the state of the store, from which nothing may be left out."""
    watch = StoreWatch(client)
    watch.catch_up(SECONDS)
    assert not watch.state().left_out
    return watch.state().state


def described(port: int) -> tuple[list, list, list]:
    """Return the ACLs, users and tokens that a Kafka describes, including HMACs."""
    with AdminClient(port) as admin:
        return admin.acls(), admin.scram(), admin.tokens()


def logs_in(port: int, user: str, password: str, *, token: bool = False) -> bool:
    """Return whether the server accepts a SCRAM login."""
    security = ClientSecurity(
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism="SCRAM-SHA-256",
        username=user,
        password=password,
        token_auth=token,
    )

    async def attempt() -> None:
        await (await connect(HostPort(host="localhost", port=port), security)).close()

    try:
        asyncio.run(attempt())
    except LoginError:
        return False
    return True


@pytest.mark.tier("test")
def test_state_written_by_kafka_is_read(old, client):
    state = read(client)
    acls, users, tokens = described(old)
    rules = {
        (ResourceType(a.resource_type).name, a.resource_name, PatternType(a.pattern_type).name, a.principal, a.host,
         AclOperation(a.operation).name, AclPermissionType(a.permission_type).name)
        for a in state.acls
    }  # fmt: skip
    assert rules >= {tuple(row.values()) for row in acls} >= {tuple(row.values()) for row in ACLS}
    assert {(user["user"], info["mechanism"]) for user in users for info in user["credentialInfos"]} == {
        (name, ScramMechanism(mechanism).mechanism_name) for name, mechanism in state.credentials
    }
    assert [
        {
            "tokenId": token.token_id, "owner": token.owner, "requester": token.requester,
            "issueTimestamp": token.issue_timestamp, "expiryTimestamp": token.expiration_timestamp,
            "maxTimestamp": token.max_timestamp, "hmac": token_hmac(SECRET, token.token_id),
            "renewers": list(token.renewers),
        }
        for _, token in sorted(state.tokens.items())
    ] == tokens  # fmt: skip


@pytest.mark.tier("test")
def test_kafka_reads_and_authenticates_by_what_we_write(old, client):
    record = credential_record(
        "our own%/user",
        ScramMechanism.SCRAM_SHA_256,
        salt=b"salt",
        salted_password=salted_password(ScramMechanism.SCRAM_SHA_256, "hush", b"salt", 4096),
        iterations=4096,
    )
    now = time.time_ns() // 1_000_000
    token = DelegationTokenRecord(
        owner="User:own er", requester="User:ann", renewers=("User:a:b", "User:ü"), token_id="a-token-of-ours",
        issue_timestamp=now, max_timestamp=now + 10**9, expiration_timestamp=now + 10**8,
    )  # fmt: skip
    ScramStore(client).put(record.name, [record])
    TokenStore(client).put(token)
    TokenStore(client).put(evolve(token, expiration_timestamp=now + 10**7))
    with AdminClient(old) as admin:
        wait_until(lambda: any(user["user"] == record.name for user in admin.scram()))
        [seen] = wait_until(lambda: [
            row for row in admin.tokens()
            if row["tokenId"] == token.token_id and row["expiryTimestamp"] == now + 10**7
        ])  # fmt: skip
        assert (seen["owner"], seen["requester"], seen["renewers"]) == ("User:own er", "User:ann", list(token.renewers))
        wait_until(lambda: logs_in(old, record.name, "hush"))
        wait_until(lambda: logs_in(old, token.token_id, token_hmac(SECRET, token.token_id), token=True))
        TokenStore(client).remove(token.token_id)
        ScramStore(client).put(record.name, [])
        wait_until(lambda: not any(user["user"] == record.name for user in admin.scram()))
        wait_until(lambda: not any(row["tokenId"] == token.token_id for row in admin.tokens()))
    assert client.get("/config/users/our%20own%25%2Fuser") is None


@pytest.mark.slow(11)
@pytest.mark.parametrize(
    ("version", "file"),
    [
        pytest.param(KAFKA_VERSION, "bootstrap.checkpoint", marks=pytest.mark.tier("test")),
        (KAFKA_44, "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"),
    ],
)
def test_a_new_kafka_starts_from_the_checkpoint(old, store, client, tmp_path, version, file):
    ports = Ports.free()
    properties = server_properties(ports, delegation_token_secret_key=SECRET)
    node = RealNode(tmp_path / "new", ports, properties, version=version)
    node._server.format(CLUSTER_ID, "--standalone")
    checkpoint = tmp_path / "new" / "data" / file
    if version == KAFKA_44:
        refused = aclog(
            "migrate", "--zookeeper", store, "--bootstrap-checkpoint", tmp_path / "new/data/bootstrap.checkpoint"
        )
        assert refused.complaint.endswith(f"expected --bootstrap-checkpoint {checkpoint}")
    aclog("migrate", "--zookeeper", store, "--bootstrap-checkpoint", checkpoint, "--dry-run").ok()
    done = aclog("migrate", "--zookeeper", store, "--bootstrap-checkpoint", checkpoint).ok()
    assert re.fullmatch(r"compared: contents the same; \d+ decisions, 0 differ, and .*", done.lines[-1])
    before = described(old)
    with node:
        assert described(ports.broker) == before
        follow_into_running_quorum(client, store, ports, tmp_path)
        assert logs_in(ports.broker, "a/b", "secret")
        assert logs_in(ports.broker, before[2][0]["tokenId"], before[2][0]["hmac"], token=True)
        assert not logs_in(ports.broker, "a/b", "secre")
    log = recover(node.log_directory).image
    assert len(log.acls) == len(before[0])


def follow_into_running_quorum(client: ZkClient, store: str, ports: Ports, home: Path) -> None:
    """Later changes of ACLs in the old store are applied to the new Kafka's controller."""
    quorum = ("--bootstrap-controller", f"localhost:{ports.controller}")
    command = ("migrate", "--zookeeper", store, *quorum, "--command-config", client_properties(home, "admin"))
    pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name="later", pattern_type=PatternType.LITERAL)
    entry = AclEntry(principal="User:x", permission_type=AclPermissionType.DENY, host="*", operation=AclOperation.ALL)
    path, rules = resource_path(pattern), AclStore(client=client)
    rules.update(path, lambda _: frozenset({entry}))
    result = aclog(*command).ok()
    assert "a running quorum takes ACLs only" in result.err
    with AdminClient(ports.broker) as admin:
        wait_until(lambda: "later" in {row["resourceName"] for row in admin.acls()})
        rules.update(path, lambda _: frozenset())
        assert "1 entries are not in ZooKeeper" in aclog(*command).complaint
        aclog(*command, "--replace").ok()
        wait_until(lambda: "later" not in {row["resourceName"] for row in admin.acls()})


def test_a_migration_to_a_log_and_back_is_lossless(old, store, client, tmp_path):
    log = tmp_path / "log"
    before = read(client)
    assert aclog("migrate", "--zookeeper", store, "--log", log).ok().lines[-1].startswith("compared: contents the same")
    back = f"{store}-back"
    aclog("migrate", "--log", log, "--to-zookeeper", back).ok()
    again = open_client(ZkSettings(connect=back))
    try:
        assert read(again) == before
    finally:
        again.close()
