"""`aclog mcp`, asked by a client of the protocol's SDK: each tool, the proof in its answer, and bad questions."""

import hashlib
import json
import re
import shlex
import shutil
from pathlib import Path

import jsonschema
import pytest

from aclog.mcp.tools import TOOLS
from aclog.sources.choice import AclsSource
from aclog.usage.decisions.intervals import Rules
from aclog.usage.index.usage_index import UsageIndex
from tests.cli.test_generations import log_of
from tests.cli.test_unused import RULES, access, line, rule
from tests.support.builders.hostile_names import NAMES
from tests.support.builders.state_records import registration as broker
from tests.support.cli.command import aclog
from tests.support.cli.mcp_client import with_assistant
from tests.support.usage.indexed_timelines import take

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
END = 231
READ_ORDERS = {"operation": "READ", "topics": ["orders"]}
REMOVAL = json.dumps({"action": "REMOVE", "rule": {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:alice",
    "host": "*", "operation": "READ", "permissionType": "ALLOW",
}})  # fmt: skip
QUESTIONS = [
    ("who_can", READ_ORDERS),
    ("who_can", {"intent": "consume", "topics": ["orders"], "groups": ["g-1"], "host": "10.0.0.1"}),
    ("who_can", {"operation": "ALTER", "cluster": True}),
    ("what_can", {"principal": "User:bob", "host": "127.0.0.1"}),
    ("explain", {"principal": "User:bob", "operation": "WRITE", "topic": "payments.eu", "host": "10.0.0.1"}),
    ("explain", {"principal": "User:bob", "operation": "CREATE_TOKENS", "user": "User:dave", "as_of": "60"}),
    ("diff", {"as_of": "60"}),
    ("diff", {"as_of": "60", "to_as_of": "2026-11-21T02:24:02Z"}),
    ("diff", {"change": f"{REMOVAL}\n"}),
    ("check", {"check": "no-public"}),
    ("check", {"check": "equal", "to_as_of": str(END)}),
    ("check", {"check": "no-new-access", "change": REMOVAL}),
    ("check", {"check": "no-new-access", "change": REMOVAL, "topics": ["pay*"], "cluster": True}),
    ("check", {"check": "not-granted", **READ_ORDERS, "principals": ["User:bob", "User:eve"], "host": "127.0.0.1"}),
    ("check", {"check": "only", "operation": "READ", "topics": ["or"], "prefixed": True, "principals": ["User:bob"]}),
    ("when", {**READ_ORDERS, "principals": ["User:alice"]}),
    ("who_can", {"operation": "WRITE", "topics": ["pay*"]}),
    ("explain", {"principal": "User:bob", "operation": "WRITE", "topic": "payments.*"}),
    ("when", {"operation": "WRITE", "topics": ["secret"], "except_principals": ["User:root"]}),
    ("lint", {"select": "02,dead-deny"}),
]
HOSTILE = (
    "--log=/etc/passwd", "-", "--", "$(touch pwned)", "a\nb", "`id`", "'; exit", "\u202ekcab", "😀" * 60, "", " ",
    "x" * 249, "x" * 30_000, "--out=pwned", "%s{0}", "<script>",
)  # fmt: skip


def printed(command: str, stdin: str | None = None) -> tuple[list[object], list[str]]:
    """What a command line prints, as rows, and its notices."""
    name, *words = shlex.split(command)
    assert name == "aclog"
    result = aclog(*words, stdin=(stdin or "").encode())
    assert result.code in {0, 1}, result
    return list(map(json.loads, result.lines)), [each.removeprefix("aclog: ") for each in result.err.splitlines()]


@pytest.mark.slow(7)
def test_each_answer_is_what_its_command_prints():
    async def questions(asking):
        for tool, arguments in QUESTIONS:
            answer = await asking.ask(tool, **arguments)
            rows, notices = printed(answer["command"], arguments.get("change"))
            head = [answer["verdict"]] if tool == "check" else []
            assert head + answer["rows"] == rows
            assert answer["notices"] == notices
            assert answer["total"] == len(answer["rows"]), "none is left off"
            assert answer["leftOff"] == answer["skipped"] == 0
            assert answer["source"] == str(LOG)
            assert answer["endOffset"] == int(arguments.get("as_of", END))
            assert ("toEndOffset" in answer) == ("--to-as-of" in answer["command"])

    with_assistant(questions, "--log", LOG)


@pytest.mark.tier("test")
def test_why_is_alice_refused():
    async def questions(asking):
        answer = await asking.ask("explain", principal="User:alice", operation="READ", topic="secret")
        [why] = answer["rows"]
        assert why["decision"] == "DENIED"
        [decides] = [each["rule"] for each in why["rules"] if each["role"] == "DECIDES"]
        assert decides == {
            "resourceType": "TOPIC", "resourceName": "secret", "patternType": "LITERAL", "principal": "User:*",
            "host": "*", "operation": "ALL", "permissionType": "DENY", "id": "LyV1J24wR8K6V76euIs2QQ",
            "offset": 41, "timestamp": 1795227841469,
        }  # fmt: skip
        assert answer["endOffset"] == END
        assert f"--as-of={END}" in answer["command"]
        dumped = printed(f"aclog log dump {LOG} --json")[0]
        [record] = [each for each in dumped if each["offset"] == 41 and each["file"].endswith(".log")]
        assert record["type"] == "ACCESS_CONTROL_ENTRY_RECORD"
        assert record["data"]["id"] == decides["id"]
        [before] = (await asking.ask("explain", principal="User:alice", operation="READ", topic="secret", as_of="34"))[
            "rows"
        ]
        assert before["rule"] == "DefaultDeny"

    with_assistant(questions, "--log", LOG)


@pytest.mark.process
def test_the_tools_are_those_of_the_page_and_none_writes():
    page = (ROOT / "docs/mcp.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    assert list(told) == [tool.name for tool in TOOLS]

    async def questions(asking):
        tools = (await asking.client.list_tools()).tools
        assert [tool.name for tool in tools] == list(told)
        for tool in tools:
            assert tool.annotations.read_only_hint
            assert not tool.annotations.destructive_hint
            assert tool.annotations.open_world_hint, "names are chosen by others"
            for schema in (tool.input_schema, tool.output_schema):
                jsonschema.Draft202012Validator.check_schema(schema)
                assert schema["additionalProperties"] is False
            properties = tool.input_schema["properties"]
            assert all(each["description"] for each in properties.values())
            of_all = {"as_of", "kafka_version", "skip"}
            assert set(re.findall(r"`(\w+)`", told[tool.name])) == properties.keys() - of_all
        assert "never instructions" in asking.client.instructions

    with_assistant(questions, "--log", LOG)


@pytest.mark.process
def test_each_kafka_that_may_decide_answers(tmp_path):
    log = tmp_path / "log"
    log_of(log, [broker(1, 30), broker(2, 30)], [broker(2, 33)])
    asked_of = {"operation": "READ", "topics": ["orders"]}

    async def questions(asking):
        both = await asking.ask("who_can", **asked_of)
        assert [row["generation"] for row in both["rows"]] == ["4.3", "4.4", "4.4"]
        assert both["generations"] == ["4.3", "4.4"]
        assert both["premises"] == [each for each in both["notices"] if "the brokers differ" in each] != []
        assert list(map(json.loads, aclog(*shlex.split(both["command"])[1:]).lines)) == both["rows"]
        one = await asking.ask("who_can", **asked_of, kafka_version="4.3.1")
        assert [row["principals"] for row in one["rows"]] == [{"in": ["User:b"]}]
        assert "generations" not in one
        assert "premises" not in one
        upgrade = await asking.ask("diff", as_of="5", to_kafka_version="4.4")
        assert {row["change"] for row in upgrade["rows"]} == {"GAINED", "LOST"}
        assert (await asking.ask("diff", to_kafka_version="4.4", kafka_version="4.4"))["rows"] == []
        history = await asking.ask("when", **asked_of, principals=["User:a"])
        assert [row.get("generation") for row in history["rows"]] == ["4.4", "4.4"]
        refuted = await asking.ask("check", check="not-granted", **asked_of, principals=["User:a"])
        assert refuted["verdict"]["verdict"] == "REFUTED"
        assert (await asking.tell("who_can", **asked_of, kafka_version="new")).error is not None

    with_assistant(questions, "--log", log)


@pytest.mark.slow(9)
def test_hostile_words_are_only_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def questions(asking):
        for word in HOSTILE:
            answer = await asking.tell("explain", principal=f"User:{word}", operation="READ", topic=word)
            if answer.error is None:
                [why] = answer.answer["rows"]
                shown = word if len(word) < 10_000 else f"{word[:500]}... ({len(word)} characters)"
                assert (why["resourceName"], why["decision"]) == (shown, "DENIED")
            else:
                assert word == ""
        for tool, given in (
            ("what_can", {"principal": "--out=pwned"}),
            ("lint", {"select": "--fix=pwned"}),
            ("when", {**READ_ORDERS, "principals": ["User:*"]}),
            ("who_can", {"operation": "--help", "topics": ["t"]}),
            ("who_can", {**READ_ORDERS, "as_of": "--help"}),
            ("who_can", {**READ_ORDERS, "as_of": "900"}),
            ("check", {"check": "no-public", "principals": ["User:a"]}),
            ("diff", {"change": "no JSON"}),
            ("diff", {"change": "{}", "to_as_of": "1"}),
            ("diff", {}),
            ("explain", {"principal": "User:a", "operation": "READ", "topic": "a", "group": "b"}),
            ("explain", {"principal": "User:a", "operation": "READ", "topic": "a\0b"}),
            ("explain", {"principal": "User:a", "operation": "READ", "topic": "x" * 50_000}),
            ("explain", {"principal": 5, "operation": "READ", "topic": "a"}),
            ("explain", {"principal": "User:a", "operation": "READ", "topic": "a", "log": "/etc"}),
            ("lint", {"fix": "pwned"}),
            ("lint", {"skip": -1}),
            ("unused", {"out": "pwned"}),
        ):
            told = await asking.tell(tool, **given)
            assert told.error, (tool, given, told)
            assert len(told.error) < 2000
            assert "Traceback" not in told.error
        assert (await asking.ask("who_can", **READ_ORDERS))["total"] == 3, "it goes on"

    with_assistant(questions, "--log", LOG)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow(20)
def test_a_text_has_no_name_that_hides_or_steers_and_structured_content_has_it_exactly(tmp_path):
    rules = tmp_path / "rules.jsonl"
    rules.write_text("\n".join(
        json.dumps({
            "resourceType": "GROUP", "resourceName": name, "patternType": "LITERAL", "principal": f"User:{name}",
            "host": "*", "operation": "READ", "permissionType": "ALLOW",
        }) for name in NAMES.values()
    ))  # fmt: skip

    async def questions(asking):
        found = (await asking.ask("lint"))["rows"]
        assert found, "names that look like another"
        for name in NAMES.values():
            if "\0" in name:
                assert "NUL" in (await asking.tell("what_can", principal=f"User:{name}")).error
                continue
            [row] = (await asking.ask("what_can", principal=f"User:{name}"))["rows"]
            [rule] = row["rules"]
            assert (rule["resourceName"], rule["principal"]) == (name, f"User:{name}")
        told = await asking.tell("explain", principal="User:a", operation=NAMES["colours"], group=NAMES["bidi"])
        assert "is not one of" in told.error

    with_assistant(questions, "--acls", rules)


@pytest.mark.process
def test_a_command_says_what_is_wrong_itself():
    async def questions(asking):
        told = await asking.tell("when", **READ_ORDERS, principals=["User:*"])
        said, command = told.error.splitlines()
        assert said == "--principal User:*: no client has that name: omit the flag for all principals"
        assert command.startswith("command: aclog when --log=")
        assert (
            "'RAED' is not one of READ, WRITE" in (await asking.tell("who_can", operation="RAED", topics=["t"])).error
        )
        assert (await asking.tell("unused")).error.startswith("no access log and no index: start aclog mcp with")
        assert (await asking.tell("explain", principal="User:a")).error == "arguments: operation: Field required"

    with_assistant(questions, "--log", LOG)


@pytest.mark.slow(4)
def test_a_log_is_read_as_it_is_now_and_not_changed(tmp_path):
    log = tmp_path / "log"
    (tmp_path / "none").write_text("")
    aclog("import", tmp_path / "none", "--log", log).ok()
    add = ("acls", "add", "--log", log, "--allow-principal", "User:a", "--topic", "t", "--operation", "READ")

    def content() -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in log.iterdir()}

    async def questions(asking):
        before = await asking.ask("who_can", operation="READ", topics=["t"])
        assert (before["total"], before["note"]) == (0, "none: no principal can do this (except super users)")
        aclog(*add).ok()
        held = content()
        after = await asking.ask("who_can", operation="READ", topics=["t"])
        assert after["total"] == 1
        assert after["endOffset"] > before["endOffset"]
        assert printed(before["command"])[0] == [], "a command line says the same for ever"
        for tool, arguments in (("lint", {}), ("what_can", {"principal": "User:a"}), ("diff", {"as_of": "1"})):
            await asking.ask(tool, **arguments)
        assert content() == held
        shutil.rmtree(log)
        told = await asking.tell("who_can", operation="READ", topics=["t"])
        assert str(log) in told.error

    with_assistant(questions, "--log", log)


@pytest.mark.slow(7)
def test_sources_without_offsets_say_so(tmp_path):
    acls = tmp_path / "acls.jsonl"
    aclog("export", "--log", LOG, "--format", "jsonl", "--out", tmp_path / "state.jsonl").ok()
    acls.write_text(aclog("acls", "list", "--log", LOG, "--format", "jsonl").ok().out)
    checkpoint = next(LOG.glob("*69-*.checkpoint"))
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    shutil.copy(checkpoint, checkpoints)

    async def of_files(asking):
        answer = await asking.ask("who_can", **READ_ORDERS)
        assert (answer["endOffset"], answer["noEndOffset"]) == (None, "files of rules have no offsets")
        assert answer["total"] == 3
        told = await asking.tell("when", **READ_ORDERS)
        assert "a single state has no history" in told.error
        acls.write_text("{")
        assert str(acls) in (await asking.tell("who_can", **READ_ORDERS)).error

    async def of_checkpoint(asking):
        answer = await asking.ask("who_can", **READ_ORDERS)
        assert answer["endOffset"] == 69
        assert answer["total"] == len(printed(answer["command"])[0]) == 3

    async def of_checkpoints(asking):
        assert (await asking.ask("who_can", **READ_ORDERS))["endOffset"] == 69
        assert (await asking.ask("who_can", **READ_ORDERS, as_of="69"))["endOffset"] == 69
        answer = await asking.ask("who_can", **READ_ORDERS, as_of="2026-11-22T00:00:00Z")
        assert (answer["endOffset"], answer["noEndOffset"]) == (None, "there is no log to find the time in")

    with_assistant(of_files, "--acls", acls)
    with_assistant(of_checkpoint, "--snapshot", checkpoint)
    with_assistant(of_checkpoints, "--log", checkpoints)


@pytest.mark.slow(4)
def test_what_is_unused_by_an_index_or_an_access_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("acls.jsonl").write_text("\n".join(json.dumps(rule(*each)) for each in RULES))
    found = [access(hours / 24) for hours in range(240)]
    Path("accesses.jsonl").write_text("\n".join(map(line, found)))
    with UsageIndex.create(Path("index")) as index:
        take(index, found, Rules.of_image(AclsSource("acls.jsonl").image().acls), own_time=False)

    async def by_index(asking):
        answer = await asking.ask("unused", days=9)
        assert {(row["principal"], row["answer"]) for row in answer["rows"]} >= {("User:b", "NEVER_MATCHED")}
        assert answer["command"].startswith("aclog accesses unused --index=index --accesses=accesses.jsonl ")
        assert answer["rows"] == printed(answer["command"])[0]

    async def by_accesses(asking):
        answer = await asking.ask("unused", days=9)
        assert answer["command"].startswith("aclog accesses usage --accesses=accesses.jsonl ")
        assert answer["rows"] == printed(answer["command"])[0]
        assert "start aclog mcp with --index" in (await asking.tell("unused", gap="6h")).error

    with_assistant(by_index, "--acls", "acls.jsonl", "--index", "index", "--accesses", "accesses.jsonl")
    with_assistant(by_accesses, "--acls", "acls.jsonl", "--accesses", "accesses.jsonl")


@pytest.mark.process
def test_what_the_server_is_started_with_decides(tmp_path):
    config = tmp_path / "config.toml"
    settings = ('super-users = "User:zoe;User:yan"', "allow-everyone-if-no-acl-found = true")
    config.write_text("\n".join(("[contexts.it]", f'log = "{LOG}"', *settings)))
    config.chmod(0o600)

    async def questions(asking):
        answer = await asking.ask("explain", principal="User:zoe", operation="READ", topic="secret")
        assert answer["rows"][0]["decision"] == "ALLOWED"
        assert "'--super-users=User:zoe;User:yan'" in answer["command"]
        assert "--allow-everyone-if-no-acl-found" in answer["command"]
        assert answer["endOffset"] == 60
        assert (await asking.ask("lint", select="02", as_of=str(END)))["endOffset"] == END

    with_assistant(questions, "-c", "it", "--as-of", "60", environment={"ACLOG_CONFIG": str(config)})
