"""Lint 18 with the topics that the files of the rules declare: what is known, and silence about what is not."""

import json
from pathlib import Path

import pytest

from tests.support.cli.command import aclog
from tests.support.sources.files_of_rules import write_files

USER = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: app}
spec: {authorization: {type: simple, acls: [{resource: {type: topic, name: order.v1}, operations: [Read]}]}}
"""
_TOPIC = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: NAME}\nspec: SPEC\n"
_ACL = """\
resource "kafka_acl" "a" {
  resource_type       = "Topic"
  resource_name       = "order.v1"
  acl_principal       = "User:app"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""


_OTHERS = 'variable "env" {}\nresource "random_id" "x" {\n  byte_length = 4\n}\n'


def _strimzi(name: str, spec: str = "{}") -> str:
    return _TOPIC.replace("NAME", name).replace("SPEC", spec)


def _terraform(kind: str, attribute: str, value: str, more: str = "") -> str:
    return f'{_ACL}resource "{kind}" "t" {{\n  {attribute} = {value}\n  {more}\n}}\n{_OTHERS}'


def _findings(directory: Path, files: dict[str, str], *flags: str) -> list[tuple[str, str]]:
    """Return the severities and the texts of the findings of lint 18."""
    root = write_files(directory / "files", files)
    found = aclog("lint", "--acls", root, "--select", "18", "--format", "jsonl", *flags)
    assert found.code in (0, 1), found.err
    lines = [json.loads(line) for line in found.lines]
    return [(each["severity"], each["lost"]) for each in lines if each.get("lint") == "18"]


def _shown(key: str, topic: dict[str, object] | None = None, change: dict[str, object] | None = None) -> str:
    """Return a plan or the values of a state, as `terraform show -json` prints it."""
    values = {
        "resource_type": "Topic",
        "resource_name": "order.v1",
        "resource_pattern_type_filter": "Literal",
        "acl_principal": "User:app",
        "acl_host": "*",
        "acl_operation": "Read",
        "acl_permission_type": "Allow",
    }
    acl = {"address": "kafka_acl.a", "mode": "managed", "type": "kafka_acl", "values": values}
    own = {
        "address": "kafka_topic.t",
        "mode": "managed",
        "type": "kafka_topic",
        "values": topic or {"name": "orders.v1"},
    }
    changes = [{"address": "kafka_topic.t", "change": change}] if change else []
    module = {"root_module": {"resources": [acl, own]}}
    return json.dumps({"format_version": "1.2", key: module, "resource_changes": changes, "terraform_version": "1.9"})


_STATE = {
    "version": 4,
    "terraform_version": "1.9.0",
    "lineage": "x",
    "resources": [
        {
            "mode": "managed",
            "type": kind,
            "name": "a",
            "provider": "p",
            "instances": [{"attributes": attributes}],
        }
        for kind, attributes in (
            ("kafka_acl", json.loads(_shown("values"))["values"]["root_module"]["resources"][0]["values"]),
            ("kafka_topic", {"name": "orders.v1"}),
        )
    ],
}
_JIKKOU = """\
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaPrincipalAuthorization
metadata: {name: "User:app"}
spec:
  acls:
  - {resource: {type: topic, pattern: order.v1, patternType: LITERAL}, type: ALLOW, operations: [READ], host: "*"}
---
apiVersion: kafka.jikkou.io/v1beta2
"""
_NS4KAFKA = """\
apiVersion: v1
kind: Namespace
metadata: {name: n, cluster: c}
spec: {kafkaUser: app}
---
apiVersion: v1
kind: AccessControlEntry
metadata: {name: e, namespace: n}
spec: {resourceType: TOPIC, resource: order.v1, resourcePatternType: LITERAL, permission: READ, grantedTo: n}
---
apiVersion: v1
"""
_LITERAL = {
    "a plan": {"plan.json": _shown("planned_values")},
    "terraform show": {"state.json": _shown("values")},
    "a state": {"terraform.tfstate": json.dumps(_STATE)},
    "jikkou": {"a.yaml": f"{_JIKKOU}kind: KafkaTopic\nmetadata: {{name: orders.v1}}\nspec: {{partitions: 1}}\n"},
    "jikkou's list": {
        "a.yaml": f"{_JIKKOU}kind: KafkaTopicList\nitems: [{{apiVersion: kafka.jikkou.io/v1beta2, kind: KafkaTopic, "
        "metadata: {name: orders.v1}}]\n"
    },
    "ns4kafka": {"a.yaml": f"{_NS4KAFKA}kind: Topic\nmetadata: {{name: orders.v1, namespace: n}}\nspec: {{}}\n"},
    "strimzi": {"user.yaml": USER, "topic.yaml": _strimzi("orders.v1")},
    "strimzi in one file": {"all.yaml": f"{USER}---\n{_strimzi('orders.v1')}"},
    "strimzi with another name": {"user.yaml": USER, "topic.yaml": _strimzi("order.v1", "{topicName: orders.v1}")},
    "redpanda": {
        "user.yaml": USER,
        "topic.yaml": _strimzi("orders.v1")
        .replace("kafka.strimzi.io/v1", "cluster.redpanda.com/v1alpha2")
        .replace("KafkaTopic", "Topic"),
    },
    **{
        kind: {"main.tf": _terraform(kind, name, '"orders.v1"')}
        for kind, name in (
            *(("kafka_topic", "name"), ("confluent_kafka_topic", "topic_name"), ("redpanda_topic", "name")),
            *(("aiven_kafka_topic", "topic_name"), ("rhoas_topic", "name")),
        )
    },
    "terraform for each": {
        "main.tf": _terraform("kafka_topic", "name", '"${each.key}.v1"', 'for_each = toset(["orders"])')
    },
    "terraform in a module": {
        "main.tf": f'{_ACL}module "m" {{\n  source = "./m"\n  name = "orders"\n}}\n',
        "m/main.tf": 'variable "name" {}\nresource "kafka_topic" "t" {\n  name = "${var.name}.v1"\n}\n',
    },
    "kafka-gitops": {
        "state.yaml": "topics:\n  orders.v1: {partitions: 1, replication: 1}\nservices:\n  app:\n"
        "    type: application\n"
        "    principal: User:app\n    consumes: [order.v1]\n"
    },
}


@pytest.mark.parametrize("name", _LITERAL)
def test_a_rule_on_no_declared_topic_is_information(tmp_path: Path, name: str) -> None:
    text = "these files declare 1 topic, of which none is 'order.v1'"
    assert _findings(tmp_path, _LITERAL[name]) == [("info", text)]
    declared = {file: content.replace("order.v1", "orders.v1") for file, content in _LITERAL[name].items()}
    assert _findings(tmp_path, declared) == []


def test_a_topic_of_julie_is_declared_by_its_whole_name(tmp_path: Path) -> None:
    text = (
        "context: c\nprojects:\n- name: p\n  topics:\n  - name: orders\n"
        "  streams:\n  - principal: User:app\n    applicationId: c.p.\n    topics:\n"
        "      read: [NAME]\n      write: [c.p.orders]\n"
    )
    assert _findings(tmp_path, {"a.yaml": text.replace("NAME", "c.p.orders")}) == []
    lost = [text for _, text in _findings(tmp_path, {"a.yaml": text.replace("NAME", "c.p.order")})]
    assert lost == ["these files declare 1 topic, of which none is 'c.p.order'"]


_UNKNOWN = {
    "a plan with a name that is known after apply": {
        "plan.json": _shown("planned_values", {"partitions": 1}, {"after_unknown": {"name": True}})
    },
    "a plan with a name that is null": {"plan.json": _shown("planned_values", {"name": None})},
    "a template of jikkou": {
        "a.yaml": f"{_JIKKOU}kind: KafkaTopic\nmetadata: {{name: orders.v1}}\n",
        "b.yaml": "apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaTopicList\nitems:\n{% for x in y %}\n{% endfor %}\n",
    },
    "a name that is known after apply": {"main.tf": _terraform("kafka_topic", "name", "random_id.x.hex")},
    "a name whose beginning is that of the rule": {
        "main.tf": _terraform("kafka_topic", "name", '"ord${random_id.x.hex}"')
    },
    "a number of topics that is not known": {
        "main.tf": _terraform("kafka_topic", "name", '"orders.v1"', "count = random_id.x.dec")
    },
    "a variable without a value": {"main.tf": _terraform("kafka_topic", "name", '"${var.env}.v1"')},
    "no name": {"main.tf": _terraform("kafka_topic", "partitions", "1") + 'resource "kafka_topic" "b" {name = "b"}'},
    "content that was not read": {
        "user.yaml": USER,
        "topic.yaml": _strimzi("orders.v1"),
        "other.tf": 'resource "rhoas_acl" "a" {}\n',
    },
    "a template": {"user.yaml": USER, "topic.yaml": f"{_strimzi('orders.v1')}---\n{_strimzi('{{ .name }}')}"},
    "a prefix of a kustomization": {
        "user.yaml": USER,
        "topic.yaml": _strimzi("orders.v1"),
        "kustomization.yaml": "resources: [topic.yaml]\nnamePrefix: x-\n",
    },
    "a name that is no text": {"user.yaml": USER, "topic.yaml": f"{_strimzi('orders.v1')}---\n{_strimzi('2024')}"},
    "no topics": {"user.yaml": USER},
}


@pytest.mark.parametrize("name", _UNKNOWN)
def test_no_rule_is_a_finding_that_a_topic_may_match_which_is_not_known(tmp_path: Path, name: str) -> None:
    assert _findings(tmp_path, _UNKNOWN[name]) == []


def test_a_topic_that_programs_create_need_not_be_declared(tmp_path: Path) -> None:
    user = USER.replace("name: order.v1", "name: _schemas")
    assert _findings(tmp_path, {"user.yaml": user, "topic.yaml": _strimzi("orders.v1")}) == []


def test_a_topic_with_another_beginning_cannot_be_the_missing_one(tmp_path: Path) -> None:
    more = 'resource "kafka_topic" "b" {\n  name = "b"\n}\n'
    files = {"main.tf": _terraform("kafka_topic", "name", '"pay-${random_id.x.hex}"') + more}
    assert _findings(tmp_path, files) == [("info", "these files declare 1 topic, of which none is 'order.v1'")]


def test_a_declared_topic_counts_as_one_that_exists(tmp_path: Path) -> None:
    (tmp_path / "topics.txt").write_text("payments\n")
    flags = ("--topics", str(tmp_path / "topics.txt"))
    files = {"user.yaml": USER, "topic.yaml": _strimzi("order.v1")}
    assert _findings(tmp_path, files, *flags) == []
    files["topic.yaml"] = _strimzi("orders.v1")
    [(severity, text)] = _findings(tmp_path, files, *flags)
    assert (severity, text.partition(":")[0]) == ("warning", "no topic 'order.v1' exists")
    files["topic.yaml"] = f"{_strimzi('orders.v1')}---\n{_strimzi('{{ .name }}')}"
    assert _findings(tmp_path, files, *flags) == []


@pytest.mark.parametrize(("prefix", "expected"), [("orders", 0), ("orders.v1", 0), ("order.v", 1), ("p", 1)])
def test_a_prefix_covers_a_declared_topic(tmp_path: Path, prefix: str, expected: int) -> None:
    user = USER.replace("name: order.v1", f"name: {prefix}, patternType: prefix")
    found = _findings(tmp_path, {"user.yaml": user, "topic.yaml": _strimzi("orders.v1")})
    assert found == [("info", f"these files declare 1 topic, of which none begins with {prefix!r}")] * expected
