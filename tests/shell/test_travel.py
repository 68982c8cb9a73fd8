"""`at`, `diff` and `watch`, against the operations that created the fixture and a naive replay."""

import json
from itertools import islice
from uuid import UUID

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.cli.schema import schema_of
from aclog.client.fetching import EpochEnd
from aclog.config.node_config import ClientSecurity
from aclog.metalog.batches import iter_batches, read_records
from aclog.metalog.codec import decode_record, encode_record
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.filelog.files import leave_notice
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from aclog.shell.command import ShellState, differences
from aclog.shell.engine import run_command
from aclog.shell.prompt import prompt_text
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import recover
from aclog.sources.live import QuorumSource
from aclog.sources.logs import LogSource
from tests.support.builders.acls import acl, acl_record
from tests.support.cli.command import aclog
from tests.support.cli.shell_sources import (
    SMALL,
    FollowedLog,
    MemoryReader,
    batches_of,
    fixture_image,
    printed,
    session,
)
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum
from tests.support.runs.profiles import examples


def run(state, line):
    return printed(run_command(line, state))


@pytest.fixture
def state():
    return ShellState(source=FollowedLog(MemoryReader(list(batches_of(SMALL)), name="small")))


def naive_rules(end_offset):
    """Return the ACLs before an offset, replayed one by one into a dict."""
    rules = {}
    for batch in batches_of(SMALL):
        ((_, header),) = iter_batches(batch)
        if header.is_control or header.base_offset >= end_offset:
            continue
        for each in read_records(batch, 0, header):
            match decode_record(each.value):
                case AccessControlEntryRecord() as added:
                    acl = StandardAcl(
                        **{name: getattr(added, name) for name in StandardAcl.__slots__ if name[0] != "_"}
                    )
                    rules[uuid_text(added.id)] = acl
                case RemoveAccessControlEntryRecord() as removed:
                    del rules[uuid_text(removed.id)]
    return rules


ENDS = [next(iter_batches(batch))[1].end_offset for batch in batches_of(SMALL)]


@given(st.sampled_from(ENDS))
@settings(max_examples=examples(15), deadline=None)
def test_at_an_offset_the_rules_are_those_of_then(end):
    state = ShellState(source=FollowedLog(MemoryReader(list(batches_of(SMALL)))))
    list(run_command(f"at {end}", state))
    assert run(state, "ls /acl/id").split() == sorted(naive_rules(end))


def test_there_and_back(state):
    newest = run(state, "ls /acl/id")
    assert run(state, "at").startswith("at latest: offset 230, epoch 2, time 2026-11-21T02:25:")
    assert run(state, "at 69").startswith("at 69: offset 68, epoch 1, time 2026-11-21T02:24:03.326Z[UTC]; 31 ACLs, ")
    assert prompt_text(state) == "/@69> "
    assert run(state, "ls /acl/id").split() == sorted(naive_rules(69))
    assert run(state, "cat /local/offset /local/behind") == "69\n162\n"
    assert run(state, "at latest").startswith("at latest: offset 230")
    assert run(state, "ls /acl/id") == newest
    assert prompt_text(state) == "/> "


def test_a_moment_that_is_none_leaves_the_session_where_it_is(state):
    list(run_command("at 69", state))
    for moment in ("monday", "1e3", "2026-13-01", ""):
        (line,) = run_command(f"at '{moment}'", state)
        assert line.failed
        assert "expected an end offset (exclusive), 'latest', a time such as 2026-11-20T10:00:00Z" in line.text
    for moment, said in (("-1", "expected a unit, such as -1d"), ("-999999w", "the time is before the year 1")):
        (line,) = run_command(f"at {moment}", state)
        assert (line.failed, said in line.text) == (True, True)
    assert state.moment == 69


def test_one_state_has_no_past():
    state = session(fixture_image(SMALL, 100))
    (line,) = run_command("at 5", state)
    assert (line.failed, line.text) == (
        True,
        "fixture: as of 5: one state only",
    )
    (line,) = run_command("watch", state)
    assert (line.failed, line.text) == (True, "watch: fixture is a single state: expected a log")
    with pytest.raises(ConfigError):
        state.go_to(7)
    assert state.moment is None


def test_a_moment_given_at_the_start_is_where_the_session_begins():
    state = ShellState(source=FollowedLog(MemoryReader(list(batches_of(SMALL)))), moment=69)
    assert run(state, "cat /local/offset") == "69\n"


@given(st.sampled_from(ENDS), st.sampled_from(ENDS))
@settings(max_examples=examples(15), deadline=None)
def test_diff_of_two_moments(start, end):
    state = ShellState(source=FollowedLog(MemoryReader(list(batches_of(SMALL)))))
    before, after = naive_rules(start), naive_rules(end)
    *lines, summary = [line.text for line in run_command(f"diff {start} {end}", state)]
    lines = [line for line in lines if "/acl/id/" in line]
    ids = {sign: {line.split()[1].removeprefix("/acl/id/") for line in lines if line[0] == sign} for sign in "+-~"}
    new_ids = {acl: rule_id for rule_id, acl in after.items()}
    renewed = {new_ids[acl] for rule_id, acl in before.items() if rule_id not in after and acl in new_ids}
    assert ids["~"] == renewed
    assert ids["+"] == set(after) - set(before) - renewed
    assert ids["-"] == {rule_id for rule_id, acl in before.items() if rule_id not in after and acl not in new_ids}
    for line in lines:
        rule_id = line.split()[1].removeprefix("/acl/id/")
        acl = (before | after)[rule_id]
        if acl_text(acl).isprintable():
            assert acl_text(acl) in line
    assert summary.endswith(" changed")


def test_diff_ends_where_the_session_is(state):
    list(run_command("at 69", state))
    assert run(state, "diff 69") == "0 added, 0 removed, 0 changed\n"
    assert run(state, "diff latest latest") == "0 added, 0 removed, 0 changed\n"
    assert run(state, "diff 69 latest") == run(state, "diff 69 231")


def rule(number, principal=None, name="orders", **changes):
    return acl_record(number, acl(name, principal or f"User:u{number}", **changes))


def gone(number):
    return RemoveAccessControlEntryRecord(id=UUID(int=number))


def rule_id(number):
    return uuid_text(UUID(int=number))


CREDENTIAL = UserScramCredentialRecord(
    name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
)
TOKEN = DelegationTokenRecord(
    owner="User:o",
    requester="User:o",
    renewers=(),
    issue_timestamp=1,
    max_timestamp=2,
    expiration_timestamp=2,
    token_id="tok",
)


def test_every_kind_of_change():
    reader = MemoryReader()
    state = ShellState(source=FollowedLog(reader))
    reader.append(rule(5), rule(6), rule(7), CREDENTIAL, TOKEN, FeatureLevelRecord(name="f", feature_level=1))
    reader.append(gone(5), rule(15, principal="User:u5"), gone(6), rule(6, permission_type=2), gone(7), rule(8))
    reader.append(
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
        RemoveDelegationTokenRecord(token_id="tok"),
        FeatureLevelRecord(name="f", feature_level=2),
    )
    of_u6 = " User:u6 READ on TOPIC LITERAL 'orders' from *"
    assert run(state, "diff 6 15").splitlines() == [
        f"~ /acl/id/{rule_id(6)} DENY{of_u6} (was ALLOW{of_u6})",
        f"- /acl/id/{rule_id(7)} ALLOW User:u7 READ on TOPIC LITERAL 'orders' from *",
        f"+ /acl/id/{rule_id(8)} ALLOW User:u8 READ on TOPIC LITERAL 'orders' from *",
        f"~ /acl/id/{rule_id(15)} ALLOW User:u5 READ on TOPIC LITERAL 'orders' from * (its id was {rule_id(5)})",
        "- /scram/u/SCRAM-SHA-256",
        "- /delegationToken/tok of User:o",
        "~ /features/f 1 to 2",
        "1 added, 3 removed, 3 changed",
    ]
    assert "+ /scram/u/SCRAM-SHA-256" in run(state, "diff 15 6")


def test_changes_as_json_lines():
    reader = MemoryReader()
    reader.append(rule(5, name="a\u202eb"), CREDENTIAL)
    reader.append(gone(5), FeatureLevelRecord(name="f", feature_level=1))
    state = ShellState(source=FollowedLog(reader))
    validator = jsonschema.Draft202012Validator(schema_of("state-change"))
    list(run_command("at 0", state))
    watched = [line.text for line in islice(run_command("watch --format jsonl", state), 4)]
    found = [json.loads(text) for text in (*watched, *run(state, "diff --format=jsonl 2 4").splitlines())]
    for each in found:
        validator.validate(each)
    assert "\u202e" not in "".join(watched)
    assert [(each["change"], each["path"], each.get("offset")) for each in found] == [
        ("ADDED", f"/acl/id/{rule_id(5)}", 0),
        ("ADDED", "/scram/u/SCRAM-SHA-256", 0),
        ("REMOVED", f"/acl/id/{rule_id(5)}", 2),
        ("ADDED", "/features/f", 2),
        ("REMOVED", f"/acl/id/{rule_id(5)}", None),
        ("ADDED", "/features/f", None),
    ]
    assert found[0]["acl"]["resourceName"] == "a\u202eb"
    [failed] = [line for line in run_command("watch --format csv", state) if line.failed]
    assert "--format csv: expected text or jsonl" in failed.text


def test_a_hostile_rule_is_one_line_of_a_diff():
    reader = MemoryReader()
    reader.append(rule(5, name="a\n+ /acl/id/x ALLOW", principal="User:\x1b[2J"))
    lines = list(run_command("diff 0", ShellState(source=FollowedLog(reader))))
    assert len(lines) == 2
    assert lines[0].text.isprintable()


def test_the_latest_state_follows_the_log():
    reader = MemoryReader()
    reader.append(rule(5))
    state = ShellState(source=FollowedLog(reader))
    assert run(state, "ls /acl/id") == f"{rule_id(5)}\n"
    list(run_command("cd /acl/id", state))
    reader.append(rule(6))
    assert run(state, "ls") == f"{rule_id(5)}\n{rule_id(6)}\n"
    list(run_command("at 1", state))
    assert run(state, "ls") == f"{rule_id(5)}\n"
    reader.append(gone(5))
    list(run_command("at latest", state))
    assert run(state, "ls") == f"{rule_id(6)}\n"


def test_watch_tells_each_change_as_it_is_committed():
    reader = MemoryReader(name="live")
    reader.append(rule(5))
    lines = run_command("watch", ShellState(source=FollowedLog(reader)))
    assert next(lines).text == "watching . from offset 1; stop with Ctrl-C"
    reader.append(rule(6), gone(5))
    reader.append(CREDENTIAL, timestamp=1_800_000_000_250)
    when = "2027-01-15T08:00:00"
    assert [line.text for line in islice(lines, 3)] == [
        f"offset 1..2 {when}Z[UTC] - /acl/id/{rule_id(5)} ALLOW User:u5 READ on TOPIC LITERAL 'orders' from *",
        f"offset 1..2 {when}Z[UTC] + /acl/id/{rule_id(6)} ALLOW User:u6 READ on TOPIC LITERAL 'orders' from *",
        f"offset 3..3 {when}.25Z[UTC] + /scram/u/SCRAM-SHA-256",
    ]


def test_watch_shows_a_transaction_when_it_ends_and_nothing_of_an_aborted_one():
    reader = MemoryReader()
    lines = run_command("watch", ShellState(source=FollowedLog(reader)))
    next(lines)
    reader.append(BeginTransactionRecord(name="t"), rule(5))
    reader.append(rule(6))
    reader.append(EndTransactionRecord())
    reader.append(BeginTransactionRecord(name="t"), rule(7))
    reader.append(AbortTransactionRecord(reason="r"))
    reader.append(rule(8))
    assert [line.text.split()[:4:3] for line in islice(lines, 3)] == [
        ["offset", "+"],
        ["offset", "+"],
        ["offset", "+"],
    ]
    reader.append(rule(9))
    assert rule_id(9) in next(lines).text


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/acl/principal/User:u6", "6"),
        ("/acl/id", "5678"),
        ("/image/acls/byId/{0}", "5"),
        ("/acl/resource/TOPIC/LITERAL/or*", "567"),
        ("/acl/resource/*/*/pay", "8"),
        ("/acl/resource/GROUP", ""),
        ("/scram", "s"),
        ("/image/scram/SCRAM-SHA-256", "s"),
        ("/features", "f"),
        ("/delegationToken/tok", "t"),
        ("/acl/id/{0}/deeper", ""),
    ],
)
def test_watch_of_a_path_shows_what_is_under_it(path, seen):
    texts = {"s": "+ /scram/u/", "f": "+ /features/f", "t": "+ /delegationToken/tok"}
    reader = MemoryReader()
    lines = run_command(f"watch {path.format(rule_id(5))}", ShellState(source=FollowedLog(reader)))
    next(lines)
    reader.append(*map(rule, (5, 6, 7)), rule(8, name="pay"))
    reader.append(CREDENTIAL, TOKEN, FeatureLevelRecord(name="f", feature_level=1))
    everything = run_command("watch", ShellState(source=FollowedLog(reader), moment=0))
    all_lines = [line.text for line in islice(everything, 1, 8)]
    expected = [line for line in all_lines if any(texts.get(key, f"/{rule_id(int(key, 36))}") in line for key in seen)]
    assert len(expected) == len(seen)
    assert [line.text for line in islice(lines, len(seen))] == expected


def test_watch_in_the_past_begins_there():
    reader = MemoryReader(list(batches_of(SMALL)))
    lines = run_command("watch /acl", ShellState(source=FollowedLog(reader), moment=69))
    assert next(lines).text == "watching /acl from offset 69; stop with Ctrl-C"
    found = {}
    state = ShellState(source=FollowedLog(reader))
    for line in islice(lines, 5):
        found[line.text.split()[3].removeprefix("/acl/id/")] = line.text.split()[2]
    now = naive_rules(231)
    assert {sign for key, sign in found.items() if key in now} <= {"+", "~"}
    assert run(state, f"diff 0 {69}").count("+ /acl/id/") == len(naive_rules(69))


def test_operations_of_the_fixture_show_in_a_diff_from_nothing():
    """Every ACL that the recorded requests created, and that exists at the end, is an added one."""
    created = set()
    for line in (SMALL / "expected" / "operations.jsonl").read_text("utf-8").splitlines():
        command = json.loads(line).get("cmd", {})
        if command.get("op") == "createAcls":
            created |= {tuple(acl) for acl in command["acls"]}
    state = ShellState(source=FollowedLog(MemoryReader(list(batches_of(SMALL)))))
    text = run(state, "diff 0")
    standing = {acl_text(acl) for acl in naive_rules(231).values()}
    checked = 0
    for kind, name, pattern, principal, host, operation, permission in created:
        rule_text = f"{permission} {principal} {operation} on {kind} {pattern} {name!r} from {host}"
        if rule_text in standing and rule_text.isprintable():
            assert f" {rule_text}\n" in text
            checked += 1
    assert checked > 30


def test_differences_of_an_image_with_itself():
    image = fixture_image(SMALL, 231)
    assert list(differences(image, image)) == []
    assert list(differences(image, fixture_image(SMALL, 230))) == []


def test_watch_of_a_directory_that_another_writes(tmp_path):
    with open_log(tmp_path / "log", create=True) as writer, open_reader(tmp_path / "log") as reader:

        def append(*records):
            writer.append([encode_record(each) for each in records], timestamp=1_800_000_000_000).result(30)

        append(rule(5))
        state = ShellState(source=FollowedLog(reader))
        lines = run_command("watch /acl/id", state)
        start = state.image().end_offset
        assert next(lines).text == f"watching /acl/id from offset {start}; stop with Ctrl-C"
        append(rule(6))
        assert f"+ /acl/id/{rule_id(6)} " in next(lines).text
        append(gone(5), gone(6))
        assert [line.text.split()[3] for line in islice(lines, 2)] == ["-", "-"]
        assert run(state, "ls /acl/id") == ""
        assert run(state, "cat /local/behind") == "0\n"


def test_watch_tells_of_a_notice_while_nothing_happens(tmp_path, monkeypatch):
    """A poll of `aclog sync` that is refused: there may have been changes that the log does not have."""
    monkeypatch.setattr("aclog.snapshots.publisher.WAIT_S", 0.01)
    directory, told = tmp_path / "log", []
    with open_log(directory, create=True) as writer:

        def notify(text):
            told.append(text)
            writer.append([encode_record(rule(5))], timestamp=1_800_000_000_000).result(30)

        source = LogSource(directory, notify)
        lines = run_command("watch /acl/id", ShellState(source=source))
        next(lines)
        leave_notice(directory, "newest poll refused")
        assert f"+ /acl/id/{rule_id(5)} " in next(lines).text
        source.close()
    assert told == [f"warning: {directory}: newest poll refused"]


def snapshot_of(log, directory):
    """Retention: a checkpoint replaces everything that a log holds."""
    image = recover(directory).image
    write_checkpoint(image, directory)
    log.delete_segments_below(image.end_offset)


def test_watch_goes_on_past_retention(tmp_path):
    """Of a live directory: the records that it has not shown yet are removed."""
    directory = tmp_path / "log"
    with open_log(directory, create=True, segment_bytes=1) as writer:

        def append(*records):
            writer.append([encode_record(each) for each in records], timestamp=1_800_000_000_000).result(30)

        append(rule(5), rule(6))
        state = ShellState(source=LogSource(directory, print))
        lines = run_command("watch /acl/id", state)
        start = state.image().end_offset
        assert next(lines).text == f"watching /acl/id from offset {start}; stop with Ctrl-C"
        append(gone(5), rule(7))
        append(gone(7), rule(8))
        snapshot_of(writer, directory)
        append(rule(9))
        where = f"offset {start}..{start + 4} 2027-01-15T08:00:00Z[UTC]"
        assert next(lines).text.startswith(f"{where} the log no longer has all of these offsets")
        shown = [line.text.split()[3:5] for line in islice(lines, 3)]
        assert sorted(shown) == sorted(
            [["-", f"/acl/id/{rule_id(5)}"], *(["+", f"/acl/id/{rule_id(n)}"] for n in (8, 9))]
        )
        append(gone(9))
        assert f"offset {start + 5}..{start + 5} " in (line := next(lines).text)
        assert f"- /acl/id/{rule_id(9)} " in line
        state.source.close()


def test_watch_of_a_quorum_goes_on_past_retention(tmp_path):
    """Of a leader that could not be reached for a while, and has a snapshot in the place of its log since."""
    quorum = FakeQuorum(epoch=3)
    with FakeLeader(quorum) as leader:
        quorum.append([encode_record(rule(5)), encode_record(rule(6))], timestamp=1_800_000_000_000)
        source = QuorumSource(controllers=(leader.address,), security=ClientSecurity(), notify=print)
        lines = run_command("watch /acl/id", ShellState(source=source))
        assert next(lines).text == "watching /acl/id from offset 2; stop with Ctrl-C"
        with leader.down():
            quorum.append([encode_record(gone(5)), encode_record(rule(7))], timestamp=1_800_000_000_000)
            image = Applier().apply(quorum.committed)
            snapshot = EpochEnd(epoch=image.epoch, end_offset=image.end_offset)
            quorum.forget_below(snapshot, write_checkpoint(image, tmp_path).read_bytes())
        assert next(lines).text.startswith("offset 2..3 2027-01-15T08:00:00Z[UTC] the log no longer has all")
        shown = [line.text.split()[3:5] for line in islice(lines, 2)]
        assert sorted(shown) == sorted([["-", f"/acl/id/{rule_id(5)}"], ["+", f"/acl/id/{rule_id(7)}"]])
        quorum.append([encode_record(gone(6))], timestamp=1_800_000_000_000)
        assert f"- /acl/id/{rule_id(6)} " in next(lines).text
        source.close()


OPEN_TO_ALICE = ("--super-users", "User:alice", "--allow-everyone-if-no-acl-found")
EXISTS = (" existing topics", " existing topic")
"""How lines end that only the command has, which counts topics."""


def test_diff_of_access_says_what_the_command_says(state, tmp_path):
    none = tmp_path / "topics"  # the shell takes no examples of existing topics
    none.touch()
    log = ("--log", "tests/data/kafka-4.3.1-small/__cluster_metadata-0", "--topics", none)
    moments = (*log, "--as-of", "22", "--to-as-of", "57")
    for words, flags in (("", ()), ("--super-users User:alice --allow-everyone true", OPEN_TO_ALICE)):
        said = run(state, f"diff --of access {words} 22 57").splitlines()
        assert said == [line for line in aclog("diff", *moments, *flags).lines if not line.endswith(EXISTS)]
    assert run(state, "diff --of access 45 45") == "no difference: every request is decided the same\n"
    assert run(state, "diff --of acls 6") == "--of acls: expected rules or access\n"
