"""KafkaUser resources of Strimzi: the ACLs that its User Operator makes, what is counted, and what is refused."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.choice import AclsSource
from tests.support.sources.files_of_rules import read_rules, refused, write_files

_USERS = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: alice, namespace: kafka, labels: {strimzi.io/cluster: main}}
spec:
  authentication: {type: scram-sha-512}
  authorization:
    type: simple
    acls:
      - resource: {type: topic, name: orders.}
        operation: Read
      - resource:
          type: topic
          name: orders.
          patternType: prefix
        operations:
          - Describe
          - AlterConfigs
      - resource: {type: group, name: '*', patternType: literal}
        type: deny
        host: 10.0.0.1
        operations: [All, Delete]
  quotas: {producerByteRate: 1}
---
apiVersion: v1
kind: List
items:
- apiVersion: kafka.strimzi.io/v1
  kind: KafkaUser
  metadata: {name: bob}
  spec:
    authentication: {type: tls}
    authorization:
      type: simple
      acls:
      - resource: {type: cluster, name: whatever, patternType: prefix}
        operations: [IdempotentWrite]
- kind: KafkaUserList
  items:
  - apiVersion: kafka.strimzi.io/v1
    kind: KafkaUser
    metadata: {name: "007"}
    spec:
      authentication: {type: tls-external}
      authorization:
        type: simple
        acls:
        - resource: {type: transactionalId, name: tx}
          operations: [Write]
  - apiVersion: kafka.strimzi.io/v1
    kind: KafkaUser
    metadata: {name: carol}
    spec:
      authorization:
        type: simple
        acls:
        - resource: {type: topic, name: orders.}
          operations: [Write]
  - apiVersion: kafka.strimzi.io/v1
    kind: KafkaUser
    metadata: {name: dave}
    spec: {authentication: {type: scram-sha-512}}
- apiVersion: kafka.strimzi.io/v1
  kind: Kafka
  spec:
    kafka:
      authorization: {type: simple, superUsers: [User:root, CN=x]}
- {apiVersion: kafka.strimzi.io/v1, kind: Kafka, spec: {kafka: {authorization: {type: keycloak}}}}
- {apiVersion: kafka.strimzi.io/v1, kind: KafkaTopic, metadata: {name: t}}
- {apiVersion: v1, kind: Secret}
---
nothing: here
"""


def test_users_and_what_is_beside_them(tmp_path: Path) -> None:
    found = read_rules(write_files(tmp_path, {"users.yaml": _USERS}) / "users.yaml")
    assert found.rules == {
        "ALLOW READ TOPIC orders. to User:alice": [10],
        "ALLOW DESCRIBE TOPIC orders.* to User:alice": [16],
        "ALLOW ALTER_CONFIGS TOPIC orders.* to User:alice": [17],
        "DENY ALL GROUP * to User:alice from 10.0.0.1": [21],
        "DENY DELETE GROUP * to User:alice from 10.0.0.1": [21],
        "ALLOW IDEMPOTENT_WRITE CLUSTER kafka-cluster to User:CN=bob": [36],
        "ALLOW WRITE TRANSACTIONAL_ID tx to User:CN=007": [48],
        "ALLOW WRITE TOPIC orders. to User:carol": [57],
    }
    assert found.ignored == {
        "Kafka": 2,
        "KafkaTopic": 1,
        "Secret": 1,
        "authorization of a Kafka by keycloak": 1,
        "document without a kind": 1,
        "super user of a Kafka": 2,
    }


_USER = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata:
  name: alice
spec:
  authentication:
    type: scram-sha-512
  authorization:
    type: simple
    acls:
      - resource:
          type: topic
          name: t
        operations: [Read]
"""


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (
            "io/v1",
            "io/v1alpha1",
            "1: KafkaUser of apiVersion kafka.strimzi.io/v1alpha1: expected kafka.strimzi.io/v1 or",
        ),
        ("apiVersion: kafka.strimzi.io/v1\n", "", "1: KafkaUser of apiVersion missing"),
        ("  name: alice", "  nam: alice", "3: metadata has no name"),
        ("metadata:\n  name: alice", "metadata:", "1: KafkaUser has no metadata"),
        ("spec:", "specs:", "5: KafkaUser has an unknown key 'specs': did you mean spec?"),
        ("  authorization:", "  authorisation:", "8: the spec of a KafkaUser has an unknown key 'authorisation'"),
        ("scram-sha-512", "oauth", "7: authentication of the type 'oauth': expected scram-sha-512, tls or"),
        ("    type: scram-sha-512", "    typ: tls", "6: authentication has no type"),
        ("simple", "opa", "9: authorization of the type 'opa': expected simple"),
        ("    acls:", "    rules:", "10: authorization has an unknown key 'rules': expected type, acls"),
        ("type: topic", "type: Topic", "12: type 'Topic' is not one of topic, group, cluster, transactionalId"),
        ("type: topic", "type: delegationToken", "12: type 'delegationToken' is not one of"),
        ("name: t\n", "\n", "11: a resource of the type topic has no name"),
        ("name: t\n", "name: ''\n", "14: no Kafka accepts this rule: Invalid empty resource name"),
        ("name: t\n", "name: t\n          patternType: prefixed\n", "14: patternType 'prefixed' is not one of"),
        ("name: t\n", "name: t\n          patterntype: prefix\n", "14: a resource has an unknown key 'patterntype'"),
        ("operations: [Read]", "operations: [READ]", "14: the operation 'READ' is not one of Read, Write,"),
        ("operations: [Read]", "operations: [null]", "14: the operation is null"),
        ("operations: [Read]", "operations: Read", "14: operations is 'Read': expected a list"),
        ("operations: [Read]", "operation: Read", "14: operation is a key of v1beta2: expected operations"),
        ("        operations: [Read]", "        host: h", "11: a rule of acls has no operations"),
        ("operations: [Read]", "operations: [Read]\n        type: Deny", "15: type 'Deny' is not one of allow, deny"),
        (
            "operations: [Read]",
            "operations: [Read]\n        hosts: [h]",
            "15: a rule of acls has an unknown key 'hosts'",
        ),
        ("operations: [Read]", "operations: [Read]\n        host: [h]", "15: host is a list: expected text"),
        ("kind: KafkaUser", "kind: KafkaUser\nkind: KafkaUser", "3: duplicate key 'kind'"),
        ("name: alice", "name: {{ .Values.name }}", "4: "),
    ],
)
def test_what_strimzi_or_kubernetes_refuses_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, where: str
) -> None:
    assert old in _USER
    path = write_files(tmp_path, {"user.yaml": _USER.replace(old, new)}) / "user.yaml"
    assert refused(path).startswith(f"{path}:{where}")


def test_older_versions_have_either_one_operation_or_several(tmp_path: Path) -> None:
    text = _USER.replace("io/v1", "io/v1beta2") + "        operation: Write\n"
    path = write_files(tmp_path, {"user.yaml": text}) / "user.yaml"
    assert refused(path) == f"{path}:15: operation and operations in one rule: expected one of them"


def test_a_certificate_holds_a_name_of_64_characters(tmp_path: Path) -> None:
    text = _USER.replace("scram-sha-512", "tls").replace("alice", "a" * 64)
    path = write_files(tmp_path, {"user.yaml": text}) / "user.yaml"
    assert list(read_rules(path).rules) == [f"ALLOW READ TOPIC t to User:CN={'a' * 64}"]
    path.write_text(text.replace("a" * 64, "a" * 65))
    assert refused(path) == f"{path}:1: a user with tls authentication has a name of 64 characters at most"
    path.write_text(path.read_text().replace("tls", "tls-external"))
    assert len(read_rules(path).rules) == 1


def test_two_users_of_a_name_in_two_files_are_refused_and_in_two_namespaces_are_not(tmp_path: Path) -> None:
    other = _USER.replace("  name: alice", "  name: alice\n  namespace: test").replace("name: t\n", "name: u\n")
    write_files(tmp_path, {"a.yaml": _USER, "b.yaml": other})
    assert len(read_rules(tmp_path).rules) == 2
    write_files(tmp_path, {"c.yaml": "---\n---\n" + other})
    assert len(read_rules(tmp_path).rules) == 2, "an equal one is the same"
    write_files(tmp_path, {"c.yaml": "---\n---\n" + other.replace("name: u", "name: v")})
    assert refused(tmp_path) == (
        f"{tmp_path}/c.yaml:3: KafkaUser alice is in {tmp_path}/b.yaml:1 already, and differs: one would replace the "
        "other in a cluster"
    )


def test_rules_of_other_tools_are_not_dropped_from_the_same_file(tmp_path: Path) -> None:
    text = _USER + "---\nkind: KafkaPrincipalAuthorization\napiVersion: kafka.jikkou.io/v1beta2\n"
    path = write_files(tmp_path, {"user.yaml": text}) / "user.yaml"
    assert refused(path) == f"{path}:16: a KafkaPrincipalAuthorization beside a KafkaUser: move it to a separate file"


def test_kafka_users_of_others_are_none(tmp_path: Path) -> None:
    files = {
        "strimzi.yaml": _USER,
        "other.yaml": "apiVersion: kafka.banzaicloud.io/v1alpha1\nkind: KafkaUser\nmetadata: {name: x}\n",
        "topic.yaml": "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\n",
    }
    found = read_rules(write_files(tmp_path, files))
    assert (len(found.rules), found.ignored) == (1, {"KafkaUser": 1, "KafkaTopic": 1})


def test_what_a_kafka_says_of_access_is_counted_wherever_it_stands(tmp_path: Path) -> None:
    spec = "{kafka: {authorization: {type: opa, superUsers: [CN=x]}}}"
    kafka = f"apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nspec: {spec}\n"
    files = {"user.yaml": _USER, "kafka.yaml": kafka, "chart.yaml": "kind: Kafka\nspec: {{ .Values }}{"}
    found = read_rules(write_files(tmp_path, files))
    assert found.ignored == {
        "Kafka": 1,
        "authorization of a Kafka by opa": 1,
        "super user of a Kafka": 1,
        "template": 1,
    }


_TYPES = {ResourceType.TOPIC: "topic", ResourceType.GROUP: "group", ResourceType.TRANSACTIONAL_ID: "transactionalId"}
_ACLS = st.builds(
    StandardAcl,
    resource_type=st.sampled_from(sorted(_TYPES)),
    resource_name=st.text(min_size=1),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(["User:a", "User:CN=b", "User:true"]),
    host=st.text(min_size=1),
    operation=st.sampled_from([each for each in AclOperation if AclOperation.ANY < each < AclOperation.CREATE_TOKENS]),
    permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)


def _user(principal: str, acls: list[StandardAcl]) -> dict[str, object]:
    rules = [
        {
            "resource": {
                "type": _TYPES[ResourceType(acl.resource_type)],
                "name": acl.resource_name,
                "patternType": "prefix" if acl.pattern_type == PatternType.PREFIXED else "literal",
            },
            "host": acl.host,
            "operations": [AclOperation(acl.operation).name.title().replace("_", "")],
            "type": AclPermissionType(acl.permission_type).name.lower(),
        }
        for acl in acls
        if acl.principal == principal
    ]
    name = principal.removeprefix("User:")
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaUser",
        "metadata": {"name": name.removeprefix("CN=")},
        "spec": {
            "authentication": {"type": "tls" if name.startswith("CN=") else "scram-sha-512"},
            "authorization": {"type": "simple", "acls": rules},
        },
    }


@given(st.lists(_ACLS, max_size=5))
def test_whatever_users_say_is_read_exactly(tmp_path_factory: pytest.TempPathFactory, acls: list[StandardAcl]) -> None:
    path = tmp_path_factory.getbasetemp() / "users.yaml"
    users = [_user(principal, acls) for principal in ("User:a", "User:CN=b", "User:true")]
    path.write_text(yaml.safe_dump_all(users), encoding="utf-8")
    assert {rule.acl for rule in AclsSource(str(path)).image().acls} == set(acls)


KUBERNETES = """apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: NAME}
spec:
  authorization: {type: simple, acls: [{resource: {type: topic, name: TOPIC}, host: HOST, operations: [Read]}]}
"""


@pytest.mark.parametrize(
    "scalar",
    ["2024", "10.0", "007", "08", "0x1F", "0o17", "1e3", "1.", "true", "no", "on", "y", "1_000", ".5", "-1", ".inf"],
)
@pytest.mark.parametrize("where", ["NAME", "TOPIC", "HOST"])
def test_a_number_is_no_text_to_kubernetes(tmp_path: Path, scalar: str, where: str) -> None:
    values = {"NAME": "a", "TOPIC": "t", "HOST": "'*'", where: scalar}
    text = KUBERNETES
    for key, value in values.items():
        text = text.replace(key, value)
    line = 3 if where == "NAME" else 5
    told = refused(write_files(tmp_path, {"user.yaml": text}))
    assert told.startswith(f"{tmp_path}/user.yaml:{line}: ")
    assert "which is no text to Kubernetes: expected" in told
    quoted = text.replace(f": {scalar}", f': "{scalar}"')
    assert len(read_rules(write_files(tmp_path, {"user.yaml": quoted})).rules) == 1


@pytest.mark.parametrize(
    "scalar", ["a2024", "10.0.0.1", "v1.2", "nope", "~a", "1.2.3", "2024-a", "0o", "12:30", "1:30.5"]
)
def test_a_text_needs_no_quotes(tmp_path: Path, scalar: str) -> None:
    text = KUBERNETES.replace("NAME", "a").replace("TOPIC", scalar).replace("HOST", "10.0.0.1")
    found = read_rules(write_files(tmp_path, {"user.yaml": text}))
    assert set(found.rules) == {f"ALLOW READ TOPIC {scalar} to User:a from 10.0.0.1"}


def test_users_of_old_versions_beside_others_are_unread(tmp_path: Path) -> None:
    user = "apiVersion: kafka.strimzi.io/%s\nkind: KafkaUser\nmetadata: {name: %s}\n"
    user += "spec: {authorization: {type: simple, acls: []}}\n"
    new = user.replace("acls: []", "acls: [{resource: {type: topic, name: t}, operations: [Read]}]") % ("v1", "new")
    write_files(tmp_path, {"a.yaml": new, "b.yaml": user % ("v1beta1", "old"), "c.yaml": user % ("v1alpha1", "older")})
    found = read_rules(tmp_path)
    assert list(found.rules) == ["ALLOW READ TOPIC t to User:new"]
    assert [(Path(each.file).name, each.label) for each in found.unread] == [
        ("b.yaml", "resource:KafkaUser"),
        ("c.yaml", "resource:KafkaUser"),
    ]
    assert "apiVersion kafka.strimzi.io/v1beta1: expected" in refused(tmp_path / "b.yaml")
    assert "apiVersion kafka.strimzi.io/v1beta1: expected" in refused(tmp_path, strict=True)
