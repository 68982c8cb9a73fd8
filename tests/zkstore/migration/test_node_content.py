"""What znodes contribute to the access state, what is left out and why, and their combination."""

import json

import pytest

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.zookeeper.migration import NodeContent, node_content, store_state
from tests.zkstore.recorded import NODES

ACL = {"principal": "User:ann", "permissionType": "Allow", "host": "*", "operation": "Read"}
CREDENTIAL = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"
TOKEN = {
    "version": 1, "owner": "User%3Aann", "renewers": [], "issueTimestamp": 1, "maxTimestamp": 3, "expiryTimestamp": 2,
    "tokenId": "t",
}  # fmt: skip


def rules(*acls, version=1):
    return json.dumps({"version": version, "acls": list(acls)}).encode()


def user(**config):
    return json.dumps({"version": 1, "config": config}).encode()


def reasons(content: NodeContent) -> list[tuple[str, bool]]:
    return [(str(each), each.unreadable) for each in content.left_out]


def test_acls_are_migrated_with_their_resource():
    content = node_content("/kafka-acl-extended/prefixed/TransactionalId/tx-", rules(ACL, {**ACL, "operation": "All"}))
    assert content.acls == {
        StandardAcl(
            resource_type=ResourceType.TRANSACTIONAL_ID, resource_name="tx-", pattern_type=PatternType.PREFIXED,
            principal="User:ann", host="*", operation=operation, permission_type=AclPermissionType.ALLOW,
        )
        for operation in (AclOperation.READ, AclOperation.ALL)
    }  # fmt: skip
    assert not content.left_out


def test_the_cluster_of_another_name_is_migrated_as_it_is():
    (found,) = node_content("/kafka-acl/Cluster/foo", rules(ACL)).acls
    assert (found.resource_type, found.resource_name) == (ResourceType.CLUSTER, "foo")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "/kafka-acl/Topic/t: byte 1: expected JSON"),
        (rules(ACL, version=2), "/kafka-acl/Topic/t: version 2"),
        (rules({**ACL, "operation": "Fly"}), "/kafka-acl/Topic/t: acls[0].operation 'Fly'"),
        (rules({**ACL, "operation": "Any"}), "/kafka-acl/Topic/t: acls[0].operation 'Any'"),
        (rules({**ACL, "permissionType": "Any"}), "/kafka-acl/Topic/t: acls[0].permissionType 'Any'"),
        (rules({**ACL, "principal": "ann"}), "/kafka-acl/Topic/t: acls[0]: Could not parse principal from `ann`"),
        (rules({**ACL, "host": "h" * 40_000}), "/kafka-acl/Topic/t: "),
    ],
)
def test_unreadable_acls_block(data, message):
    content = node_content("/kafka-acl/Topic/t", data)
    [(text, unreadable)] = reasons(content)
    assert text.startswith(message)
    assert unreadable
    assert not content.acls


def test_child_nodes_of_a_resource_are_reported_but_do_not_block():
    content = node_content("/kafka-acl/Group/a", b"", has_children=True)
    [(text, unreadable)] = reasons(content)
    assert text.startswith("/kafka-acl/Group/a/*: child nodes")
    assert not unreadable


@pytest.mark.parametrize("directory", ["ConsumerGroup", "CONSUMER_GROUP"])
def test_acls_in_legacy_directories_block(directory):
    """Migrating them could allow what is denied today; dropping them could lose a wanted DENY."""
    content = node_content(f"/kafka-acl/{directory}/g", rules(ACL))
    assert not content.acls
    [(text, unreadable)] = reasons(content)
    assert unreadable
    assert "move them to the directory Group" in text
    assert node_content(f"/kafka-acl/{directory}/g", rules()) == NodeContent()


def test_a_user_has_credentials_and_quotas():
    content = node_content("/config/users/a%2Fb", user(**{"SCRAM-SHA-256": CREDENTIAL, "producer_byte_rate": "7"}))
    assert [(record.name, record.iterations) for record in content.credentials] == [("a/b", 4096)]
    assert reasons(content) == [
        ("/config/users/a%2Fb: producer_byte_rate: client quotas are not migrated", False)
    ]  # fmt: skip


def test_the_readable_one_of_two_credentials_is_migrated():
    content = node_content("/config/users/a", user(**{"SCRAM-SHA-256": CREDENTIAL, "SCRAM-SHA-512": "salt=secret"}))
    assert len(content.credentials) == 1
    [(text, unreadable)] = reasons(content)
    assert unreadable
    assert "SCRAM-SHA-512" in text
    assert "secret" not in text


def test_the_default_entity_has_quotas_only():
    assert reasons(node_content("/config/users/<default>", user(consumer_byte_rate="1"))) == [
        ("/config/users/<default>: consumer_byte_rate: client quotas are not migrated", False)
    ]
    [(text, unreadable)] = reasons(node_content("/config/users/<default>", user(**{"SCRAM-SHA-256": CREDENTIAL})))
    assert unreadable
    assert "default entity" in text


def test_an_invalid_percent_encoding_is_unreadable():
    [(text, unreadable)] = reasons(node_content("/config/users/%zz", user(**{"SCRAM-SHA-256": CREDENTIAL})))
    assert unreadable
    assert text.startswith("/config/users/%zz: ")


def test_tokens_are_migrated_from_both_paths():
    for place in ("/delegation_token/tokens/t", "/tokenauth/tokens/t"):
        assert node_content(place, json.dumps(TOKEN).encode()).token.token_id == "t"
    [(_, unreadable)] = reasons(node_content("/delegation_token/tokens/t", b"{}"))
    assert unreadable


def test_recorded_nodes_combine_into_a_state():
    contents = {
        path: node_content(path, data, has_children=path == "/config/users/sam")
        for path, data in NODES.items()
        if path.rpartition("/")[0] in {"/config/users", "/delegation_token/tokens"}
    }
    found = store_state(contents, ["/kafka-acl/Nonsense"])
    assert (len(found.state.credentials), len(found.state.tokens), found.unreadable) == (13, 3, ())
    assert [each.path for each in found.left_out] == [
        "/config/users/<default>", "/config/users/sam/clients", "/config/users/sam", "/kafka-acl/Nonsense",
    ]  # fmt: skip


def test_of_two_nodes_of_a_user_the_one_with_kafkas_name_wins():
    kafkas = user(**{"SCRAM-SHA-256": CREDENTIAL})
    other = user(**{"SCRAM-SHA-256": CREDENTIAL.replace("4096", "5000")})
    paths = {"/config/users/a+b": other, "/config/users/a%20b": kafkas}
    found = store_state({path: node_content(path, data) for path, data in paths.items()}, ())
    assert found.state.credentials["a b", 1].iterations == 4096
    [left] = found.unreadable
    assert left.path == "/config/users/a+b"


def test_of_two_nodes_of_a_token_the_one_with_its_name_wins():
    paths = {"/delegation_token/tokens/other": 2, "/tokenauth/tokens/t": 5, "/delegation_token/tokens/t": 9}
    contents = {
        path: node_content(path, json.dumps({**TOKEN, "maxTimestamp": end}).encode()) for path, end in paths.items()
    }
    found = store_state(contents, ())
    assert found.state.tokens["t"].max_timestamp == 9
    assert {left.path for left in found.unreadable} == {"/delegation_token/tokens/other", "/tokenauth/tokens/t"}
