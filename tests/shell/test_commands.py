"""The commands through the engine, beyond the transcripts of Kafka's shell."""

import json
from io import StringIO

import pytest
from attrs import evolve

from aclog.metalog.errors import ConfigError
from aclog.metalog.records import DelegationTokenRecord, FeatureLevelRecord, UserScramCredentialRecord
from aclog.shell.command import Line, print_lines
from aclog.shell.engine import COMMANDS, ONE_SHOT_COMMANDS, run_command
from aclog.shell.session import run_lines, run_once
from aclog.snapshots.image import Image
from tests.support.cli.shell_sources import (
    SMALL,
    FollowedLog,
    MemoryReader,
    fixture_image,
    printed,
    session,
    transcripts,
)

SALT, STORED, SERVER = b"salty", b"stored", b"server"


@pytest.fixture
def state():
    return session(fixture_image(SMALL, 231))


def run(state, line):
    return printed(run_command(line, state))


def failed(state, line):
    return [each.text for each in run_command(line, state) if each.failed]


def test_nothing_typed_is_nothing_done(state):
    assert run(state, "") == ""
    assert run(state, "   ") == ""
    assert state.history == []


def test_ls_of_files_and_directories(state):
    assert run(state, "ls /features/group.version /image/acls /scram/bob /nothing") == (
        "ls: /nothing: no such file or directory.\ngroup.version\n\nacls:\nbyId\n\nbob:\nSCRAM-SHA-512\n"
    )
    assert run(state, "ls /scram/bob/*") == "SCRAM-SHA-512\n"
    assert run(state, "ls /scram/{bob,dave}") == "bob:\nSCRAM-SHA-512\n\ndave:\nSCRAM-SHA-512\n"


def test_ls_on_a_screen_has_columns_until_there_are_too_many(state, monkeypatch):
    names = run(state, "ls /acl/id").split()
    state.screen_width = 80
    rows = [line.text.split() for line in run_command("ls /acl/id", state)]
    assert {len(row) for row in rows[:-1]} == {3}
    assert sorted(name for row in rows for name in row) == names
    monkeypatch.setattr("aclog.shell.commands.COLUMNS_LIMIT", 10)
    assert run(state, "ls /acl/id").split("\n")[:-1] == names


def test_find_and_tree_agree_with_ls_and_cat(state):
    every = run(state, "find /").splitlines()
    assert every[0] == "/"
    assert {"/acl", "/image/provenance", "/scram/alice/SCRAM-SHA-256", "/local/behind"} <= set(every)
    assert run(state, "find scram/bob") == "scram/bob\nscram/bob/SCRAM-SHA-512\n"
    assert run(state, "find /scram/{bob,dave}") == (
        "/scram/bob\n/scram/bob/SCRAM-SHA-512\n/scram/dave\n/scram/dave/SCRAM-SHA-512\n"
    )
    list(run_command("cd /scram/bob", state))
    assert run(state, "find") == ".\n./SCRAM-SHA-512\n"
    assert run(state, "tree .") == "SCRAM-SHA-512:\n  " + run(state, "cat SCRAM-SHA-512")


def test_cd_to_more_than_one_place(state):
    assert failed(state, "cd /image/*") == ["cd: /image/*: matches more than one node."]
    assert run(state, "pwd") == "/\n"
    assert run(state, "cd /image/ac*") == ""
    assert run(state, "pwd") == "/image/acls\n"


def test_complaints_about_arguments(state):
    assert failed(state, "cd a b") == ["unrecognized arguments: 'b'"]
    assert failed(state, "cat -x") == ["unrecognized arguments: '-x'"]
    assert failed(state, "help x") == ["unrecognized arguments: 'x'"]
    assert failed(state, "ls -- -x") == ["ls: -x: no such file or directory."]
    assert failed(state, "cat 'a") == ["unclosed ' in the line"]
    assert failed(state, "history x") == ["history: 'x' is not a number of lines: expected 0 or more"]
    assert failed(state, "why User:a READ topic:t --host") == ["argument --host: expected one argument"]
    assert failed(state, "why User:a READ topic:t --hosts=h") == ["unrecognized arguments: '--hosts=h'"]


def test_history_numbers_what_was_typed(state):
    for line in ("ls /scram", "  bogus  ", "pwd"):
        list(run_command(line, state))
    assert run(state, "history") == "    0  ls /scram\n    1  bogus\n    2  pwd\n    3  history\n"
    assert run(state, "history 2") == "    3  history\n    4  history 2\n"
    assert run(state, "history 0") == ""


def test_exit_ends_the_session(state):
    assert not state.done
    assert run(state, "exit") == ""
    assert state.done


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_manual_and_stands_in_the_help(state, name):
    page = run(state, f"man {name}")
    assert page.startswith(f"{name}: {COMMANDS[name].description}\n\nusage: {name}")
    for argument in COMMANDS[name].signature.arguments:
        assert f"\n  {argument.name}" in page
    for option in COMMANDS[name].signature.options:
        assert f"\n  {option.flag} {option.value}" in page
    assert f"\n    {name} " in run(state, "help")


def test_every_command_is_in_the_documentation():
    page = (SMALL.parent.parent.parent / "docs" / "shell.md").read_text("utf-8")
    for name in COMMANDS:
        assert f"`{name}" in page, name


def test_secrets_are_hidden_unless_asked_for():
    image = evolve(
        Image.EMPTY,
        scram=Image.EMPTY.scram.apply(
            [
                UserScramCredentialRecord(
                    name="a/b", mechanism=1, salt=SALT, stored_key=STORED, server_key=SERVER, iterations=4096
                ),
                UserScramCredentialRecord(
                    name="a/b", mechanism=9, salt=SALT, stored_key=STORED, server_key=SERVER, iterations=1
                ),
            ]
        ),
    )
    hidden, open_ = session(image), session(image, show_secrets=True)
    everything = run(hidden, "tree /")
    for secret in (b"salty", b"stored", b"server"):
        assert secret.hex() not in everything
        assert secret.hex() in run(open_, "tree /image")
    assert "c2FsdHk=" not in everything
    assert json.loads(run(hidden, "cat /scram/a%2Fb/SCRAM-SHA-256")) == {
        "name": "a/b",
        "mechanism": "SCRAM-SHA-256",
        "iterations": 4096,
        "salt": "***",
        "storedKey": "***",
        "serverKey": "***",
    }
    assert json.loads(run(open_, "cat /scram/a%2Fb/SCRAM-SHA-256"))["salt"] == "c2FsdHk="
    assert run(hidden, "ls /scram/a%2Fb") == "9\nSCRAM-SHA-256\n"
    assert run(hidden, "cat /image/scram/9/a%2Fb") == (
        "ScramCredentialData(salt=***, storedKey=***, serverKey=***, iterations=1)\n"
    )


def test_kafkas_scram_transcript_with_secrets_hidden(state):
    (row,) = [row for row in transcripts(SMALL) if row["argv"] == ["tree", "/image/scram"]]
    lines = run(session(fixture_image(SMALL, 211)), "tree /image/scram").splitlines()
    assert len(lines) == len(row["text"].splitlines())
    for ours, theirs in zip(lines, row["text"].splitlines(), strict=True):
        if "salt=" in theirs:
            assert ours.endswith(theirs[theirs.index(", iterations") :])
            assert "salt=***, storedKey=***, serverKey=***," in ours
        else:
            assert ours == theirs


def test_scram_and_tokens_as_kafka_describes_them(state):
    expected = [json.loads(line) for line in (SMALL / "expected" / "scram.jsonl").read_text().splitlines()]
    for row in expected:
        shown_infos = [json.loads(line) for line in run(state, f"cat /scram/{row['user']}/*").splitlines()]
        infos = [{"mechanism": one["mechanism"], "iterations": one["iterations"]} for one in shown_infos]
        assert infos == row["credentialInfos"]
    assert run(state, "ls /scram").split() == [row["user"] for row in expected]
    tokens = [json.loads(line) for line in (SMALL / "expected" / "tokens.jsonl").read_text().splitlines()]
    assert run(state, "ls /delegationToken").split() == sorted(row["tokenId"] for row in tokens)
    for row in tokens:
        del row["hmac"]
        assert json.loads(run(state, f"cat /delegationToken/{row['tokenId']}")) == row


def test_features_and_where_they_have_names(state):
    assert run(state, "cat /features/metadata.version /features/transaction.version") == "30 (4.3-IV0)\n2\n"
    assert failed(state, "cat /features/no.such") == ["cat: /features/no.such: No such file or directory."]
    newer = evolve(
        Image.EMPTY,
        features=Image.EMPTY.features.apply([FeatureLevelRecord(name="metadata.version", feature_level=99)]),
    )
    assert run(session(newer), "cat /features/* /image/features/*") == "99\nOptional[99]\n"


def test_an_empty_image():
    empty = session(Image.EMPTY)
    assert run(empty, "cat /image/provenance") == "offset -1, epoch -1, time 1969-12-31T23:59:59.999Z[UTC]\n"
    assert run(empty, "tree /image/features") == "metadataVersion:\n  Optional.empty\n"
    assert run(empty, "ls /acl/id /scram /delegationToken /features /acl/resource /acl/principal") == ""
    assert run(empty, "ls /image/scram") == "SCRAM-SHA-256\nSCRAM-SHA-512\n"


def test_a_token_with_hostile_text():
    token = DelegationTokenRecord(
        owner="User:\x1b[31m",
        requester="User:r\n",
        renewers=(),
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=3,
        token_id="../..",
    )
    state = session(evolve(Image.EMPTY, tokens=Image.EMPTY.tokens.apply([token])))
    assert run(state, "ls /delegationToken") == "..%2F..\n"
    assert json.loads(run(state, "cat /delegationToken/..%2F.."))["owner"] == "User:\x1b[31m"
    assert "\x1b" not in run(state, "cat /delegationToken/*")


def test_local_tells_where_the_state_comes_from(state):
    assert run(state, "cat /local/offset /local/epoch /local/source /local/behind") == "231\n2\nfixture\n0\n"
    opaque = fixture_image(SMALL, 231).opaque
    assert run(state, "cat /local/opaque").startswith(f"{len(opaque)} records")
    assert run(state, "cat /local/opaque").endswith(f" {opaque.size} bytes\n")
    assert run(state, "cat /local/time").endswith("Z[UTC]\n")


class Terminal(StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_nothing_garbles_the_screen(state):
    rules = [line for line in run_command("cat /image/acls/byId/*", state) if not line.text.isprintable()]
    assert rules
    terminal, pipe = Terminal(), StringIO()
    assert print_lines(rules, terminal, terminal)
    assert print_lines(rules, pipe, pipe)
    assert terminal.getvalue().replace("\n", "").isprintable()
    assert pipe.getvalue() == "".join(line.text + "\n" for line in rules)


def test_a_line_after_which_one_waits_is_flushed():
    class Pipe(StringIO):
        seen = 0

        def flush(self):
            self.seen = len(self.getvalue())

    def lines():
        yield Line("a", flush=True)
        assert output.seen == 2
        yield Line("b")
        assert output.seen == 2

    output = Pipe()
    assert print_lines(lines(), output, StringIO())
    assert output.seen == 4


def test_lines_from_a_pipe():
    output, errors = StringIO(), StringIO()
    lines = ["cd /scram\n", "\n", "pwd\n", "cat nobody\n", "ls\n", "exit\n", "pwd\n"]
    assert run_lines(session(fixture_image(SMALL, 30)), lines, output, errors) == 1
    assert output.getvalue() == "/scram\nadmin\ndave\n"
    assert errors.getvalue() == "cat: nobody: No such file or directory.\n"
    assert run_lines(session(Image.EMPTY), ["pwd\n"], output, errors) == 0


def test_a_single_command_has_active_globs_and_no_quotes(state):
    output, errors = StringIO(), StringIO()
    assert run_once(state, ["ls", "/acl/principal/User:\\*", "/acl/principal/'x'"], output, errors) == 1
    assert errors.getvalue() == "ls: /acl/principal/'x': no such file or directory.\n"
    assert len(output.getvalue().split()) == len(run(state, "ls /acl/principal/User:%2A").split())
    assert state.history[:1] != ["ls"]


def test_what_is_for_the_prompt_only(state):
    assert sorted(set(COMMANDS) - set(ONE_SHOT_COMMANDS)) == ["at", "cd", "exit", "history", "pwd", "quit"]
    for name in ("at", "cd", "exit", "history", "pwd"):
        with pytest.raises(ConfigError, match=f"invalid choice: '{name}'"):
            run_once(state, [name], StringIO(), StringIO())


def test_a_log_that_fails_under_the_session_is_one_line():
    reader = MemoryReader(name="the log")
    reader.append(FeatureLevelRecord(name="f", feature_level=1))
    state = session(Image.EMPTY)
    state.source = FollowedLog(reader)
    assert run(state, "cat /features/f") == "1\n"
    reader.append(FeatureLevelRecord(name="f", feature_level=2))
    reader.batches[-1] = reader.batches[-1][:-1] + b"\x7f"
    (line,) = run_command("cat /features/f", state)
    assert line.failed
    assert "\n" not in line.text
