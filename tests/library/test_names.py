r"""Names in the library are those of questions: `pii-*` is all that begin so, `\*` a star."""

import json

import pytest

import aclog
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import PatternType, ResourceType
from tests.support.builders.acls import acl_row

ROWS = [
    acl_row("pii-", principal="User:audit", operation="READ", patternType="PREFIXED"),
    acl_row("pii-card", principal="User:app", operation="READ"),
    acl_row("a*b", principal="User:app", operation="READ", resourceType="GROUP"),
]


@pytest.fixture
def authorizer(tmp_path):
    path = tmp_path / "rules.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    with aclog.open_log(path) as log:
        return log.image().authorizer()


def test_resources_are_read_in_the_notation_of_questions():
    prefix = ResourcePattern(resource_type=ResourceType.TOPIC, name="pii-", pattern_type=PatternType.PREFIXED)
    assert aclog.topic("pii-*") == aclog.topic("pii-", pattern="prefixed") == prefix
    assert aclog.group(r"a\*b") == aclog.group("a*b", pattern="LITERAL")
    assert aclog.group(r"DOM\app").name == r"DOM\app"
    assert aclog.transactional_id("*").pattern_type == PatternType.PREFIXED
    for wrong, said in (
        (lambda: aclog.topic(r"a\*"), "a topic name cannot contain"),
        (lambda: aclog.group("a*b"), "before its end"),
    ):
        with pytest.raises(aclog.ConfigError, match=said):
            wrong()
    with pytest.raises(aclog.ConfigError, match="LITERAL"):
        aclog.topic("a", pattern="MATCH")


@pytest.mark.parametrize("resource", ["pii-*", aclog.topic("pii-*"), aclog.topic("pii-", pattern="PREFIXED")])
def test_who_can_on_a_prefix_is_never_empty_where_somebody_may(authorizer, resource):
    assert [(grant.principals, grant.covers_all) for grant in authorizer.who_can("READ", resource)] == [
        (("User:app",), False),
        (("User:audit",), True),
    ]
    assert [grant.covers_all for grant in authorizer.who_can("READ", "pii-card")] == [None]


def test_a_check_of_a_prefix_has_an_answer_if_all_names_are_decided_alike(authorizer):
    allowed = authorizer.check("User:audit", "READ", "pii-*")
    assert allowed
    assert str(allowed).startswith("ALLOWED: User:audit READ TOPIC pii-* from 127.0.0.1 by ALLOW User:audit READ")
    assert not authorizer.check("User:eve", "READ", "pii-*")
    assert "add ALLOW User:eve READ on TOPIC PREFIXED 'pii-'" in authorizer.check("User:eve", "READ", "pii-*").explain()
    assert authorizer.check("User:eve", "READ", "pii-*").to_dict()["patternType"] == "PREFIXED"
    with pytest.raises(aclog.ConfigError, match="ALLOWED on 'pii-card' and DENIED on 'pii-'"):
        authorizer.check("User:app", "READ", "pii-*")
    assert authorizer.check("User:app", "READ", aclog.group(r"a\*b"))
