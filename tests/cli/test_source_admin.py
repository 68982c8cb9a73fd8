"""`--bootstrap-server` as a state source: contents, refusals and notes."""

import asyncio
import json
import re

import pytest

import aclog as library
from aclog.authorizer.acl import StandardAcl, object_of_rule
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.credentials.scram import CredentialInfo, UserCredentials
from aclog.protocol.api_keys import DESCRIBE_ACLS, DESCRIBE_USER_SCRAM_CREDENTIALS
from aclog.protocol.responses import BROKER_APIS
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker, older_apis

RULES = [acl("orders"), acl("orders", "User:bob", operation=4), acl("pay", host="10.0.0.1")]


@pytest.fixture
def broker():
    with FakeBroker(RULES) as running:
        running.users = {"zoe": [(2, 8192)], "alice": [(1, 4096), (2, 5000)]}
        yield running


def asked(broker, *words):
    """Run a command on the broker; a shell command follows the source flags."""
    flags = ("--bootstrap-server", broker.address)
    return aclog("shell", *flags, *words[1:]) if words[0] == "shell" else aclog(*words, *flags)


def names(listed):
    return [json.loads(line)["resourceName"] for line in listed.ok().out.split("\n") if line]


def test_acls_have_no_ids(broker):
    rows = [json.loads(line) for line in asked(broker, "acls", "list", "--format", "jsonl").ok().lines]
    assert {row["id"] for row in rows} == {None}
    assert [row["resourceName"] for row in rows] == ["orders", "orders", "pay"]


def test_decisions_and_why(broker):
    request = ("--principal", "User:bob", "--operation", "WRITE", "--topic", "orders")
    assert asked(broker, "authorize", *request).out.startswith("ALLOWED MatchingAcl(acl=StandardAcl[")
    assert "kafka-acls.sh" in asked(broker, "explain", *request).ok().out


_NO_SUPER = ("--super-users", "User:root")
_CLOSED = (*_NO_SUPER, "--no-allow-everyone-if-no-acl-found")
_LISTED = (
    *(("acls", "list", *flags) for flags in (("--topic", "orders"), ("--principal", "User:bob"), ("--group", "g"))),
    ("acls", "list", "--topic", "orders", "--group", "g", "--resource-pattern-type", "match"),
    *(("acls", "list", *("--topic", "pay", "--resource-pattern-type", each)) for each in ("any", "match", "prefixed")),
)
_DECIDED = (
    ("authorize", "--principal", "User:bob", "--operation", "WRITE", "--topic", "orders", *_CLOSED),
    ("authorize", "--principal", "User:alice", "--operation", "READ", "--topic", "pay.eu", *_CLOSED),
    ("authorize", "--principal", "User:alice", "--operation", "READ", "--topic", "none", *_CLOSED),
    ("authorize", "--principal", "User:zed", "--operation", "READ", "--group", "g", *_CLOSED),
    ("authorize", "--principal", "User:zed", "--operation", "READ", "--user-principal", "User:a", *_CLOSED),
    ("who-can", "--operation", "READ", "--topic", "pay", *_CLOSED),
    ("who-can", "--operation", "READ", "--topic", "none", "--allow-everyone-if-no-acl-found", *_NO_SUPER),
)
_SENT = (
    *RULES,
    acl("pa", pattern_type=PatternType.PREFIXED),
    acl("*", "User:zed", resource_type=ResourceType.GROUP),
    acl("q", "User:zed"),
)


@pytest.mark.parametrize("words", [*_LISTED, *_DECIDED], ids=" ".join)
@pytest.mark.parametrize("apis", [BROKER_APIS, older_apis(1)], ids=["", "of an older Kafka"])
def test_only_the_acls_that_concern_a_question_are_requested(tmp_path, words, apis):
    path = tmp_path / "acls.jsonl"
    path.write_text("".join(f"{json.dumps(object_of_rule(each))}\n" for each in _SENT))
    with FakeBroker(_SENT, apis=apis) as running:
        live = aclog(*words, "--bootstrap-server", running.address)
        # all are sent if the version of the request has no such resources, or to name those that are near
        assert len(running.told[0]) < len(_SENT) or "--user-principal" in words
    own = aclog(*words, "--acls", path)
    assert (live.code, live.out) == (own.code, re.sub(rf" \({path}:[0-9]+\)", "", own.out))


def test_an_old_answer_is_said_to_be_old(broker, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("aclog.sources.live.elapsed_seconds", lambda: clock[0])
    log = library.open_log(bootstrap_server=str(broker.address), max_age=30)
    assert (log.age, log.lag) == (None, None)
    log.image()
    clock[0] += 60
    assert (log.age, log.lag) == (60, None)
    log.image()
    assert log.age == 0
    log.close()
    with pytest.raises(library.LogError, match="closed"):
        log.image()


def test_a_shell_and_a_stream_of_requests_tell_the_age_of_their_state(broker, monkeypatch):
    monkeypatch.setattr("aclog.terminal.notices.STALE_SECONDS", 0)
    told = f"this state was read 0 s ago from {broker.address}, at 20"
    assert told in asked(broker, "shell", "ls").ok().err
    request = b'{"principal":"User:a","host":"::1","operation":"READ","resourceType":"TOPIC","resourceName":"t"}'
    flags = ("--bootstrap-server", str(broker.address), "--requests", "-")
    assert told in aclog("authorize", *flags, stdin=request).ok().err


def test_users_are_in_the_tree_without_keys(broker):
    assert json.loads(asked(broker, "shell", "cat", "/scram/alice/SCRAM-SHA-512").ok().out) == {
        "name": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 5000,
    }  # fmt: skip
    assert asked(broker, "shell", "ls", "/scram").ok().out.split() == ["alice", "zoe"]
    assert asked(broker, "shell", "ls", "/image/scram/SCRAM-SHA-512").ok().out == ""
    assert asked(broker, "shell", "ls", "/scram/nobody").code == 1


@pytest.mark.parametrize("secrets", [(), ("--show-secrets",)], ids=["", "with secrets"])
def test_an_export_has_no_keys_and_imports_as_acls_only(broker, tmp_path, secrets):
    exported = tmp_path / "state.jsonl"
    asked(broker, "export", "--format", "jsonl", "--out", exported, *secrets).ok()
    rows = [json.loads(line) for line in exported.read_text().splitlines()]
    assert [row["scram"] for row in rows if "scram" in row] == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096},
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 5000},
        {"user": "zoe", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]
    imported = aclog("import", exported, "--log", tmp_path / "log").ok()
    assert imported.out == "written: 3 ACLs\n"
    assert "left out: 3 SCRAM credentials: exported without their secrets" in imported.err


def test_an_avro_export(broker, tmp_path):
    asked(broker, "export", "--format", "avro", "--out", tmp_path / "state.avro").ok()
    assert "written: 3 ACLs" in aclog("import", tmp_path / "state.avro", "--log", tmp_path / "log").ok().out


def test_a_checkpoint_leaves_out_credentials_with_a_note(broker, tmp_path):
    made = asked(broker, "snapshot", "create", "--out", tmp_path).ok()
    assert "3 SCRAM credentials are left out" in made.err
    path = made.lines[0]
    assert names(aclog("acls", "list", "--snapshot", path, "--format", "jsonl")) == ["orders", "orders", "pay"]
    assert aclog("shell", "--snapshot", path, "ls", "/scram").ok().out == ""


@pytest.mark.parametrize("moment", ["5", "2026-11-20T10:00:00Z"])
@pytest.mark.parametrize("words", [("acls", "list"), ("shell",), ("export", "--format", "jsonl")], ids=" ".join)
def test_there_is_no_past_state(broker, words, moment):
    said = asked(broker, *words, "--as-of", moment)
    assert said.code == 2
    assert f"as of {moment}: an admin API has the newest state only" in said.complaint
    assert "`aclog sync`" in said.complaint
    assert "`aclog mirror`" in said.complaint


def test_there_is_no_history(broker):
    said = asked(broker, "export", "--format", "jsonl", "--history")
    assert (said.code, "use --log DIR" in said.complaint) == (2, True)


@pytest.mark.parametrize(("code", "message"), [(31, "no"), (31, None), (35, None), (-1, "odd")])
def test_a_refusal_to_describe_users_is_a_note(broker, code, message):
    broker.refusals[DESCRIBE_USER_SCRAM_CREDENTIALS] = code, message
    assert asked(broker, "acls", "list").ok().err == ""  # which needs no users
    listed = asked(broker, "export", "--format", "jsonl")
    assert sum('"acl"' in line for line in listed.ok().lines) == len(RULES)
    assert listed.err.count("note: SCRAM") == 1
    assert "note: SCRAM users are left out" in listed.err
    assert str(broker.address) in listed.err
    assert (message or f"error {code}") in listed.err
    assert ("needs DESCRIBE on the cluster" in listed.err) is (code == 31)


def test_a_server_without_the_scram_api_is_a_note():
    apis = tuple(api for api in BROKER_APIS if api.api_key != DESCRIBE_USER_SCRAM_CREDENTIALS)
    with FakeBroker(RULES, apis=apis) as old:
        listed = asked(old, "export", "--format", "jsonl").ok()
    assert "note: SCRAM users are left out" in listed.err


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        (31, "Request Request(...) needs DESCRIBE permission.", "needs DESCRIBE on the cluster"),
        (54, "No Authorizer is configured.", "a cluster without authorizer.class.name has no ACLs"),
        (-1, "AUTHORIZER_NOT_READY: not replayed", "AUTHORIZER_NOT_READY"),
        (54, None, "error 54"),
    ],
)
def test_a_refusal_to_describe_acls_is_an_error(broker, code, message, hint):
    broker.refusals[DESCRIBE_ACLS] = code, message
    said = asked(broker, "acls", "list")
    assert (said.code, said.out) == (2, "")
    assert said.complaint.startswith(f"{broker.address}: DescribeAcls: {message or f'error {code}'}")
    assert hint in said.complaint


def test_a_server_without_acls_is_an_error():
    with FakeBroker(RULES, apis=tuple(api for api in BROKER_APIS if api.api_key != DESCRIBE_ACLS)) as odd:
        said = asked(odd, "acls", "list")
    assert (said.code, "no broker, or older than Kafka 2.0" in said.complaint) == (2, True)


def test_a_response_longer_than_its_counts_is_refused(broker):
    """If the array length is damaged, the ACLs beyond it would seem to be removed."""
    broker.more = b"\0"
    said = asked(broker, "acls", "list")
    assert (said.code, said.out) == (2, "")
    assert "1 bytes after the end of the message" in said.complaint
    broker.more = b""
    broker.tamper_body = lambda body: body[:7] + bytes([2]) + body[8:]
    said = asked(broker, "acls", "list")
    assert (said.code, said.out) == (2, "")


def test_a_truncated_response_is_refused(broker):
    broker.tamper_body = lambda body: body[:-5]
    said = asked(broker, "acls", "list")
    assert (said.code, said.out) == (2, "")
    assert str(broker.address) in said.complaint


def hundred_thousand():
    """Return the body of a DescribeAcls response, version 3, built by hand: kio takes seconds for it."""
    one_rule = b"\x02\x0bUser:alice\x02*\x03\x03\0\0"
    resources = b"".join(b"\x02\x0dtopic-%06d\x03%b" % (number, one_rule) for number in range(100_000))
    return bytes(7) + b"\xa1\x8d\x06" + resources + b"\0"


@pytest.mark.slow(3)
def test_a_hundred_thousand_acls(broker):
    broker.tamper_body = lambda _: hundred_thousand()
    listed = names(asked(broker, "acls", "list", "--format", "jsonl"))
    assert listed == [f"topic-{number:06}" for number in range(100_000)]


def test_a_response_beyond_the_limit_is_reported(broker, monkeypatch):
    monkeypatch.setattr("aclog.client.connection.MAX_RESPONSE_BYTES", 400)
    broker.rules = [acl("x" * 500)]
    said = asked(broker, "acls", "list")
    assert said.code == 2
    assert "expected 4 to 400" in said.complaint


def test_unusual_names_are_preserved(broker):
    odd = ["\0", "\ufffd", "x" * 32_767, "😀", "a\nb", '"', "\u2028"]
    broker.rules = [acl(name) for name in odd]
    assert sorted(names(asked(broker, "acls", "list", "--format", "jsonl"))) == sorted(odd)


def test_the_next_server_is_used_if_the_first_is_unreachable(broker):
    listed = aclog("acls", "list", "--format", "jsonl", "--bootstrap-server", f"127.0.0.1:1,{broker.address}")
    assert names(listed) == ["orders", "orders", "pay"]


class TestLibrary:
    def test_each_image_is_requested_anew(self, broker):
        with library.open_log(bootstrap_server=str(broker.address)) as log:
            before = log.image()
            broker.rules = RULES[:1]
            assert (len(before), len(log.image())) == (3, 1)
            assert log.name == str(broker.address)
            assert log.notes == []

    def test_users_are_keyless(self, broker):
        scram = library.open_log(bootstrap_server=str(broker.address)).image().state.scram
        assert [user.user for user in scram.keyless] == ["alice", "zoe"]
        assert scram.keyless == tuple(scram.describe())
        assert scram.keyless[1] == UserCredentials(
            user="zoe", credential_infos=(CredentialInfo(mechanism=2, iterations=8192),)
        )
        assert (list(scram.records()), scram.get("zoe", 2), len(scram)) == ([], None, 3)
        assert "zoe" not in repr(scram)

    def test_no_past(self, broker):
        with pytest.raises(library.ConfigError, match="newest state only"):
            library.open_log(bootstrap_server=str(broker.address)).image(as_of=3)

    def test_a_note_appears_once(self, broker):
        broker.refusals[DESCRIBE_USER_SCRAM_CREDENTIALS] = 31, "no"
        log = library.open_log(bootstrap_server=str(broker.address))
        log.image()
        log.image()
        assert [note.startswith("SCRAM users are left out") for note in log.notes] == [True]

    def test_in_a_notebook(self, broker):
        """An event loop is already running, as in Jupyter."""

        async def cell():
            return len(library.open_log(bootstrap_server=str(broker.address)).image())

        assert asyncio.run(cell()) == 3

    def test_rules(self, broker):
        found = library.open_log(bootstrap_server=str(broker.address)).image().acls(principal="User:bob")
        assert [rule.acl for rule in found] == [RULES[1]]
        assert isinstance(RULES[1], StandardAcl)
