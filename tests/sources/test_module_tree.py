"""Terraform modules that are not among the files: where the user says they are, on disk or as of the commit."""

from pathlib import Path

import pytest

from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository

CALL = 'module "a" {\n  source = "acme/acl/kafka"\n}\n'
MODULE = """resource "kafka_acl" "r" {
  resource_name       = "%s"
  resource_type       = "Topic"
  acl_principal       = "User:a"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    made.commit({"kafka/main.tf": CALL, "vendor/acl/main.tf": MODULE % "old", "x/y/main.tf": MODULE % "x"})
    made.write({"vendor/acl/main.tf": MODULE % "new"})
    outside = tmp_path / "outside/acl"
    outside.mkdir(parents=True)
    (outside / "main.tf").write_text('module "b" {\n  source = "../other"\n}\n' + MODULE % "outside")
    (outside.parent / "other").mkdir()
    (outside.parent / "other/main.tf").write_text(MODULE % "other")
    (outside.parent / ".git").mkdir()
    return made


def places(source: str, module: str) -> list[str]:
    flag, path = source.split()
    words = ("acls", "list", flag, path, "--module", f"acme/acl/kafka={module}", "--format", "table")
    lines = aclog(*words).ok().lines[1:]
    return [f"{line.split()[1]} {line.split()[-1]}" for line in lines]


@pytest.mark.parametrize("source", ["--acls kafka", "--acls kafka/main.tf", "--acls ../repository/kafka"])
def test_on_disk_it_is_read_as_it_is(repository: Repository, source: str) -> None:
    assert places(source, "vendor/acl") == ["new vendor/acl/main.tf:1"]
    assert places(source, f"{repository.path}/vendor/acl") == [f"new {repository.path}/vendor/acl/main.tf:1"]


@pytest.mark.parametrize("source", ["--ref main:kafka", "--ref main:kafka/main.tf", "--ref :kafka"])
def test_what_the_commit_has_is_read_as_of_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    ref = source.removeprefix("--ref ").split(":")[0]
    assert places(source, "vendor/acl") == [f"old {ref}:vendor/acl/main.tf:1"]
    assert places(source, f"{repository.path}/vendor/acl") == [f"old {ref}:vendor/acl/main.tf:1"]
    monkeypatch.chdir(repository.path / "x")
    assert places(source, "../vendor/acl") == [f"old {ref}:vendor/acl/main.tf:1"]


@pytest.mark.parametrize("source", ["--acls kafka", "--ref main:kafka"])
def test_one_outside_of_the_repository_is_read_and_what_it_calls_beside_it(repository: Repository, source: str) -> None:
    assert places(source, "../outside/acl") == ["other ../outside/other/main.tf:1", "outside ../outside/acl/main.tf:4"]


def test_what_leads_out_of_its_repository_is_refused(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "outside/acl/main.tf").write_text('module "b" {\n  source = "../../repository/x/y"\n}\n')
    words = ("acls", "list", "--acls", "kafka", "--module")
    said = aclog(*words, "acme/acl/kafka=../outside/acl").complaint
    assert "leads out of" in said
    assert aclog(*words, "acme/acl/kafka=none").complaint == "--module: none: no such directory"
