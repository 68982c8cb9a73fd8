"""Redpanda's User, RedpandaRole and Group: their ACLs, and what the operator refuses."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.runs.profiles import examples
from tests.support.sources.files_of_rules import read_rules, refused, write_files

USER = """apiVersion: cluster.redpanda.com/v1alpha2
kind: User
metadata: {name: travis}
spec:
  cluster: {clusterRef: {name: redpanda}}
  authentication: {type: scram-sha-512, password: {valueFrom: {secretKeyRef: {name: p, key: p}}}}
  authorization:
    acls:
    - type: allow
      resource: {type: topic, name: "*"}
      operations: [Read, Write]
"""


def rules(directory: Path, text: str) -> set[str]:
    return set(read_rules(write_files(directory, {"users.yaml": text})).rules)


def message(directory: Path, text: str) -> str:
    return refused(write_files(directory, {"users.yaml": text})).removeprefix(f"{directory}/users.yaml:")


TWO = 'type: topic, name: "*"}\n      operations: [Read, Write]'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("User", "User", ["ALLOW READ TOPIC *", "ALLOW WRITE TOPIC *"]),
        ("[Read, Write]", "[Describe]", ["ALLOW DESCRIBE TOPIC *"]),
        ("type: allow", "type: deny", ["DENY READ TOPIC *", "DENY WRITE TOPIC *"]),
        ('name: "*"', "name: a-, patternType: prefixed", ["ALLOW READ TOPIC a-*", "ALLOW WRITE TOPIC a-*"]),
        ('name: "*"', "name: a, patternType: literal", ["ALLOW READ TOPIC a", "ALLOW WRITE TOPIC a"]),
        (TWO, 'type: cluster, name: ""}\n      operations: [Create]', ["ALLOW CREATE CLUSTER kafka-cluster"]),
        (TWO, "type: cluster}\n      operations: [Alter]", ["ALLOW ALTER CLUSTER kafka-cluster"]),
        ("type: topic", "type: group", ["ALLOW READ GROUP *", "ALLOW WRITE GROUP *"]),
        ("type: topic", "type: transactionalId", ["ALLOW READ TRANSACTIONAL_ID *", "ALLOW WRITE TRANSACTIONAL_ID *"]),
        ("type: topic", "type: subject", []),
        ("    acls:", "    type: simple\n    acls:", ["ALLOW READ TOPIC *", "ALLOW WRITE TOPIC *"]),
    ],
)
def test_the_rules_of_a_user(tmp_path: Path, old: str, new: str, expected: list[str]) -> None:
    assert rules(tmp_path, USER.replace(old, new, 1)) == {f"{each} to User:travis" for each in expected}


def test_a_host_and_a_group(tmp_path: Path) -> None:
    text = USER.replace("operations: [Read, Write]", 'host: "10.0.0.1"\n      operations: [Read]')
    assert rules(tmp_path, text) == {"ALLOW READ TOPIC * to User:travis from 10.0.0.1"}
    lines = text.replace("kind: User", "kind: Group").splitlines(keepends=True)
    group = "".join(line for line in lines if "authentication" not in line)
    assert rules(tmp_path, group) == {"ALLOW READ TOPIC * to Group:travis from 10.0.0.1"}


ROLE = """apiVersion: cluster.redpanda.com/v1alpha2
kind: RedpandaRole
metadata: {name: readers}
spec:
  cluster: {clusterRef: {name: redpanda}}
  principals: ["User:ann", bob]
  authorization: {acls: [{type: allow, resource: {type: topic, name: a}, operations: [Read]}]}
"""


def test_a_role_is_a_principal_and_its_members_are_unread(tmp_path: Path) -> None:
    found = read_rules(write_files(tmp_path, {"role.yaml": ROLE}))
    assert set(found.rules) == {"ALLOW READ TOPIC a to RedpandaRole:readers"}
    internal = ROLE.replace("principals", "internal: true\n  principals")
    assert rules(tmp_path / "other", internal) == {"ALLOW READ TOPIC a to RedpandaRole:__readers"}


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("    - type: allow\n      resource", "    - resource", "9: a rule of acls has no type"),
        ("type: allow", "type: maybe", "9: type 'maybe' is not one of allow, deny"),
        ("type: topic", "type: topics", "10: type 'topics' is not one of"),
        ("[Read, Write]", "[read]", "11: the operation 'read' is not one of"),
        ("[Read, Write]", "[]", "9: operations is empty"),
        ('name: "*"', "name: 2024", '10: name is 2024, which is no text to Kubernetes: expected "2024"'),
        ('name: "*"', "name: a, patternType: prefix", "10: patternType 'prefix' is not one of literal, prefixed"),
        ("type: topic", "type: cluster", "10: a cluster has no name"),
        ("      operations", "      host: 10.0\n      operations", "11: host is 10.0, which is no text"),
        ("    acls:", "    type: opa\n    acls:", "8: authorization of the type 'opa'"),
        ("  authorization:", "  authorisation:", "7: the spec of a User has an unknown key 'authorisation'"),
    ],
)
def test_what_the_operator_refuses(tmp_path: Path, old: str, new: str, what: str) -> None:
    assert message(tmp_path, USER.replace(old, new, 1)).startswith(what)


def test_one_resource_twice_is_refused(tmp_path: Path) -> None:
    assert "User travis is in" in message(tmp_path, f"{USER}---\n{USER}")


_NAMES = st.sampled_from(["a", "a-b", "x.y", "*", "ü", "0"])
_RULE = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["allow", "deny"]),
        "resource": st.one_of(
            st.just({"type": "cluster"}),
            st.fixed_dictionaries(
                {"type": st.sampled_from(["topic", "group", "transactionalId"]), "name": _NAMES},
                optional={"patternType": st.sampled_from(["literal", "prefixed"])},
            ),
        ),
        "operations": st.lists(st.sampled_from(["Read", "Write", "Describe", "AlterConfigs"]), min_size=1, unique=True),
    },
    optional={"host": st.sampled_from(["*", "10.0.0.1", "::1"])},
)


def expanded(name: str, acls: list[dict]) -> set[str]:  # type: ignore[type-arg]
    """Return the rules as a reader of the operator's types makes them, written apart from aclog's."""
    words = {"Read": "READ", "Write": "WRITE", "Describe": "DESCRIBE", "AlterConfigs": "ALTER_CONFIGS"}
    kinds = {"topic": "TOPIC", "group": "GROUP", "transactionalId": "TRANSACTIONAL_ID", "cluster": "CLUSTER"}
    result = set()
    for acl, operation in ((each, operation) for each in acls for operation in each["operations"]):
        resource = acl["resource"]
        star = "*" if resource.get("patternType") == "prefixed" else ""
        host = acl.get("host", "*")
        result.add(
            f"{acl['type'].upper()} {words[operation]} {kinds[resource['type']]} "
            f"{resource.get('name', 'kafka-cluster')}{star} to User:{name}{'' if host == '*' else f' from {host}'}"
        )
    return result


@settings(max_examples=examples(200))
@given(acls=st.lists(_RULE, max_size=4), flow=st.booleans())
def test_it_is_as_an_independent_expander(tmp_path_factory, acls, flow) -> None:
    directory = tmp_path_factory.mktemp("users")
    spec = {"cluster": {}, "authorization": {"acls": acls}}
    user = {"apiVersion": "cluster.redpanda.com/v1alpha2", "kind": "User", "metadata": {"name": "u"}, "spec": spec}
    name = "u.json" if flow else "u.yaml"
    found = read_rules(write_files(directory, {name: json.dumps(user, indent=None if flow else 1)}))
    assert set(found.rules) == expanded("u", acls)
