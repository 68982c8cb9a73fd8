"""Terraform's language beside HashiCorp's own parser and values: their recorded answers.

tests/support/terraform/record.py asked them, by the program in tests/go/terraform.
"""

import json
from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.unread import UnreadKind
from tests.support.sources.files_of_rules import read_rules
from tests.support.terraform.answers import answer, digest, read_directory, recorded
from tests.support.terraform.record import COMMITS, DATA, SEED, TEAMS
from tests.support.terraform.repository import history, write_commit


def _lines(name: str) -> list[str]:
    return (DATA / name).read_text(encoding="utf-8").splitlines()


def test_expressions() -> None:
    lines = _lines("expressions.jsonl")
    expected = {json.loads(line)["expression"]: recorded(line) for line in lines}
    ours = {expression: answer(expression) for expression in expected}
    assert ours == expected
    assert len(lines) > 2_000


def test_a_repository() -> None:
    rules = [list(row) for row in read_directory(DATA / "repository")]
    assert rules == [json.loads(line) for line in _lines("repository.jsonl")]


def test_every_commit_of_a_history(tmp_path: Path) -> None:
    told = [json.loads(line) for line in _lines("history.jsonl")]
    for commit, expected in zip(history(SEED, COMMITS, TEAMS), told, strict=True):
        write_commit(tmp_path, commit)
        outcome, message = _outcome(tmp_path)
        if commit.broken and outcome != "refused":
            # A module that is broken is not read, and stops no other; a value known after apply is a symbol.
            assert expected["answer"] == "refused"
            now = read_rules(tmp_path)
            if not now.unread:
                assert any("${" in text for text in now.rules), commit.message
                continue
            assert now.unread[0].kind is UnreadKind.BROKEN, commit.message
            message = f"{now.unread[0].file}:{now.unread[0].line}: {now.unread[0].reason}"
        else:
            assert outcome == expected["answer"], commit.message
            assert commit.broken == (outcome == "refused"), commit.message
        assert not commit.broken or _names_a_line(message, tmp_path), message


def _outcome(directory: Path) -> tuple[str, str]:
    try:
        return digest(read_directory(directory)), ""
    except ConfigError as error:
        return "refused", str(error)


def _names_a_line(message: str, directory: Path) -> bool:
    file, _, rest = message.removeprefix(f"{directory}/").partition(":")
    return (directory / file).is_file() and rest.partition(":")[0].isdigit()
