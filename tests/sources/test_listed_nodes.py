"""`can_only` in a file of tests."""

import pytest

from aclog.analysis.rule_tests.expectations import ListedAccess, ListedHosts
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.yaml_nodes import parse_documents
from aclog.sources.rule_tests import parse_listed


def listed(text: str) -> tuple[ListedAccess, ...]:
    (document,) = parse_documents(f"can_only: {text}".encode(), "tests.yaml")
    return parse_listed(document.required("can_only"))


def test_an_item_with_exceptions_and_hosts() -> None:
    text = r"{READ: {topic: 'a.\*b*', except: ['a.\*b.c*', 'a.\*bd'], from: [10.0.0.1, '::1/128'], not_from: 10.0.0.2}}"
    prefix, literal = PatternType.PREFIXED, PatternType.LITERAL
    assert listed(text) == (
        ListedAccess(
            operations=1 << AclOperation.READ,
            resource=ResourcePattern(resource_type=ResourceType.TOPIC, name="a.*b", pattern_type=prefix),
            but=(
                ResourcePattern(resource_type=ResourceType.TOPIC, name="a.*b.c", pattern_type=prefix),
                ResourcePattern(resource_type=ResourceType.TOPIC, name="a.*bd", pattern_type=literal),
            ),
            hosts=ListedHosts(entries=("10.0.0.1", "::1/128"), but=("10.0.0.2",)),
        ),
    )
    assert listed("{}") == ()
    assert len(listed("{read: [topic:a, cluster], ALL: group:*}")) == 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[topic:a]", "is a list: expected a mapping"),
        ("{REED: [topic:a]}", "operation"),
        ("{READ: []}", "can_only READ is an empty list"),
        ("{READ: [tpic:a]}", "is not a resource"),
        ("{READ: {topic: a, group: b}}", "expected one of topic, group"),
        ("{READ: {except: b}}", "expected one of topic, group"),
        ("{READ: {topic: a*, but: b}}", "unknown key 'but'"),
        ("{READ: {topic: a*, except: b}}", "except: expected a part of the names"),
        ("{READ: {topic: a, except: a}}", "except: expected a part of the names"),
        ("{READ: {topic: a, from: h.prod}}", "h.prod"),
        ("{READ: {topic: a, from: 10.0.0.0/33}}", "expected an IP address or a CIDR range"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=r"^tests\.yaml:1: ") as found:
        listed(text)
    assert complaint in str(found.value)
