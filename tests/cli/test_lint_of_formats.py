"""Lint of files: advice that fits the line of a rule, and redundant rules that a tool writes or documents."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.cli.command import aclog

_JULIE = 'context: "c"\nprojects:\n  - name: "p"\n'
_USER = (
    "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaUser\nmetadata: {name: shop}\nspec:\n  authorization:\n"
    "    type: simple\n    acls:\n"
)
_KSM = "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host\n"

GENERATED: Mapping[str, tuple[str, str]] = {
    "a consumer of julie": (
        "t.yaml",
        _JULIE + '    consumers:\n      - principal: "User:app"\n    topics:\n      - name: "t"\n',
    ),
    "two consumers of julie": (
        "t.yaml",
        _JULIE
        + '    consumers:\n      - principal: "User:app"\n      - principal: "User:b"\n'
        + '    topics:\n      - name: "t"\n',
    ),
    "a consumer in one line": (
        "t.yaml",
        _JULIE + '    consumers: [{principal: "User:app"}]\n    topics: [{name: "t"}, {name: "u"}]\n',
    ),
    "a consumer of a topic of julie": (
        "t.yml",
        _JULIE + '    topics:\n      - name: "t"\n        consumers:\n          - principal: "User:app"\n',
    ),
    "a producer of julie": (
        "t.yaml",
        _JULIE + '    producers:\n      - principal: "User:app"\n    topics:\n      - name: "t"\n',
    ),
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Return what writes a file into the working directory."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, text: str) -> str:
        Path(name).write_text(text)
        return name

    return write_file


@pytest.mark.parametrize("spelling", GENERATED)
def test_rules_that_a_tool_makes_beside_another_one_are_no_finding(
    write: Callable[[str, str], str], spelling: str
) -> None:
    name = write(*GENERATED[spelling])
    assert "DESCRIBE" in aclog("acls", "list", "--acls", name).ok().out
    assert aclog("lint", "--acls", name, "--select", "11").ok().lines[0].startswith("no findings in ")


DOCUMENTED: Mapping[str, tuple[str, str]] = {
    "operations of strimzi": (
        "u.yaml",
        _USER + "      - resource: {type: topic, name: t}\n        operations: [Read, Describe]\n",
    ),
    "operations in another order": (
        "u.yaml",
        _USER + "      - resource: {type: topic, name: t}\n        operations: [Describe, Read]\n",
    ),
    "operations beside others": (
        "u.yaml",
        _USER + "      - resource: {type: topic, name: t}\n" + "        operations: [Describe, Write, Create]\n",
    ),
    "operations on a prefix": (
        "u.yaml",
        _USER
        + "      - resource: {type: topic, name: t, patternType: prefix}\n"
        + "        operations: [Read, Describe]\n",
    ),
    "operations on a group": (
        "u.yaml",
        _USER + "      - resource: {type: group, name: g}\n        operations: [Read, Describe]\n",
    ),
}


@pytest.mark.parametrize("spelling", DOCUMENTED)
def test_a_documented_redundancy_is_information_with_advice_for_the_list(
    write: Callable[[str, str], str], spelling: str
) -> None:
    lines = aclog("lint", "--acls", write(*DOCUMENTED[spelling]), "--select", "11", "--fail-on", "warning").ok().lines
    assert lines[0].startswith("info [11 implied]: ")
    assert "    fix: Remove `Describe` from this operations list." in lines
    assert not any(line.lstrip().startswith("remove: ") for line in lines)
    assert lines[-1].startswith("1 info in ")


def test_a_line_of_its_own_is_to_be_removed(write: Callable[[str, str], str]) -> None:
    rows = "User:a,Topic,LITERAL,t,Read,Allow,*\nUser:a,Topic,LITERAL,t,Describe,Allow,*\n"
    lines = aclog("lint", "--acls", write("a.csv", _KSM + rows), "--select", "11").ok().lines
    assert lines[0].startswith("info [11 implied]: ")
    assert lines[3:5] == ["    fix: Remove the rule.", "    remove: a.csv:3"]


_TERRAFORM = """
resource "kafka_acl" "r" {
  for_each            = toset(["Read", "Describe"])
  resource_name       = "t"
  resource_type       = "Topic"
  acl_principal       = "User:a"
  acl_host            = "*"
  acl_operation       = each.key
  acl_permission_type = "Allow"
}
"""


def test_terraform_documents_no_such_rule(write: Callable[[str, str], str]) -> None:
    lines = aclog("lint", "--acls", write("a.tf", _TERRAFORM), "--select", "11").ok().lines
    assert lines[0].startswith("warning [11 implied]: ")
    assert "    fix: Remove `Describe` from this operations list." in lines


def test_a_module_is_changed_by_its_arguments(write: Callable[[str, str], str]) -> None:
    Path("m").mkdir()
    write("m/main.tf", _TERRAFORM.replace('["Read", "Describe"]', '["t", "u"]').replace('"t"\n', "each.key\n"))
    Path("m/main.tf").write_text(
        _TERRAFORM.replace('toset(["Read", "Describe"])', 'toset(["t", "*"])')
        .replace('resource_name       = "t"', "resource_name       = each.key")
        .replace("acl_operation       = each.key", 'acl_operation       = "Read"')
    )
    write("main.tf", 'module "app" {\n  source = "./m"\n}\n')
    lines = aclog("lint", "--acls", ".", "--select", "08").lines
    advice = "    fix: Change the arguments of module.app (main.tf:1): the line in the module states 1 more rule: ALLOW"
    assert any(line.startswith(advice) for line in lines), lines


def test_information_is_a_note_in_sarif_and_no_new_finding_of_a_review(write: Callable[[str, str], str]) -> None:
    name = write(*DOCUMENTED["operations of strimzi"])
    out = aclog("lint", "--acls", name, "--select", "11", "--format", "sarif").ok().out
    assert '"level":"note"' in out.replace(" ", "")
    rows = aclog("lint", "--acls", name, "--select", "11", "--format", "jsonl").ok().out
    assert '"severity":"info"' in rows


_INTERNAL = """
locals {
  base = [
    { name = "offsets", resource_name = "__consumer_offsets", resource_type = "Topic", operation = "Write" },
    { name = "read", resource_name = "orders", resource_type = "Topic", operation = "Read" },
  ]
  base_map = zipmap(local.base.*.name, local.base.*)
}
resource "kafka_acl" "base" {
  for_each            = tomap(local.base_map)
  resource_name       = each.value.resource_name
  resource_type       = each.value.resource_type
  acl_principal       = "User:*"
  acl_host            = "*"
  acl_operation       = each.value.operation
  acl_permission_type = "Allow"
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('"Write"', '"All"'),
        ('"Write"', '"Delete"'),
        ('"Write"', '"Alter"'),
        ('"Write"', '"AlterConfigs"'),
        ('"Write"', '"Read"'),
        ("__consumer_offsets", "__transaction_state"),
        ("__consumer_offsets", "__share_group_state"),
        ("__consumer_offsets", "__cluster_metadata"),
        ('acl_principal       = "User:*"', 'acl_principal       = "User:ANONYMOUS"'),
        (
            "resource_name       = each.value",
            'resource_pattern_type_filter = each.key == "read" ? "Literal" : "Prefixed"\n  resource_name = each.value',
        ),
    ],
)
def test_everyone_on_an_internal_topic_is_an_error(write: Callable[[str, str], str], old: str, new: str) -> None:
    result = aclog("lint", "--acls", write("main.tf", _INTERNAL.replace(old, new) if old else _INTERNAL))
    assert result.code == 1
    assert "error [27 everyone-reaches-far]: everyone has broad access" in result.lines
    (line,) = (each for each in result.lines if "'__" in each and each.startswith("    "))
    assert "internal topic" in line or "including __consumer_offsets" in line
