"""Resources of Jikkou: the rules that it applies for them, and what is refused."""

import re
from pathlib import Path

import pytest

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.jikkou import matching
from tests.support.sources.files_of_rules import read_rules, refused, write_files

_ACLS = """\
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaPrincipalAuthorization
metadata:
  name: User:shop
  labels: {team: shop}
spec:
  roles: [audit, audit]
  acls:
    - resource: {type: topic, pattern: shop., patternType: PREFIXED}
      type: ALLOW
      operations: [read, WRITE]
      host: 10.0.0.1
    - resource:
        type: topic
        pattern: "^(in|out)-.*"
        patternType: match
      type: DENY
      operations: [ALL]
    - resource: {type: group, pattern: ".*", patternType: MATCH}
      type: ALLOW
      operations: [READ]
---
apiVersion: kafka.jikkou.io/v1
kind: KafkaPrincipalAuthorization
metadata: {name: "User:gone", annotations: {jikkou.io/delete: true}}
spec:
  acls:
    - {resource: {type: topic, pattern: .*, patternType: MATCH}, type: ALLOW, operations: [READ]}
---
apiVersion: kafka.jikkou.io/v1
kind: KafkaTopic
metadata: {name: shop.orders}
"""
_ROLE = """\
{"apiVersion": "kafka.jikkou.io/v1", "kind": "KafkaPrincipalRoleList", "items": [
  {"metadata": {"name": "audit"}, "spec": {"acls": [
    {"type": "ALLOW", "operations": ["DESCRIBE_TOKENS"],
     "resource": {"type": "USER", "pattern": "User:a", "patternType": "LITERAL"}}]}}]}
"""


def test_authorizations_roles_and_patterns_over_topics(tmp_path: Path) -> None:
    write_files(tmp_path, {"acls.yaml": _ACLS, "roles/audit.json": _ROLE})
    found = read_rules(tmp_path, topics=["in-1", "x-in-1", "out-"])
    assert found.rules == {
        "ALLOW READ TOPIC shop.* to User:shop from 10.0.0.1": [9],
        "ALLOW WRITE TOPIC shop.* to User:shop from 10.0.0.1": [9],
        "DENY ALL TOPIC in-1 to User:shop": [13],
        "DENY ALL TOPIC out- to User:shop": [13],
        "ALLOW DESCRIBE_TOKENS USER User:a to User:shop": [3],
    }
    assert found.ignored == {
        "KafkaPrincipalAuthorization with jikkou.io/delete": 1,
        "KafkaTopic": 1,
        "MATCH of GROUP": 1,
    }


def test_a_pattern_of_which_nothing_comes_is_told_and_refused_where_all_must_come(tmp_path: Path) -> None:
    write_files(tmp_path, {"acls.yaml": _ACLS, "roles/audit.json": _ROLE})
    found = read_rules(tmp_path, topics=["x"])
    assert found.ignored["MATCH pattern of no topic that exists"] == 1
    why = "Jikkou expands MATCH patterns of topics only, so this makes no rule: expected LITERAL or PREFIXED"
    assert refused(tmp_path, ["in-1"], strict=True) == f"{tmp_path}/acls.yaml:19: a MATCH pattern of GROUP: {why}"


def test_a_pattern_over_topics_that_nobody_told_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"acls.yaml": _ACLS, "audit.json": _ROLE})
    message = refused(tmp_path)
    assert message.endswith(
        "acls.yaml:15: a MATCH pattern expands to existing topics: pass their names with --topics FILE"
    )


def test_what_is_ignored_and_templates_of_other_kinds_make_no_rule(tmp_path: Path) -> None:
    ignored = _ONE.replace("metadata: {", "metadata: {annotations: {jikkou.io/ignore: 'true'}, ")
    template = "apiVersion: kafka.jikkou.io/v1\nkind: KafkaTopic\n{% for each in values %}\n"
    found = read_rules(write_files(tmp_path, {"a.yaml": ignored, "t.tpl": template}))
    assert found.rules == {}
    assert found.ignored == {"KafkaPrincipalAuthorization with jikkou.io/ignore": 1, "template": 1}


_ONE = """\
apiVersion: kafka.jikkou.io/v1
kind: KafkaPrincipalAuthorization
metadata: {name: "User:a"}
spec:
  acls:
    - resource:
        type: topic
        pattern: t
        patternType: LITERAL
      type: ALLOW
      operations: [READ]
"""


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("type: ALLOW", "type: NONE", "10: type is 'NONE': expected one of ALLOW, DENY"),
        ("      type: ALLOW\n", "", "6: an ACL of principal User:a has no type"),
        ("operations: [READ]", "operation: READ", "11: an ACL of principal User:a has an unknown key 'operation'"),
        ("[READ]", "[ANY]", "operation is 'ANY': expected one of ALL, READ"),
        (
            "pattern: t\n",
            "pattern: 1.10\n",
            "8: pattern is '1.10' without quotes, which is read as 1.1: put it in quotes",
        ),
        ("type: topic", "type: topics", "7: type is 'topics': expected one of TOPIC"),
        ("LITERAL", "PREFIX", "9: patternType is 'PREFIX': expected one of LITERAL, PREFIXED, MATCH"),
        ('"User:a"', "alice", "6: no Kafka accepts this rule: .*colon"),
        ('{name: "User:a"}', "{}", "3: metadata of KafkaPrincipalAuthorization has no name"),
        ("  acls:", "  roles: [r]\n  acls:", "5: no role 'r': .*none is defined"),
        ("jikkou.io/v1", "jikkou.io/v9", "1: KafkaPrincipalAuthorization has the version"),
        ("PrincipalAuthorization", "PrincipalAuthorisation", "1: unknown kind 'KafkaPrincipalAuthorisation'"),
        ("spec:", "spec:\n  acl: []", "5: spec of principal User:a has an unknown key 'acl': did you mean acls"),
        ("[READ]\n", "[READ]\n---\n" + _ONE, "duplicate KafkaPrincipalAuthorization 'User:a': first in .*x.yaml:1"),
        ('{name: "User:a"}', '{name: "User:a", annotations: {jikkou.io/delete: 7}}', "3: jikkou.io/delete is '7'"),
    ],
)
def test_what_is_not_understood_on_the_way_to_a_rule_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, error: str
) -> None:
    assert old in _ONE
    message = refused(write_files(tmp_path, {"x.yaml": _ONE.replace(old, new)}))
    assert "x.yaml" in message
    assert re.search(error, message)


def test_a_template_is_unread_and_alone_it_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"x.yaml": _ONE.replace("pattern: t", 'pattern: "{{ values.topic }}"')})
    (found,) = read_rules(tmp_path).unread
    assert found.text().startswith(f"{tmp_path}/x.yaml:8: template not read: a template: render it first")
    assert refused(tmp_path / "x.yaml").startswith(f"{tmp_path}/x.yaml:8: a template: render it first")


def test_a_plan_of_resources_of_two_clusters_is_refused(tmp_path: Path) -> None:
    of = _ONE.replace("metadata: {", "metadata: {annotations: {jikkou.io/provider: %s}, ")
    write_files(tmp_path, {"a.yaml": of % "east", "b.yaml": of % "west"})
    several = "these are 2 clusters by annotation jikkou.io/provider: east, west: give the files of one"
    assert refused(tmp_path, strict=True) == f"{tmp_path}: {several}"
    assert read_rules(tmp_path).rules


def test_roles_are_those_of_the_same_provider(tmp_path: Path) -> None:
    resource = "resource: {type: topic, pattern: %s, patternType: LITERAL}"
    acl = f"acls: [{{{resource}, type: ALLOW, operations: [READ], host: '*'}}]"
    head = "---\napiVersion: kafka.jikkou.io/v1beta2\nkind: %s\n"
    at = "metadata: {name: %s, annotations: {jikkou.io/provider: %s}}\n"
    role, user = head % "KafkaPrincipalRole", head % "KafkaPrincipalAuthorization"
    roles = [role + at % ("r", each) + f"spec: {{{acl % each}}}\n" for each in ("east", "west")]
    roles += [f"{role}metadata: {{name: s}}\nspec: {{{acl % 'all'}}}\n"]
    users = [user + at % (f'"User:{each}"', each) + "spec: {roles: [r, s], acls: []}\n" for each in ("east", "west")]
    rules = read_rules(write_files(tmp_path, {"a.yaml": "".join((*roles, *users))})).rules
    expected = [f"ALLOW READ TOPIC {topic} to User:{each}" for each in ("east", "west") for topic in (each, "all")]
    assert sorted(rules) == sorted(expected)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("my-.*", ["my-topic", "my-"]),
        ("topic", []),
        (r"\Qmy-\E.*", ["my-topic", "my-"]),
        ("(?i)MY-", ["my-"]),
        ("a{2,3}|b", ["aa", "b"]),
        (r"[a\[]+", ["aa", "a"]),
        ("(a+)+$", ["aa", "a"]),
    ],
)
def test_a_pattern_must_match_the_whole_name(pattern: str, matches: list[str]) -> None:
    assert matching(pattern, ["my-topic", "my-", "aa", "a", "b", "a" * 200 + "!"]) == matches


@pytest.mark.parametrize(
    "pattern", ["[a-z&&[^b]]", "[a[b]]", "a{,3}", "{", "[]a]", "a++", "(?=a)a", r"(a)\1", "a)|(b", "("]
)
def test_a_pattern_that_java_reads_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        matching(pattern, ["a"])
