"""Users of Kubernetes inside of Terraform's resources, and the ACLs of further providers."""

from pathlib import Path

import pytest

from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.reading import read_tree
from aclog.sources.formats.rule import DirectoryTree, ReadContext
from tests.support.sources.files_of_rules import read_rules, refused, write_files

USER = """{
    apiVersion = "kafka.strimzi.io/v1beta2"
    kind       = "KafkaUser"
    metadata   = { name = NAME, labels = { "strimzi.io/cluster" = "c" } }
    spec = {
      authentication = { type = "scram-sha-512" }
      authorization = { type = "simple", acls = [{ resource = { type = "topic", name = "*" }, operations = ["All"] }] }
    }
  }"""
OBJECT = USER.replace("NAME", '"app"')
YAML = """apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: ${NAME}}
spec:
  authorization: {type: simple, acls: [{resource: {type: topic, name: "*"}, operations: [All]}]}
"""


def manifest(name: str = '"app"', more: str = "") -> str:
    return f'resource "kubernetes_manifest" "u" {{\n  {more}\n  manifest = {USER.replace("NAME", name)}\n}}\n'


def body(name: str = '"app"', kind: str = "kubectl_manifest") -> str:
    indented = "".join(f"    {line}\n" for line in YAML.replace("NAME", name).splitlines())
    return f'resource "{kind}" "u" {{\n  yaml_body = <<-EOF\n{indented}  EOF\n}}\n'


_EACH = """locals {
  y = [%s]
}
resource "kubectl_manifest" "u" {
  for_each  = { for u in local.y : u.kind => u }
  yaml_body = yamlencode(each.value)
}
"""
ALL = "ALLOW ALL TOPIC * to User:app"


@pytest.mark.parametrize(
    "text",
    [
        manifest(),
        manifest("var.name", "").replace("resource", 'variable "name" { default = "app" }\nresource', 1),
        manifest("each.key", 'for_each = toset(["app"])'),
        manifest('"ap${count.index}"', "count = 1").replace("ap${count.index}", '${["app"][count.index]}'),
        f'resource "kubernetes_manifest" "u" {{\n  manifest = yamldecode(jsonencode({OBJECT}))\n}}\n',
        body(),
        body('"a${"pp"}"'),
        body(kind="kubectl_server_side_manifest"),
        f'locals {{\n  y = jsonencode({OBJECT})\n}}\nresource "kubectl_manifest" "u" {{ yaml_body = local.y }}\n',
        f'resource "k8s_manifest" "u" {{\n  content = jsonencode({OBJECT})\n}}\n',
        'module "m" { source = "./m" }\n',
        f'resource "kubectl_manifest" "u" {{\n  yaml_body = yamlencode({OBJECT})\n}}\n',
        f'locals {{\n  y = {OBJECT}\n}}\nresource "kubectl_manifest" "u" {{ yaml_body = yamlencode(local.y) }}\n',
        _EACH % OBJECT,
        f'resource "kubectl_manifest" "u" {{\n  yaml_body = yamlencode(merge({OBJECT}, {{}}))\n}}\n',
    ],
)
def test_a_user_in_a_manifest(tmp_path: Path, text: str) -> None:
    inner = {"m/main.tf": manifest()} if "module" in text else {}
    found = read_rules(write_files(tmp_path, {"main.tf": text, **inner}))
    assert set(found.rules) == {ALL}
    assert found.ignored == {}


def test_a_redpanda_user_and_role_in_a_manifest(tmp_path: Path) -> None:
    rule = '[{ type = "allow", resource = { type = "topic", name = "t" }, operations = ["Read"] }]'
    text = "".join(
        f"""resource "kubernetes_manifest" "{kind}" {{
  manifest = {{ apiVersion = "cluster.redpanda.com/v1alpha2", kind = "{kind}", metadata = {{ name = "x" }},
    spec = {{ cluster = {{}}, authorization = {{ acls = {rule} }} }} }}
}}
"""
        for kind in ("User", "RedpandaRole")
    )
    found = read_rules(write_files(tmp_path, {"main.tf": text}))
    assert set(found.rules) == {"ALLOW READ TOPIC t to User:x", "ALLOW READ TOPIC t to RedpandaRole:x"}


def test_a_name_that_is_known_after_apply_is_a_symbol(tmp_path: Path) -> None:
    found = read_rules(
        write_files(tmp_path, {"main.tf": 'resource "random_id" "r" {}\n' + manifest("random_id.r.hex")})
    )
    [text] = found.rules
    assert text.replace("\ufdd0", "") == "ALLOW ALL TOPIC * to User:${random_id.r.hex}"


def test_other_resources_are_counted_and_unknown_ones_unread(tmp_path: Path) -> None:
    service = """resource "kubernetes_manifest" "s" {
  manifest = { apiVersion = "v1", kind = "Service", metadata = { name = "s" } }
}
"""
    found = read_rules(write_files(tmp_path, {"main.tf": service + manifest()}))
    assert found.ignored == {"Service": 1}
    dark = 'data "http" "x" {}\nresource "kubectl_manifest" "u" { yaml_body = data.http.x.body }\n'
    for text in (dark, f'resource "kubectl_manifest" "u" {{\n  yaml_body = format("%s", yamlencode({OBJECT}))\n}}\n'):
        directory = write_files(tmp_path / "dark", {"main.tf": text + manifest()})
        tree = read_tree(ReadContext(tree=DirectoryTree(str(directory))), AclsFormat.AUTO)
        assert [each.label for each in tree.unread] == ["terraform:kubectl_manifest"]
        assert len(tree.stated) == 1


SPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: s}\n"
OF_NO_FORMAT = YAML.replace("${NAME}", "app").replace("kafka.strimzi.io/v1beta2", "example.com/v1")
FIRST_AND_SECOND = f"locals {{\n  y = [<<-A\n{SPACE}A\n  , <<-B\n{OF_NO_FORMAT}B\n  ]\n}}\n"
LABEL = "resource:KafkaUser"


@pytest.mark.parametrize(
    ("text", "labels", "ignored"),
    [
        (f'resource "kubectl_manifest" "u" {{\n  yaml_body = <<-E\n{SPACE}---\n{OF_NO_FORMAT}E\n}}\n', [LABEL], 1),
        (
            FIRST_AND_SECOND
            + 'resource "kubectl_manifest" "u" {\n  count = 2\n  yaml_body = local.y[count.index]\n}\n',
            [LABEL],
            1,
        ),
        (
            FIRST_AND_SECOND + 'resource "kubectl_manifest" "u" {\n  count = 4\n  yaml_body = local.y[1]\n}\n',
            [LABEL],
            None,
        ),
        (
            FIRST_AND_SECOND + 'data "http" "x" {}\nresource "kubectl_manifest" "u" {\n  count = 2\n  '
            "yaml_body = count.index == 0 ? local.y[0] : data.http.x.body\n}\n",
            ["terraform:kubectl_manifest"],
            1,
        ),
    ],
    ids=["documents", "instances", "equal instances", "an instance that is unknown"],
)
def test_each_document_of_each_instance_is_judged_once(
    tmp_path: Path, text: str, labels: list[str], ignored: int | None
) -> None:
    found = read_rules(write_files(tmp_path, {"main.tf": text + manifest()}))
    assert [each.label for each in found.unread] == labels
    assert found.ignored.get("Namespace") == ignored
    assert set(found.rules) == {ALL}


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('["All"]', '["all"]', "main.tf:3: the operation 'all' is not one of"),
        ('type = "simple"', 'type = "opa"', "main.tf:3: authorization of the type 'opa'"),
        ("v1beta2", "v0", "main.tf:3: KafkaUser of apiVersion"),
        ('"app"', "2024", 'main.tf:3: metadata.name is 2024, which is no text to Kubernetes: expected "2024"'),
        ('name = "*"', "name = 10.5", "main.tf:3: name is 10.5, which is no text to Kubernetes"),
    ],
)
def test_what_strimzi_refuses(tmp_path: Path, old: str, new: str, what: str) -> None:
    told = refused(write_files(tmp_path, {"main.tf": manifest().replace(old, new)}))
    assert told.removeprefix(f"{tmp_path}/").startswith(what)


# ACLs of further providers


def acl(kind: str, **changed: str) -> str:
    words = {
        "resource_type": "TOPIC", "resource_name": "*", "resource_pattern_type": "LITERAL", "principal": "User:*",
        "host": "*", "operation": "ALL", "permission_type": "ALLOW", "cluster_api_url": "https://x", **changed,
    }  # fmt: skip
    return (
        f'resource "{kind}" "b" {{\n'
        + "".join(f'  {key} = "{value}"\n' for key, value in words.items() if value)
        + "}\n"
    )


@pytest.mark.parametrize("kind", ["redpanda_acl", "confluentacl_acl"])
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "ALLOW ALL TOPIC * to User:*"),
        ({"resource_pattern_type": "PREFIXED", "resource_name": "a-"}, "ALLOW ALL TOPIC a-* to User:*"),
        ({"principal": "RedpandaRole:admin"}, "ALLOW ALL TOPIC * to RedpandaRole:admin"),
        ({"permission_type": "DENY", "host": "10.0.0.1"}, "DENY ALL TOPIC * to User:* from 10.0.0.1"),
        ({"resource_type": "GROUP", "operation": "READ"}, "ALLOW READ GROUP * to User:*"),
        ({"resource_type": "CLUSTER", "resource_name": "kafka-cluster"}, "ALLOW ALL CLUSTER kafka-cluster to User:*"),
        ({"resource_type": "TRANSACTIONAL_ID", "resource_name": "t"}, "ALLOW ALL TRANSACTIONAL_ID t to User:*"),
        ({"operation": "DESCRIBE_CONFIGS"}, "ALLOW DESCRIBE_CONFIGS TOPIC * to User:*"),
        ({"operation": "IDEMPOTENT_WRITE"}, "ALLOW IDEMPOTENT_WRITE TOPIC * to User:*"),
        ({"principal": "User:${redpanda_user.u.id}"}, "ALLOW ALL TOPIC * to User:${redpanda_user.u.id}"),
    ],
)
def test_acls_of_further_providers(tmp_path: Path, kind: str, changed: dict[str, str], expected: str) -> None:
    text = acl(kind, **changed) + 'resource "redpanda_user" "u" { name = "u" }\n'
    found = read_rules(write_files(tmp_path, {"main.tf": text}))
    assert [each.replace("\ufdd0", "") for each in found.rules] == [expected]


@pytest.mark.parametrize("kind", ["redpanda_acl", "confluentacl_acl"])
@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"resource_pattern_type": ""}, "main.tf:1: resource_pattern_type is missing"),
        ({"resource_pattern_type": "MATCH"}, "main.tf:4: resource_pattern_type 'MATCH' is not one of"),
        ({"operation": "Read"}, "main.tf:7: operation 'Read' is not one of"),
        ({"principal": "app"}, "no Kafka accepts this rule"),
        ({"color": "red"}, "main.tf:10: "),
    ],
)
def test_what_further_providers_refuse(tmp_path: Path, kind: str, changed: dict[str, str], what: str) -> None:
    assert what in refused(write_files(tmp_path, {"main.tf": acl(kind, **changed)}))


@pytest.mark.parametrize(
    "value",
    [
        "yamlencode(var.x)",
        'yamlencode({ kind = "KafkaUser", spec = data.http.x.body })',
        'join("", [yamlencode({ a = 1 }), var.x])',
        "data.http.x.body",
        'file("missing.yaml")',
        "var.x",
    ],
)
def test_a_manifest_that_is_not_known_is_unread(tmp_path: Path, value: str) -> None:
    data = 'data "http" "x" { url = "https://example.com" }\n'
    text = f'variable "x" {{}}\n{data}resource "kubectl_manifest" "u" {{\n  yaml_body = {value}\n}}\n'
    found = read_rules(write_files(tmp_path, {"main.tf": text}))
    assert not found.rules
    assert [each.label for each in found.unread] in (["terraform:kubectl_manifest"], ["resource:KafkaUser"])
