"""The command that `aclog explain` and the shell's `why` advise works on the source of the question."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from aclog.metalog.filelog.files import MirrorProperties, write_mirror_properties
from aclog.metalog.filelog.locks import LOCK_FILE
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker

DATA = Path(__file__).parents[1] / "data" / "kafka-4.3.1-small"
ASKED = ("--principal", "User:bob", "--operation", "WRITE", "--topic", "payments.eu")


@pytest.fixture
def copy(tmp_path):
    """A copy of a Kafka log without its meta.properties, which aclog has written since: it belongs to no Kafka node."""
    log = Path(shutil.copytree(DATA / "__cluster_metadata-0", tmp_path / "a copy"))
    (log / LOCK_FILE).touch()
    return log


def advised(*arguments):
    """Return the command in the last line of an explanation."""
    result = aclog(*arguments)
    return (result.denied() if arguments[0] == "explain" else result.ok()).lines[-1].strip()


@pytest.mark.parametrize("why", [False, True])
def test_on_a_log_the_advised_command_reverses_the_decision(copy, why):
    assert aclog("authorize", "--log", copy, *ASKED).code == 1
    asked = ("shell", "--log", copy, "why", "User:bob", "WRITE", "topic:payments.eu")
    command = shlex.split(advised(*asked) if why else advised("explain", "--log", copy, *ASKED))
    assert command[:5] == ["aclog", "acls", "remove", "--log", str(copy)]
    assert aclog(*command[1:], stdin=b"y\n").code == 0
    assert aclog("authorize", "--log", copy, *ASKED).code == 0


def test_for_a_kafka_log_and_a_checkpoint_kafka_acls_is_advised():
    log = DATA / "__cluster_metadata-0"
    for source in (("--log", log), ("--snapshot", log / "00000000000000000211-0000000002.checkpoint")):
        command = advised("explain", *source, *ASKED)
        assert command.startswith("kafka-acls.sh --bootstrap-server HOST:PORT --remove --deny-principal User:bob ")
        assert "--force" not in command


def test_for_a_copy_that_aclog_has_not_written_kafka_acls_is_advised(copy):
    (copy / LOCK_FILE).unlink()
    assert advised("explain", "--log", copy, *ASKED).startswith("kafka-acls.sh --bootstrap-server HOST:PORT --remove ")


def test_for_a_mirror_kafka_acls_is_advised(copy):
    """Nobody but `aclog mirror` may append to it."""
    write_mirror_properties(copy, MirrorProperties(cluster_id="the-cluster"))
    assert advised("explain", "--log", copy, *ASKED).startswith("kafka-acls.sh --bootstrap-server HOST:PORT --remove ")


def test_a_first_acl_on_a_resource_shuts_out_all_others(copy):
    """Allow-everyone is for resources without ACLs: the advice says what else it does."""
    asked = ("--operation", "DESCRIBE_TOKENS", "--user-principal", "Svc:x", "--allow-everyone-if-no-acl-found")
    lines = aclog("explain", "--log", copy, "--principal", "User:bob", *asked).ok().lines
    (command,) = [line for line in lines if line.startswith("    aclog acls add ")]
    assert "  which also denies the resource to all others: " in lines[-2]
    other = ("authorize", "--log", copy, "--principal", "User:other", *asked)
    assert aclog(*other).code == 0
    aclog(*shlex.split(command)[1:]).ok()
    assert aclog(*other).code == 1


def test_no_command_is_advised_that_the_tools_refuse(copy):
    """They accept only the operations that Kafka asks for."""
    lines = (
        aclog("explain", "--log", copy, "--principal", "User:bob", "--operation", "WRITE", "--group", "g")
        .denied()
        .lines
    )
    assert lines[-1] == "  add ALLOW User:bob WRITE on GROUP LITERAL 'g' from *"
    flags = ("--allow-principal", "User:bob", "--operation", "WRITE", "--group", "g")
    assert "only supports operations" in aclog("acls", "add", "--log", copy, *flags).complaint


def test_one_json_object(copy):
    out = aclog("explain", "--log", copy, *ASKED, "--format", "json").denied().out
    found = json.loads(out)
    assert out == json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n"
    assert list(found) == [
        "decision", "rule", "principal", "host", "hostGiven", "operation", "resourceType", "resourceName",
        "patternType", "impliedBy", "counts", "rules", "leftOff", "quirks", "nearMisses", "opposite", "asOf",
    ]  # fmt: skip
    assert (found["decision"], found["host"], found["hostGiven"], found["asOf"]) == ("DENIED", "127.0.0.1", False, None)
    assert found["rules"][0]["role"] == "DECIDES"
    assert found["opposite"]["changes"][0]["command"] == advised("explain", "--log", copy, *ASKED)


def test_the_address_and_the_login_of_the_cluster_are_in_the_command(tmp_path):
    (tmp_path / "my client").write_text("security.protocol=PLAINTEXT\n")
    with FakeBroker([acl("orders")]) as broker:
        source = ("--bootstrap-server", str(broker.address))
        command = shlex.split(advised("explain", *source, *ASKED))
        assert command[:4] == ["kafka-acls.sh", *source, "--add"]
        assert command[command.index("--allow-host") + 1] == "*"
        source = (*source, "--command-config", str(tmp_path / "my client"))
        command = shlex.split(advised("explain", *source, *ASKED, "--host", "10.0.0.1"))
        assert command[:6] == ["kafka-acls.sh", *source, "--add"]
        assert command[command.index("--allow-host") + 1] == "10.0.0.1"
        assert shlex.split(advised("shell", *source, "why", "User:bob", "WRITE", "topic:x"))[:6] == command[:6]


def test_a_state_of_the_past_is_named(copy):
    asked = ("explain", "--log", copy, *ASKED, "--as-of", "40")
    said = "  (for the state as of 40; the commands change the newest one, which may differ: explain it first)"
    assert said in aclog(*asked).denied().lines
    assert json.loads(aclog(*asked, "--format", "json").denied().out)["asOf"] == "40"
    assert said not in aclog(*asked[:-2]).denied().lines
    script = "at 40\nwhy User:bob WRITE topic:payments.eu\nat latest\nwhy User:bob WRITE topic:payments.eu\n"
    assert aclog("shell", "--log", copy, stdin=script.encode()).ok().lines.count(said) == 1


def test_a_hidden_rule_without_a_colon_is_no_reason_to_fail(tmp_path):
    rules = [acl("*", "alice"), acl("*x", "User:a")]
    rows = [
        {
            "resourceType": "TOPIC", "resourceName": rule.resource_name, "patternType": "LITERAL", "host": "*",
            "principal": rule.principal, "operation": "READ", "permissionType": "ALLOW",
        }
        for rule in rules
    ]  # fmt: skip
    (tmp_path / "acls").write_text("\n".join(map(json.dumps, rows)))
    asked = ("--acls", tmp_path / "acls", "--principal", "User:a", "--operation", "READ", "--topic", "*x")
    asked = (*asked, "--resource-pattern-type", "literal")
    assert aclog("authorize", *asked).code == 0
    assert aclog("explain", *asked).ok().lines[0].startswith("ALLOWED: ")


def test_names_that_need_quotes_come_back_from_a_shell(tmp_path):
    name = "a'b\x1b[2J\u202e!$(x)"
    asked = ("--principal", f"User:{name}", "--operation", "READ", "--topic", name)
    log = tmp_path / f"log {name}"
    aclog("import", DATA / "expected" / "acls.jsonl", "--log", log).ok()
    command = advised("explain", "--log", log, *asked)
    assert command.isprintable()
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True, env={"LC_ALL": "C"}
    ).stdout.decode().split("\0")  # fmt: skip
    assert aclog(*words[1:-1]).code == 0
    assert aclog("authorize", "--log", log, *asked).code == 0


def test_origins_are_the_records_of_the_log_that_added_the_rules():
    log = DATA / "__cluster_metadata-0"
    records = map(json.loads, aclog("log", "dump", log, "--json").ok().lines)
    in_log = [each for each in records if each["file"].endswith(".log") and "id" in (each.get("data") or {})]
    added = {each["data"]["id"]: each["offset"] for each in in_log if each["type"] == "ACCESS_CONTROL_ENTRY_RECORD"}
    found = json.loads(aclog("explain", "--log", log, *ASKED, "--origins", "--format", "json").denied().out)
    rules = [each["rule"] for each in found["rules"]]
    assert len(rules) > 1
    assert {rule["id"]: rule["offset"] for rule in rules} == {rule["id"]: added[rule["id"]] for rule in rules}
    assert (
        f"(offset {rules[0]['offset']}, 2026-11-21T02:24:01.356Z)"
        in aclog("explain", "--log", log, *ASKED, "--origins").denied().out
    )


def test_origins_of_a_source_without_a_log_are_its_own(tmp_path):
    acls = tmp_path / "acls.jsonl"
    acls.write_text(aclog("acls", "list", "--log", DATA / "__cluster_metadata-0", "--format", "jsonl").ok().out)
    lines = [aclog("explain", "--acls", acls, *ASKED, *more).denied().out for more in ((), ("--origins",))]
    assert lines[0] == lines[1]


@pytest.fixture
def half(tmp_path):
    """The rules of a client that may read its topic but not its group."""
    rule = {
        "resourceType": "TOPIC", "resourceName": "t", "patternType": "LITERAL", "principal": "User:a", "host": "*",
        "operation": "READ", "permissionType": "ALLOW",
    }  # fmt: skip
    (tmp_path / "acls").write_text(json.dumps(rule))
    return "--acls", tmp_path / "acls", "--principal", "User:a", "--intent", "consume"


def test_an_intent_is_all_of_its_requests(half):
    asked = ("--topic", "t", "--group", "g")
    lines = aclog("explain", *half, *asked).denied().lines
    assert lines[0] == "DENIED: User:a consume: 2 of the 4 requests are denied"
    assert [line.partition(" from")[0] for line in lines if line.startswith(("ALLOWED: ", "DENIED: "))][1:] == [
        "ALLOWED: User:a READ TOPIC 't'",
        "ALLOWED: User:a DESCRIBE TOPIC 't'",
        "DENIED: User:a READ GROUP 'g'",
        "DENIED: User:a DESCRIBE GROUP 'g'",
    ]
    answer = json.loads(aclog("explain", *half, *asked, "--format", "json").denied().out)
    single = ("--principal", "User:a", "--operation", "READ", "--topic", "t", "--format", "json")
    assert answer["requests"][0] == json.loads(aclog("explain", *half[:2], *single).ok().out)
    assert [request["decision"] for request in answer["requests"]] == ["ALLOWED", "ALLOWED", "DENIED", "DENIED"]
    assert {key: answer[key] for key in ("decision", "intent", "principal", "host")} == {
        "decision": "DENIED", "intent": "consume", "principal": "User:a", "host": "127.0.0.1",
    }  # fmt: skip
    rows = [json.loads(line) for line in aclog(
        "explain", *half, *asked, "--format", "jsonl", "--columns", "request,decision,role"
    ).denied().lines]  # fmt: skip
    assert rows[0] == {"request": "READ TOPIC 't'", "decision": "ALLOWED", "role": "DECIDES"}
    assert rows[-1] == {"request": "DESCRIBE GROUP 'g'", "decision": "DENIED", "role": None}


def test_an_intent_is_allowed_as_a_whole(half):
    produce = (*half[:-1], "produce", "--topic", "t", "--allow-everyone-if-no-acl-found")
    assert aclog("explain", *produce).denied().lines[0].endswith("1 of the 2 requests are denied")
    lines = aclog("explain", *half, "--topic", "t", "--group", "g", "--super-users", "User:a").ok().lines
    assert lines[0] == "ALLOWED: User:a consume: all 4 requests are allowed"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--topic", "t"), "--intent consume: expected --group as well"),
        (("--topic", "t", "--group", "g", "--operation", "READ"), "with --intent, expected --principal, and no"),
        (("--topic", "t", "--group", "g", "--cluster"), "intent consume: expected resources of type GROUP, TOPIC"),
    ],
)
def test_an_intent_that_is_not_a_question(half, more, said):
    result = aclog("explain", *half, *more)
    assert (result.code, result.out) == (2, "")
    assert said in result.complaint
