"""Values of Terraform's variables from outside: files of variables, flags, terragrunt.hcl; and what is not read."""

from pathlib import Path

import pytest

from aclog.metalog.errors import ConfigError, without_marks
from aclog.sources.choice import parse_values
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.reading import ReadFiles, read_tree
from aclog.sources.formats.rule import DirectoryTree, ReadContext
from aclog.sources.module_inputs import root_inputs
from aclog.sources.read_options import ModuleInputs
from tests.support.sources.files_of_rules import rule_text, write_files

MAIN = """variable "acls" {
  type    = list(object({ name = string, principal = string }))
  default = []
}
variable "who" { default = "User:default" }
resource "kafka_acl" "a" {
  for_each            = { for x in var.acls : x.name => x }
  resource_name       = each.value.name
  resource_type       = "Topic"
  acl_principal       = each.value.principal
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
resource "kafka_acl" "one" {
  resource_name       = terraform.workspace
  resource_type       = "Group"
  acl_principal       = var.who
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""
ACLS = 'acls = [{ name = "orders", principal = "User:app" }]\n'
ORDERS = "ALLOW READ TOPIC orders to User:app"


def read(directory: Path, files: dict[str, str], inputs: ModuleInputs | None = None) -> ReadFiles:
    write_files(directory, files)
    given, _ = root_inputs(inputs or ModuleInputs(), commit=None)
    return read_tree(ReadContext(tree=DirectoryTree(str(directory)), inputs=given), AclsFormat.AUTO)


def rules(found: ReadFiles) -> set[str]:
    return {rule_text(rule.acl) for rule in found.stated.rules()}


def who(directory: Path, files: dict[str, str], inputs: ModuleInputs | None = None) -> str:
    """Return the principal of the rule on the group."""
    [text] = [each for each in rules(read(directory, {"main.tf": MAIN, **files}, inputs)) if "GROUP" in each]
    return text.partition(" to User:")[2]


def unread(found: ReadFiles, directory: Path) -> list[str]:
    return [f"{each.label} {each.file.removeprefix(f'{directory}/')}:{each.line}" for each in found.unread]


# precedence


LATER = [
    ("terraform.tfvars", 'who = "User:terraform"\n'),
    ("terraform.tfvars.json", '{"who": "User:json"}'),
    ("a.auto.tfvars", 'who = "User:a"\n'),
    ("b.auto.tfvars.json", '{"who": "User:b"}'),
    ("c.auto.tfvars", 'who = "User:c"\n'),
]


@pytest.mark.parametrize("count", range(len(LATER) + 1))
def test_later_files_win(tmp_path: Path, count: int) -> None:
    expected = ["default", "terraform", "json", "a", "b", "c"][count]
    assert who(tmp_path, dict(LATER[:count])) == expected


def test_flags_win_over_files(tmp_path: Path) -> None:
    files = {**dict(LATER), "env/one.tfvars": 'who = "User:one"\n', "env/two.json": '{"who": "User:two"}'}
    paths = tuple(str(tmp_path / "env" / name) for name in ("one.tfvars", "two.json"))
    assert who(tmp_path, files, ModuleInputs(var_files=paths)) == "two"
    assert who(tmp_path, files, ModuleInputs(var_files=paths[::-1])) == "one"
    assert who(tmp_path, files, ModuleInputs(values={"who": "User:flag"})) == "flag"
    with pytest.raises(ConfigError, match=r"--var who: .*env/two.json:1 of --var-file sets it as well"):
        who(tmp_path, files, ModuleInputs(var_files=paths, values={"who": "User:flag"}))
    assert who(tmp_path, files, ModuleInputs(var_files=paths, values={"acls": "[]"})) == "two"


def test_a_value_of_the_environment_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_VAR_who", "User:environment")
    assert who(tmp_path, {}) == "default"


def test_a_workspace(tmp_path: Path) -> None:
    found = read(tmp_path, {"main.tf": MAIN}, ModuleInputs(workspace="prod"))
    assert rules(found) == {"ALLOW READ GROUP prod to User:default"}


@pytest.mark.parametrize(
    ("declared", "text", "principal"),
    [
        ("", "User:x", "User:x"),
        ("type = string", "User:x", "User:x"),
        ("type = string", '"User:x"', '"User:x"'),
        ('type = "string"', "User:${x}", "User:${x}"),
        ("type = list(string)", '["User:x"]', "User:x"),
        ("type = set(string)", '["User:x"]', "User:x"),
        ("type = map(string)", '{ 0 = "User:x" }', "User:x"),
        ("type = tuple([string])", '["User:x"]', "User:x"),
        ("type = any", '["User:x"]', "User:x"),
        ("type = object({ a = string })", '{ a = "User:x" }', "User:x"),
    ],
)
def test_the_value_of_a_flag_is_read_by_the_type(tmp_path: Path, declared: str, text: str, principal: str) -> None:
    value = {"[": "tolist(var.v)[0]", "{": "values(var.v)[0]"}.get(text[0], "var.v")
    main = f'variable "v" {{ {declared} }}\n' + MAIN.replace("var.who", value)
    found = read(tmp_path, {"main.tf": main}, ModuleInputs(values={"v": text}))
    assert rules(found) == {f"ALLOW READ GROUP default to {principal}"}


@pytest.mark.parametrize("text", ["who", "=x", "a b=c", ""])
def test_a_flag_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected NAME=VALUE"):
        parse_values([text])


def test_a_name_that_no_module_declares_is_noted(tmp_path: Path) -> None:
    found = read(tmp_path, {"main.tf": MAIN}, ModuleInputs(values={"woh": "User:x"}))
    assert "--var woh: no root module declares it, so it has no effect" in found.notes


def test_a_missing_file_and_one_with_blocks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        read(tmp_path, {"main.tf": MAIN}, ModuleInputs(var_files=(str(tmp_path / "gone.tfvars"),)))
    with pytest.raises(ConfigError, match="holds no blocks"):
        read(tmp_path, {"main.tf": MAIN, "x.tf-vars": "a {}\n"}, ModuleInputs(var_files=(str(tmp_path / "x.tf-vars"),)))


# files that nothing names


@pytest.mark.parametrize(
    "path",
    ["prod.tfvars", "prod.tfvars.json", "env/prod.tfvars", "env/prod/eu.tfvars", "terraform.tfvars.d/x.tfvars"],
)
def test_a_file_that_sets_what_a_default_decides_is_unread(tmp_path: Path, path: str) -> None:
    text = '{"acls": []}' if path.endswith("json") else ACLS
    found = read(tmp_path, {"main.tf": MAIN, path: text})
    assert unread(found, tmp_path) == [f"variables:tfvars {path}:1"]
    used = read(tmp_path, {}, ModuleInputs(var_files=(str(tmp_path / path),)))
    assert unread(used, tmp_path) == []


@pytest.mark.parametrize(
    "files",
    [
        {"terraform.tfvars": f'{ACLS}who = "User:x"\n', "prod.tfvars": ACLS},
        {"terraform.tfvars": 'acls = []\nwho = "User:x"\n', "prod.tfvars": 'who = "User:x"\nregion = "eu"\n'},
        {"prod.tfvars": 'region = "eu"\n'},
        {"more.tf": 'variable "region" { default = "" }\n', "prod.tfvars": 'region = "eu"\n'},
        {"x.auto.tfvars": ACLS},
    ],
)
def test_a_file_that_sets_nothing_that_a_default_decides_is_counted(tmp_path: Path, files: dict[str, str]) -> None:
    assert read(tmp_path, {"main.tf": MAIN, **files}).unread == ()


@pytest.mark.parametrize("name", ["terraform.tfvars", "x.auto.tfvars", "terraform.tfvars.json"])
@pytest.mark.parametrize("text", ['who = "User:*"\n', "who = 7\n", 'who = ["a"]\n'])
def test_a_file_that_overrides_what_another_one_states_is_unread(tmp_path: Path, name: str, text: str) -> None:
    stated = '{"who": "User:dev"}' if name.endswith("json") else 'who = "User:dev"\n'
    found = read(tmp_path, {"main.tf": MAIN, name: stated, "prod.tfvars": text})
    assert unread(found, tmp_path) == ["variables:tfvars prod.tfvars:1"]
    assert f"which overrides what {tmp_path}/{name} states" in found.unread[0].reason
    assert read(tmp_path, {}, ModuleInputs(values={"who": "User:flag"})).unread == ()
    (tmp_path / "own.tfvars").write_text('who = "User:own"\n')
    assert read(tmp_path, {}, ModuleInputs(var_files=(str(tmp_path / "own.tfvars"),))).unread == ()


def test_rules_for_a_variable_that_no_module_declares_are_unread(tmp_path: Path) -> None:
    text = 'region = "eu"\nrules = [{ principal = "User:*", operation = "Read", topic = "x" }]\n'
    found = read(tmp_path, {"main.tf": MAIN, "other/prod.tfvars": text})
    assert unread(found, tmp_path) == ["variables:tfvars other/prod.tfvars:2"]


def test_a_file_belongs_to_the_nearest_root(tmp_path: Path) -> None:
    files = {"a/main.tf": MAIN, "b/main.tf": MAIN, "b/terraform.tfvars": f'{ACLS}who = "User:b"\n'}
    assert unread(read(tmp_path, {**files, "b/env/prod.tfvars": ACLS}), tmp_path) == []
    assert unread(read(tmp_path, {**files, "a/env/prod.tfvars": ACLS}), tmp_path) == [
        "variables:tfvars a/env/prod.tfvars:1"
    ]


def test_a_broken_file_and_one_without_a_module_are_unread(tmp_path: Path) -> None:
    found = read(tmp_path, {"main.tf": MAIN, "prod.tfvars": "acls = [\n"})
    assert unread(found, tmp_path) == ["variables:tfvars prod.tfvars:1"]
    other = tmp_path / "other"
    user = {"user.yaml": "apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata: {name: a}\nspec: {}\n"}
    found = read(other, {**user, "prod.tfvars": 'acls = [{ principal = "User:*", operation = "All", topic = "*" }]\n'})
    assert unread(found, other) == ["variables:tfvars prod.tfvars:1"]
    assert read(other, {"prod.tfvars": 'region = "eu"\n'}).unread == ()


# Terragrunt


def stack(inputs: str, *, source: str = "../../modules/acl", more: str = "") -> dict[str, str]:
    text = f'terraform {{ source = "{source}" }}\n{more}{inputs}\n'
    return {"modules/acl/main.tf": MAIN, "live/prod/terragrunt.hcl": text}


def test_literal_inputs_are_read(tmp_path: Path) -> None:
    for source in ("../../modules/acl", "../../modules//acl"):
        found = read(tmp_path, stack(f"inputs = {{ {ACLS.strip()} }}", source=source))
        assert rules(found) == {ORDERS, "ALLOW READ GROUP default to User:default"}
        assert found.unread == ()


def test_each_stack_is_a_root(tmp_path: Path) -> None:
    files = stack('inputs = { who = "User:prod" }')
    files["live/test/terragrunt.hcl"] = files["live/prod/terragrunt.hcl"].replace("User:prod", "User:test")
    assert rules(read(tmp_path, files)) == {
        "ALLOW READ GROUP default to User:prod",
        "ALLOW READ GROUP default to User:test",
    }


def test_a_stack_beside_its_module(tmp_path: Path) -> None:
    files = {"main.tf": MAIN, "terragrunt.hcl": 'inputs = { who = "User:here" }\n'}
    assert rules(read(tmp_path, files)) == {"ALLOW READ GROUP default to User:here"}
    files["terraform.tfvars"] = 'who = "User:file"\n'
    assert rules(read(tmp_path, files)) == {"ALLOW READ GROUP default to User:file"}


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (stack("inputs = { who = local.who }"), 2),
        (stack('inputs = { who = get_env("WHO") }'), 2),
        (stack('inputs = {\n  who = "User:${local.who}"\n}'), 3),
        (stack("inputs = merge(local.common, {})"), 2),
        (stack("inputs = local.common"), 2),
        (stack('inputs = { (local.key) = "x" }'), 2),
        (stack("", more='include "root" {\n  path = find_in_parent_folders()\n}\n'), 2),
        (stack("", more='generate "acls" {\n  path = "acls.tf"\n  contents = ""\n}\n'), 2),
        (stack("", more='dependency "other" {\n  config_path = "../other"\n}\n'), 2),
        (stack(ACLS, source="git::https://git.example/acl"), 1),
        (stack("", source="${get_repo_root()}/modules/acl"), 1),
    ],
)
def test_what_is_not_literal_is_unread(tmp_path: Path, files: dict[str, str], line: int) -> None:
    found = read(tmp_path, files)
    assert {each.rpartition("/")[2] for each in unread(found, tmp_path)} == {f"terragrunt.hcl:{line}"}


def test_an_input_that_is_not_literal_is_a_symbol(tmp_path: Path) -> None:
    found = read(tmp_path, stack("inputs = { who = local.who }"))
    [text] = rules(found)
    assert without_marks(text).endswith("${inputs.who}")
