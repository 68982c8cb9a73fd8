"""A changed statement of Terraform that makes no rule by a default: a review states that it was not read."""

import json
from pathlib import Path

import pytest

from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository
from tests.support.sources.files_of_rules import ONE_RULE, write_files

_ACL = """\
resource "kafka_acl" "a" {
  COUNT
  resource_name       = "orders"
  resource_type       = "Topic"
  acl_principal       = "User:app"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""
_EACH = 'variable "users" {\n  type    = set(string)\n  default = []\n}\n' + _ACL.replace(
    "COUNT", "for_each = var.users"
)
_ENABLED, _COUNT = 'variable "enabled" {\n  default = false\n}\n', "count = var.enabled ? 1 : 0"
_CALL = _ENABLED + f'module "m" {{\n  source = "./m"\n  {_COUNT}\n  name = "orders"\n}}\n'
_INNER = 'variable "name" {}\n' + _ACL.replace("  COUNT\n", "").replace('"orders"', "var.name")


def _unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, inner: str = _INNER) -> list[str]:
    """Return the location and label of what the review of a change states as changed and not read."""
    repository = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(repository.path)
    repository.commit({"one.jsonl": ONE_RULE, "m.tf": old, **({"m/m.tf": inner} if "module" in old else {})})
    write_files(Path(), {"m.tf": new})
    result = aclog("review", ".", "--base", "HEAD", "--fail-on", "unread", "--format", "jsonl")
    rows = [json.loads(line) for line in result.lines]
    unread = [f"{row['file']}:{row['line']} {row['label']}" for row in rows if row["kind"] == "unread"]
    assert result.code == bool(unread)
    return unread


@pytest.mark.parametrize(
    ("old", "change", "unread"),
    [
        # a default decides
        (_EACH, ("User:app", "User:*"), "m.tf:5 variables:kafka_acl"),
        (_ENABLED + _ACL.replace("COUNT", _COUNT), ("Read", "All"), "m.tf:4 variables:kafka_acl"),
        (_EACH, (_EACH[_EACH.index("resource") :], ""), "HEAD:m.tf:5 variables:kafka_acl"),
        (_CALL, ('"orders"', '"payments"'), "m.tf:4 variables:module"),
        # the same statement elsewhere in the file; another statement
        (_EACH, ("variable", "\n\n# users\nvariable"), ""),
        (_EACH, ("  default", '  description = "who"\n  default'), ""),
        # no value from outside changes it
        (_ACL.replace("COUNT", "count = 0"), ("User:app", "User:*"), ""),
    ],
)
def test_a_changed_statement_without_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, change: tuple[str, str], unread: str
) -> None:
    assert _unread(tmp_path, monkeypatch, old, old.replace(*change)) == ([unread] if unread else [])


def test_the_first_line_states_it_unless_it_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _unread(tmp_path, monkeypatch, _EACH, _EACH.replace("User:app", "User:*"))
    found = aclog("review", ".", "--base", "HEAD").ok()
    assert "no effective change in what was read, 1 changed object not read" in found.lines[0]
    assert "kafka_acl.a makes no rule here: its for_each is empty, maybe by a default" in found.out
    accepted = aclog("review", ".", "--base", "HEAD", "--accept-unread", "variables:kafka_acl").ok()
    assert accepted.lines[0].endswith("; no effective change")


def test_values_make_rules_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(repository.path)
    repository.commit({"m.tf": _EACH, "terraform.tfvars": 'users = ["a"]\n'})
    write_files(Path(), {"m.tf": _EACH.replace("User:app", "User:b")})
    found = aclog("review", ".", "--base", "HEAD").ok()
    assert "access gained: 1 row, lost: 1 row" in found.lines[0]
    assert "not read" not in found.out


def test_a_call_of_a_module_without_rules_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = _CALL.replace('"orders"', '"payments"')
    assert not _unread(tmp_path, monkeypatch, _CALL, changed, inner='variable "name" {}\n')


_NAME, _SWITCH = '  name = "orders"\n', "  enabled = var.enabled\n"
_OUTER_CALL = _ENABLED + 'module "m" {\n  source = "./m"\n' + _SWITCH + "}\n"
_USER = """\
resource "kubernetes_manifest" "a" {
  count    = var.enabled ? 1 : 0
  manifest = {
    apiVersion = "kafka.strimzi.io/v1"
    kind       = "KafkaUser"
    metadata   = { name = "app" }
    spec       = {
      authorization = { type = "simple", acls = [{ resource = { type = "topic", name = "a" }, operations = ["Read"] }] }
    }
  }
}
"""
_OTHER = """\
resource "kubernetes_manifest" "a" {
  count    = var.enabled ? 1 : 0
  manifest = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" }, data = { mode = "Read" } }
}
"""
_LOCAL = _ACL.replace("COUNT", _COUNT).replace('"orders"', "local.name")
_DEEP = _CALL.replace(_NAME, "")


@pytest.mark.parametrize(
    ("files", "changed", "change", "unread"),
    [
        # the module of a call, a module that it calls, and a local
        ({"m.tf": _CALL, "m/m.tf": _INNER}, "m/m.tf", ("User:app", "User:*"), ["m.tf:4 variables:module"]),
        (
            {
                "m.tf": _DEEP,
                "m/m.tf": 'module "n" {\n  source = "../n"\n}\n',
                "n/n.tf": _ACL.replace("COUNT", ""),
            },
            "n/n.tf",
            ("User:app", "User:*"),
            ["m.tf:4 variables:module"],
        ),
        (
            {"m.tf": _ENABLED + _LOCAL, "l.tf": 'locals {\n  name = local.other\n  other = "orders"\n}\n'},
            "l.tf",
            ('"orders"', '"*"'),
            ["m.tf:4 variables:kafka_acl"],
        ),
        (
            {"m.tf": _ENABLED + _LOCAL, "l.tf": 'locals {\n  name = "orders"\n  other = "a"\n}\n'},
            "l.tf",
            ('"a"', '"b"'),
            [],
        ),
        ({"m.tf": _CALL, "m/m.tf": _INNER}, "m/m.tf", ("resource", "\n# who\nresource"), []),
        # a default of the root module, in another module
        (
            {"m.tf": _OUTER_CALL, "m/m.tf": 'variable "enabled" {}\n' + _ACL.replace("COUNT", _COUNT)},
            "m/m.tf",
            ("User:app", "User:*"),
            ["m/m.tf:2 variables:kafka_acl"],
        ),
        # a user in a manifest; another manifest
        ({"m.tf": _ENABLED + _USER}, "m.tf", ('"Read"', '"All"'), ["m.tf:4 variables:kubernetes_manifest"]),
        (
            {"m.tf": _DEEP, "m/m.tf": _USER.replace("var.enabled ? 1 : 0", "1")},
            "m/m.tf",
            ('"Read"', '"All"'),
            ["m.tf:4 variables:module"],
        ),
        ({"m.tf": _ENABLED + _OTHER}, "m.tf", ('"Read"', '"All"'), []),
    ],
)
def test_a_change_of_what_a_statement_is_made_from(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    changed: str,
    change: tuple[str, str],
    unread: list[str],
) -> None:
    repository = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(repository.path)
    repository.commit({"one.jsonl": ONE_RULE, **files})
    write_files(Path(), {changed: files[changed].replace(*change)})
    rows = [json.loads(line) for line in aclog("review", ".", "--base", "HEAD", "--format", "jsonl").lines]
    assert [f"{row['file']}:{row['line']} {row['label']}" for row in rows if row["kind"] == "unread"] == unread
