"""Locations of rules that calls of Terraform modules make: the line of the user, then that of the module."""

import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from aclog.cli.schema import schema_of
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository

_RULE = """
variable "cn" { type = string }
variable "topics" { type = list(string) }
resource "kafka_acl" "r" {
  for_each            = toset(var.topics)
  resource_name       = each.value
  resource_type       = "Topic"
  acl_principal       = "User:CN=${var.cn}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""
MODULE = {"modules/app/main.tf": _RULE.removeprefix("\n")}
_LEAF = "modules/app/main.tf:3"
_BILLING = '  cn     = "billing"\n  topics = ["invoices"]\n}\n'


def _call(name: str, more: str = "", source: str = "../modules/app", body: str = _BILLING) -> str:
    return f'module "{name}" {{\n  source = "{source}"\n{more}{body}'


_MIDDLE = (
    'variable "cn" {}\nvariable "topics" {}\n'
    'module "app" {\n  source = "../app"\n  cn     = var.cn\n  topics = var.topics\n}\n'
)

SPELLINGS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "one call": ({"prod/team.tf": _call("billing")}, f"prod/team.tf:1 (module.billing) -> {_LEAF}"),
    "below other lines": ({"prod/team.tf": "\n# team\n\n" + _call("b")}, f"prod/team.tf:4 (module.b) -> {_LEAF}"),
    "count": ({"prod/team.tf": _call("b", "  count = 1\n")}, f"prod/team.tf:1 (module.b[0]) -> {_LEAF}"),
    "for_each": (
        {"prod/team.tf": _call("b", '  for_each = toset(["eu"])\n')},
        f'prod/team.tf:1 (module.b["eu"]) -> {_LEAF}',
    ),
    "two levels": (
        {"prod/team.tf": _call("b", source="../modules/team"), "modules/team/main.tf": _MIDDLE},
        f"prod/team.tf:1 (module.b) -> modules/team/main.tf:3 (module.app) -> {_LEAF}",
    ),
    "names of locals": (
        {
            "prod/team.tf": _call("b", body="  cn = local.cn\n  topics = local.topics\n}\n"),
            "prod/locals.tf": 'locals {\n  cn = "billing"\n  topics = ["invoices"]\n}\n',
        },
        f"prod/team.tf:1 (module.b) -> {_LEAF}",
    ),
    "names of variables": (
        {
            "prod/team.tf": _call("b", body="  cn = var.cn\n  topics = var.topics\n}\n"),
            "prod/v.tf": 'variable "cn" { default = "billing" }\nvariable "topics" { default = ["invoices"] }\n',
        },
        f"prod/team.tf:1 (module.b) -> {_LEAF}",
    ),
    "a second call of others": (
        {"prod/a.tf": _call("a", body='  cn = "x"\n  topics = ["y"]\n}\n'), "prod/team.tf": _call("b")},
        f"prod/team.tf:1 (module.b) -> {_LEAF}",
    ),
    "JSON": (
        {
            "prod/team.tf.json": '{\n"module": {"b": {\n"source": "../modules/app", "cn": "billing",'
            ' "topics": ["invoices"]}}}\n'
        },
        f"prod/team.tf.json:2 (module.b) -> {_LEAF}",
    ),
    "no module": (
        {"prod/main.tf": _RULE.replace("var.topics", '["invoices"]').replace("${var.cn}", "billing")},
        "prod/main.tf:4",
    ),
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a repository with the module, in the working directory."""
    made = Repository.create(tmp_path / "repository")
    made.commit(MODULE)
    monkeypatch.chdir(made.path)
    return made


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_rule_of_a_module_shows_the_call_first(repository: Repository, spelling: str) -> None:
    files, place = SPELLINGS[spelling]
    if spelling == "no module":
        files = {name: text.replace('variable "cn" { type = string }\n', "") for name, text in files.items()}
        files = {name: text.replace('variable "topics" { type = list(string) }\n', "") for name, text in files.items()}
        place = "prod/main.tf:2"
    repository.commit(files)
    shown = aclog("what-can", "--acls", "prod", "--principal", "User:CN=billing").ok().out
    assert f"'invoices' from * ({place})" in shown
    listed = [json.loads(line) for line in aclog("acls", "list", "--acls", "prod", "--format", "jsonl").ok().lines]
    jsonschema.validate(listed, {"items": schema_of("acl")})
    (rule,) = (each for each in listed if each["resourceName"] == "invoices")
    calls = [f"{each['file']}:{each['line']} ({each['module']})" for each in rule.get("calls", ())]
    assert " -> ".join((*calls, f"{rule['file']}:{rule['line']}")) == place


def test_what_is_listed_with_its_location_is_read_back(repository: Repository) -> None:
    repository.commit(SPELLINGS["two levels"][0])
    Path("listed.jsonl").write_text(aclog("acls", "list", "--acls", "prod", "--format", "jsonl").ok().out)
    plain = aclog("acls", "list", "--acls", "prod").ok().out
    assert aclog("acls", "list", "--acls", "listed.jsonl").ok().out == plain


def _lines_of(result: dict[str, object], key: str) -> list[str]:
    locations = result.get(key, [])
    assert isinstance(locations, list)
    places = [each["physicalLocation"] for each in locations]
    return [f"{each['artifactLocation']['uri']}:{each['region']['startLine']}" for each in places]


def test_the_first_location_of_sarif_is_the_call_and_the_rest_are_related(repository: Repository) -> None:
    files, _ = SPELLINGS["two levels"]
    repository.write(files)
    aclog("review", "prod", "--base", "main", "--out", "sarif=review.sarif").ok()
    (run,) = json.loads(Path("review.sarif").read_text())["runs"]
    assert {each["ruleId"] for each in run["results"]} == {"access-gained", "13"}
    for result in run["results"]:
        assert _lines_of(result, "locations") == ["prod/team.tf:1"]
        assert _lines_of(result, "relatedLocations") == ["modules/team/main.tf:3", _LEAF]
    (run,) = json.loads(aclog("lint", "--acls", "prod", "--format", "sarif").out)["runs"]
    assert _lines_of(run["results"][0], "locations") == ["prod/team.tf:1"]


@pytest.mark.parametrize(
    ("file", "old", "new", "first"),
    [
        ("prod/team.tf", '"invoices"', '"orders"', "prod/team.tf:1"),
        ("modules/app/main.tf", '"Read"', '"Write"', "modules/app/main.tf:3"),
        ("modules/team/main.tf", "var.topics", '["orders"]', "modules/team/main.tf:3"),
    ],
)
def test_a_comment_has_the_changed_line_of_a_chain_first(
    repository: Repository, file: str, old: str, new: str, first: str
) -> None:
    files, _ = SPELLINGS["two levels"]
    repository.commit(files)
    path = Path(file)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    out = aclog("review", "prod", "--base", "main", "--format", "markdown").out
    others = [f"`{each}`" for each in ("prod/team.tf:1", "modules/team/main.tf:3", _LEAF) if each != first]
    assert f"| `{first}` (with {', '.join(others)})" in out


def test_a_comment_at_the_call_suppresses_a_finding(repository: Repository) -> None:
    repository.commit({"prod/team.tf": "# aclog: ignore 13 it assigns partitions itself\n" + _call("b")})
    assert aclog("lint", "--acls", "prod").ok().lines[-1] == "no findings in 1 rule; 1 suppressed"
