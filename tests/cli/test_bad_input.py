"""Bad input is normal input: one line on stderr that says what and where, exit code 2, nothing on stdout."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.cli.command import aclog

DATA = Path(__file__).parents[1] / "data"
LOG = DATA / "kafka-4.3.1-small/__cluster_metadata-0"
CHECKPOINT = LOG / "00000000000000000211-0000000002.checkpoint"

READING = [
    ("acls", "list"),
    ("authorize", "--principal", "User:a", "--operation", "READ", "--topic", "t"),
    ("explain", "--principal", "User:a", "--operation", "READ", "--topic", "t"),
    ("export", "--format", "jsonl"),
    ("shell", "ls", "/"),
]
"""Commands that read a state, without the flags of its source."""


def refused(*arguments, stdin=b""):
    """Return the error line of a command."""
    result = aclog(*arguments, stdin=stdin)
    assert (result.code, result.out) == (2, ""), result
    return result.complaint


def sourced(command, *source):
    """Return a reading command with its source flags, which precede a shell command."""
    return (command[0], *source, *command[1:]) if command[0] == "shell" else (*command, *source)


@pytest.fixture(params=READING, ids=lambda command: " ".join(command[:2]))
def read(request):
    """A reading command without its source."""
    return lambda *source, stdin=b"": refused(*sourced(request.param, *source), stdin=stdin)


class TestSources:
    def test_a_missing_path(self, read, tmp_path):
        nowhere = tmp_path / "nowhere"
        for flag in ("--log", "--snapshot", "--acls"):
            assert read(flag, nowhere) == f"{flag}: {nowhere}: no such file or directory"

    def test_a_missing_file_of_topics(self, read, tmp_path):
        """It is refused also where no rule needs a topic."""
        nowhere = tmp_path / "nowhere"
        assert read("--log", LOG, "--topics", nowhere) == f"--topics: {nowhere}: no such file or directory"

    def test_an_empty_directory(self, read, tmp_path):
        assert read("--log", tmp_path) == (
            f"{tmp_path}: not a metadata log: it has no segments (*.log) and no checkpoints"
        )
        assert read("--snapshot", tmp_path) == f"{tmp_path}: not a file: expected a checkpoint"
        assert read("--acls", tmp_path) == f"{tmp_path}: no files: expected files of rules"

    def test_a_directory_that_is_not_a_log(self, read, tmp_path):
        (tmp_path / "README").write_text("hello")
        assert "not a metadata log" in read("--log", tmp_path)
        assert "did you mean its __cluster_metadata-0?" in read("--log", LOG.parent)
        assert str(CHECKPOINT) in read("--log", CHECKPOINT)

    def test_a_segment_without_a_batch(self, read, tmp_path):
        (tmp_path / "00000000000000000000.log").write_bytes(b"x" * 3000)
        said = read("--log", tmp_path)
        assert said == f"{tmp_path}/00000000000000000000.log: not a metadata log: it does not begin with a whole batch"

    def test_a_file_that_is_not_a_checkpoint(self, read, tmp_path):
        other = tmp_path / "README"
        other.write_text("hello")
        assert read("--snapshot", other).startswith(f"{other}: not a checkpoint file name")
        named = tmp_path / CHECKPOINT.name
        named.write_text("hello")
        assert read("--snapshot", named).startswith(f"{named}: ")

    def test_a_truncated_file(self, read, tmp_path):
        cut = tmp_path / CHECKPOINT.name
        for size in (0, 60, 5000, CHECKPOINT.stat().st_size - 1):
            cut.write_bytes(CHECKPOINT.read_bytes()[:size])
            assert read("--snapshot", cut).startswith(f"{cut}: ")

    def test_files_of_rules_are_named_by_their_flag(self, read, tmp_path):
        """Also where they are given as a log or a checkpoint."""
        rules = tmp_path / "rules.csv"
        rules.write_text("")
        assert read("--log", tmp_path).endswith(f": did you mean --acls {tmp_path}?")
        for path in (tmp_path, rules):
            assert read("--snapshot", path).endswith(f": did you mean --acls {path}?")

    def test_a_damaged_log_names_the_command_that_verifies_it(self, read, tmp_path):
        copy = tmp_path / "log"
        shutil.copytree(LOG, copy)
        for checkpoint in copy.glob("*.checkpoint"):
            checkpoint.unlink()
        first = copy / "00000000000000000000.log"
        content = bytearray(first.read_bytes())
        content[len(content) // 2] ^= 0xFF
        first.write_bytes(content)
        assert read("--log", copy).endswith(f"; `aclog log verify {copy}` lists all errors")

    def test_a_truncated_segment_in_the_middle_of_a_log(self, read, tmp_path):
        copy = tmp_path / "log"
        shutil.copytree(LOG, copy)
        for checkpoint in copy.glob("*.checkpoint"):
            checkpoint.unlink()
        first = copy / "00000000000000000000.log"
        first.write_bytes(first.read_bytes()[:9000])
        assert str(copy) in read("--log", copy)

    def test_an_offset_past_the_end(self, read):
        assert "expected an offset or a time from 0 to 231" in read("--log", LOG, "--as-of", 232)

    @pytest.mark.parametrize("moment", ["-x", "monday", "2026-13-01", "1" * 30, ""])
    def test_an_invalid_moment(self, read, moment):
        assert "expected an end offset (exclusive)" in read("--log", LOG, f"--as-of={moment}")

    def test_a_moment_in_a_source_without_history(self, read):
        rules = LOG.parent / "expected/acls.jsonl"
        assert "a file of ACLs has one state only" in read("--acls", rules, "--as-of", 5)
        assert "expected 211, the end offset of this checkpoint" in read("--snapshot", CHECKPOINT, "--as-of", 5)

    def test_a_line_with_a_missing_key(self, read):
        rule = {"resourceType": "TOPIC", "resourceName": "t", "patternType": "LITERAL", "principal": "User:a"}
        lines = (LOG.parent / "expected/acls.jsonl").read_bytes() + json.dumps(rule).encode()
        assert read("--acls", "-", stdin=lines) == "stdin: line 69: key host is missing"

    def test_a_file_whose_reading_fails(self, read):
        assert read("--acls", "/proc/self/mem") == "/proc/self/mem: Input/output error"

    def test_one_acl_with_two_ids(self, read):
        rule = json.loads((LOG.parent / "expected/acls.jsonl").read_text().splitlines()[0])
        lines = "\n".join(
            json.dumps({**rule, "id": each}) for each in ("JCfGj5ocQb6uGSddU7P83A", "K8RE9u8nQPSqCOtUu2eA2w")
        )
        assert read("--acls", "-", stdin=lines.encode()).startswith("stdin: ")

    def test_not_exactly_one_source(self, read):
        message = (
            "exactly one state source must be given: the argument SOURCE (`aclog who-can SOURCE ...`), or --log DIR, "
            "--snapshot FILE, --acls PATH, --ref GITREF:PATH, "
            "--bootstrap-controller HOST:PORT or --bootstrap-server HOST:PORT; or a context: -c NAME"
        )
        assert read() == message
        assert read("--log", LOG, "--snapshot", CHECKPOINT) == message


class TestFlags:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("acls list --resource-pattern-type odd", "'odd' is not one of ANY, MATCH, LITERAL, PREFIXED"),
            ("acls list --resource-pattern-type unknown", "'unknown' is not one of ANY, MATCH, LITERAL, PREFIXED"),
            ("acls list --format odd", "'odd' is not one of 'kafka', 'table', 'json', 'jsonl', 'csv', 'markdown'"),
            ("acls add --log x --operation fly", "'fly' is not one of ALL, READ, WRITE"),
            ("authorize --operation any", "'any' is not one of ALL, READ, WRITE"),
            ("authorize --semantics odd", "'odd' is not one of 'kafka', 'documented'"),
            ("export --format odd", "'odd' is not one of 'avro', 'jsonl'"),
            ("acls list --wings", "No such option: --wings"),
            ("acls history --log x --operation t", "No such option: --operation (see"),
            ("acls history --log x --topcs t", "No such option: --topcs (Possible options: --topic, --topics)"),
            ("acls list surplus", "surplus"),
            ("import", "Missing argument 'FILE'"),
            ("export --log x", "Missing option '--format'"),
            ("snapshot create --log x", "Missing option '--out'"),
            ("log dump", "Missing argument 'PATH'"),
            ("fly", "No such command 'fly'"),
            ("log fly", "No such command 'fly'"),
        ],
    )
    def test_a_usage_error_names_the_argument_and_the_help(self, arguments, message):
        said = refused(*arguments.split())
        assert message in said
        assert "--help`)" in said

    @pytest.mark.parametrize("place", ["", "--log x --bootstrap-server localhost:1"])
    def test_exactly_one_target_is_changed(self, place):
        said = refused(*f"acls add --allow-principal User:a --topic t {place}".split())
        assert said.startswith("exactly one target must be given: --log DIR, --bootstrap-server HOST:PORT, ")

    @pytest.mark.parametrize("flag", ["--bootstrap-server", "--bootstrap-controller"])
    def test_an_invalid_address_is_named(self, flag):
        assert refused("acls", "list", flag, "nowhere") == f"command line: {flag}: 'nowhere': expected host:port"

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (
                "acls list --format odd",
                "Invalid value for '--format': 'odd' is not one of 'kafka', 'table', 'json', 'jsonl'",
            ),
            ("export --log x", "Missing option '--format'. Choose from: avro, jsonl, kafka-acls, ksm, strimzi"),
        ],
    )
    def test_usage_errors_are_in_our_words(self, arguments, said):
        assert refused(*arguments.split()).startswith(said)

    @pytest.mark.parametrize("command", [("acls",), ("log",), ("snapshot",)])
    def test_a_command_without_arguments_prints_its_help(self, command):
        result = aclog(*command)
        assert result.code == 2
        assert "Usage: aclog" in result.out
        assert result.err == ""

    def test_principals_of_a_change_need_a_colon(self):
        said = refused("acls", "copy", "--log", LOG, "--from-principal", "bob", "--to-principal", "User:a")
        assert said == "expected a string in format principalType:principalName but got bob"


class TestLogs:
    @pytest.mark.parametrize(
        "command", [("log", "dump"), ("log", "verify"), ("snapshot", "list"), ("snapshot", "verify")]
    )
    def test_a_missing_path(self, command, tmp_path):
        assert refused(*command, tmp_path / "nowhere").startswith(f"{tmp_path}/nowhere: ")

    @pytest.mark.parametrize(
        "command", [("log", "dump"), ("log", "verify"), ("snapshot", "list"), ("snapshot", "verify")]
    )
    def test_an_empty_directory(self, command, tmp_path):
        assert refused(*command, tmp_path).startswith(f"{tmp_path}: ")

    def test_a_file_that_is_not_a_log(self, tmp_path):
        other = tmp_path / "other"
        other.write_bytes(b"x" * 1000)
        assert refused("log", "dump", other).startswith(f"{other}: byte ")
        assert str(other) in refused("log", "verify", other)

    def test_names_cannot_forge_a_line(self, tmp_path):
        assert "two\\nlines\\x1b[2J" in refused("log", "dump", tmp_path / "two\nlines\x1b[2J")


class TestWriting:
    def test_a_checkpoint_cannot_go_into_a_file(self, tmp_path):
        (tmp_path / "file").write_text("")
        said = refused("snapshot", "create", "--snapshot", CHECKPOINT, "--out", tmp_path / "file")
        assert said.startswith(f"{tmp_path}/file: ")
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_an_export_into_a_missing_directory(self, tmp_path):
        said = refused("export", "--log", LOG, "--format", "avro", "--out", tmp_path / "no" / "export")
        assert said == f"--out: {tmp_path}/no/export: no such file or directory"
        assert list(tmp_path.iterdir()) == []

    def test_an_export_over_a_directory(self, tmp_path):
        (tmp_path / "there").mkdir()
        said = refused("export", "--log", LOG, "--format", "avro", "--out", tmp_path / "there")
        assert said == f"{tmp_path}/there: a directory: expected a file name"
        assert [path.name for path in tmp_path.iterdir()] == ["there"]

    def test_an_import_into_a_missing_parent_directory(self, tmp_path):
        said = refused("import", "-", "--log", tmp_path / "no" / "log", stdin=b"")
        assert said == f"{tmp_path}/no: no such directory: expected one to create log in"
        assert list(tmp_path.iterdir()) == []

    def test_a_log_has_one_writer(self, tmp_path):
        from aclog.metalog.filelog import open_log

        flags = ("--topic", "t", "--allow-principal", "User:x")
        with open_log(tmp_path / "log", create=True):
            assert "aclog.lock" in refused("acls", "add", "--log", tmp_path / "log", *flags)

    def test_an_import_into_a_directory_of_other_files(self, tmp_path):
        (tmp_path / "README").write_text("hello")
        assert str(tmp_path) in refused("import", "-", "--log", tmp_path, stdin=b"")
        assert [path.name for path in tmp_path.iterdir()] == ["README"]

    def test_an_import_of_a_missing_file(self, tmp_path):
        said = refused("import", tmp_path / "nowhere", "--log", tmp_path / "log")
        assert said == f"{tmp_path}/nowhere: no such file or directory"
        assert list(tmp_path.iterdir()) == []
