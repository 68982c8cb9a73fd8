"""The commit of a plan: the one that is checked out, and whether what is wanted is as it is there."""

from pathlib import Path

import pytest

from aclog.targets.applies import origin_now
from tests.support.cli.repository import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    return made


def test_a_commit_is_dirty_if_it_does_not_have_what_is_wanted(repository: Repository) -> None:
    assert origin_now("kafka").git is None, "no commit yet"
    commit = repository.commit({".gitignore": "made.jsonl\n", "kafka/a.jsonl": "", "elsewhere": ""})
    repository.write({"kafka/made.jsonl": "", "elsewhere": "changed"})
    for path, expected in (
        ("kafka/a.jsonl", commit),
        ("kafka", commit),
        (str(repository.path / "kafka"), commit),
        (".", f"{commit}-dirty"),
        ("kafka/made.jsonl", f"{commit}-dirty"),
        ("elsewhere", f"{commit}-dirty"),
        ("..", None),
        ("-", None),
    ):
        assert origin_now(path).git == expected, path
    repository.write({"kafka/new.jsonl": ""})
    assert origin_now("kafka").git == f"{commit}-dirty"
    assert origin_now("kafka/a.jsonl").git == commit
