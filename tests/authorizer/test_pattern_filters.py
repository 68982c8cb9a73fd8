"""What each pattern type of a filter selects, to list and to delete: the examples of KIP-290."""

import pytest

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.control import delete_acls
from tests.support.builders.acls import acl
from tests.support.builders.images import with_ids

ANY, MATCH, LITERAL, PREFIXED = PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED
IMAGE = AclsImage.from_acls(
    with_ids(
        acl(name, resource_type=kind, pattern_type=pattern)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        for pattern, names in ((LITERAL, ("foobar", "foo", "*", "fo")), (PREFIXED, ("foo", "foobar", "f", "b", "*")))
        for name in names
    )
)

EXAMPLES = [
    ("foobar", LITERAL, ["foobar"]),
    ("*", LITERAL, ["*"]),
    ("foo", PREFIXED, ["foo~"]),
    ("foo", ANY, ["foo", "foo~"]),
    ("*", ANY, ["*", "*~"]),
    ("foobar", MATCH, ["*", "f~", "foo~", "foobar", "foobar~"]),
    ("foo", MATCH, ["*", "f~", "foo", "foo~"]),
    ("payments.received", MATCH, ["*"]),
    ("*", MATCH, ["*", "*~"]),
    ("payments.received", LITERAL, []),
    (None, PREFIXED, ["*~", "b~", "f~", "foobar~", "foo~"]),
]
"""A filter's name and pattern type, and the ACLs that it takes, the prefixed ones with a `~`."""


def told(rules) -> list[str]:
    return sorted(f"{rule.acl.resource_name}{'~' * (rule.acl.pattern_type == PREFIXED)}" for rule in rules)


def wanted(name: str | None, pattern: PatternType) -> AclBindingFilter:
    return AclBindingFilter(resource_type=ResourceType.TOPIC, resource_name=name, pattern_type=pattern)


@pytest.mark.parametrize(("name", "pattern", "expected"), EXAMPLES)
def test_a_filter_lists(name, pattern, expected):
    found = list(IMAGE.matching(wanted(name, pattern)))
    assert told(found) == sorted(expected)
    assert {rule.acl.resource_type for rule in found} <= {ResourceType.TOPIC}


@pytest.mark.parametrize(("name", "pattern", "expected"), EXAMPLES)
def test_a_filter_deletes(name, pattern, expected):
    done = delete_acls(IMAGE, [wanted(name, pattern)])
    assert told(done.results[0].deleted) == sorted(expected)
    assert len(IMAGE.apply(done.records)) == len(IMAGE) - len(expected)
