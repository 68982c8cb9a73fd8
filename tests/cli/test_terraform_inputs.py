"""Values of Terraform's variables by flags and by aclog.toml, of both sides of a review."""

import contextlib
from pathlib import Path

import pytest

from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository

MAIN = """variable "who" { default = "User:default" }
resource "kafka_acl" "one" {
  resource_name       = "orders-${terraform.workspace}"
  resource_type       = "Topic"
  acl_principal       = var.who
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""
FILES = {"kafka/main.tf": MAIN, "env/prod.tfvars": 'who = "User:a"\n'}
SETTINGS = """[source]
acls = "kafka"
var-files = ["env/prod.tfvars"]
vars = { unused = "1" }
workspace = "prod"
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    made.commit(FILES)
    monkeypatch.chdir(made.path)
    return made


def test_a_list_by_flags(repository: Repository) -> None:
    flags = ("--var-file", "env/prod.tfvars", "--workspace", "prod")
    for source in (("--acls", "kafka"), ("--ref", "HEAD:kafka")):
        listed = aclog("acls", "list", *source, *flags, "--format", "kafka").ok()
        assert "name=orders-prod" in listed.out
        assert "principal=User:a," in listed.out
        listed = aclog("acls", "list", *source, *flags, "--var", "who=User:b", "--format", "kafka")
        assert listed.code == 2  # Terraform takes the last of its flags, and their order is not known
        assert "env/prod.tfvars:1 of --var-file sets it as well" in listed.err


@pytest.mark.parametrize("by", ["flags", "settings"])
def test_a_review_reads_the_values_of_each_side(repository: Repository, by: str) -> None:
    flags = ("--var-file", "env/prod.tfvars", "--workspace", "prod") if by == "flags" else ()
    if by == "settings":
        repository.commit({"aclog.toml": SETTINGS})
    repository.write({"env/prod.tfvars": 'who = "User:*"\n'})
    reviewed = aclog("review", "kafka", "--base", "HEAD", *flags)
    assert reviewed.code == 1
    assert "everyone gains access" in reviewed.out
    assert "orders-prod" in reviewed.out
    repository.commit({"env/prod.tfvars": 'who = "User:b"\n'})
    reviewed = aclog("review", "kafka", "--base", "HEAD~1", "--head", "HEAD", *flags)
    assert "GAINED  User:b" in reviewed.out
    assert "LOST  User:a" in reviewed.out


def test_a_commit_without_the_file_has_the_default(repository: Repository) -> None:
    repository.commit({"env/new.tfvars": 'who = "User:b"\n'})
    reviewed = aclog("review", "kafka", "--base", "HEAD~1", "--head", "HEAD", "--var-file", "env/new.tfvars")
    assert "LOST  User:default" in reviewed.out
    assert "env/new.tfvars: there is no such file" in reviewed.err


def test_a_plan_takes_values(repository: Repository, tmp_path: Path) -> None:
    where = ("--log", tmp_path / "log", "--journal", tmp_path / "journal", "--out", tmp_path / "plan")
    planned = aclog("plan", "--want", "kafka", *where, "--var", "who=User:planned")
    assert planned.code == 1
    assert "User:planned" in planned.out


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("var-files = 1", "var-files"),
        ('var-files = ["../outside.tfvars"]', "out of the repository"),
        ("vars = 1", "vars"),
        ("vars = { a = 1 }", "vars"),
        ("workspace = 1", "workspace"),
    ],
)
def test_settings_are_checked(repository: Repository, line: str, what: str) -> None:
    repository.write({"aclog.toml": f"[source]\nacls = 'kafka'\n{line}\n"})
    linted = aclog("lint")
    assert linted.code == 2
    assert what in linted.err


REQUIRED = MAIN.replace(' { default = "User:default" }', " {}").replace(
    "{\n  resource_name ", "{\n  for_each            = toset([var.who])\n  resource_name ", 1
)


def test_the_fix_of_an_unread_file_of_variables_works(repository: Repository) -> None:
    """The path of the flag is from the working directory, and names no commit; a file is one object."""
    repository.commit({"kafka/prod.tfvars": 'who = "User:a"\n'})
    repository.commit({"kafka/prod.tfvars": 'who = "User:b"\n'})
    words = ("--base", "HEAD~1", "--head", "HEAD")
    for path, file in (("kafka", "kafka/prod.tfvars"), (".", "prod.tfvars")):
        with contextlib.chdir(repository.path if path == "kafka" else repository.path / "kafka"):
            lines = aclog("review", path, *words).ok().lines
            assert lines[0].endswith("1 changed object not read (fails with --fail-on unread)")
            assert any(line.endswith(f": expected --var-file {file}") for line in lines)
            assert "GAINED  User:b" in aclog("review", path, *words, "--var-file", file).ok().out
    assert aclog("review", "kafka", *words, "--fail-on", "unread").lines[0].endswith("1 changed object not read")


def test_a_variable_without_a_value_has_a_fix(repository: Repository) -> None:
    repository.commit({"kafka/main.tf": REQUIRED})
    for words in (("--acls", "kafka"), ("--ref", "HEAD:kafka")):
        assert aclog("acls", "list", *words).complaint.endswith(": expected --var who=VALUE, or --var-file FILE")
    repository.commit({"kafka/env/prod.tfvars": 'who = "User:a"\n', "kafka/other.tfvars": "x = 1\n"})
    for words in (("--acls", "kafka"), ("--ref", "HEAD:kafka")):
        message = aclog("acls", "list", *words).complaint
        assert message.endswith(": expected --var-file kafka/env/prod.tfvars, or --var who=VALUE")
        assert aclog("acls", "list", *words, "--var-file", "kafka/env/prod.tfvars").ok()
        assert aclog("acls", "list", *words, "--var", "who=User:a").ok()


def test_a_mistyped_file_of_variables_is_refused(repository: Repository) -> None:
    repository.commit({"kafka/main.tf": REQUIRED})
    repository.commit({"new.txt": ""})
    for head, name in (((), "the working tree"), (("--head", "HEAD"), "HEAD")):
        message = aclog("review", "kafka", "--base", "HEAD~1", *head, "--var-file", "env/prd.tfvars").complaint
        assert message == f"--var-file: env/prd.tfvars: no such file or directory, neither in HEAD~1 nor in {name}"
    message = aclog("acls", "list", "--ref", "HEAD:kafka", "--var-file", "env/prd.tfvars").complaint
    assert message.endswith("; --var-file HEAD:env/prd.tfvars: there is no such file, so it sets no variable")
