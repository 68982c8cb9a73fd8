"""Unread content in what commands print: notes, reviews, JSON, SARIF, exit codes; and the first and last rules."""

import json
from pathlib import Path

import jsonschema
import pytest

from aclog.cli.schema import schema_of
from tests.support.cli.command import Result, aclog
from tests.support.cli.repository import Repository
from tests.support.sources.files_of_rules import ONE_RULE, write_files

OTHER = 'resource "rhoas_acl" "a" {}\n'
SCRIPT = "kafka-acls.sh --add --allow-principal User:a --topic x\n"
TOPIC = ("--operation", "READ", "--topic", "other")


def fails(*words: object) -> Result:
    """Run a command line that must exit with 1."""
    found = aclog(*words)
    assert found.code == 1, found
    return found


def objects(found: Result) -> list[dict[str, object]]:
    """Return the JSON lines of a result."""
    return [json.loads(line) for line in found.lines]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    made.commit({"kafka/a.jsonl": ONE_RULE, "kafka/b.tf": OTHER})
    return made


_NOTE = "not read, which may hold rules: terraform:rhoas_acl 1 (kafka/b.tf:1)"


def test_a_list_notes_what_was_not_read(repository: Repository) -> None:
    found = aclog("acls", "list", "--acls", "kafka", "--format", "jsonl").ok()
    assert len(found.lines) == 1
    assert f"aclog: note: kafka: 1 object in 1 file {_NOTE}" in found.err.splitlines()
    for more in (("--exclude", "*.tf"), ("--acls-format", "jsonl")):
        assert "not read" not in aclog("acls", "list", "--acls", "kafka", *more).ok().err


def test_no_proof_holds_while_content_is_unread(repository: Repository) -> None:
    words = ("check", "not-granted", "--acls", "kafka", *TOPIC)
    assert fails(*words).lines[0].startswith("UNKNOWN: no principal may ")
    assert objects(fails(*words, "--format", "jsonl"))[0]["premises"][0]["name"] == "unread content"
    assert fails(*words, "--accept-unread", "link").lines[0].startswith("UNKNOWN")
    for accepted in ("terraform", "terraform:rhoas_acl", "link,terraform"):
        assert aclog(*words, "--accept-unread", accepted).ok().lines[0].startswith("PROVED")
    assert aclog(*words, "--exclude", "/b.tf").ok().lines[0].startswith("PROVED")
    refuted = fails("check", "not-granted", "--acls", "kafka", "--operation", "READ", "--topic", "one")
    assert refuted.lines[0].startswith("REFUTED")


def test_a_check_fails_for_unread_content_on_request(repository: Repository) -> None:
    asked, other = ("--operation", "READ", "--topic", "other"), ("--to-acls", "kafka/a.jsonl")
    questions = (("not-granted", *asked), ("only", *asked, "--principal", "User:x"), ("no-public", *asked))
    for words in (*questions, ("equal", *other), ("no-new-access", *other)):
        command = ("check", *words, "--acls", "kafka", "--fail-on", "unread")
        assert fails(*command).lines[0].startswith("UNKNOWN"), words
        assert aclog(*command, "--accept-unread", "terraform").ok().lines[0].startswith("PROVED"), words
    assert "'never' is not 'unread'" in aclog("check", *words, "--acls", "kafka", "--fail-on", "never").err


def test_both_states_of_a_comparison_may_be_unread(repository: Repository) -> None:
    Path("kafka/b.tf").unlink()
    for words in (("--acls", "kafka", "--to-ref", "HEAD:kafka"), ("--ref", "HEAD:kafka", "--to-acls", "kafka")):
        assert fails("check", "equal", *words).lines[0].startswith("UNKNOWN: both states")
        assert fails("diff", *words).lines[0].startswith("no difference: ")
        assert aclog("check", "equal", *words, "--accept-unread", "terraform").ok().lines[0].startswith("PROVED")


def test_lint_fails_for_unread_content_on_request(repository: Repository) -> None:
    words = ("lint", "--acls", "kafka")
    assert aclog(*words).ok()
    for fail_on in ("unread", "never,unread", "error,unread"):
        assert fails(*words, "--fail-on", fail_on)
        assert aclog(*words, "--fail-on", fail_on, "--accept-unread", "terraform").ok()
    assert "--fail-on 'some'" in aclog(*words, "--fail-on", "some").complaint
    assert "--fail-on 'error,never'" in aclog(*words, "--fail-on", "error,never,unread").complaint
    Path("aclog.toml").write_text('[lint]\nfail-on = ["error", "unread"]\n')
    assert fails(*words)
    Path("aclog.toml").write_text('[source]\naccept-unread = ["terraform"]\n[lint]\nfail-on = ["error", "unread"]\n')
    assert aclog(*words).ok()
    Path("aclog.toml").write_text('[source]\nexclude = ["*.tf"]\n[lint]\nfail-on = ["error", "unread"]\n')
    assert aclog(*words).ok()
    Path("aclog.toml").write_text('[source]\naccept-unread = ["terrafrom"]\n')
    assert aclog(*words).complaint.startswith("aclog.toml:2: source.accept-unread: 'terrafrom': expected one of")


def test_lint_prints_unread_content_in_its_formats(repository: Repository) -> None:
    first = objects(aclog("lint", "--acls", "kafka", "--format", "jsonl").ok())[0]
    reason = "a rhoas_acl may make rules, and no format reads it"
    assert first == {"unread": "terraform", "name": "rhoas_acl", "file": "kafka/b.tf", "line": 1, "reason": reason}
    jsonschema.validate(first, schema_of("finding"))
    (run,) = json.loads(aclog("lint", "--acls", "kafka", "--format", "sarif").ok().out)["runs"]
    result = run["results"][0]
    assert (result["ruleId"], result["level"]) == ("content-not-read", "note")
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("kafka/b.tf", 1)
    assert "content-not-read" in {each["id"] for each in run["tool"]["driver"]["rules"]}
    markdown = aclog("lint", "--acls", "kafka", "--format", "markdown").ok().out
    assert r"- kafka/b.tf:1: terraform:rhoas\_acl not read: a rhoas\_acl may make rules" in markdown
    assert "not read" not in aclog("lint", "--acls", "kafka", "--format", "csv").ok().out


def test_lint_proves_no_removal_while_content_is_unread(repository: Repository) -> None:
    assert "unread content" in aclog("lint", "--acls", "kafka", "--fix", "fix.jsonl").complaint
    assert aclog("lint", "--acls", "kafka", "--fix", "fix.jsonl", "--accept-unread", "terraform").ok()


# Reviews.


def test_a_review_names_unread_content_whatever_else_changed(repository: Repository) -> None:
    write_files(Path(), {"kafka/a.jsonl": ONE_RULE.replace('"one"', '"two"'), "kafka/run.sh": SCRIPT})
    lines = aclog("review", "kafka", "--base", "HEAD").ok().lines
    assert lines[0].startswith(
        "aclog review: no condition of --fail-on is met; access gained: 1 row, lost: 1 row, 1 changed object not "
        "read, 1 obj"
    )
    assert lines[1] == ("- changed, but not read, so it may change rules: program:sh 1 (kafka/run.sh:1) (and 1 more)")
    assert "- not read: terraform:rhoas_acl 1 (kafka/b.tf:1)" in lines[:5] or any(
        line.startswith("Not read") for line in lines
    )
    assert "Changed, and not read:" in lines


@pytest.mark.parametrize("change", [{}, {"kafka/b.tf": OTHER + "\n"}, {"kafka/b.tf": None}])
def test_unread_content_of_either_side_fails_a_review_on_request(
    repository: Repository, change: dict[str, str | None]
) -> None:
    """Also the content that the change removes."""
    for path, text in change.items():
        Path(path).unlink() if text is None else Path(path).write_text(text)
    words = ("review", "kafka", "--base", "HEAD")
    assert aclog(*words).ok()
    assert fails(*words, "--fail-on", "unread").lines[0].startswith("aclog review: FAILS: ")
    assert aclog(*words, "--fail-on", "unread", "--accept-unread", "terraform:rhoas_acl").ok()
    assert aclog(*words, "--fail-on", "unread", "--exclude", "b.tf").ok()
    Path("aclog.toml").write_text('[source]\naccept-unread = "terraform"\n[review]\nfail-on = ["unread"]\n')
    assert aclog(*words).ok()


def test_a_review_has_unread_content_in_its_formats(repository: Repository) -> None:
    Path("kafka/run.sh").write_text(SCRIPT)
    words = ("review", "kafka", "--base", "HEAD", "--format")
    verdict, first, second = objects(aclog(*words, "jsonl").ok())
    assert (verdict["unread"], verdict["found"]) == (2, ["unread"])
    assert [(each["label"], each["file"], each["line"], each["changed"]) for each in (first, second)] == [
        ("program:sh", "kafka/run.sh", 1, True),
        ("terraform:rhoas_acl", "kafka/b.tf", 1, False),
    ]
    for each in (verdict, first, second):
        jsonschema.validate(each, schema_of("review"))
    (run,) = json.loads(aclog(*words, "sarif").ok().out)["runs"]
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [
        ("content-not-read", "warning"),
        ("content-not-read", "note"),
    ]
    comment = aclog(*words, "markdown").ok().lines
    assert any(line.startswith("- changed, and not read: ") and "kafka/run.sh:1" in line for line in comment)
    assert "<summary>Not read</summary>" in comment
    assert comment[0].endswith("no effective change in what was read")


def test_the_first_file_of_rules_and_the_last_one_are_reviewed(repository: Repository) -> None:
    repository.commit({"new/README.md": "about\n"})
    write_files(Path(), {"new/rules.jsonl": ONE_RULE})
    lines = aclog("review", "new", "--base", "HEAD").ok().lines
    assert lines[0].startswith("aclog review: no condition of --fail-on is met; access gained: 1 row, lost: 0 rows")
    assert any("has no file of a known format, so no rules" in line for line in lines[:5])
    repository.git("add", ".")
    repository.git("commit", "--quiet", "--message", "first")
    assert (
        "access gained: 1 row, lost: 0 rows"
        in aclog("review", "new", "--base", "HEAD~1", "--head", "HEAD").ok().lines[0]
    )
    Path("new/rules.jsonl").unlink()
    assert "access gained: 0 rows, lost: 1 row" in aclog("review", "new", "--base", "HEAD").ok().lines[0]


def test_a_review_without_rules_on_either_side_is_an_error(repository: Repository) -> None:
    repository.commit({"new/README.md": "about\n"})
    write_files(Path(), {"new/README.md": "more\n"})
    assert "its only file is not of a known format" in aclog("review", "new", "--base", "HEAD").complaint
    write_files(Path(), {"new/acls.sh": SCRIPT})
    lines = aclog("review", "new", "--base", "HEAD").ok().lines
    assert lines[0].endswith(
        "no effective change in what was read, 1 changed object not read (fails with --fail-on unread)"
    )


# Plans.


def test_a_plan_deletes_nothing_while_content_is_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    two = ONE_RULE.replace('"one"', '"two"')
    write_files(tmp_path, {"want/a.jsonl": ONE_RULE + two, "want/b.tf": OTHER})
    words = ("plan", "--log", "log", "--want", "want", "--journal", "j")
    assert aclog(*words, "--fail-on", "unread").complaint.startswith("want: 1 object in 1 file not read")
    assert fails(*words, "--out", "PLAN")
    assert aclog("apply", "PLAN", "--yes").ok()
    Path("want/a.jsonl").write_text(ONE_RULE)
    assert "1 rule would be deleted" in aclog(*words).complaint
    assert fails(*words, "--accept-unread", "terraform")
    assert fails(*words, "--exclude", "*.tf")


# Files that git ignores.


def test_files_that_git_ignores_are_not_read_unless_they_are_tracked_or_named(repository: Repository) -> None:
    write_files(
        Path(),
        {
            ".gitignore": "out/\n/kafka/*.gen.sh\n!keep.gen.sh\n",
            "kafka/sub/.gitignore": "*.sh\n",
            **dict.fromkeys(("kafka/out/a.sh", "kafka/x.gen.sh", "kafka/keep.gen.sh", "kafka/sub/y.sh"), SCRIPT),
            "kafka/sub/out/z.jsonl": ONE_RULE,
        },
    )
    repository.git("add", "--force", "kafka/x.gen.sh")

    def scripts(path: str) -> str:
        err = aclog("acls", "list", "--acls", path).ok().err
        return next((line for line in err.splitlines() if "program" in line), "")

    assert "program:sh 2 (kafka/keep.gen.sh:1, kafka/x.gen.sh:1)" in scripts("kafka")
    assert aclog("acls", "list", "--acls", "kafka/sub/out").ok()
    write_files(Path(), {"kafka/sub/out/w.sh": SCRIPT})
    assert "program:sh 1 (kafka/sub/out/w.sh:1)" in scripts("kafka/sub/out")
