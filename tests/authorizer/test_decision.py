"""The rules of a decision, each by itself, as KIP-11 and KIP-290 state them or as Kafka 4.3.1 replaced them."""

import pytest
from attrs import frozen

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from tests.support.builders.acls import acl
from tests.support.builders.images import with_ids

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
PREFIXED = PatternType.PREFIXED
ALL, READ, WRITE, CREATE = AclOperation.ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
DELETE, ALTER, DESCRIBE = AclOperation.DELETE, AclOperation.ALTER, AclOperation.DESCRIBE
OPERATIONS = [each for each in AclOperation if each > ALL]
ALICE = "User:alice"


@frozen
class Estate:
    """What an authorizer with some ACLs says."""

    authorizer: StandardAuthorizer

    def allows(self, principal=ALICE, name="orders", operation=READ, host="10.0.0.1", kind=ResourceType.TOPIC) -> bool:
        action = Action(operation=operation, resource_pattern=ResourcePattern(resource_type=kind, name=name))
        return bool(self.authorizer.authorize(RequestContext(principal=principal, host=host), [action])[0])


def estate(*acls, **properties: str) -> Estate:
    authorizer = StandardAuthorizer()
    authorizer.configure({key.replace("_", "."): value for key, value in properties.items()})
    authorizer.load(AclsImage.from_acls(with_ids(acls)))
    authorizer.complete_initial_load()
    return Estate(authorizer)


def test_without_an_acl_everyone_is_denied():
    nothing = estate()
    assert not any(
        nothing.allows(operation=operation, kind=kind, name="kafka-cluster")
        for operation in OPERATIONS
        for kind in ResourceType
        if kind > ResourceType.ANY
    )


def test_what_no_acl_allows_is_denied():
    one = estate(acl(principal=ALICE, host="10.0.0.1"))
    assert one.allows()
    assert not one.allows(operation=WRITE)
    assert not one.allows(host="10.0.0.2")
    assert not one.allows("User:bob")
    assert not one.allows(name="order")
    assert not one.allows(kind=ResourceType.GROUP)


@pytest.mark.parametrize("order", [1, -1])
def test_a_deny_beats_an_allow(order):
    rules = [acl(principal=ALICE), acl(principal=ALICE, host="10.0.0.1", permission_type=DENY)]
    both = estate(*rules[::order])
    assert not both.allows()
    assert both.allows(host="10.0.0.2")


def test_an_allow_for_everyone_does_not_beat_a_deny():
    both = estate(acl(principal="User:*", operation=ALL), acl(principal=ALICE, permission_type=DENY))
    assert not both.allows()
    assert both.allows(operation=WRITE)
    assert both.allows("User:bob")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_super_user_may_do_everything(operation):
    denied = [
        acl(name, "User:*", operation=ALL, permission_type=DENY, resource_type=kind)
        for kind, name in ((ResourceType.TOPIC, "*"), (ResourceType.CLUSTER, "kafka-cluster"))
    ]
    strict = estate(*denied, super_users="User:admin; User:root")
    for user in ("User:admin", "User:root"):
        assert strict.allows(user, operation=operation)
        assert strict.allows(user, "kafka-cluster", operation, kind=ResourceType.CLUSTER)
    assert not strict.allows("User:roo", operation=operation)


@pytest.mark.parametrize("principal", [ALICE, "User:ANONYMOUS", "Group:dev", ":"])
def test_user_star_is_everyone_of_every_type(principal):
    assert estate(acl(principal="User:*")).allows(principal)


@pytest.mark.parametrize("principal", ["*:*", "user:*", "Group:*", "User:al*", "user:alice", "User:Alice", "User:"])
def test_no_other_principal_stands_for_alice(principal):
    assert not estate(acl(principal=principal)).allows()


def test_a_group_is_a_principal_like_any_other():
    """A session has one principal: nobody is a member of a group."""
    devs = estate(acl(principal="Group:dev"))
    assert devs.allows("Group:dev")
    assert not devs.allows(ALICE)


def test_a_hosts_star_is_every_host():
    anywhere = estate(acl(principal=ALICE, host="*"))
    assert all(anywhere.allows(host=host) for host in ("10.0.0.1", "0:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:1%1"))


@pytest.mark.parametrize("host", ["localhost", "host1", "10.0.0.*", "10.0.0", "::1", ""])
def test_a_host_is_an_address_and_not_a_name(host):
    rules = estate(acl(principal=ALICE, host=host))
    assert not rules.allows(host="10.0.0.1")
    assert not rules.allows(host="127.0.0.1")
    assert not rules.allows(host="0:0:0:0:0:0:0:1")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_all_is_every_operation(operation):
    assert estate(acl(principal=ALICE, operation=ALL)).allows(operation=operation)
    assert not estate(acl(principal="User:*", operation=ALL), acl(operation=ALL, principal=ALICE, permission_type=DENY)
                      ).allows(operation=operation)  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_an_allow_implies(operation):
    granted = estate(acl(principal=ALICE, operation=operation))
    implied = {each for each in OPERATIONS if granted.allows(operation=each)} - {operation}
    if operation in {READ, WRITE, DELETE, ALTER}:
        assert implied == {DESCRIBE}
    elif operation is AclOperation.ALTER_CONFIGS:
        assert implied == {AclOperation.DESCRIBE_CONFIGS}
    else:
        assert implied == set()


def test_everyone_is_allowed_only_where_there_is_no_acl_at_all():
    """KIP-11's `allow.everyone` would allow everyone whom no ACL denies."""
    rules = estate(acl(principal="User:bob"), allow_everyone_if_no_acl_found="true")
    assert rules.allows(name="payments", operation=DELETE)
    assert not rules.allows()
    assert rules.allows("User:bob")


@pytest.mark.parametrize(
    ("properties", "allowed"),
    [
        ({}, False),
        ({"super_users": "User:node"}, True),
        ({"allow_everyone_if_no_acl_found": "true"}, True),
        ({"super_users": "User:node", "allow_everyone_if_no_acl_found": "false"}, True),
    ],
)
def test_on_a_new_cluster_only_its_configuration_lets_nodes_in(properties, allowed):
    """KIP-801, bootstrapping: there is no ACL yet that could."""
    new = estate(**properties)
    asked = {"name": "kafka-cluster", "operation": AclOperation.CLUSTER_ACTION, "kind": ResourceType.CLUSTER}
    assert new.allows("User:node", **asked) is allowed


@pytest.mark.parametrize("kind", [ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID])
def test_a_prefixed_acl_covers_every_name_that_begins_with_it(kind):
    rules = estate(acl("com.company.product1.", ALICE, pattern_type=PREFIXED, resource_type=kind))
    for name in ("com.company.product1.", "com.company.product1.orders"):
        assert rules.allows(name=name, kind=kind)
    for name in ("com.company.product1", "com.company.product2.a", "Com.company.product1.a", "x.com.company.product1."):
        assert not rules.allows(name=name, kind=kind)


def test_a_literal_acl_covers_its_name_only():
    rules = estate(acl("orders", ALICE))
    assert rules.allows(name="orders")
    assert not any(rules.allows(name=name) for name in ("orders.eu", "order", "Orders", "*", ""))


def test_a_literal_star_is_every_name_and_a_prefixed_one_is_not():
    literal, prefixed = estate(acl("*", ALICE)), estate(acl("*", ALICE, pattern_type=PREFIXED))
    assert all(literal.allows(name=name) for name in ("orders", "*", "a*"))
    assert not literal.allows(name="orders", kind=ResourceType.GROUP)
    assert not prefixed.allows(name="orders")
    assert prefixed.allows(name="*orders")


def test_an_allow_and_no_deny_of_any_pattern_is_needed():
    """However long a prefix is, and whether a name is exact, plays no part."""
    patterns = [("*", PatternType.LITERAL), ("o", PREFIXED), ("orders.", PREFIXED), ("orders.eu", PatternType.LITERAL)]
    for name, pattern in patterns:
        assert estate(acl(name, ALICE, pattern_type=pattern)).allows(name="orders.eu")
        for other, others_pattern in patterns:
            denied = acl(other, ALICE, pattern_type=others_pattern, permission_type=DENY)
            assert not estate(acl(name, ALICE, pattern_type=pattern), denied).allows(name="orders.eu")
