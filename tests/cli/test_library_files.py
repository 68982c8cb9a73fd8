"""`aclog.open_acls`: files of rules, also as of a commit, and where each rule stands."""

from pathlib import Path

import pytest

import aclog
from aclog.authorizer.acl import FileOrigin
from tests.cli.test_files_of_rules import JIKKOU, rule
from tests.support.cli.repository import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    made.commit({"kafka/a.jsonl": rule("orders"), "kafka/b.yaml": JIKKOU, "README.md": "about\n"})
    made.write({"kafka/a.jsonl": rule("pay")})
    return made


def test_a_directory_and_a_commit(repository: Repository) -> None:
    before = aclog.open_acls(ref="HEAD:kafka", topics=["in-1", "in-2"])
    after = aclog.open_acls(repository.path / "kafka", topics=["in-1"])
    old, new = before.image(), after.image()
    assert (before.name, len(old), len(new)) == ("HEAD:kafka", 3, 2)
    assert before.notes == ["HEAD:kafka: 3 rules in 2 files (1 jsonl, 1 jikkou)"]
    [found] = old.acls(name="orders")
    assert old.origins.of(found.acl) == (FileOrigin(file="HEAD:kafka/a.jsonl", line=1),)
    assert new.origins.of(found.acl) == ()
    told = "\n".join(old.diff(new).text_lines())
    assert "ALLOW User:a READ on TOPIC LITERAL 'in-2' from * (HEAD:kafka/b.yaml:6); after: DefaultDeny" in told
    [line] = [line for line in old.diff(new).json_lines() if line["change"] == "GAINED"]
    assert (line["new"]["file"], line["new"]["line"]) == (f"{repository.path}/kafka/a.jsonl", 1)
    explained = old.authorizer().check("User:a", "READ", aclog.topic("in-2")).explain()
    assert "(HEAD:kafka/b.yaml:6)" in explained
    before.close()
    with pytest.raises(aclog.LogError, match="closed"):
        before.image()


def test_a_format_is_asked_for(repository: Repository) -> None:
    assert len(aclog.open_acls("kafka", format="jsonl").image()) == 1
    with pytest.raises(aclog.ConfigError, match=r"kafka/b.yaml:6: a MATCH pattern expands to existing topics"):
        aclog.open_acls("kafka", format="jikkou").image()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "expected either a path or ref=GITREF:PATH"),
        ({"path": "kafka", "ref": "HEAD:kafka"}, "expected either a path or ref=GITREF:PATH"),
        ({"path": "kafka", "format": "xml"}, "format 'xml' is not one of auto, jsonl"),
        ({"ref": "HEAD"}, "no path in the repository"),
        ({"ref": "a..b:kafka"}, "a range of commits"),
    ],
)
def test_what_is_no_place_is_refused_at_once(arguments: dict[str, str], complaint: str) -> None:
    with pytest.raises(aclog.ConfigError, match=complaint):
        aclog.open_acls(**arguments)


def test_images_of_other_sources_do_not_know(repository: Repository) -> None:
    log = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"
    image = aclog.open_log(log).image()
    assert image.origins.of(next(image.acls()).acl) == ()
