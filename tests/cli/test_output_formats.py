"""What a command lists is the same data in every format, and as its JSON schema says."""

import csv
import io
import json
import re
from datetime import UTC, datetime
from importlib.resources import files
from types import SimpleNamespace

import jsonschema
import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import KafkaPrincipal
from aclog.cli.flags.common import Output
from aclog.cli.schema import schema_names, schema_of
from aclog.cli.tokens import print_described
from aclog.client.requests import DelegationToken
from aclog.snapshots.publisher import recover
from aclog.terminal.columns import ROW_FORMATS, OutputFormat, cell_text, value_of
from aclog.usage.decisions.intervals import Rules
from aclog.usage.index.usage_index import UsageIndex
from tests.cli.test_documentation import COMMANDS, SECTIONS
from tests.support.cli.command import aclog
from tests.support.models.estates import Request
from tests.support.usage.indexed_timelines import take
from tests.support.usage.timelines import DAY, Access

READ_ORDERS = Request(
    principal="User:bob", host="10.0.0.1", operation=AclOperation.READ, resource_type=ResourceType.TOPIC,
    resource_name="orders",
)  # fmt: skip
LOG = "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
SPREADSHEET = "=cmd|' /C calc'!A0"

LISTS = {
    "acl": ["acls list --log {log}", "acls list --acls {acls} --origins"],
    "answer": ["authorize --log {log} --requests {requests}"],
    "difference": [
        "diff --log {log} --to-as-of 60 --accesses {accesses}",
        "diff --acls {acls} --to-acls {other}",
        "diff --log {log} --to-cidr --to-super-users User:x --to-semantics documented",
    ],
    "permission": [
        "who-can --log {log} --operation READ --topic orders --super-users User:root",
        "who-can --log {log} --intent consume --topic orders",
        "what-can --log {log} --principal User:bob",
    ],
    "interval": ["when --log {log} --operation READ --topic orders"],
    "rule-usage": ["accesses usage --log {log} --accesses {accesses} --until 2026-11-21T03:00:00Z"],
    "denied-attempt": [
        "accesses denied --acls {acls} --accesses {accesses} --kafka-version 4.3.1",
        "accesses denied --log {log} --accesses {accesses}",
    ],
    "simulated-access": [
        "accesses simulate --acls {acls} --to-acls {other} --accesses {accesses} --kafka-version 4.3.1"
    ],
    "suggested-rule": ["accesses suggest --log {log} --accesses {timed} --allow-everyone-if-no-acl-found"],
    "finding": ["lint --log {log}", "lint --acls {acls}"],
    "record": ["log dump {log}"],
    "checkpoint": ["snapshot list {log}", "snapshot list {damaged}"],
    "checkpoint-verification": ["snapshot verify {checkpoints}", "snapshot verify {damaged_checkpoint}"],
    "acl-history": ["acls history --log {log}"],
    "token": ["tokens list --log {log}"],
    "schema": ["schema"],
    "lint": ["lint --list", "lint --explain 08,02"],
    "coverage": ["accesses coverage --accesses {timed}", "accesses coverage --index {index} --gap 6h"],
    "unused": ["accesses unused --log {log} --index {index}", "accesses unused --acls {acls} --index {index} --days 3"],
}
"""Command lines that print rows, by the schema of these."""
PROOFS = [
    "check no-new-access --log {log} --to-as-of 60",
    "check equal --log {log} --to-log {log}",
    "check not-granted --log {log} --operation READ --topic orders",
    "check only --log {log} --operation READ --topic orders --principal User:bob",
    "check no-public --log {log}",
]
"""A verdict, then rows."""
ANSWERS = {
    "decision": ["authorize --log {log} {asked}", "authorize --acls {acls} {asked}"],
    "why": [
        "why --log {log} bob orders",
        "why --log {log} --as-of 60 --produce bob orders",
        "why --log {log} bob pay*",
    ],
    "explanation": [
        "explain --log {log} {asked}",
        "explain --acls {acls} {asked}",
        "explain --log {log} {asked} --origins",
    ],
    "log-verification": ["log verify {log}", "log verify {damaged}"],
}
"""One object."""
TESTS = "test {tests} --log {log} --coverage --mutate"
WITHOUT = {"export", "context add", "query"}
"""Commands whose --format is not how they print a list, and `query`, whose keys are those of the statement."""
ELSEWHERE = {
    "migrate",
    "shell",
    "status",
    "sync",
    "accesses index",
    "context list",
    "context show",
    "spark ingest",
    "spark when",
    "spark suggest",
    "spark usage-index",
    "review",
    "plan",
    "drift",
    "rollback",
    "grant",
    "revoke",
}
"""Commands whose objects are checked below, or where a cluster is: in the tests of that command."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """What the command lines above name."""
    directory = tmp_path_factory.mktemp("formats")
    odd = 'User:a,"b"\n|c'
    rule = {
        "resourceType": "TOPIC", "resourceName": SPREADSHEET, "patternType": "PREFIXED", "principal": odd,
        "host": "10.0.0.0/8", "operation": "ALL", "permissionType": "ALLOW",
    }  # fmt: skip
    rules = [
        rule,
        {**rule, "principal": "none", "host": "*"},
        {**rule, "resourceName": "orders", "principal": "User:bob"},
    ]
    (directory / "acls.jsonl").write_text("\n".join(map(json.dumps, rules)))
    (directory / "other.jsonl").write_text(json.dumps(rules[2] | {"host": "*"}))
    request = {"principal": "User:bob", "host": "::1", "operation": "READ", "resourceType": "TOPIC"}
    requests = [
        {**request, "resourceName": "orders"},
        {**request, "resourceName": 5},
        {**request, "kind": "byResourceType"},
    ]
    (directory / "requests.jsonl").write_text("\n".join(map(json.dumps, requests)))
    (directory / "accesses.jsonl").write_text(json.dumps(requests[0]))
    timed = [requests[0] | {"timestamp": time, "broker": broker} for broker in ("1", odd) for time in (0, 10**9)]
    (directory / "timed.jsonl").write_text("\n".join(map(json.dumps, timed)))
    cases = {"tests": [{"principal": "User:bob", "can": {"READ": ["topic:orders", "topic:nothing"]}}]}
    (directory / "tests.yaml").write_text(json.dumps(cases))
    damaged = directory / "damaged"
    damaged.mkdir()
    name = "00000000000000000069-0000000001.checkpoint"
    content = (files("tests").joinpath("..") / LOG / name).read_bytes()
    (damaged / name).write_bytes(content[:-9])
    with UsageIndex.create(directory / "index") as index:
        rules = Rules.of_image(recover(LOG).image.acls)
        accesses = [Access(time=day * DAY, broker="1", request=READ_ORDERS) for day in range(9)]
        take(index, accesses, rules, own_time=False)
    return {
        "index": directory / "index", "timed": directory / "timed.jsonl",
        "log": LOG, "acls": directory / "acls.jsonl", "other": directory / "other.jsonl",
        "requests": directory / "requests.jsonl", "accesses": directory / "accesses.jsonl",
        "tests": directory / "tests.yaml", "damaged": damaged, "damaged_checkpoint": damaged / name,
        "checkpoints": f"{LOG}/{name}",
        "asked": "--principal User:bob --operation READ --topic orders",
    }  # fmt: skip


def printed(line, place, form):
    """Return what a command line prints in a format."""
    result = aclog(*line.format_map(place).split(), "--format", form)
    assert not result.err.startswith("aclog: --"), result
    return result.out


def check(name, objects):
    """Check objects by their schema."""
    validator = jsonschema.Draft202012Validator(schema_of(name))
    for each in objects:
        validator.validate(each)


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def check_cells(rows, place, line):
    """Check that csv and Markdown have these rows; csv of permissions and intervals has others (test_since)."""
    text = printed(line, place, "csv")
    assert "\r\n" in text
    header, *cells = csv.reader(io.StringIO(text, newline=""))
    if line.startswith(("who-can", "what-can", "when")):
        return [*rows[0]]
    assert cells == [[covered(value_of(row, key)) for key in header] for row in rows]
    markdown = printed(line, place, "markdown").splitlines()
    if markdown[:1] == [f"| {' | '.join(header)} |"]:  # else it is a report
        assert len(markdown) == len(rows) + 2
        assert all(len(re.split(r"(?<!\\)(?:\\\\)*\|", each)) == len(header) + 2 for each in markdown)
    return header


def covered(value):
    """A cell of csv: no formula."""
    text = cell_text(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA) else text


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, found in LISTS.items() for line in found])
@pytest.mark.sample(8)
def test_a_list_is_the_same_rows_in_each_format(name, line, place):
    rows = json.loads(printed(line, place, "json"))
    assert rows
    check(name, rows)
    assert lines(printed(line, place, "jsonl")) == rows
    header = check_cells(rows, place, line)
    assert {key for row in rows for key in row} <= {key.partition(".")[0] for key in header} | {"also"}
    table = printed(line, place, "table").splitlines()
    assert len(table) == len(rows) + 1
    chosen = aclog(*line.format_map(place).split(), "--format", "jsonl", "--columns", header[0]).out
    assert lines(chosen) == [{header[0]: value_of(row, header[0])} for row in rows]


@pytest.mark.parametrize("line", PROOFS)
def test_a_proof_is_a_verdict_and_rows(line, place):
    whole = json.loads(printed(line, place, "json"))
    check("proof", whole)
    assert lines(printed(line, place, "jsonl")) == whole
    verdict, *rows = whole
    assert verdict["regions"] == len(rows)
    check_cells(rows, place, line)
    assert printed(line, place, "table").startswith(f"{verdict['verdict']}: ")


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, found in ANSWERS.items() for line in found])
def test_an_answer_is_one_object_in_json_and_rows_elsewhere(name, line, place):
    answer = json.loads(printed(line, place, "json"))
    check(name, [answer])
    assert lines(printed(line, place, "jsonl")) == [answer]
    rows = {
        "decision": lambda: [answer],
        "why": lambda: [answer],
        "explanation": lambda: [{**each, **each["rule"]} for each in answer["rules"]],
        "log-verification": lambda: answer["findings"],
    }[name]()
    check_cells(rows, place, line)


def test_cases_of_tests_are_rows_and_json_has_all(place):
    whole = json.loads(printed(TESTS, place, "json"))
    check("test-result", whole)
    assert lines(printed(TESTS, place, "jsonl")) == whole
    assert {"case", "coverage", "mutant", "mutants", "cases"} <= {key for each in whole for key in each}
    check_cells([each for each in whole if "case" in each], place, TESTS)


def test_tokens(capsys):
    owner, now = KafkaPrincipal(type="User", name="=a"), datetime(2026, 11, 20, 10, tzinfo=UTC)
    token = DelegationToken(
        token_id="id", hmac=b"h", owner=owner, requester=owner, renewers=(owner,), issued=now, expires=now, longest=now
    )
    broker = SimpleNamespace(request=lambda _: [token])
    print_described(broker, [], Output(form=OutputFormat.JSONL))
    [row] = lines(capsys.readouterr().out)
    check("token", [row])
    assert row["issueTimestamp"] == 1795168800000
    for form in ROW_FORMATS:
        print_described(broker, [], Output(form=form))
        assert "User:=a" in capsys.readouterr().out


def test_contexts(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    path.write_text(f'[contexts.it]\nlog = "{LOG}"\n')
    path.chmod(0o600)
    monkeypatch.setenv("ACLOG_CONFIG", str(path))
    check("context", json.loads(aclog("context", "list", "--format", "json").ok().out))
    check("context-settings", [json.loads(aclog("context", "show", "it", "--json").ok().out)])


def test_the_doctor(monkeypatch, tmp_path):  # without a Java; what it finds differs from one time to the next
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check("check-up", json.loads(aclog("doctor", "--log", LOG, "--format", "json").out))


def test_a_spreadsheet_runs_nothing(place):
    cells = next(csv.reader(io.StringIO(printed("acls list --acls {acls}", place, "csv").partition("\r\n")[2])))
    assert cells[1] == f"'{SPREADSHEET}"


def json_commands():
    """Yield the commands that print JSON."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            words = f"{parameter.metavar} {getattr(parameter.type, 'choices', '')}"
            if {"--json", "--summary"} & {*parameter.opts} or ("--format" in parameter.opts and "json" in words):
                yield name
                break


def test_each_command_that_prints_json_has_a_schema_which_is_tried():
    known = {command for name in schema_names() for command in documented(name)}
    assert {*json_commands(), "shell"} - WITHOUT == known
    tried = {line.split(" --")[0].split(" {")[0] for found in (*LISTS.values(), *ANSWERS.values()) for line in found}
    tried |= {line.split(" --")[0] for line in PROOFS} | {"test", "tokens describe", "doctor"}
    assert known - ELSEWHERE == tried


def documented(name):
    return re.findall(r"aclog ((?:[a-z-]+ ?)+)(?=[,.])", schema_of(name)["description"].partition("Printed by ")[2])


@pytest.mark.parametrize("name", schema_names())
def test_each_schema_is_one_and_is_documented(name):
    jsonschema.Draft202012Validator.check_schema(schema_of(name))
    assert json.loads(aclog("schema", name).ok().out) == schema_of(name)
    assert f"| `{name}` |" in SECTIONS["schema"]


def test_names_in_schemas_are_kafkas():
    definitions = schema_of("acl")["$defs"]
    for key, names in (
        ("resourceType", ResourceType), ("patternType", PatternType), ("operation", AclOperation),
        ("permissionType", AclPermissionType),
    ):  # fmt: skip
        assert definitions[key]["enum"] == [each.name for each in names]


def test_an_unknown_schema_names_those_that_exist():
    assert aclog("schema", "x").complaint.startswith("no schema 'x': expected one of acl, decision,")


def test_changes_as_sync_prints_them():
    check("acl-change", lines(aclog("export", "--log", LOG, "--history", "--format", "jsonl").ok().out))
