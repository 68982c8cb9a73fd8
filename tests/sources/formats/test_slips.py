"""Files that hold rules with a slip in what shows their format: they are refused or read, never left out unsaid."""

from pathlib import Path

import pytest

from tests.support.sources.files_of_rules import read_rules, refused, write_files

_LISTING = (
    "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)`: \n"
    " \t(principal=User:a, host=*, operation=READ, permissionType=ALLOW)\n"
)
_HEADER = "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host\n"
_ROW = "User:a,Topic,LITERAL,t,Read,Allow,*\n"
_KSM = "users:\n  bob:\n    topics:\n      t: [Read]\n"
_CUSTOM = "  u:\n    a: {name: t, type: TOPIC, pattern: LITERAL, host: '*', operation: READ, permission: ALLOW}\n"
_JULIE = "context: c\nprojects:\n- name: p\n  consumers:\n  - principal: User:x\n"
_RULE = (
    '{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a","host":"*",'
    '"operation":"READ","permissionType":"ALLOW"}\n'
)
_USER = """\
apiVersion: kafka.strimzi.io/v1
kind: "Kafka\\x55s\\
  er"
metadata: {name: a}
spec:
  authentication: {type: tls}
  authorization:
    type: simple
    acls: [{resource: {type: topic, name: t}, operations: [Read]}]
"""
_PLAIN = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nspec: {authorization: {type: simple, acls: []}}\n"
_LIST = "apiVersion: v1\nkind: List\nitems:\n- "
_ROLE = "apiVersion: kafka.jikkou.io/v1\nkind: KafkaPrincipalRole\nmetadata: {name: r}\nspec: {acls: []}\n"
_PLAN = (
    '{"planned_values": {"root_module": {"resources": [{"address": "kafka_acl.a", "mode": "managed",'
    ' "type": "kafka_acl", "values": {"resource_name": "t", "resource_type": "Topic", "acl_principal": "User:a",'
    ' "acl_host": "*", "acl_operation": "Read", "acl_permission_type": "Allow"}}]}}, "format_version": "1.2"}'
)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("acls.txt", f"WARNING: something\n{_LISTING}", ":1: 'WARNING: something' is not a line"),
        ("acls.log", f"$ kafka-acls.sh --list\n{_LISTING}", ":1: '$ kafka-acls.sh --list' is not a line"),
        ("acls", f"  {_LISTING}", ":1: 'Current ACLs for resource"),
        ("a.csv", _ROW, ":1: KafkaPrincipal, "),
        ("a.csv", "# ours\n" + _HEADER + _ROW, ":1: KafkaPrincipal, "),
        ("a.csv", _HEADER.replace("Operation", "Operaton") + _ROW, ":1: Operation missing in the header"),
        ("a.txt", _HEADER.replace("KafkaPrincipal", "Who") + _ROW, ":1: KafkaPrincipal missing in the header"),
        ("a.yaml", _KSM.replace("topics", "topic"), ":3: user 'bob' has an unknown key 'topic': did you mean topics?"),
        ("a.yaml", _KSM.replace("users", "user"), ":1: a file of Kafka Security Manager has an unknown key 'user'"),
        ("a.yaml", _KSM.replace("[Read]", "Read"), ":4: 't' is 'Read': expected a list"),
        ("a.yaml", "{}\n---\n" + _KSM, ":3: 2 YAML documents: expected one"),
        (
            "s.yaml",
            "service:\n  s: {type: application, principal: User:s, produces: [t]}\n",
            ":1: the state has an unk",
        ),
        ("s.yaml", "services:\n  s: {principal: User:s, produces: [t]}\n", ":2: service s has no type"),
        ("s.yaml", f"customUserAcl:\n{_CUSTOM}", ":1: the state has an unknown key 'customUserAcl'"),
        ("s.yaml", f"a: 1\n---\ncustomUserAcls:\n{_CUSTOM}", ":3: a second document"),
        ("t.yaml", _JULIE.replace("projects", "proyects"), ":2: proyects, a part of the names of topics, is a list"),
        ("t.yaml", f"a: b\n---\n{_JULIE}", ":1: 2 documents"),
        ("a.json", f"[{_RULE}", ":2: expected , or ] after a rule"),
    ],
)
def test_a_file_with_a_slip_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    assert refused(write_files(tmp_path, {name: text, "other.jsonl": _RULE})).startswith(f"{tmp_path / name}{message}")


_JIKOU = "a KafkaPrincipalRole of apiVersion kafka.jikou.io/v1 may make rules"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "u.yaml",
            _PLAIN.replace("strimzi.io", "strimzi.com"),
            ":2: resource:KafkaUser not read: a KafkaUser of apiVersion kafka.strimzi.com/v1 may make rules",
        ),
        (
            "u.yaml",
            _PLAIN.replace("KafkaUser", "kafkaUser"),
            ":2: resource:kafkaUser not read: a kafkaUser of apiVersion kafka.strimzi.io/v1 may make rules",
        ),
        ("u.yaml", "- " + _PLAIN.replace("\n", "\n  "), ":2: document:u.yaml not read: keys of a rule"),
        (
            "kustomization.yaml",
            "patches:\n- path: p.yaml\n  target: {kind: KafkaUser}\n",
            ":2: kustomization:patches not read: a patch of KafkaUsers that are not among these files",
        ),
        ("u.j2", _PLAIN, ":2: template not read: a template that may state rules"),
        ("r.yaml", _ROLE.replace("jikkou", "jikou"), f":2: resource:KafkaPrincipalRole not read: {_JIKOU}"),
        (
            "r.yaml",
            _LIST + _ROLE.replace("jikkou", "jikou").replace("\n", "\n  "),
            f":5: resource:KafkaPrincipalRole not read: {_JIKOU}",
        ),
        (
            "n.yaml",
            "apiVersion: v2\nkind: AccessControlEntry\nspec: {a: b}\n",
            ":2: resource:AccessControlEntry not read: a AccessControlEntry of apiVersion v2 may make rules",
        ),
        (
            "k.yaml",
            "apiVersion: aiven.io/v1\nkind: KafkaNativeACL\nspec: {a: b}\n",
            ":2: resource:KafkaNativeACL not read: a KafkaNativeACL of apiVersion aiven.io/v1 may make rules",
        ),
        (
            "a.tf",
            'resource "aiven_kafka_native_acl" "a" {\n}\n',
            ":1: terraform:aiven_kafka_native_acl not read: a aiven_kafka_native_acl may make rules",
        ),
        (
            "p.json",
            _PLAN.replace('"kafka_acl"', '"kafka_acls"'),
            ":1: terraform:kafka_acls not read: a kafka_acls may make rules",
        ),
    ],
)
def test_a_file_that_may_hold_rules_is_reported_as_unread(tmp_path: Path, name: str, text: str, message: str) -> None:
    (found,) = read_rules(write_files(tmp_path, {name: text, "other.jsonl": _RULE})).unread
    assert found.text().startswith(f"{tmp_path / name}{message}")


@pytest.mark.parametrize(
    ("name", "text"), [("acls.json", _RULE), ("acls", "\n" + _RULE), ("u.yaml", _USER), ("plan.json", _PLAN)]
)
def test_a_file_is_known_whatever_its_name_order_or_escapes(tmp_path: Path, name: str, text: str) -> None:
    found = read_rules(write_files(tmp_path, {name: text, "README.md": f"Such as:\n{_LISTING}"}))
    assert [rule.partition(" to ")[0] for rule in found.rules] == ["ALLOW READ TOPIC t"]
    assert found.ignored == {"other file": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["acls.log", "acls.csv", "acls"])
def test_wide_characters_are_not_read(tmp_path: Path, encoding: str, name: str) -> None:
    (tmp_path / name).write_bytes(_LISTING.encode(encoding))
    write_files(tmp_path, {"other.jsonl": _RULE})
    (found,) = read_rules(tmp_path).unread
    assert found.text().startswith(f"{tmp_path / name}:1: encoded not read: text in UTF-16")
    assert refused(tmp_path / name).startswith(f"{tmp_path / name}:1: text in UTF-16")


def test_what_only_names_a_kind_is_left_out(tmp_path: Path) -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {names: {kind: KafkaUser}}\n"
    passwords = "apiVersion: kafka.jikkou.io/v1\nkind: KafkaUser\nspec: {authentications: []}\n"
    files = {"crd.yaml": crd, "users.yaml": passwords, "rules.jsonl": _RULE, "a.bin": "\0\1\2"}
    found = read_rules(write_files(tmp_path, files))
    assert found.ignored == {"CustomResourceDefinition": 1, "KafkaUser": 1, "other file": 1}
