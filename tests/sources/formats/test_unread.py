"""The three verdicts on content: rules, known to hold none, and unread; each kind in many spellings."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.sources.choice import UNREAD, AclsSource, not_accepted, parse_accepted
from aclog.sources.formats.unread import UnreadKind
from aclog.sources.formats.verdicts import rule_in_text
from aclog.sources.read_options import ReadOptions
from tests.support.runs.profiles import examples
from tests.support.sources.files_of_rules import ONE_RULE, read_rules, refused, unread, write_files

USER = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: app, labels: {strimzi.io/cluster: c}}
spec:
  authorization: {type: simple, acls: [{resource: {type: topic, name: orders}, operations: [Read]}]}
"""
READ = "ALLOW READ TOPIC orders to User:app"


def _indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


# Resources of Terraform.


_PARTS = 'resource_name = "*"\n  principal = "User:*"\n  operation = "ALL"'
_RESOURCES = {
    "rhoas_acl": _PARTS,
    "warpstream_acl": 'host = "*"',
    "warpstream_virtual_cluster_credentials": "cluster_superuser = true",
    "aws_msk_acl": 'arn = "a"',
    "digitalocean_database_user": """name = "a"
  settings {
    acl {
      topic = "*"
    }
  }""",
    "yandex_mdb_kafka_user": 'name = "a"\n  permission {\n    topic_name = "*"\n    role = "ACCESS_ROLE_PRODUCER"\n  }',
    "yandex_mdb_kafka_cluster": 'user {\n    name = "a"\n  }',
    "huaweicloud_dms_kafka_permissions": 'topic_name = "*"\n  policies {\n    access_policy = "all"\n  }',
    "huaweicloud_dms_kafka_user": 'name = "a"',
    "aiven_kafka_acl": 'topic = "*"',
    "aiven_kafka_native_acl": 'principal = "User:*"',
    "automq_kafka_acl": "",
    "ovh_cloud_project_database_kafka_acl": 'topic = "*"',
    "example_grant": _PARTS,
    "example_access_grant": 'topic = x.id\n  access_type = "PRODUCER"',
    "example_access": 'dynamic "acl" {\n    for_each = var.x\n    content {\n      name = acl.value\n    }\n  }',
    "example_thing": 'rules = [{ topic = "*", operations = ["Read"] }]',
    "helm_release": "values = [file(var.values)]",
    "kubernetes_manifest": "manifest = yamldecode(var.manifest)",
    "kubectl_manifest": "yaml_body = each.value",
    "kubectl_server_side_manifest": "yaml_body = each.value",
}


@pytest.mark.parametrize(("kind", "body"), _RESOURCES.items(), ids=lambda value: value.split("\n")[0][:30])
def test_a_resource_of_another_provider_is_unread(tmp_path: Path, kind: str, body: str) -> None:
    variables = "".join(f'variable "{name}" {{}}\n' for name in ("x", "values", "manifest"))
    assert unread(tmp_path, {"b.tf": f'\nresource "{kind}" "a" {{\n  {body}\n}}\n{variables}'}) == [
        f"b.tf:2 terraform:{kind}"
    ]


_TEXTS = {
    "local_file": f"content = <<-EOT\n{USER}EOT\n",
    "github_repository_file": 'content = yamlencode({\n    kind = "KafkaUser"\n    spec = { x = 1 }\n  })',
    "aws_s3_bucket_object": 'content = templatefile("x", { rules = [{ principal = "User:a", operation = "Read" }] })',
    "local_sensitive_file": 'content = format("%s\\n", jsonencode([{ topic = "x", permission = var.x }]))\n',
    "aws_s3_object": f"content = <<EOT\n{USER}EOT\n",
    "null_resource": 'provisioner "local-exec" {\n    command = "kafka-acls --add --allow-principal User:a"\n  }',
    "terraform_data": 'provisioner "local-exec" {\n    command = join(" ", ["kafka-acls", "--add", "x"])\n  }',
    "kubernetes_job": 'spec {\n    container {\n      command = ["kafka-acls", "--add", "--topic", "x"]\n    }\n  }',
    "aws_instance": "user_data = <<-EOT\nkafka-acls.sh --bootstrap-server b:9092 \\\n  --add --topic x\nEOT\n",
    "kubernetes_config_map": f"data = {{\n    x = <<-EOT\n{USER}EOT\n  }}",
    "helm_release": 'values = [jsonencode({ acls = [{ name = "x" }] })]',
}


@pytest.mark.parametrize(("kind", "body"), _TEXTS.items(), ids=lambda value: value.split("\n")[0][:30])
def test_text_with_rules_inside_of_a_resource_is_unread(tmp_path: Path, kind: str, body: str) -> None:
    (found,) = unread(tmp_path, {"b.tf": f'resource "{kind}" "a" {{\n  {body}\n}}\n'})
    assert found in {f"b.tf:1 embedded:{kind}", f"b.tf:1 terraform:{kind}"}


_NONE = {
    "aws_s3_bucket_acl": 'acl = "private"',
    "aws_msk_cluster": "number_of_broker_nodes = 3",
    "aws_network_acl": 'egress {\n    action = "allow"\n  }',
    "aws_ssm_parameter": 'value = jsonencode({ topics = ["x"], size = 3 })',
    "aws_iam_policy": 'policy = jsonencode({ Statement = [{ Principal = "*", Action = "kafka-cluster:*" }] })',
    "google_project_iam_member": 'role = "roles/owner"\n  member = "user:a"',
    "random_password": "length = 16",
    "null_resource": 'provisioner "local-exec" {\n    command = "kafka-topics --create --topic x"\n  }',
    "kafka_topic": 'name = "x"',
    "confluent_kafka_topic": 'topic_name = "x"',
    "kubernetes_namespace": 'metadata {\n    name = "x"\n  }',
    "kubernetes_manifest": 'manifest = { apiVersion = "v1", kind = "Service", metadata = { name = "x" } }',
    "example_widget": 'colour = "red"\n  size = var.x',
}


@pytest.mark.parametrize(("kind", "body"), _NONE.items(), ids=lambda value: value.split("\n")[0][:30])
def test_a_resource_that_makes_no_rule_is_counted(tmp_path: Path, kind: str, body: str) -> None:
    write_files(tmp_path, {"b.tf": f'resource "{kind}" "a" {{\n  {body}\n}}\nvariable "x" {{}}\n', "z.jsonl": ONE_RULE})
    found = read_rules(tmp_path)
    assert (found.unread, found.ignored) == ([], {"Service" if kind == "kubernetes_manifest" else kind: 1})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('resource "kafka_acl" "a" {\n', "broken"),
        ('resource "kafka_acl" "{{ name }}" {\n  x = \n}\n', "broken"),
        ('variable "a" {}\nvariable "a" {}\nlocals { acls = [] }\n', "broken"),
        ('resource "aws_vpc" "a" {\n', None),
        ("{{ if .x }}\n{{ end }}\n", None),
        ('thing "a" {}\n', None),
    ],
)
def test_a_broken_module_stops_no_other_one(tmp_path: Path, text: str, kind: str | None) -> None:
    good = (
        'resource "kafka_acl" "a" {\n  resource_name = "orders"\n  resource_type = "Topic"\n'
        '  acl_principal = "User:app"\n  acl_host = "*"\n  acl_operation = "Read"\n'
        '  acl_permission_type = "Allow"\n}\n'
    )
    found = read_rules(write_files(tmp_path, {"good/main.tf": good, "bad/main.tf": text}))
    assert list(found.rules) == [READ]
    assert [each.kind for each in found.unread] == ([] if kind is None else [kind])
    assert refused(tmp_path / "bad").startswith(f"{tmp_path}/bad/main.tf:")


def test_resources_of_a_plan_and_of_a_state_have_the_same_verdicts(tmp_path: Path) -> None:
    kinds = {"rhoas_acl": {"name": "x"}, "example_grant": {"principal": "User:a", "operation": "ALL"}, "aws_vpc": {}}
    resources = [
        {"address": f"{kind}.a", "mode": "managed", "type": kind, "values": values} for kind, values in kinds.items()
    ]
    plan = {"format_version": "1.2", "planned_values": {"root_module": {"resources": resources}}}
    instances = [
        {"mode": "managed", "type": kind, "name": "a", "instances": [{"attributes": values}]}
        for kind, values in kinds.items()
    ]
    state = {"version": 4, "lineage": "x", "terraform_version": "1.9", "resources": instances}
    for name, content in (("p.json", plan), ("s.tfstate", state)):
        found = unread(tmp_path, {name: json.dumps(content)})
        assert found == [f"{name}:1 terraform:rhoas_acl", f"{name}:1 terraform:example_grant"]
        (tmp_path / name).unlink()


# Resources in Kubernetes' manner.


_SPEC = "spec: {acls: [{resource: {type: topic, name: x}, operations: [Read]}]}\n"
_UNKNOWN = {
    "User": "apiVersion: example.redpanda.io/v1\nkind: User\n" + _SPEC,
    "RedpandaRole": "apiVersion: example.redpanda.io/v1\nkind: RedpandaRole\nspec: {principals: [User:a]}\n",
    "KafkaUser": "apiVersion: example.io/v1\nkind: KafkaUser\nspec: {roles: [reader]}\n",
    "kafkauser": "apiVersion: kafka.strimzi.io/v1\nkind: kafkauser\n" + _SPEC,
    "KafkaNativeACL": "apiVersion: aiven.io/v1alpha1\nkind: KafkaNativeACL\nspec: {x: y}\n",
    "KafkaACL": "apiVersion: aiven.io/v1alpha1\nkind: KafkaACL\nspec: {topic: x, permission: read}\n",
    "Grant": "apiVersion: example.io/v1\nkind: Grant\nspec: {principal: User:a, operations: [WRITE]}\n",
    "Access": "apiVersion: example.io/v1\nkind: Access\nspec: {topics: [x], access: read}\n",
    "HelmRelease": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {values: {acls: [{topic: x}]}}\n",
    "Tenant": "apiVersion: example.io/v1\nkind: Tenant\nspec: {kafkaAcls: {a: [x]}}\n",
}


@pytest.mark.parametrize(("kind", "text"), _UNKNOWN.items(), ids=lambda value: value.split("\n")[0])
def test_a_resource_of_an_unknown_kind_with_keys_of_a_rule_is_unread(tmp_path: Path, kind: str, text: str) -> None:
    (found,) = unread(tmp_path, {"b.yaml": f"---\n{text}"})
    assert found.endswith(f" resource:{kind}")


def _config_map(text: str, kind: str = "ConfigMap", key: str = "data") -> str:
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n{key}:\n  user.yaml: |\n{_indented(text, 4)}"


_COMMAND = "kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal 'User:*' --operation All --topic '*'"
_HOLDERS = {
    "ConfigMap": _config_map(USER),
    "ConfigMap with text of Helm": _config_map("{{- range .Values.users }}\n" + USER + "{{ end }}"),
    "ConfigMap with a script": _config_map(f"#!/bin/sh\n{_COMMAND}\n"),
    "ConfigMap with CSV": _config_map("acls:\n- a,b\n"),
    "Secret": _config_map(USER, "Secret", "stringData"),
    "Secret in base64": f"apiVersion: v1\nkind: Secret\ndata: {{x: {base64.b64encode(USER.encode()).decode()}}}\n",
    "CronJob": f'apiVersion: batch/v1\nkind: CronJob\nspec: {{args: ["-c", "{_COMMAND}"]}}\n',
    "Job": f"apiVersion: batch/v1\nkind: Job\nspec:\n  args:\n  - |\n    set -e\n    {_COMMAND}\n",
    "Deployment": f'apiVersion: apps/v1\nkind: Deployment\nspec: {{command: ["{_COMMAND}"]}}\n',
    "Job of words": "apiVersion: batch/v1\nkind: Job\nspec: {command: [kafka-acls, --add, --topic, x]}\n",
    "Pod": "apiVersion: v1\nkind: Pod\nspec: {command: [bin/kafka-acls], args: [--topic, x, --add]}\n",
    "Application": f"apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  values: |\n{_indented(_SPEC, 4)}",
}


@pytest.mark.parametrize("name", _HOLDERS)
def test_text_with_rules_inside_of_a_known_resource_is_unread(tmp_path: Path, name: str) -> None:
    (found,) = unread(tmp_path, {"b.yaml": _HOLDERS[name]})
    assert f" embedded:{name.partition(' ')[0]}" in found


_KNOWN = (
    "apiVersion: v1\nkind: Service\nspec: {selector: {user: kafka}}\n",
    "apiVersion: apps/v1\nkind: Deployment\nspec: {args: [kafka-topics.sh, --create]}\n",
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nrules: [{resources: [topics], operations: [ALL]}]\n",
    "apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {rules: []}\n",
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {kind: KafkaUser, acls: [{a: b}]}\n",
    "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: t}\nspec: {partitions: 3}\n",
    "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nspec: {kafka: {authorization: {type: simple}}}\n",
    "apiVersion: example.io/v1\nkind: Widget\nspec: {colour: red, users: [a], acl: {enabled: true}}\n",
    "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: {source: {path: kafka, targetRevision: main}}\n",
    'apiVersion: v1\nkind: ConfigMap\ndata: {server.properties: "authorizer.class.name=x\\nsuper.users=User:a\\n"}\n',
)


@pytest.mark.parametrize("text", _KNOWN, ids=lambda text: text.split("\n")[1])
def test_a_resource_that_is_known_to_hold_no_rule_is_counted(tmp_path: Path, text: str) -> None:
    assert unread(tmp_path, {"b.yaml": text}) == []


# Documents of other tools, in YAML and JSON.


_DOCUMENTS = (
    "resources:\n  acl:\n    type: kafka:Acl\n    properties: {aclResourceName: x, aclPrincipal: User:a}\n",
    "resources:\n  a:\n    type: confluentcloud:KafkaAcl\n    properties: {principal: User:a, operation: READ}\n",
    "resources:\n  a:\n    properties: {acl-operation: All}\n",
    "- hosts: kafka\n  tasks:\n  - example.kafka_rights: {acl_principal: User:a, acl_operation: all}\n",
    "- name: acls\n  example_kafka:\n    acls:\n    - {principal: User:b, operation: write}\n",
    "kafkaUsers:\n- name: app\n  acls:\n  - resource: {type: topic, name: x}\n    operations: [All]\n",
    "app:\n  kafka:\n    user:\n      authorization:\n        acls:\n        - topic: x\n",
    "users:\n- principal: User:a\n  permissions: [READ, WRITE]\n",
    "users:\n- name: a\n  topics: [x]\n  access: readwrite\n",
    "grants:\n- {topic: x, operations: Read, user: a}\n",
    "teams:\n  a:\n    produces: [orders]\n",
    "teams:\n  a:\n    consumers: [User:a]\n",
    "topics:\n- name: x\n  topic: x\n  permission: '{{ default_permission }}'\n",
    'acls: "${ACLS}"\n',
    "kafka_acls:\n  - &a {topic: x}\n",
)


@pytest.mark.parametrize("text", _DOCUMENTS, ids=lambda text: text.replace("\n", " ")[:40])
def test_a_document_with_keys_of_a_rule_is_unread(tmp_path: Path, text: str) -> None:
    (found,) = unread(tmp_path, {"x/values.yaml": f"# about\n{text}"})
    assert found.endswith(" document:values.yaml")


_OTHERS = {
    "compose.yaml": "services:\n  kafka: {image: apache/kafka, environment: {KAFKA_AUTHORIZER: x}}\n",
    "values.yaml": "acl: {enabled: false}\nservice: {type: ClusterIP}\nusers: [a, b]\n",
    "bucket.yaml": "acl: private\nname: x\n",
    "ci.yml": "permissions: {contents: read, id-token: write}\njobs: {a: {steps: []}}\n",
    "api.yaml": "swagger: '2.0'\npaths: {/x: {get: {produces: [application/json], consumes: [text/plain]}}}\n",
    "package.json": '{"name": "x", "scripts": {"build": "make"}, "oracle": {"x": 1}}',
    "users.yaml": "users: {bob: {groups: [wheel], shell: /bin/sh, roles: [admin]}}\n",
    "topology.yaml": "context: x\nplatform: linux\n",
    "mkdocs.yml": "site_name: x\nnav: [{Topics: topics.md}]\n",
    "settings.yaml": "settings: {services: {a: b}, topics: 3}\n",
    "prometheus.yml": "groups: [{name: kafka, rules: [{alert: X, expr: a > 1, labels: {team: a}}]}]\n",
    "role.yml": "roles: [{name: base}, {name: kafka}]\n",
    "db.yaml": "services: {db: {type: postgres, port: 1}}\n",
    "x.sh": "#!/bin/sh\nkafka-acls.sh --bootstrap-server b:9092 --list\nkafka-topics.sh --create --topic x\n",
    "x.py": "def acls():\n    return 1\n",
    "README.md": f"Run `{_COMMAND}`.\n\n    {_COMMAND}\n",
    "Makefile": "build:\n\techo acl\n",
    "acl.md.tmpl": "# ACL\n\n{{ .Description }} acls:\n",
    "logo.png": "\x89PNG\0\0acls",
    "empty.yaml": "",
}


@pytest.mark.parametrize(("name", "text"), _OTHERS.items(), ids=_OTHERS)
def test_a_file_without_a_key_of_any_format_is_counted(tmp_path: Path, name: str, text: str) -> None:
    assert unread(tmp_path, {name: text}) == []


# Scripts and programs.


_PROGRAMS = {
    "acls.sh": f"#!/bin/sh\n{_COMMAND}\n",
    "long.sh": "kafka-acls.sh \\\n  --bootstrap-server b:9092 \\\n  --topic x \\\n  --add\n",
    "run": "bin/kafka-acls --authorizer x --remove --topic a\n",
    "Makefile": "acls:\n\tdocker exec kafka kafka-acls --deny-principal User:a --operation Read --topic x\n",
    "Dockerfile": "RUN kafka-acls.sh --add --allow-principal User:a\n",
    "x.ps1": ".\\kafka-acls.bat --add --topic x\n".replace(".bat", ""),
    "rpk.sh": "rpk security acl create --allow-principal a --operation all --topic x\n",
    "old-rpk.sh": "rpk acl create --allow-principal a\n",
    "cloud.sh": "confluent kafka acl create --allow --service-account sa-1 --operations read --topic x\n",
    "own.sh": "aclog acls add --bootstrap-server b:9092 --allow-principal User:a\n",
    "Admin.java": "admin.createAcls(List.of(new AclBinding(pattern, entry)));\n",
    "admin.py": "client.create_acls([acl])\n",
    "index.ts": 'new kafka.Acl("a", { aclPrincipal: "User:a" });\n',
    "user.ts": "new KafkaUser(this, 'u', { spec: {} });\n",
    "pulumi.ts": 'new Acl("a", { aclPrincipal: "User:a" });\n',
    "admin.go": 'func main() { admin.CreateACL(sarama.Resource{}, sarama.Acl{Principal: "User:a"}) }\n',
    "admin.cs": 'await admin.CreateAclsAsync(new[] { binding("User:a") });\n',
    "class.sh": "kafka-run-class kafka.admin.AclCommand --add --topic x\n",
    "variable.sh": 'CMD="kafka-acls --bootstrap-server b:9092"\nset -e\n$CMD --add --topic x\n',
    "makefile.mk": "KAFKA_ACLS ?= x\nacls:\n\t$(KAFKA_ACLS) --remove --topic x\n",
    "flag.sh": '$ACLS --deny-principal "User:*" --topic x\n',
    "words.py": 'run(["kafka-acls",\n     "--add",\n     "--topic", "x"])\n',
    "kafkactl.sh": "kafkactl create acl --topic x --principal User:a --operation read --allow\n",
    "kafkactl2.sh": "kafkactl delete access-control-list --topic x\n",
    "kcl.sh": "kcl admin acl create --topic x\n",
    "role.sh": "rpk security role assign admins --principal User:a\n",
}


@pytest.mark.parametrize(
    "text", ["kafka-acls --list\nkafka-configs --alter --add-config a=b\n", "x --add\n", "rpk topic x\n"]
)
def test_a_script_that_changes_no_acl_is_counted(tmp_path: Path, text: str) -> None:
    assert unread(tmp_path, {"x.sh": text}) == []


@pytest.mark.parametrize(("name", "text"), _PROGRAMS.items(), ids=_PROGRAMS)
def test_a_program_that_changes_acls_is_unread(tmp_path: Path, name: str, text: str) -> None:
    (found,) = unread(tmp_path, {name: text})
    assert " program" in found


_COMPOSE = "services: {init: {image: kafka, command: [kafka-acls, --add, --topic, x]}}\n"
_ARGV = "- hosts: k\n  tasks:\n  - command: {argv: [kafka-acls.sh, --remove, --topic, x]}\n"


@pytest.mark.parametrize("text", [_COMPOSE, _ARGV])
def test_a_command_as_a_list_of_words_is_unread(tmp_path: Path, text: str) -> None:
    (found,) = unread(tmp_path, {"x.yaml": text})
    assert found.endswith(" embedded:x.yaml")


_PARTS_OF_LONG_TEXTS = (
    "a.",
    "a",
    "-",
    "1",
    "principal:",
    "principal",
    "kind:",
    "operation = ",
    "acl",
    "a\t",
    '"a',
    "a.-_",
)


@pytest.mark.parametrize("part", _PARTS_OF_LONG_TEXTS, ids=repr)
def test_a_long_text_is_judged_in_linear_time(part: str) -> None:
    """A quadratic expression takes minutes for one of these."""
    assert rule_in_text(part * (500_000 // len(part)) + "\nacls: [a]\n") is not None
    assert rule_in_text(part.replace("acl", "b") * (500_000 // len(part)) + "!") in (None, 1)


_USER_IN_CUE = 'user: {kind: "KafkaUser", spec: authorization: acls: [{resource: name: "x"}]}\n'
_SETTINGS = {
    "a.cue": (_USER_IN_CUE, "template"),
    "a.jsonnet": ("{ kind: 'KafkaUser', spec: { x: 1 } }\n", "template"),
    "a.libsonnet": ("{ acls:: [{ topic: 'x' }] }\n", "template"),
    "acls.toml": ('[[rule]]\nprincipal = "User:a"\noperation = "Read"\n', "document:toml"),
    "a.properties": ("acl.principal=User:a\nacl.operation=Read\n", "document:properties"),
    "a.ini": ("[acl]\nprincipals = User:a\noperations = Read\n", "document:ini"),
    "x.env": ("ACL_PRINCIPAL=User:a\nACL_OPERATION=Read\n", "document:env"),
    "server.properties": ("allow.everyone.if.no.acl.found=false\nsasl.kerberos.principal.to.local.rules=x\n", None),
    "pyproject.toml": ('[tool.x]\nusers = "a"\noperation = "Read"\n', None),
    "b.cue": ('deployment: kind: "Deployment"\n', None),
}


@pytest.mark.parametrize(("name", "text", "label"), [(name, *each) for name, each in _SETTINGS.items()])
def test_settings_and_configuration_languages(tmp_path: Path, name: str, text: str, label: str | None) -> None:
    assert [each.partition(" ")[2] for each in unread(tmp_path, {name: text})] == ([] if label is None else [label])


# Templates, broken documents and files without their content.


_TEMPLATES = (
    "{{- range .Values.users }}\n" + USER + "{{- end }}\n",
    "{{- if .Values.enabled }}\napiVersion: v1\nkind: {{ .Values.kind }}\n{{- end }}\n",
    "metadata:\n  {{- with .Values.acls }}\n  x: 1\n  {{- end }}\n",
    "spec:\n  {{ toYaml .Values.kafkaAcls | nindent 2 }}\n{{ end }}\n",
    "{% for user in users %}\nkind: KafkaUser\n{% endfor %}\n",
    "{{ range . }}\n- topic: {{ .name }}\n  operations: [Read]\n{{ end }}\n",
    "{{ range . }}\n- principal: {{ .name }}\n  operation: {{ .operation }}\n{{ end }}\n",
    "services:\n{{ range . }}\n  produces: [x]\n{{ end }}\n",
    "{{ range . }}\napiVersion: kafka.jikkou.io/v1\nkind: KafkaPrincipalAuthorization\n{{ end }}\n",
    "{{ if .x }}\napiVersion: v1\nkind: ConfigMap\ndata:\n  acls: {{ .acls }}\n{{ end }}\n",
)


@pytest.mark.parametrize("text", _TEMPLATES, ids=lambda text: text.replace("\n", " ")[:40])
@pytest.mark.parametrize("name", ["x.yaml", "x.tpl", "x.yaml.j2"])
def test_a_template_that_may_hold_rules_is_unread(tmp_path: Path, text: str, name: str) -> None:
    (found,) = unread(tmp_path, {name: text})
    assert found.endswith(" template")


@pytest.mark.parametrize(
    "text",
    [
        "{{- if .Values.user.enabled }}\napiVersion: v1\nkind: Service\nmetadata: {name: user}\n{{- end }}\n",
        "{{ if .acl.enabled }}\napiVersion: apps/v1\nkind: Deployment\n{{ end }}\n",
        '{{- define "x.name" -}}\n{{ .Chart.Name }}\n{{- end }}\n',
        "{{ if .x }}\napiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nspec: {topics: {{ .topics }}}\n{{ end }}\n",
        "services:\n{{ range . }}\n  image: {{ .image }}\n{{ end }}\n",
        "projects:\n{% for x in y %}\n- name: {{ x }}\n{% endfor %}\n",
        "users:\n{{ .x }}\n- name: {{ .y }}\n",
        "context: {{ .x }}\nsettings:\n{{ range .y }}\n- a\n{{ end }}\n",
        "oracle: {{ .x }}\n{{ range .tentacles }}\n{{ end }}\n",
        '{{ .Files.Get "topics.yaml" }}\n{{ end }}\n',
    ],
    ids=lambda text: text.replace("\n", " ")[:40],
)
def test_a_template_that_cannot_hold_rules_stops_nothing(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {"a.yaml": USER, "x.yaml": text})
    found = read_rules(tmp_path)
    assert (list(found.rules), found.unread, found.ignored) == ([READ], [], {"template": 1})


_BROKEN = (
    "apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec:\n  rules:\n  - host: a.example\n    host: a.example\n",
    "a: b\na: c\n",
    "key: [1, 2\n",
    "key: 'open\n",
    "a: *nowhere\n",
    "\tkey: value\n",
    "? {a: b}\n: c\n",
    "a: &x {b: *x}\n",
    "user: {a: b, a: c}\n",
    "settings: b: c\n",
)


@pytest.mark.parametrize("text", _BROKEN, ids=lambda text: text.replace("\n", " ")[:40])
@pytest.mark.parametrize("before", [True, False])
def test_a_broken_document_that_cannot_hold_rules_stops_nothing(tmp_path: Path, text: str, *, before: bool) -> None:
    """Beside a KafkaUser in the same file as well: its line is the one in the file."""
    documents = f"{text}---\n{USER}" if before else f"{USER}---\n{text}"
    found = read_rules(write_files(tmp_path, {"a.yaml": documents}))
    line = 5 + (text.count("\n") + 1) * before
    assert (found.rules, found.unread) == ({READ: [line]}, [])
    assert found.ignored == {"document that is not YAML": 1}


@pytest.mark.parametrize("slip", ["spec: {}\n", "kind: KafkaUser\n", "metadata: [\n", "x: 'open\n", "\ty: 1\n"])
@pytest.mark.parametrize("blank", [0, 3])
def test_a_broken_document_that_may_hold_rules_is_unread(tmp_path: Path, slip: str, blank: int) -> None:
    text = USER.replace("name: app", "name: other") + slip
    write_files(tmp_path, {"a.yaml": f"{USER}---\n{chr(10) * blank}{text}"})
    found = read_rules(tmp_path)
    (broken,) = found.unread
    assert (list(found.rules), broken.kind) == ([READ], UnreadKind.BROKEN)
    assert 8 + blank <= broken.line <= 14 + blank, "the line of the mistake, or the end behind it"


def test_a_file_that_is_given_alone_is_refused_for_a_broken_document_with_rules(tmp_path: Path) -> None:
    path = write_files(tmp_path, {"a.yaml": f"{USER}---\n{USER}spec: {{}}\n"}) / "a.yaml"
    assert refused(path) == f"{path}:12: duplicate key 'spec': first on line 10, in a document that may state rules"


def test_two_equal_users_are_one_with_two_places_and_different_ones_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": USER, "b.yaml": USER + "# a comment\n"})
    assert read_rules(tmp_path).rules == {READ: [5, 5]}
    write_files(tmp_path, {"b.yaml": USER.replace("Read", "Write")})
    assert "b.yaml:1: KafkaUser app is in" in refused(tmp_path)


@pytest.mark.parametrize(
    "name", ["x.yaml", "x.yml", "x.json", "x.tf", "x.csv", "x.jsonl", "x.acls", "x", "x.tfvars", "d"]
)
def test_a_link_that_leads_nowhere_is_unread_if_it_may_hold_rules(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("nowhere")
    assert unread(tmp_path, {}) == [f"{name}:1 link"]


@pytest.mark.parametrize("name", ["x.md", "x.png", "x.sh", "x.py"])
def test_a_link_that_leads_nowhere_stops_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("nowhere")
    assert unread(tmp_path, {}) == []


@pytest.mark.parametrize("content", [b"user: \xff\n", b"acl: \xe9\n- topics\n", b"settings: \xa0\xff\n"])
def test_a_file_that_is_not_utf_8_stops_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "latin.yaml").write_bytes(content)
    assert len(unread(tmp_path, {})) == (content.startswith(b"acl"))


def test_roles_without_a_topology_are_unread(tmp_path: Path) -> None:
    text = "roles:\n- name: x\n  acls:\n  - {resourceType: TOPIC, resourceName: a, operation: READ}\n"
    assert unread(tmp_path, {"roles.yaml": text}) == ["roles.yaml:1 document:roles"]


# What is accepted, and what a source does with the rest.


def test_a_source_has_a_premise_until_its_unread_content_is_accepted(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": USER, "b.sh": _COMMAND, "c.tf": 'resource "rhoas_acl" "x" {}\n'})
    for accepted, number in (((), 2), (("program",), 1), (("program:sh,terraform:rhoas_acl",), 0), (("link",), 2)):
        source = AclsSource(str(tmp_path), options=ReadOptions(accept_unread=parse_accepted(accepted)))
        source.image()
        assert len(source.unread) == number
        assert [each.name for each in source.gaps()] == [UNREAD] * (number > 0)


def test_an_unknown_kind_cannot_be_accepted() -> None:
    with pytest.raises(ConfigError, match="--accept-unread 'redpanda_acl': expected one of resource, terraform"):
        parse_accepted(["redpanda_acl"])


def test_what_is_accepted_is_exact(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": USER, "c.tf": 'resource "rhoas_acl" "x" {}\n'})
    found = read_rules(tmp_path).unread
    assert not_accepted(found, parse_accepted(["terraform:rhoas"])) == tuple(found)
    assert not_accepted(found, parse_accepted(["terraform:rhoas_acl"])) == ()


def test_nothing_but_unread_content_is_no_empty_state(tmp_path: Path) -> None:
    write_files(tmp_path, {"values.yaml": "acls: [{topic: x}]\n", "README.md": "about\n"})
    message = refused(tmp_path)
    assert "none of its 2 files is of a known format" in message
    assert f"document:values.yaml 1 ({tmp_path}/values.yaml:1)" in message


@pytest.mark.parametrize(
    ("globs", "left"),
    [
        (("b.sh",), {"d/b.sh", "c.sh"} - {"d/b.sh"}),
        (("/b.sh",), {"c.sh", "d/b.sh"}),
        (("d/",), {"b.sh", "c.sh"}),
        (("*.sh", "!c.sh"), {"c.sh"}),
        (("**/b.sh",), {"c.sh"}),
        (("[bc].sh",), set()),
    ],
)
def test_files_that_globs_exclude_are_not_read(tmp_path: Path, globs: tuple[str, ...], left: set[str]) -> None:
    write_files(tmp_path, {"a.yaml": USER, **dict.fromkeys(("b.sh", "c.sh", "d/b.sh"), _COMMAND)})
    notes: list[str] = []
    source = AclsSource(str(tmp_path), options=ReadOptions(exclude=globs), notify=notes.append)
    source.image()
    assert {str(Path(each.file).relative_to(tmp_path)) for each in source.unread} == left
    assert f"{tmp_path}: not looked at: excluded file {3 - len(left)}" in notes


# Properties.


_KEYS = st.sampled_from(["acls", "kafkaAcls", "acl_rules", "ACLs", "acl-list", "topicAcl", "custom_acls", "Acls"])
_VALUES = st.recursive(
    st.text("abc*. ", min_size=1),
    lambda inner: st.lists(inner, min_size=1) | st.dictionaries(st.text("xyz"), inner, min_size=1),
)


@given(key=_KEYS, value=_VALUES, above=st.lists(st.text("pqr", min_size=1), max_size=4))
@settings(max_examples=examples(100))
def test_acls_are_unread_at_any_depth_and_in_json(tmp_path_factory: pytest.TempPathFactory, key, value, above) -> None:
    document: object = {key: [value]}
    for name in above:
        document = {name: [{"other": 1}, document]}
    (found,) = unread(tmp_path_factory.mktemp("d"), {"x.json": json.dumps(document)})
    assert found.startswith("x.json:1 document:x.json")


@given(st.text(alphabet="abklr:{}[]\n -'\"%\t#&*!|>", max_size=60))
@settings(max_examples=examples(300))
def test_no_text_in_yaml_stops_the_reading_of_another_file(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    assert isinstance(unread(tmp_path_factory.mktemp("d"), {"x.yaml": text}), list)


@given(st.text(max_size=300))
@settings(max_examples=examples(200))
def test_the_line_of_a_rule_in_text_is_one_of_its_lines(text: str) -> None:
    line = rule_in_text(text)
    assert line is None or 1 <= line <= text.count("\n") + 1
