"""`aclog acls --authorizer-properties` and kafka-acls 3.9 on one store: each reads and changes what the other wrote."""

import json

import pytest

from tests.support.cli.command import aclog
from tests.support.kafka.jvm import KAFKA_39
from tests.support.kafka.server import free_port
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper.chroots import made_chroot
from tests.support.zookeeper.differential import our_authorizer, rules_of
from tests.support.zookeeper.server import zookeeper_client

ORDERS = ("--topic", "orders")


@pytest.fixture
def ours_acls(connect):
    """Runs `aclog acls` on the test's store."""

    def run(command, *flags, properties=(), **options):
        place = ("--authorizer-properties", f"zookeeper.connect={connect}", *properties)
        return aclog("acls", command, *place, *flags, **options)

    return run


@pytest.fixture
def kafka_acls(connect):
    """Runs kafka-acls of Kafka 3.9 on the test's store."""

    def run(*flags, properties=()):
        place = ("--authorizer-properties", f"zookeeper.connect={connect}", *properties)
        done = ToolPipe(KAFKA_39).run("kafka.admin.AclCommand", [*place, *flags])
        assert done.code == 0, done
        return done.out

    return run


def paragraphs(text):
    found = [paragraph.splitlines() for paragraph in text.strip("\n").split("\n\n") if paragraph.strip()]
    return sorted((head.strip(), sorted(line.strip() for line in entries)) for head, *entries in found)


def test_each_reads_and_changes_what_the_other_wrote(ours_acls, kafka_acls):
    flags = ("--allow-principal", "User:ann", "--allow-host", "10.0.0.1", "--operation", "Read", *ORDERS)
    ours_acls("add", *flags).ok()
    prefixed = ("--group", "é g", "--resource-pattern-type", "prefixed")
    ours_acls("add", "--deny-principal", "User:*", "--operation", "Delete", *prefixed).ok()
    kafka_acls("--add", "--allow-principal", "User:bob", "--producer", *ORDERS)
    listed = kafka_acls("--list")
    assert "principal=User:ann, host=10.0.0.1, operation=READ, permissionType=ALLOW" in listed
    assert "name=é g, patternType=PREFIXED" in listed
    assert paragraphs(ours_acls("list", "--format", "kafka").ok().out) == paragraphs(listed)
    matching = ("--resource-pattern-type", "match", "--group", "é group")
    assert paragraphs(ours_acls("list", *matching, "--format", "kafka").ok().out) == paragraphs(
        kafka_acls("--list", *matching)
    )
    kafka_acls("--remove", "--force", *flags)
    rows = [json.loads(line) for line in ours_acls("list", "--format", "jsonl").ok().lines]
    assert [row["principal"] for row in rows] == ["User:*", "User:bob", "User:bob", "User:bob"]
    assert all(row["id"] is None for row in rows)
    ours_acls("copy", "--from-principal", "User:bob", "--to-principal", "User:rob").ok()
    assert ours_acls("list", "--principal", "User:rob", "--format", "jsonl").ok().out.count("User:rob") == 3
    copied = ours_acls("remove", "--force", "--allow-principal", "User:rob", "--producer", *ORDERS).ok()
    assert "3 ACLs removed" in copied.err
    gone = ours_acls("remove", "--force", "--allow-principal", "User:bob", "--producer", *ORDERS).ok()
    assert "3 ACLs removed" in gone.err
    assert "1 ACL removed" in ours_acls("remove", "--force", *matching).ok().err
    assert kafka_acls("--list").strip() == ""
    assert ours_acls("list", "--format", "jsonl").ok().out == ""


def test_prefixed_acls_wait_until_no_broker_before_2_0_is_left(ours_acls, kafka_acls):
    """Such a broker does not look where they are (KIP-290). Kafka's tool says so and exits with 0."""
    older = {"properties": ("--authorizer-properties", "inter.broker.protocol.version=2.0-IV0")}
    newer = {"properties": ("--authorizer-properties", "inter.broker.protocol.version=2.0-IV1")}
    flags = ("--deny-principal", "User:eve", "--group", "g-", "--resource-pattern-type", "prefixed")
    text = "Adding ACLs on prefixed resource patterns requires inter.broker.protocol.version of 2.0-IV1 or greater"
    said = kafka_acls("--add", *flags, **older)
    assert "Error while adding ACLs: Failed to create ACL" in said
    assert text in said
    refused = ours_acls("add", *flags, **older)
    assert (refused.code, refused.out, refused.complaint) == (2, "", f"Failed to create ACL: {text}")
    ours_acls("add", "--deny-principal", "User:eve", *ORDERS, **older).ok()
    assert "Error" not in kafka_acls("--add", *flags, **newer)
    assert "already exists" in ours_acls("add", *flags, **newer).ok().out
    listed = ours_acls("list", "--format", "jsonl", **older).ok()
    assert [json.loads(line)["patternType"] for line in listed.lines] == ["PREFIXED", "LITERAL"]
    assert "1 ACL removed" in ours_acls("remove", "--force", *flags, **older).ok().err


def test_a_running_authorizer_sees_the_change(ours_acls, connect):
    with our_authorizer(connect) as authorizer:
        ours_acls("add", "--allow-principal", "User:ann", *ORDERS).ok()
        wait_until(lambda: authorizer.acl_count() == 1, "the rule")
        assert "already" in ours_acls("add", "--allow-principal", "User:ann", *ORDERS).ok().out
        ours_acls("remove", "--force", *ORDERS).ok()
        wait_until(lambda: authorizer.acl_count() == 0, "its removal")


def test_kip_11s_grants_and_revocations(ours_acls):
    """What KIP-11 calls a revocation was released as a DENY."""
    grant = ("--grantprincipal", "User:ann", "--granthost", "10.0.0.1", "--action", "READ")
    revoke = ("--revokeprincipal", "User:bob", "--revokehost", "10.0.0.2")
    ours_acls("add", *grant, *revoke, *ORDERS).ok()
    rows = [json.loads(line) for line in ours_acls("list", "--format", "jsonl").ok().lines]
    assert [(row["principal"], row["host"], row["operation"], row["permissionType"]) for row in rows] == [
        ("User:ann", "10.0.0.1", "READ", "ALLOW"),
        ("User:bob", "10.0.0.2", "READ", "DENY"),
    ]
    ours_acls("remove", "--force", *grant, *ORDERS).ok()
    assert len(ours_acls("list", "--format", "jsonl").ok().lines) == 1


def test_the_acls_may_have_a_zookeeper_of_their_own(ours_acls, connect):
    elsewhere = f"authorizer.zookeeper.url={made_chroot(f'{connect}/elsewhere')}"
    ours_acls("add", "--allow-principal", "User:ann", *ORDERS, properties=("--authorizer-properties", elsewhere)).ok()
    assert ours_acls("list", "--format", "jsonl").ok().out == ""
    with our_authorizer(f"{connect}/elsewhere") as authorizer:
        assert len(rules_of(authorizer)) == 1


def test_a_property_that_is_not_used_is_warned_of(ours_acls):
    odd = ("zookeeper.conect=a:1", "super.users=User:a", "authorizer.zookeeper.set.acl=false")
    flags = [word for text in odd for word in ("--authorizer-properties", text)]
    for said in (
        ours_acls("list", properties=flags).ok(),
        ours_acls("add", "--allow-principal", "User:a", *ORDERS, properties=flags).ok(),
    ):
        assert said.err.splitlines() == [
            "aclog: warning: --authorizer-properties super.users: not used",
            "aclog: warning: --authorizer-properties zookeeper.conect: not used (did you mean zookeeper.connect?)",
        ]


def test_bad_input_is_one_line(ours_acls, connect):
    def complaint(result):
        assert result.code == 2
        assert result.out == ""
        return result.complaint

    for name, message in (("a/b", "expected no /"), ("😀", r"U+1F600"), (".", "neither . nor ..")):
        assert message in complaint(ours_acls("add", "--allow-principal", "User:a", "--topic", name))
        assert ours_acls("list", "--topic", name, "--format", "jsonl").ok().out == ""
        assert ours_acls("remove", "--force", "--topic", name).ok().out == ""
    nobody = f"zookeeper.connect=127.0.0.1:{free_port()}"
    quick = ("--authorizer-properties", "zookeeper.connection.timeout.ms=200")
    message = complaint(aclog("acls", "list", "--authorizer-properties", nobody, *quick))
    assert "no connection within 0.2 s" in message
    message = complaint(
        aclog("acls", "add", "--authorizer-properties", nobody, *quick, "--allow-principal", "User:a", *ORDERS)
    )
    assert "no connection within 0.2 s" in message
    assert "expected KEY=VALUE" in complaint(aclog("acls", "list", "--authorizer-properties", "zookeeper.connect"))
    version = ("--authorizer-properties", "inter.broker.protocol.version=1.2")
    assert complaint(ours_acls("list", properties=version)).startswith(
        "inter.broker.protocol.version '1.2': expected a"
    )
    assert "zookeeper.connect is missing" in complaint(aclog("acls", "list", "--authorizer-properties", "a=b"))
    assert "exactly one" in complaint(ours_acls("list", "--log", "x"))
    assert "exactly one" in complaint(ours_acls("add", "--log", "x", "--allow-principal", "User:a", *ORDERS))
    assert "ZooKeeper has the newest state only" in complaint(ours_acls("list", "--as-of", "5"))
    with zookeeper_client(connect.partition("/")[0]) as client:
        client.create(f"/{connect.partition('/')[2]}/kafka-acl/Topic/broken", b"{", makepath=True)
    assert complaint(ours_acls("list")).startswith("/kafka-acl/Topic/broken: byte 1: expected JSON")
    message = complaint(ours_acls("remove", "--force", "--topic", "broken", "--resource-pattern-type", "match"))
    assert message.startswith("/kafka-acl/Topic/broken: ")
    assert complaint(ours_acls("add", "--allow-principal", "User:a", "--topic", "broken")).startswith("/kafka-acl")


@pytest.mark.parametrize("words", [("list",), ("add", "--allow-principal", "User:ann", *ORDERS)], ids=["list", "add"])
def test_a_misspelled_chroot_is_no_cluster_without_rules(ours_acls, connect, store, words):
    typo = ("--authorizer-properties", f"zookeeper.connect={connect}/kafak")
    for _ in range(2):
        refused = ours_acls(*words, properties=typo)
        assert refused.code == 2
        assert "/kafak does not exist: is the chroot correct?" in refused.complaint
    assert store.client.get("/kafak") is None
