"""Commands on brokers of earlier releases: Kafka 2.0 to 2.4 have version 1 of the ACL APIs, 2.5 to 3.2 version 2."""

import json

import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.protocol.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from aclog.protocol.responses import BROKER_APIS, ApiVersion
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.fakes.broker import ACL_APIS, FakeBroker, older_apis

PREFIXED = acl("pay.", pattern_type=PatternType.PREFIXED)
DENIED = acl(
    "pay.",
    "User:eve",
    operation=AclOperation.ALL,
    permission_type=AclPermissionType.DENY,
    pattern_type=PatternType.PREFIXED,
)
ORDERS = acl("orders")


@pytest.fixture(params=[1, 2])
def broker(request):
    with FakeBroker([ORDERS, PREFIXED], apis=older_apis(request.param)) as running:
        running.newest = request.param
        yield running


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch):
    monkeypatch.setattr("aclog.ops.sync._SETTLE_SECONDS", 0.0)


def place(broker):
    return "--bootstrap-server", broker.address


def test_acls_are_listed_added_and_removed(broker):
    listed = aclog("acls", "list", *place(broker), "--format", "jsonl").ok()
    assert [(row["resourceName"], row["patternType"]) for row in map(json.loads, listed.lines)] == [
        ("orders", "LITERAL"),
        ("pay.", "PREFIXED"),
    ]
    flags = ("--topic", "pay.", "--resource-pattern-type", "prefixed", "--deny-principal", "User:eve")
    assert "Adding ACLs" in aclog("acls", "add", *place(broker), *flags).ok().out
    assert "already exists" in aclog("acls", "add", *place(broker), *flags).ok().out
    assert broker.rules == [ORDERS, PREFIXED, DENIED]
    gone = aclog("acls", "remove", *place(broker), "--topic", "pay.eu", "--resource-pattern-type", "match", "--force")
    assert "2 ACLs removed" in gone.ok().err
    assert broker.rules == [ORDERS]
    assert {broker.versions[key] for key in ACL_APIS} == {broker.newest}


def test_sync_records_them(broker, tmp_path):
    flags = ("--to", tmp_path / "history", "--once")
    assert len(aclog("sync", *place(broker), *flags).ok().lines) == 2
    broker.rules = [PREFIXED]
    assert len(aclog("sync", *place(broker), *flags).ok().lines) == 1
    listed = aclog("acls", "list", "--log", tmp_path / "history", "--format", "jsonl").ok()
    assert [json.loads(line)["resourceName"] for line in listed.lines] == ["pay."]


@pytest.mark.parametrize("words", [("add", "--allow-principal", "User:a", "--topic", "t"), ("remove", "--force")])
def test_user_resources_are_not_sent(broker, words):
    refused = aclog("acls", *words, "--user-principal", "User:owner", *place(broker))
    assert refused.code == 2
    assert refused.complaint.startswith(
        f"{broker.address}: older than Kafka 3.3, the first with ACLs on USER resources (KIP-373): "
    )
    assert broker.rules == [ORDERS, PREFIXED]
    assert not {CREATE_ACLS, DELETE_ACLS} & broker.requests.keys()


@pytest.mark.parametrize(
    "words",
    [
        ("acls", "list"),
        ("acls", "add", "--topic", "t", "--allow-principal", "User:a"),
        ("acls", "remove", "--topic", "t", "--force"),
        ("sync", "--once", "--to", "history"),
    ],
    ids=" ".join,
)
def test_before_kafka_2_0_there_is_no_way(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with FakeBroker([ORDERS], apis=older_apis(0)) as broker:
        refused = aclog(*words, *place(broker))
        assert refused.code == 2
        assert (
            f"{broker.address}: older than Kafka 2.0 (3.2 in KRaft mode), the first with prefixed ACLs" in refused.err
        )
        assert not set(ACL_APIS) & broker.requests.keys()


TOKENS = {
    "create": ("--max-life-time-period", "-1", "--renewer-principal", "User:a"),
    "renew": ("--hmac", "aGk=", "--renew-time-period", "-1"),
    "expire": ("--hmac", "aGk=", "--expiry-time-period", "-1"),
    "describe": (),
}


@pytest.mark.parametrize("served", [None, 0])
@pytest.mark.parametrize("action", TOKENS)
def test_delegation_tokens_name_the_release_that_has_them(action, served, tmp_path):
    with FakeBroker(apis=older_apis(1, served)) as broker:
        complaint = token_complaint(broker, tmp_path, action, *TOKENS[action])
    assert complaint.startswith(f"{broker.address}: {'no broker, or ' if served is None else ''}older than Kafka 2.0 ")
    assert "(3.6 in KRaft mode), the first with delegation tokens (KIP-48)" in complaint


def test_tokens_for_others_name_the_release_that_has_them(tmp_path):
    with FakeBroker(apis=older_apis(1, 2)) as broker:
        complaint = token_complaint(broker, tmp_path, "create", *TOKENS["create"], "--owner-principal", "User:b")
    assert complaint.startswith(
        f"{broker.address}: older than Kafka 3.3 (3.6 in KRaft mode), the first with delegation tokens for other users "
    )


def token_complaint(broker, tmp_path, *words):
    (tmp_path / "client.properties").write_text("")
    refused = aclog("tokens", *words, *place(broker), "--command-config", tmp_path / "client.properties")
    assert refused.code == 2
    return refused.complaint


def test_a_server_that_has_dropped_our_versions_is_not_called_older():
    newer = (*(api for api in BROKER_APIS if api.api_key not in ACL_APIS), ApiVersion(DESCRIBE_ACLS, 4, 5))
    with FakeBroker(apis=newer) as broker:
        complaint = aclog("acls", "list", *place(broker)).complaint
    assert complaint == f"{broker.address}: DescribeAcls is supported in versions 4 to 5: expected versions 1 to 3"
