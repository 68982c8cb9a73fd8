"""A wanted directory in which a file of rules cannot be read, or was emptied: refused, since its rules would go."""

import os
import socket
from pathlib import Path

import pytest

from tests.support.builders.acls import acl
from tests.support.cli.command import Result, aclog
from tests.support.planning.estate import Estate, line_of, log_with
from tests.support.sources.files_of_rules import write_files

A, B = acl("a", "User:shop"), acl("b", "User:shop")
KSM = "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host\n"


@pytest.fixture
def estate(tmp_path):
    """What owns two rules, each in a file of its own."""
    found = Estate(tmp_path / "source", log_with(tmp_path / "log", []))
    found.want = write_files(tmp_path / "want", {"a.jsonl": line_of(A), "team/b.jsonl": line_of(B)})
    found.bring()
    return found


def answers(estate: Estate, *flags: object) -> list[Result]:
    """What `plan` and `drift` say of it."""
    asked = (*estate.place, "--want", estate.want, "--journal", estate.journal, *flags)
    return [aclog("plan", *asked), aclog("drift", *asked)]


def bound_socket(path: Path) -> None:
    """Leave a socket in the file system."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def device_link(path: Path) -> None:
    """Mask a file as people do."""
    path.symlink_to(os.devnull)


@pytest.mark.parametrize("make", [os.mkfifo, bound_socket, device_link])
def test_what_is_no_file_is_refused_where_rules_were(estate, make, monkeypatch):
    file = estate.want / "team/b.jsonl"
    file.unlink()
    monkeypatch.chdir(file.parent)  # a socket has no long name
    make(Path(file.name))
    for answer in answers(estate):
        why = "neither a regular file nor a directory: its rules cannot be read"
        assert (answer.code, answer.complaint) == (2, f"{file}: {why}")
    listed = aclog("acls", "list", "--acls", estate.want, "--format", "jsonl").ok()
    assert len(listed.lines) == 1  # who only looks at the directory is not kept from it


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("team/b.jsonl", ()),
        ("team/b.jsonl", ("--want-format", "jsonl")),
        ("b.ndjson", ()),
        ("b.json", ()),
        ("b.CSV", ()),
        ("b.csv", ("--want-format", "ksm")),
    ],
)
def test_an_emptied_file_beside_others_is_refused(estate, name, flags):
    write_files(estate.want, {name: "", "more.csv": KSM})
    for answer in answers(estate, *flags):
        why = "empty: delete the file if it is meant to hold no rules"
        assert (answer.code, answer.complaint) == (2, f"{estate.want / name}: {why}")


def test_files_that_may_well_be_empty_are_no_trouble(estate):
    write_files(estate.want, dict.fromkeys(("users.yaml", "versions.tf", "README.md", "rules.acls", "z/.gitkeep"), ""))
    write_files(estate.want, {"blank.jsonl": "\n"})
    assert [answer.code for answer in answers(estate)] == [0, 0]


def test_the_only_file_may_say_that_nothing_is_wanted(estate):
    (estate.want / "team/b.jsonl").unlink()
    write_files(estate.want, {"a.jsonl": ""})
    plan, drift = answers(estate)
    assert (plan.code, "has no rules at all, so all 2 that are owned" in plan.complaint) == (2, True)
    assert (drift.code, len(drift.lines)) == (1, 3)
    assert estate.plan("--max-deletes", 2).removed() == {A, B}
