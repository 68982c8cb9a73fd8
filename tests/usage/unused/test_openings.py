"""Which DENY rules may keep a younger ALLOW from opening something, against requests that both match."""

from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.usage.unused import may_open
from tests.support.builders.images import with_ids
from tests.support.models.estates import Request
from tests.usage.decisions.test_necessary_acls import matches

NAMES = ["a", "ab", "abc", "b"]
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]


def acls(permission: AclPermissionType) -> st.SearchStrategy[StandardAcl]:
    return st.builds(
        StandardAcl,
        resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
        resource_name=st.sampled_from([*NAMES, "*"]),
        pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
        principal=st.sampled_from(["User:a", "User:b", "User:*"]),
        host=st.sampled_from(["1.1.1.1", "1.1.1.2", "*"]),
        operation=st.sampled_from([*OPERATIONS, AclOperation.ALL]),
        permission_type=st.just(permission),
    )


requests = st.builds(
    Request,
    principal=st.sampled_from(["User:a", "User:b"]),
    host=st.sampled_from(["1.1.1.1", "1.1.1.2"]),
    operation=st.sampled_from(OPERATIONS),
    resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    resource_name=st.sampled_from([*NAMES, "abcd"]),
)


@given(
    acls(AclPermissionType.DENY), st.lists(acls(AclPermissionType.ALLOW), max_size=2), st.lists(requests, max_size=12)
)
def test_no_opening_is_missed(deny, younger, asked):
    denying, *allowing = with_ids([deny, *younger])
    opened = any(
        matches(denying, each, Settings()) and any(matches(allow, each, Settings()) for allow in allowing)
        for each in asked
    )
    assert may_open([deny], younger)[0] or not opened


def acl(name="a", operation=AclOperation.READ, *, host="*", denies=False) -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal="User:a",
        host=host,
        operation=operation,
        permission_type=AclPermissionType.DENY if denies else AclPermissionType.ALLOW,
    )


def test_rules_that_have_nothing_in_common():
    denies = [acl(denies=True), acl("b", denies=True), acl(operation=AclOperation.WRITE, denies=True)]
    assert may_open(denies, [acl()]) == [True, False, False]
    assert may_open(denies, []) == [False, False, False]
    # an ALLOW of READ allows DESCRIBE, too, and a range may hold any host
    assert may_open([acl(operation=AclOperation.DESCRIBE, denies=True)], [acl()]) == [True]
    assert may_open([acl(host="10.0.0.1", denies=True)], [acl(host="10.0.0.0/8")]) == [True]
