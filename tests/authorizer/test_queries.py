"""authorizeByResourceType against the naive model, with many allowed names of which most are denied."""

from random import Random
from string import ascii_lowercase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index import queries
from tests.support.builders.acls import acl
from tests.support.builders.images import by_changes, with_ids
from tests.support.models import estates
from tests.support.models.reference import ReferenceAuthorizer
from tests.support.runs.profiles import examples

PRINCIPAL, HOST = "User:a", "10.0.0.1"


def rule(name, pattern, permission, *, operation=AclOperation.READ, principal=PRINCIPAL):
    return acl(name, principal, operation=operation, pattern_type=pattern, permission_type=permission)


NAMES = st.text("ab\uffff\U00010000", max_size=4)
"""Short, so that many are prefixes of others; two characters sort differently in UTF-16 and UTF-8."""
RULES = st.builds(
    rule,
    NAMES,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED, PatternType.PREFIXED, PatternType.UNKNOWN]),
    st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY, AclPermissionType.DENY, 0]),
    operation=st.sampled_from([AclOperation.READ, AclOperation.READ, AclOperation.ALL, AclOperation.WRITE]),
    principal=st.sampled_from([PRINCIPAL, PRINCIPAL, "User:*", "User:b"]),
)


def ask(image):
    return image.by_resource_type(PRINCIPAL, HOST, AclOperation.READ, ResourceType.TOPIC)


def expected(acls):
    model = ReferenceAuthorizer(acls)
    return model.by_resource_type(PRINCIPAL, HOST, AclOperation.READ, ResourceType.TOPIC)[0] == "ALLOWED"


@pytest.mark.parametrize("one_by_one", [0, 2, 64])
@settings(max_examples=examples(150))
@given(acls=st.lists(st.one_of(RULES, RULES, estates.rules()), max_size=40, unique_by=repr), seed=st.integers(0, 99))
def test_same_as_the_model(one_by_one, acls, seed):
    rules = with_ids(acls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "_MAX_ONE_BY_ONE", one_by_one)
        for image in (AclsImage.from_acls(rules), by_changes(rules, Random(seed))):
            assert ask(image) == expected(acls)


def tangle(last):
    """Return hundreds of allowed names below nested denied prefixes, and one more ACL `last`."""
    prefixes = [f"{letter}{rest}" for letter in ascii_lowercase for rest in ("", "m", "mm")]
    below = [prefix + rest for prefix in prefixes for rest in ("0", "l", "mz", "\U0010ffff")]
    return [
        *(rule(prefix, PatternType.PREFIXED, AclPermissionType.DENY) for prefix in prefixes),
        *(rule(name, PatternType.LITERAL, AclPermissionType.ALLOW) for name in below),
        *(rule(name, PatternType.PREFIXED, AclPermissionType.ALLOW) for name in below),
        *last,
    ]


@pytest.mark.parametrize(
    ("last", "allowed"),
    [
        ([], False),
        ([rule("0", PatternType.LITERAL, AclPermissionType.ALLOW)], True),
        ([rule("{", PatternType.PREFIXED, AclPermissionType.ALLOW)], True),
        ([rule("{", kind, permission) for kind in (3, 4) for permission in (2, 3)], False),
        ([rule("0", 3, AclPermissionType.ALLOW), rule("0", 3, AclPermissionType.DENY, principal="User:*")], False),
        ([rule("0", 4, AclPermissionType.ALLOW), rule("0", 3, AclPermissionType.DENY)], True),
        ([rule("", 4, AclPermissionType.ALLOW), rule("", 4, AclPermissionType.DENY)], True),
        ([rule("", 3, AclPermissionType.ALLOW), rule("", 4, AclPermissionType.DENY)], True),
        ([rule("", 3, AclPermissionType.ALLOW), rule("", 3, AclPermissionType.DENY)], False),
    ],
    ids=[
        "none left",
        "before all prefixes",
        "after all prefixes",
        "denied on its own",
        "denied to all",
        "a LITERAL denies no PREFIXED",
        "an empty prefix denies nothing",
        "an empty prefix denies no empty name",
        "the empty name is denied",
    ],
)
@pytest.mark.sample(3)
def test_all_below_denied_prefixes(last, allowed):
    acls = tangle(last)
    assert expected(acls) is allowed
    rules = with_ids(acls)
    assert len(rules) > queries._MAX_ONE_BY_ONE
    assert ask(AclsImage.from_acls(rules)) is allowed
    assert ask(by_changes(rules, Random(len(last)))) is allowed


def test_names_that_others_deny_are_sifted_too():
    acls = [rule(f"t{n}", PatternType.LITERAL, AclPermissionType.ALLOW) for n in range(500)]
    acls += [rule("t", PatternType.PREFIXED, AclPermissionType.DENY, principal="User:*")]
    image = AclsImage.from_acls(with_ids(acls))
    state = image.index
    assert not ask(image)
    assert not queries.any_survives(state, image.subject(PRINCIPAL, HOST), AclOperation.READ, ResourceType.TOPIC)
