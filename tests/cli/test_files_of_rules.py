"""Files of rules as a source of commands: directories, formats, git, and what goes with what."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from aclog.cli.flags.source import complete_refs
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository

LOG = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"


def rule(name: str, **changed: str) -> str:
    """A line that allows User:a to read a topic."""
    fields = {
        "resourceType": "TOPIC",
        "resourceName": name,
        "patternType": "LITERAL",
        "principal": "User:a",
        "host": "*",
        "operation": "READ",
        "permissionType": "ALLOW",
    }
    return json.dumps({**fields, **changed}) + "\n"


def listed(*arguments: object, stdin: bytes = b"") -> list[str]:
    lines = aclog("acls", "list", *arguments, "--format", "jsonl", stdin=stdin).ok().lines
    return [json.loads(line)["resourceName"] for line in lines]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    made.commit({"kafka/a.jsonl": rule("orders"), "kafka/README.md": "about\n"})
    made.git("tag", "v1")
    made.commit({"kafka/a.jsonl": rule("orders") + rule("pay")})
    made.write({"kafka/a.jsonl": rule("pay"), "kafka/team/b.jsonl": rule("audit")})
    return made


def test_a_directory_is_read_and_said_to_be(repository: Repository) -> None:
    found = aclog("acls", "list", "--acls", "kafka", "--format", "jsonl").ok()
    assert [json.loads(line)["resourceName"] for line in found.lines] == ["audit", "pay"]
    assert found.err.splitlines() == [
        "aclog: note: kafka: 2 rules in 2 files (2 jsonl)",
        "aclog: note: kafka: ignored, as they cannot make rules: other file 1",
    ]
    assert listed("--acls", "kafka", "--acls-format", "jsonl") == ["audit", "pay"]
    assert list(json.loads(found.lines[0])) == [
        "resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType", "id",
        "file", "line",
    ]  # fmt: skip


def test_json_lines_are_read_as_ever_and_nothing_is_noted(repository: Repository, tmp_path: Path) -> None:
    lines = rule("pay").encode()
    (tmp_path / "x.gz").write_bytes(gzip.compress(lines))
    for source, stdin in (("kafka/a.jsonl", b""), ("-", lines), (tmp_path / "x.gz", b""), ("-", gzip.compress(lines))):
        for more in ((), ("--acls-format", "auto"), ("--acls-format", "jsonl")):
            found = aclog("acls", "list", "--acls", source, *more, "--format", "jsonl", stdin=stdin).ok()
            assert ([json.loads(line)["resourceName"] for line in found.lines], found.err) == (["pay"], "")


def test_a_commit_is_read_without_a_checkout(repository: Repository) -> None:
    assert listed("--ref", "v1:kafka") == ["orders"]
    assert listed("--ref", "main:kafka") == listed("--ref", ":kafka") == ["orders", "pay"]
    found = aclog("acls", "list", "--ref", "HEAD~1:kafka/a.jsonl").ok()
    assert ("orders" in found.out, found.err) == (True, "")
    twice = {"kafka/a.jsonl": rule("pay") * 2}
    repository.commit(twice)
    assert aclog("acls", "list", "--ref", "main:kafka/a.jsonl").complaint == (
        aclog("acls", "list", "--acls", "kafka/a.jsonl").complaint.replace("kafka/a.jsonl", "main:kafka/a.jsonl")
    )


def test_gzip_in_git_is_read(repository: Repository) -> None:
    (repository.path / "kafka/z.jsonl.gz").write_bytes(gzip.compress(rule("zipped").encode()))
    repository.commit({})
    assert listed("--ref", "main:kafka/z.jsonl.gz") == ["zipped"]
    assert "zipped" in listed("--ref", "main:kafka")


def test_two_states_of_one_repository_are_compared(repository: Repository) -> None:
    changed = aclog("diff", "--ref", "main:kafka", "--to-acls", "kafka")
    assert changed.code == 1
    assert [line.split(", ")[0] for line in changed.lines if not line.startswith(" ")] == [
        "GAINED  User:a: READ",
        "LOST  User:a: READ",
        "2 rows: 1 gained",
    ]
    assert aclog("diff", "--acls", "kafka", "--to-ref", "v1:kafka").code == 1
    assert aclog("check", "equal", "--ref", "main:kafka", "--to-ref", ":kafka").ok().out.startswith("PROVED")
    assert aclog("check", "no-new-access", "--ref", "main:kafka", "--to-ref", "v1:kafka").ok()


QUESTION = ("--principal", "User:a", "--operation", "READ", "--topic", "t")
COMMANDS = (
    "authorize --principal User:a --operation READ --topic orders",
    "explain --principal User:a --operation READ --topic orders",
    "who-can --operation READ --topic orders",
    "what-can --principal User:a",
    "acls list",
    "shell ls /acl",
    "export --format jsonl --out OUT",
    "snapshot create --out OUT",
    "check no-public",
    "diff --to-acls kafka/a.jsonl",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_reads_a_directory_and_a_commit(repository: Repository, tmp_path: Path, command: str) -> None:
    words = command.replace("OUT", str(tmp_path / "out")).split()
    at = 2 if words[0] in {"acls", "check", "snapshot"} else 1
    for source in (("--ref", "v1:kafka"), ("--ref", ":kafka"), ("--acls", "kafka")):
        result = aclog(*words[:at], *source, *words[at:])
        assert result.code in {0, 1}, result
        assert f"{source[1]}: " in result.err
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        (tmp_path / "out").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (f"--acls {LOG}", f"{LOG}: a directory with a log, no files of rules: expected --log instead of --acls"),
        ("--log kafka", "kafka: not a metadata log: it has no segments (*.log) and no checkpoints: did you mean"),
        ("--log kafka/a.jsonl", "not a directory: expected --acls for a file of ACLs, --snapshot for a checkpoint"),
        ("--acls none", "none: no such file or directory"),
        ("--acls empty", "empty: no files: expected files of rules"),
        ("--acls kafka --ref main:kafka", "exactly one state source must be given"),
        ("--ref main", "'main': no path in the repository: expected GITREF:PATH"),
        ("--ref main..v1:kafka", "a range of commits"),
        ("--ref=-x:kafka", "is no branch, tag or commit"),
        ("--ref none:kafka", "no branch, tag or commit 'none' in this clone"),
        ("--ref main:kafka --as-of 3", "main:kafka: as of 3: a file of ACLs has one state only"),
        (f"--log {LOG} --acls-format ksm", "--acls-format: expected --acls PATH or --ref GITREF:PATH"),
        ("--acls kafka --module x", "--module 'x': expected SOURCE=DIR"),
        ("--acls kafka --module a=b --module a=c", "--module 'a': two directories: b and c"),
        ("--acls - --topics -", "--acls - and --topics -: only one of them can be stdin"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_one_line(repository: Repository, flags: str, complaint: str) -> None:
    (repository.path / "empty").mkdir()
    result = aclog("explain", *flags.split(), *QUESTION)
    assert result.code == 2
    assert complaint in result.complaint
    assert aclog("acls", "list", *flags.split()).complaint == result.complaint


def test_a_checkpoint_is_for_another_flag() -> None:
    checkpoint = next(LOG.glob("*.checkpoint"))
    said = f"{checkpoint}: a checkpoint, no file of rules: expected --snapshot instead of --acls"
    assert aclog("acls", "list", "--acls", checkpoint).complaint == said


def test_both_states_and_what_is_counted_read_one_file_of_topics(repository: Repository) -> None:
    result = aclog("diff", "--ref", "main:kafka", "--to-acls", "kafka", "--topics", "-", stdin=b"audit\norders\n")
    assert result.lines.count("  covers 1 existing topic") == 2


def test_the_shell_completes_commits_and_their_paths(repository: Repository) -> None:
    repository.git("branch", "feature/x")
    assert complete_refs("") == ["HEAD:", "feature/x:", "main:", "v1:"]
    assert complete_refs("ma") == ["main:"]
    assert complete_refs("main:k") == ["main:kafka/"]
    assert complete_refs("main:kafka/") == ["main:kafka/README.md", "main:kafka/a.jsonl"]
    assert complete_refs("main:none/") == complete_refs("none:") == []


def test_a_place_that_is_no_repository_has_no_commits_to_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complete_refs("") == []


JIKKOU = """apiVersion: kafka.jikkou.io/v1
kind: KafkaPrincipalAuthorization
metadata: {name: "User:a"}
spec:
  acls:
    - {resource: {type: topic, pattern: "in-.*", patternType: MATCH}, type: ALLOW, operations: [READ]}
"""


def test_patterns_over_names_are_for_the_topics_that_are_told(repository: Repository) -> None:
    repository.commit({"jikkou/a.yaml": JIKKOU})
    repository.write({"jikkou/a.yaml": JIKKOU.replace("in-", "out-")})
    sides = ("--ref", "main:jikkou", "--to-acls", "jikkou")
    found = aclog("diff", *sides, "--topics", "-", stdin=b"in-1\nout-1\nout-2\n")
    assert [line for line in found.lines if not line.startswith(" ")] == [
        "GAINED  User:a: READ, DESCRIBE on TOPIC out-1, out-2, from any host",
        "LOST  User:a: READ, DESCRIBE on TOPIC in-1, from any host",
        "2 rows: 1 gained, 1 lost",
    ]
    (repository.path / "topics").write_text("out-7\n")
    assert listed("--acls", "jikkou", "--topics", "topics") == ["out-7"]
    assert "jikkou/a.yaml:6: a MATCH pattern expands to" in aclog("diff", *sides).complaint
    (repository.path / "topics").write_bytes(b"\xff\n")
    assert (
        "topics: line 1: byte 0 is not UTF-8"
        in aclog("acls", "list", "--acls", "jikkou", "--topics", "topics").complaint
    )


def test_the_second_state_is_of_the_format_of_the_first_unless_said_otherwise(repository: Repository) -> None:
    repository.commit({"both/a.jsonl": rule("pay"), "both/b.yaml": JIKKOU.replace("MATCH", "PREFIXED")})
    sides = ("--ref", "main:both", "--to-acls", "both")
    assert aclog("check", "equal", *sides).ok()
    assert aclog("check", "equal", *sides, "--acls-format", "jsonl").ok()
    assert aclog("check", "equal", *sides, "--acls-format", "jsonl", "--to-acls-format", "jikkou").code == 1
    assert listed("--acls", "both", "--acls-format", "jikkou") == ["in-.*"]
    assert aclog("acls", "list", "--acls", "both", "--acls-format", "xml").code == 2


def test_stdin_is_read_by_what_it_holds(repository: Repository) -> None:
    held = {
        "in-.*": JIKKOU.replace("MATCH", "PREFIXED"),
        "pay": "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host\n"
        "User:eve,Topic,LITERAL,pay,Read,Deny,*\n",
        "orders": rule("orders"),
    }
    for name, text in held.items():
        assert listed("--acls", "-", stdin=text.encode()) == [name]
    said = aclog("acls", "list", "--acls", "-", stdin=b"neither\n").complaint
    assert said == "stdin: line 1: not JSON: Expecting value at character 1"
    Path("plain").write_text(held["in-.*"])
    assert listed("--acls", "plain") == ["in-.*"]
