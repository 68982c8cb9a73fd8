"""Values of Terraform's variables by flags and by aclog.toml, of both sides of a review."""

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
