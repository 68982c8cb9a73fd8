"""Rules as files of other tools: read back they are the same rules, and what a format cannot hold is refused."""

from pathlib import Path

import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.cli.flags.common import ExportFormat
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers import WRITERS, write_rules
from tests.support.builders.acls import acl, cluster_acl
from tests.support.cli.command import aclog
from tests.support.sources.files_of_rules import write_files
from tests.support.sources.random_estates import random_estate
from tests.support.sources.round_trip import json_line, round_trip, round_trip_of_state

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("seed", range(2))
def test_what_is_exported_and_read_back_is_the_same(form: AclsFormat, seed: int, tmp_path: Path) -> None:
    assert round_trip(form, seed, tmp_path) > 0


@pytest.mark.parametrize("form", [ExportFormat.JSONL, ExportFormat.AVRO])
def test_what_is_exported_and_imported_is_the_same(form: ExportFormat, tmp_path: Path) -> None:
    assert round_trip_of_state(form, 1, tmp_path) > 0


@pytest.mark.parametrize("form", WRITERS)
def test_the_order_of_rules_makes_no_difference(form: AclsFormat) -> None:
    rules = random_estate(form, 7)
    assert write_rules(form, rules) == write_rules(form, rules[::-1])


RULES = [
    acl("a.", "User:CN=web", pattern_type=PatternType.PREFIXED),
    acl("a.", "User:CN=web", pattern_type=PatternType.PREFIXED, operation=AclOperation.WRITE),
    acl("x", "User:app", "10.0.0.1", permission_type=AclPermissionType.DENY),
    cluster_acl("User:app", AclOperation.DESCRIBE_CONFIGS),
]


def test_a_kafka_user_for_each_principal() -> None:
    assert write_rules(AclsFormat.STRIMZI, RULES).split("---\n")[1:] == [
        """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata:
  name: "web"
spec:
  authentication:
    type: tls
  authorization:
    type: simple
    acls:
      - resource:
          type: topic
          name: "a."
          patternType: prefix
        operations: [Read, Write]
        host: "*"
""",
        """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata:
  name: "app"
spec:
  authentication:
    type: scram-sha-512
  authorization:
    type: simple
    acls:
      - resource:
          type: cluster
        operations: [DescribeConfigs]
        host: "*"
      - resource:
          type: topic
          name: "x"
          patternType: literal
        operations: [Read]
        host: "10.0.0.1"
        type: deny
""",
    ]


def test_a_resource_of_terraform_has_a_label_that_stays(tmp_path: Path) -> None:
    text = write_rules(AclsFormat.TERRAFORM, [acl('${a}"%{b}\\', "User:$${é}\n")])
    assert text == (
        'resource "kafka_acl" "allow_read_topic_a_b_LABEL" {\n'
        '  resource_name                = "$${a}\\"%%{b}\\\\"\n'
        '  resource_type                = "Topic"\n'
        '  resource_pattern_type_filter = "Literal"\n'
        '  acl_principal                = "User:\\u0024\\u0024{é}\\n"\n'
        '  acl_host                     = "*"\n'
        '  acl_operation                = "Read"\n'
        '  acl_permission_type          = "Allow"\n'
        "}\n\n"
    ).replace("LABEL", text.split('" {', 1)[0].rsplit("_", 1)[1])


@pytest.mark.parametrize(
    ("form", "rule", "why"),
    [
        (AclsFormat.STRIMZI, acl("User:b", resource_type=ResourceType.USER), "no resource of the type USER"),
        (AclsFormat.STRIMZI, acl(operation=AclOperation.TWO_PHASE_COMMIT), "no operation TWO_PHASE_COMMIT"),
        (AclsFormat.STRIMZI, acl(principal="Group:a"), "a principal of the type User"),
        (AclsFormat.STRIMZI, acl(principal="User:CN=a,OU=b"), "not a valid Kubernetes name"),
        (AclsFormat.STRIMZI, acl(principal="User:*"), "not a valid Kubernetes name"),
        (AclsFormat.STRIMZI, acl(principal=f"User:CN={'a' * 65}"), "not a valid Kubernetes name"),
        (AclsFormat.TERRAFORM, acl("e\u0301"), "Unicode NFC"),
        (AclsFormat.TERRAFORM, acl("User:b", resource_type=ResourceType.USER), "no resource_type USER"),
        (AclsFormat.KAFKA_GITOPS, acl("User:b", resource_type=ResourceType.USER), "no type USER"),
        (AclsFormat.KAFKA_GITOPS, acl(operation=AclOperation.CREATE_TOKENS), "no operation CREATE_TOKENS"),
        (AclsFormat.KAFKA_ACLS, acl("a\nb"), "a name with a line end"),
        (AclsFormat.KAFKA_ACLS, acl(principal="User:a, host=b"), "that holds `, host=`"),
        (AclsFormat.JIKKOU, acl("{{a}}"), "for a template"),
        (AclsFormat.KSM, acl("other", resource_type=ResourceType.CLUSTER), "CreateAcls refuses it"),
        (AclsFormat.KSM, acl(principal="alice"), "CreateAcls refuses it"),
        (AclsFormat.KSM, acl("\ud800"), "a name that is not UTF-8"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_with_the_rule(form: AclsFormat, rule, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{form} cannot hold 1 of 2 rules: StandardAcl\[.*\]: .*{why}"):
        write_rules(form, [acl("fine", "User:fine"), rule])


def test_two_principals_that_would_be_one_kafka_user_are_refused() -> None:
    with pytest.raises(ConfigError, match="a KafkaUser app exists with the other kind of authentication"):
        write_rules(AclsFormat.STRIMZI, [acl(principal="User:app"), acl(principal="User:CN=app")])


def test_nothing_is_written_of_what_does_not_fit_whole(tmp_path: Path) -> None:
    (tmp_path / "acls").write_text("".join(json_line(acl(f"a{number}\n")) for number in range(5)) + json_line(acl()))
    found = aclog("export", "--acls", tmp_path / "acls", "--format", "kafka-acls", "--out", tmp_path / "out")
    assert found.code == 2
    assert "kafka-acls cannot hold 5 of 6 rules: " in found.complaint
    assert found.complaint.endswith("; and 2 more")
    assert found.err.count("aclog: warning: kafka-acls cannot hold ALLOW User:app READ on TOPIC LITERAL 'a") == 5
    assert [path.name for path in tmp_path.iterdir()] == ["acls"]


def test_what_else_a_state_has_is_said_to_be_left_out() -> None:
    log = DATA / "kafka-4.3.1-small/__cluster_metadata-0"
    found = aclog("export", "--log", log, "--format", "ksm").ok()
    assert found.out.startswith("KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host\n")
    assert "aclog: note: ksm holds ACLs only: left out: " in found.err


def test_a_file_of_rules_has_no_history() -> None:
    log = DATA / "kafka-4.3.1-small/__cluster_metadata-0"
    found = aclog("export", "--log", log, "--format", "strimzi", "--history")
    assert found.complaint == "--history --format strimzi: a file of ACLs has no history: use avro or jsonl"


def test_rules_move_from_one_tool_to_another(tmp_path: Path) -> None:
    old = write_files(
        tmp_path / "old",
        {
            "state.yaml": "settings: {files: {users: parts/users.yaml}}\n"
            "services: {shop: {type: application, principal: User:shop, consumes: [orders]}}\n",
            "parts/users.yaml": "users: {dora: {principal: User:dora, roles: [operator]}}\n",
        },
    )
    new = tmp_path / "acls.tf"
    aclog("export", "--acls", old / "state.yaml", "--format", "terraform", "--out", new).ok()
    assert aclog("check", "equal", "--acls", old, "--to-acls", new).ok().code == 0
    assert new.read_text().count("resource ") == 7
