"""ACLs whose principal has no colon: the same requests are refused as by a walk over all ACLs in Kafka's order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclPermissionType, PatternType
from aclog.authorizer.index.queries import candidates, matches
from aclog.authorizer.interface import InvalidRequestError
from tests.support.builders.acls import acl, record_of, removal_of
from tests.support.builders.images import with_ids
from tests.support.runs.profiles import examples

TOPIC = 2
NAMES = ["", "*", "*a", "a", "ab", "abc", "b", "!", "\U0001f600"]
RULES = st.builds(
    acl,
    st.sampled_from(NAMES),
    principal=st.sampled_from(["User:a", "User:*", "User:b", "odd", "", "\u00fcber", "x" * 200]),
    host=st.sampled_from(["*", "h", "i"]),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH]),
    operation=st.sampled_from([2, 3, 4, 99]),
    permission_type=st.sampled_from([2, 3]),
)


def refused(image: AclsImage, name: str, operation: int) -> bool:
    """Walk over all ACLs that cover the name, in Kafka's order, up to the first DENY that matches."""
    subject = image.subject("User:a", "h")
    for rule in candidates(image.index, TOPIC, name, documented=image.documented):
        if ":" not in rule.acl.principal:
            return True
        denies = rule.acl.permission_type != AclPermissionType.ALLOW
        if denies and (rule.acl.principal, rule.acl.host) in subject.keys and matches(rule, operation):
            return False
    return False


def is_refused(image: AclsImage, name: str, operation: int) -> bool:
    try:
        image.check_principals("User:a", "h", operation, TOPIC, name)
    except InvalidRequestError:
        return True
    return False


@settings(max_examples=examples(200), deadline=None)
@given(
    acls=st.lists(RULES, unique=True, max_size=24),
    steps=st.lists(st.integers(0, 23), max_size=12),
    documented=st.booleans(),
)
def test_the_same_requests_are_refused(acls, steps, documented):
    rules = with_ids(acls)
    image = AclsImage.from_acls(rules[::2]).with_options(documented=documented, cidr=False)
    for step in [None, *steps]:
        if step is not None and step < len(rules):
            rule = rules[step]
            image = image.apply([removal_of(rule) if image.get(rule.id) else record_of(rule)])
        for name in [*NAMES, "zz"]:
            for operation in (3, 4, 8):
                assert is_refused(image, name, operation) == refused(image, name, operation), (name, operation)


def test_images_with_different_changes_do_not_mix():
    odd, other = with_ids([acl("t", principal="odd"), acl("t", principal="User:b")])
    image = AclsImage.from_acls(with_ids([acl("u")], first=9))
    assert is_refused(image.apply([record_of(odd)]), "t", 3)
    assert not is_refused(image.apply([record_of(other)]), "t", 3)
    assert not is_refused(image.apply([record_of(odd), removal_of(odd)]), "t", 3)
    assert is_refused(image.apply([record_of(odd)]).merged(), "t", 3)


def test_the_error_names_the_principal():
    image = AclsImage.from_acls(with_ids([acl("t", principal="odd", pattern_type=PatternType.PREFIXED)]))
    with pytest.raises(InvalidRequestError, match="'odd'"):
        image.verdict("User:a", "h", 3, TOPIC, "topic")
    with pytest.raises(InvalidRequestError, match="'odd'"):
        image.by_resource_type("User:a", "h", 3, TOPIC)


@pytest.mark.parametrize("added", [False, True])
def test_a_range_as_its_host_counts_by_resource_type(added):
    rules = with_ids([acl("t", principal="odd", host="10.0.0.0/8"), acl("t", principal="User:a")])
    image = AclsImage.from_acls(rules)
    if added:
        image = AclsImage.from_acls(rules[1:]).apply([record_of(rules[0])])
    assert image.by_resource_type("User:a", "10.0.0.1", 3, TOPIC)
    image = image.with_options(documented=False, cidr=True)
    assert image.by_resource_type("User:a", "11.0.0.1", 3, TOPIC)
    with pytest.raises(InvalidRequestError, match="'odd'"):
        image.by_resource_type("User:a", "10.0.0.1", 3, TOPIC)
