"""A walk over all commands, pages, tools and methods that prove, count or advise, with each unknown premise planted.

None of them claims what it does not know. Every command has a row: what makes it claim something, or why it claims
nothing; a new one without a row fails. Each row is run twice: where everything is known it must make its strong claim,
else the walk would prove nothing; with a premise planted it must not, and must name the premise. A refusal, exit code
2, will do, if it names it, too.
"""

import html
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import evolve, field, frozen

import aclog as library
from aclog.analysis.intents import Intent
from aclog.authorizer.acl import NO_ORIGINS, ChangePlace, StandardAcl, StandardAclWithId, acl_text
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Generation, Settings
from aclog.authorizer.standard import AUTHORIZER_CLASS_NAME_CONFIG, KAFKAS_STANDARD_AUTHORIZER
from aclog.cli.finders import LintFinder, TestsFinder
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.unused_finder import IndexFinder, LogFinder
from aclog.console.draft import Preset, preset_lines
from aclog.console.live import LiveHistory, LivePremises, LiveState
from aclog.console.login.guard import All, Sights
from aclog.console.pages.draft import drafted
from aclog.console.pages.page import CommandLine as ShownLine
from aclog.console.pages.page import url
from aclog.console.pages.states import Console, History, States
from aclog.console.pages.views import VIEWS
from aclog.console.pdp.deciding import Deciders, KafkaRequest
from aclog.console.pdp.mapping import default_mapping
from aclog.console.web.app import WebConsole
from aclog.mcp.server import Ended, Rows, answer_of
from aclog.mcp.tools import TOOLS, AskedState, CommandLine
from aclog.metalog.records import FeatureLevelRecord
from aclog.protocol.api_keys import DESCRIBE_ACLS, DESCRIBE_CONFIGS
from aclog.sources.choice import SourceSelection, choose_source, premises_of
from aclog.sources.logs import LogSource
from aclog.sources.repository import load_repository_settings
from aclog.usage.unused_report import UnusedQuestion
from aclog.usage.window import DAY
from tests.cli.test_documentation import COMMANDS
from tests.cli.test_unread_accesses import NOBODYS, UNREAD
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import registration as broker
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository
from tests.support.fakes.broker import FakeBroker
from tests.support.processes.waiting import wait_until
from tests.support.web.asgi import ask
from tests.support.web.histories import whole
from tests.support.web.points import image_of, point_of

CLASS = {AUTHORIZER_CLASS_NAME_CONFIG: KAFKAS_STANDARD_AUTHORIZER}
RULES = (
    acl("orders", "User:a"),
    acl("idle", "User:a"),
    acl("shut", "User:c", permission_type=AclPermissionType.DENY),
)
RANGE = "10.0.0.0/8"
RANGED = acl("ranged", "User:r", RANGE)
BARRED = acl("barred", "User:l", RANGE, AclOperation.ALL, permission_type=AclPermissionType.DENY)
LEFT = (acl("left", "User:l"), acl("left", "User:*", RANGE))
"""Rules beside the one on the range, each of which one Kafka alone makes matter."""
OLD, NEW = 30, 33
"""The newest levels of metadata.version of Kafka 4.3.1 and 4.4.0."""


def row_of(rule: StandardAcl) -> dict[str, object]:
    return {key: value for key, value in StandardAclWithId(id=None, acl=rule).to_dict().items() if key != "id"}


def lines_of(*found: object) -> str:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in found)


def access(principal: str, name: str) -> dict[str, object]:
    return {
        "principal": principal, "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": name,
        "timestamp": "2026-03-01T10:00:00Z",
    }  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Sources of the same rules, and what commands want besides. Nobody writes into it."""
    home = tmp_path_factory.mktemp("walk")
    rules = [acl_record(number + 1, rule) for number, rule in enumerate(RULES)]
    write_log(home / "known", rules, [broker(1, OLD)])
    write_log(home / "newer", rules, [broker(1, OLD)], [FeatureLevelRecord(name="metadata.version", feature_level=99)])
    shutil.copytree(home / "known", home / "torn")
    [segment] = (home / "torn").glob("*.log")
    segment.write_bytes(segment.read_bytes() + b"\0\0\0\0\0\0\0")
    shutil.copytree(home / "known", home / "damaged")
    [segment] = (home / "damaged").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[80] ^= 1
    segment.write_bytes(data)
    ranged = [*rules, *(acl_record(number + 9, rule) for number, rule in enumerate((RANGED, BARRED, *LEFT)))]
    write_log(home / "unstated", ranged)
    write_log(home / "rolling", ranged, [broker(1, OLD), broker(2, NEW)])
    nodes = ([broker(1, OLD), broker(2, OLD)], [broker(2, NEW)], [broker(1, NEW)])
    write_log(home / "upgraded", ranged, *nodes)
    (home / "same.jsonl").write_text(lines_of(*map(row_of, RULES)))
    (home / "rest.jsonl").write_text(lines_of(*map(row_of, (*RULES, BARRED, *LEFT))))
    (home / "unshut.jsonl").write_text(lines_of(row_of(RULES[2])))
    (home / "ranged.jsonl").write_text(lines_of(*map(row_of, (*RULES, RANGED))))
    (home / "none.jsonl").write_text("")
    (home / "unrange.jsonl").write_text(lines_of({"action": "REMOVE", "rule": row_of(RANGED)}))
    (home / "accesses.jsonl").write_text(lines_of(access("User:a", "orders"), access("User:a", "orders")))
    (home / "used.jsonl").write_text(lines_of(access("User:a", "orders"), access("User:r", "ranged")))
    (home / "asked.jsonl").write_text(lines_of({**access("User:b", "other")}))
    (home / "ranged.yaml").write_text(
        'tests:\n- {name: t, principal: "User:r", host: 10.1.2.3, cannot: {READ: ["topic:ranged"]}}\n'
    )
    (home / "refused.jsonl").write_text(lines_of(access("User:r", "ranged")))
    (home / "cases.yaml").write_text('tests:\n- {name: t, principal: "User:b", cannot: {READ: ["topic:other"]}}\n')
    settings = ("--super-users", "", "--no-allow-everyone-if-no-acl-found")
    used = ("--acls", home / "same.jsonl", "--accesses", home / "accesses.jsonl")
    aclog("usage-index", *used, "--index", home / "index", *settings).ok()
    aclog("snapshot", "create", "--log", home / "known", "--out", home / "checkpoints").ok()
    return home


# premises


@frozen(kw_only=True)
class Premise:
    """One unknown premise, and a source that has it."""

    group: str
    """What it bears on, as rows name it."""
    name: str
    """A regular expression of how it is named."""
    log: str | None = None
    """The log in the world that has it."""
    configs: dict[str, str | None] = field(factory=lambda: dict(CLASS))
    refusals: dict[int, tuple[int, str]] = field(factory=dict)


PREMISES = {
    "hidden super users": Premise(
        group="users", name=r"super\.users is unknown|--super-users USERS", configs=CLASS | {SUPER_USERS_CONFIG: None}
    ),
    "hidden allow.everyone": Premise(
        group="open",
        name=r"allow\.everyone.*is unknown|--no-allow-everyone-if-no-acl-found",
        configs=CLASS | {ALLOW_EVERYONE_CONFIG: None},
    ),
    "settings that are not told": Premise(
        group="users open",
        name=r"is unknown: it cannot be read|--super-users USERS",
        refusals={DESCRIBE_CONFIGS: (31, "no")},
    ),
    "another authorizer": Premise(
        group="class",
        name=r"authorizer\.class\.name is unknown|another authorizer decides otherwise",
        configs={AUTHORIZER_CLASS_NAME_CONFIG: "com.example.Own"},
    ),
    "no authorizer": Premise(
        group="live", name=r"without authorizer\.class\.name", refusals={DESCRIBE_ACLS: (54, "none")}
    ),
    "newer Kafka": Premise(group="state", name=r"metadata\.version 99 of a newer Kafka", log="newer"),
    "torn tail": Premise(group="state", name="ignored 7 bytes that are not a whole batch", log="torn"),
    "damage": Premise(group="log", name=r"CRC|damaged|checksum", log="damaged"),
}
_OF_ACCESSES = "the version of the brokers is unknown"
GENERATIONS = {
    "brokers that state nothing": Premise(
        group="kafka",
        name=f"the version of the brokers|on Kafka 4.. only|{_OF_ACCESSES}",
        log="unstated",
    ),
    "brokers that differ": Premise(
        group="kafka", name=f"the brokers differ|on Kafka 4.. only|{_OF_ACCESSES}", log="rolling"
    ),
}

USERS, OPEN, OTHER, STATE = "users", "open", "class", "state"
ALL = frozenset({USERS, OPEN, OTHER, STATE})


# rows


@frozen(kw_only=True)
class Row:
    """A command line that claims something; the source is added to it."""

    words: str
    """`{}` is the world."""
    strong: str
    """A regular expression of the claim, in a line of what it prints or says."""
    by: frozenset[str] = ALL
    """Which premises could turn it."""
    check: bool = False
    """Whether exit code 0 is a claim, too."""
    live: bool = True
    log: bool = True
    """Whether it takes a running cluster, and a log."""
    object_: Callable[[dict[str, object]], bool] | None = None
    """Whether an object of `--format jsonl` is the claim."""

    def line(self, home: object) -> list[str]:
        return [word.replace("{}", str(home)) for word in self.words.split()]


def verdict(value: str) -> Callable[[dict[str, object]], bool]:
    return lambda found: found.get("verdict") == value


PROVED = verdict("PROVED")
USES = "--accesses {}/accesses.jsonl"
BOTH = "--to-acls {}/same.jsonl"
ONLY_ONE = frozenset({OTHER, STATE})
"""What bears on two states with the settings of one cluster."""

ROWS: dict[str, tuple[Row, ...] | str] = {
    "authorize": (
        Row(words="authorize --principal User:b --operation READ --topic other", strong=r"^DENIED DefaultDeny"),
        Row(
            words="authorize --requests {}/asked.jsonl",
            strong="DENIED.*DefaultDeny(?!.*premises)",
            object_=lambda found: found.get("decision") == "DENIED" and "premises" not in found,
        ),
    ),
    "explain": (Row(words="explain --principal User:b --operation READ --topic other", strong=r"^DENIED: User:b"),),
    "why": (Row(words="why User:b other", strong=r"^DENIED +User:b"),),
    "diff": (
        Row(words=f"diff {BOTH}", strong="^no difference: [a-z ]*$", by=ONLY_ONE, check=True),
        Row(words="diff --remove {}/unshut.jsonl", strong="^no difference: [a-z ]*$", by=ALL - {USERS}, check=True),
    ),
    "check no-new-access": (
        Row(words=f"check no-new-access {BOTH}", strong="^PROVED", by=ONLY_ONE, check=True, object_=PROVED),
        Row(
            words="check no-new-access --remove {}/unshut.jsonl",
            strong="^PROVED",
            by=ALL - {USERS},
            check=True,
            object_=PROVED,
        ),
        Row(
            words=f"check no-new-access {BOTH} --topic orders*",
            strong="^PROVED",
            by=ONLY_ONE,
            check=True,
            object_=PROVED,
        ),
    ),
    "check equal": (Row(words=f"check equal {BOTH}", strong="^PROVED", by=ONLY_ONE, check=True, object_=PROVED),),
    "check not-granted": (
        Row(words="check not-granted --operation WRITE --topic t", strong="^PROVED", check=True, object_=PROVED),
        Row(words="check not-granted --intent produce --topic pii*", strong="^PROVED", check=True, object_=PROVED),
    ),
    "check only": (
        Row(
            words="check only --operation READ --topic orders* --principal User:a",
            strong="^PROVED",
            check=True,
            object_=PROVED,
        ),
    ),
    "check no-public": (Row(words="check no-public", strong="^PROVED", check=True, object_=PROVED),),
    "test": (Row(words="test {}/cases.yaml", strong="1 passed$", check=True, object_=verdict("PASSED")),),
    "who-can": (Row(words="who-can --operation WRITE --topic t", strong="^no principal$"),),
    "what-can": (Row(words="what-can --principal User:z", strong="^nothing$"),),
    "when": (Row(words="when --operation WRITE --topic t", strong="^never: (?!.* unless )", live=False),),
    "lint": (
        Row(words="lint", strong="10 dead-deny", by=ALL - {USERS}),
        Row(words="lint --select 04", strong="^no findings in 3 rules$"),
    ),
    "accesses denied": (Row(words=f"denied {USES}", strong="^0 accesses denied.*allowed$", by=ONLY_ONE, check=True),),
    "accesses simulate": (
        Row(words=f"simulate {USES} {BOTH}", strong="^2 +- +SAME(?!.*unless)", by=ONLY_ONE, check=True),
    ),
    "accesses usage": (
        Row(
            words=f"usage {USES}",
            strong="2 ACLs can be removed together",
            by=ALL - {USERS},
            object_=lambda found: bool(found["removable"]),
        ),
    ),
    "accesses index": (
        Row(words=f"usage-index {USES} --index fresh-INDEX", strong="^judged by 3 ACLs", by=ALL - {USERS}),
    ),
    "accesses unused": (
        Row(
            words="unused --index {}/index --days 1 --gap 3d",
            strong="All removable ACLs can be removed together",
            by=ONLY_ONE,  # the index knows the settings
            object_=lambda found: bool(found["removable"]),
        ),
    ),
    "accesses suggest": (Row(words=f"suggest {USES}", strong="^aclog: note: proved", by=ALL - {USERS}),),
    "plan": (
        Row(
            words="plan --change {}/change.jsonl --journal {}/none.journal --no-allow-everyone-if-no-acl-found",
            strong="no difference: every request is decided the same$",
            by=ONLY_ONE,
        ),
    ),
    "drift": (
        Row(
            words="drift --want {}/same.jsonl --journal {}/none.journal",
            strong="no drift(?!.*unless)",
            by=frozenset({STATE}),
            check=True,
        ),
    ),
    "grant": (
        Row(
            words="grant --principal User:a --intent consume --topic orders --group g "
            "--no-allow-everyone-if-no-acl-found",
            strong="^already granted:",
            by=frozenset(),
        ),
        Row(
            words="grant --principal User:c --intent produce --topic shut --no-allow-everyone-if-no-acl-found",
            strong="GAINED",
            by=frozenset(),
        ),
    ),
    "revoke": (
        Row(
            words="revoke --principal User:a --intent consume --topic orders --group g "
            "--no-allow-everyone-if-no-acl-found",
            strong=r"^plan id: [0-9a-f]+(?!.*still)",
            by=frozenset(),
        ),
    ),
    "log verify": (Row(words="log verify", strong="^all is well$", by=frozenset({STATE}), live=False, check=True),),
    "shell": (
        Row(words="shell SOURCE why User:b READ topic:other", strong="^DENIED: User:b"),
        Row(words="shell SOURCE diff --of access 3 latest", strong="^no difference: [a-z ]*$", by=ONLY_ONE, live=False),
    ),
    "review": "proves on files, where only the Kafka that decides is unknown: see below",
    "doctor": "says what is well and what is not, line by line: tests/cli/test_doctor.py",
    "report": "writes a file whose head has what is unknown: tests/cli/test_report.py, tests/cli/test_report_access.py",
    "query": "prints rows of tables, and judges nothing but the findings of lint: see the accesses below",
    "accesses coverage": "counts accesses, and decides nothing: see the accesses below",
    "rollback": "prints a plan, as `plan` does, of what a journal says",
    "console": "its pages are in PAGES",
    "pdp": "in test_the_decision_point",
    "mcp": "its tools are in TOOL_ROWS",
    "apply": "makes the steps of a plan, and says which it made",
    "acls list": "prints rules; what is missing of a log is a note",
    "acls add": "adds what is given",
    "acls remove": "removes what is given, and prints it",
    "acls copy": "copies rules, and counts those that it copied",
    "acls history": "prints the changes in a log; from where on they are known is a note",
    "log dump": "prints records; a damaged one is an error",
    "log copy": "copies a log that it verifies",
    "log adopt": "adopts a log that it verifies",
    "snapshot create": "writes a state",
    "snapshot verify": "in test_a_damaged_checkpoint",
    "snapshot list": "prints the names of files",
    "export": "writes a state",
    "import": "writes what is given",
    "serve": "runs a node",
    "format": "formats directories",
    "status": "prints what nodes answer, and which of them do not",
    "sync": "records what a cluster answers",
    "mirror": "copies what a quorum commits",
    "migrate": "copies access state, and compares what it copied",
    "tokens create": "sends one request",
    "tokens renew": "sends one request",
    "tokens expire": "sends one request",
    "tokens describe": "prints what a cluster answers",
    "tokens list": "prints what a log has",
    "context list": "names",
    "context show": "names",
    "context add": "names",
    "context use": "names",
    "context remove": "names",
    "context rename": "names",
    "context path": "names",
    "schema": "prints a schema",
    "completion": "prints a script",
    "help": "prints a page",
    "spark history": "prints the changes in a log",
    "spark follow": "writes a decision for each request; what is unknown is a note",
    "spark ingest": "copies accesses, and those that it cannot read",
    "spark authorize": "writes a decision for each request; what is unknown is a note",
    "spark when": "in test_jobs_on_spark",
    "spark usage": "in test_jobs_on_spark",
    "spark usage-index": "in test_jobs_on_spark",
    "spark suggest": "in test_jobs_on_spark",
    "spark simulate": "in test_jobs_on_spark",
}
"""By command: the rows that make it claim something; or a text, why it has none here."""

HARMLESS = re.compile(
    r" unless |^REFUTED|^UNKNOWN|never matched|never needed|NEVER_|no \w+ can be proved|Kafka 4.3.1 compares hosts"
    r"|^aclog: (note|warning): ",
    re.IGNORECASE,
)
"""Lines that claim no more than is known. An access is matched or not whatever decides."""
CLAIM = re.compile(
    r"\bPROVED\b|\bproved\b|\bnever\b|\bnobody\b|no effective change|\bpasses\b|all is well|\bhealthy\b|no difference"
    r"|no drift|every request is decided the same|no principals have access|: no (?:principals|permissions)\b"
    r"|no access changes",
    re.IGNORECASE,
)
"""What is said only of what is known."""


def test_every_command_has_a_row():
    assert sorted(ROWS) == sorted(COMMANDS)


def claims(result) -> list[str]:
    """The lines of an answer that claim more than is known if anything is unknown."""
    of_one_kafka = re.compile(r"^On Kafka [\d.]+:\n(.+\n)*", re.MULTILINE)
    lines = [*of_one_kafka.sub("", result.out).splitlines(), *result.err.splitlines()]
    return [line for line in lines if CLAIM.search(line) and not HARMLESS.search(line)]


def cases(of: dict[str, Premise]) -> Iterator[object]:
    for command, rows in ROWS.items():
        for number, row in enumerate(() if isinstance(rows, str) else rows):
            for name, premise in of.items():
                bears = not row.by.isdisjoint(premise.group.split()) or premise.group in {"live", "log"}
                if bears and (row.log if premise.log else row.live):
                    yield pytest.param(row, premise, id=f"{command} {number} with {name}")


@contextmanager
def cluster(premise: Premise | None) -> Iterator[tuple[str, str]]:
    """A running cluster with a premise."""
    with FakeBroker(RULES) as found:
        found.configs = dict(CLASS) if premise is None else premise.configs
        found.refusals = {} if premise is None else dict(premise.refusals)
        yield "--bootstrap-server", str(found.address)


@contextmanager
def source(home, premise: Premise, *, known: bool = False) -> Iterator[tuple[str, str]]:
    if premise.log is not None:
        yield "--log", str(home / ("known" if known else premise.log))
        return
    with cluster(None if known else premise) as words:
        yield words


def answered(row: Row, home, words: tuple[str, str], fresh, *more: str):
    line = [word.replace("fresh-INDEX", str(fresh)) for word in row.line(home)]
    if "SOURCE" in line:
        at = line.index("SOURCE")
        line[at : at + 1] = words
        return aclog(*line, *more)
    if line[:2] == ["log", "verify"]:
        return aclog(*line, words[1], *more)
    return aclog(*line, *words, *more)


@pytest.fixture
def change(world):
    """A change that moves no decision: a rule that another one covers."""
    path = world / "change.jsonl"
    covered = row_of(acl("orders", "User:a", operation=AclOperation.DESCRIBE))
    path.write_text(lines_of({"action": "ADD", "rule": covered}))
    return path


@pytest.mark.parametrize(("row", "premise"), list(cases(PREMISES)))
@pytest.mark.sample(40)
def test_no_command_claims_what_it_does_not_know(world, change, tmp_path, row, premise):
    with source(world, premise, known=True) as words:
        control = answered(row, world, words, tmp_path / "a")
        assert re.search(row.strong, control.out + control.err, re.MULTILINE), control
        assert not row.check or control.code == 0
    with source(world, premise) as words:
        planted = answered(row, world, words, tmp_path / "b")
        said = planted.out + planted.err
        assert re.search(premise.name, said), said
        assert not re.search(row.strong, planted.out + planted.err, re.MULTILINE), said
        assert claims(planted) == []
        assert not row.check or planted.code != 0
        if row.object_ is not None:
            objects(row, world, words, tmp_path / "c")


def objects(row: Row, home, words: tuple[str, str], fresh) -> None:
    """Check what `--format jsonl` prints."""
    more = () if "--requests" in row.words else ("--format", "jsonl")
    printed = answered(row, home, words, fresh, *more)
    found = [json.loads(line) for line in printed.lines]
    assert not any(map(row.object_, found)), found


# a Kafka that is not known, and hosts that are ranges

JOURNAL = "--journal {}/none.journal --no-allow-everyone-if-no-acl-found"
CONSUME = "--principal User:l --intent consume"
WHEN = ("--principal", "User:r", "--operation", "READ", "--topic", "ranged", "--host", "10.1.2.3")
AT = "--principal User:r --operation READ --topic ranged --host 10.1.2.3"
RANGES = (
    Row(words=f"authorize {AT}", strong="^DENIED DefaultDeny$"),
    Row(words=f"explain {AT}", strong="^DENIED: User:r(?![^\0]*^On Kafka)"),
    Row(words="why User:r ranged --host 10.1.2.3", strong="^DENIED +User:r(?!.*only)"),
    Row(words="who-can --operation READ --topic ranged", strong="^no principal$"),
    Row(words="what-can --principal User:r", strong="^nothing$"),
    Row(words="when --operation READ --topic ranged", strong="^never: (?!.* unless )"),
    Row(words="check not-granted --operation READ --topic ranged", strong="^PROVED", check=True, object_=PROVED),
    Row(
        words="check only --operation READ --topic ranged --principal User:z",
        strong="^PROVED",
        check=True,
        object_=PROVED,
    ),
    Row(words="check equal --to-acls {}/rest.jsonl", strong="^PROVED", check=True, object_=PROVED),
    Row(words="check no-new-access --acls {}/rest.jsonl TO", strong="^PROVED", check=True, object_=PROVED),
    Row(words="diff --to-acls {}/rest.jsonl", strong=r"\Ano difference", check=True),
    Row(words="test {}/ranged.yaml", strong="1 passed$", check=True),
    Row(words="denied --accesses {}/refused.jsonl", strong="^1 access denied"),
    Row(
        words="simulate --accesses {}/refused.jsonl --to-acls {}/rest.jsonl",
        strong=r"^1 +- +SAME$(?![^\0]*^On Kafka)",
        check=True,
    ),
    Row(words="usage --accesses {}/used.jsonl", strong="NEVER_MATCHED +ALLOW User:r"),
    Row(words="usage-index --accesses {}/used.jsonl --index fresh-INDEX", strong=r"^judged by(?![^\0]*UNKNOWN_KAFKA)"),
    Row(words="suggest --accesses {}/used.jsonl", strong="note: proved"),
    Row(
        words="shell SOURCE why User:r READ topic:ranged --host 10.1.2.3", strong=r"^DENIED: User:r(?![^\0]*^On Kafka)"
    ),
    Row(words=f"plan --change {{}}/unrange.jsonl --adopt {JOURNAL}", strong="no difference: every request is decided"),
    Row(words=f"grant {CONSUME} --topic barred --group g {JOURNAL}", strong="GAINED  User:l: .* barred.* any host$"),
    Row(words=f"revoke {CONSUME} --topic left --adopt {JOURNAL}", strong=r"^plan id: [0-9a-f]+(?![^\0]*still allowed)"),
)


@pytest.mark.parametrize("premise", GENERATIONS.values(), ids=GENERATIONS)
@pytest.mark.parametrize("row", RANGES, ids=lambda row: " ".join(row.words.split()[:2]))
@pytest.mark.sample(20)
def test_no_command_claims_what_one_kafka_would_not(world, tmp_path, row, premise):
    words = ("--log", str(world / premise.log))
    if "TO" in row.words:
        row, words = evolve(row, words=row.words.removesuffix(" TO")), ("--to-log", words[1])
    stated = ("--cidr", "false") if row.words.startswith("shell") else ("--kafka-version", "4.3.1")
    control = answered(row, world, words, tmp_path / "a", *stated)
    assert re.search(row.strong, control.out + control.err, re.MULTILINE), control
    assert not row.check or control.code == 0
    planted = answered(row, world, words, tmp_path / "b")
    said = planted.out + planted.err
    assert re.search(premise.name, said), said
    assert not re.search(row.strong, said, re.MULTILINE), said
    assert claims(planted) == []
    assert not row.check or planted.code != 0
    if row.object_ is not None:
        objects(row, world, words, tmp_path / "c")


# two moments of one log, between which nodes were upgraded

MOMENTS = {"one node": (9, 10), "the other node": (10, 11), "both nodes": (9, 11)}
BETWEEN = "--as-of {since} --to-as-of {until}"
OF_MOMENTS = (
    Row(words=f"diff {BETWEEN}", strong=r"\Ano difference", check=True),
    Row(words=f"check equal {BETWEEN}", strong="^PROVED", check=True, object_=PROVED),
    Row(words=f"check no-new-access {BETWEEN}", strong="^PROVED", check=True, object_=PROVED),
    Row(
        words=f"simulate --accesses {{}}/refused.jsonl {BETWEEN}",
        strong=r"\Aaccesses [^\0]*^1 +- +SAME$",
        check=True,
    ),
    Row(words="shell SOURCE diff --of access {since} {until}", strong=r"\Ano difference"),
)


@pytest.mark.parametrize("moments", MOMENTS.values(), ids=MOMENTS)
@pytest.mark.parametrize("row", OF_MOMENTS, ids=lambda row: " ".join(row.words.split()[:2]))
@pytest.mark.sample(10)
def test_no_command_decides_the_past_by_the_kafka_of_another_moment(world, tmp_path, row, moments):
    """The rules are the same at both moments: what differs is by the upgrade, and is said to be."""
    since, until = moments
    row = evolve(row, words=row.words.replace("{since}", str(since)).replace("{until}", str(until)))
    words = ("--log", str(world / "upgraded"))
    stated = ("--cidr", "false") if row.words.startswith("shell") else ("--kafka-version", "4.3.1")
    control = answered(row, world, words, tmp_path / "a", *stated)
    assert re.search(row.strong, control.out + control.err, re.MULTILINE), control
    assert not row.check or control.code == 0
    planted = answered(row, world, words, tmp_path / "b")
    said = planted.out + planted.err
    assert re.search("upgraded? from Kafka|another Kafka decides on the second state", said), said
    assert not re.search(row.strong, planted.out, re.MULTILINE), said
    assert not row.check or planted.code != 0
    if row.object_ is not None:
        objects(row, world, words, tmp_path / "c")


@pytest.mark.parametrize("moments", MOMENTS.values(), ids=MOMENTS)
@pytest.mark.sample(2)
def test_no_page_decides_the_past_by_the_kafka_of_another_moment(world, moments):
    since, until = moments
    words, asked = ("--log", str(world / "upgraded")), url("/changes", **{"from": since}, to=until, format="json")
    strong = r"No rule changes between [^:,]* and [^:,]*\."
    with console_on_source(words, settings=Settings(cidr=False)) as console:
        control = ask(WebConsole(console=console).app(), "GET", asked).json
    assert re.fullmatch(strong, control["answer"]), control["answer"]
    with console_on_source(words, settings=Settings(is_kafka_stated=False)) as console:
        planted = ask(WebConsole(console=console).app(), "GET", asked).json
    assert not re.fullmatch(strong, planted["answer"])
    assert "gained" in planted["answer"]
    assert "(by the upgrade from Kafka 4.3 to Kafka 4.4)" in json.dumps(planted["difference"])


def test_a_review_claims_nothing_that_one_kafka_would_not(tmp_path, monkeypatch):
    """It reads files of rules, which never state a Kafka."""
    repository = Repository.create(tmp_path / "repository")
    repository.commit({"acls.jsonl": lines_of(*map(row_of, (*RULES, RANGED)))})
    monkeypatch.chdir(repository.path)
    Path("acls.jsonl").write_text(lines_of(*map(row_of, RULES)))
    Path("aclog.toml").write_text('[review]\nuntouched = ["topic:ranged"]\n')
    asked = ("review", "acls.jsonl", "--base", "HEAD")
    for form, lost in (("text", "LOST +User:r: "), ("markdown", "User:r loses .*")):
        control = aclog(*asked, "--kafka-version", "4.3.1", "--format", form).ok()
        assert "PROVED: topic:ranged is decided as before" in control.out.replace("`", "")
        planted = aclog(*asked, "--format", form)
        assert planted.code == 1
        shown = planted.out.replace("`", "")
        assert "REFUTED: topic:ranged is decided differently for at least one request (on Kafka 4.4 only)" in shown
        assert re.search(f"{lost}.*on Kafka 4.4 only", shown)
        assert claims(planted) == []


# accesses that cannot be read or decided

PAY = acl("pay", "User:b")
ACCESSES: dict[str, tuple[Row, ...] | str] = {
    "accesses usage": (Row(words="usage --acls {}/acls --accesses {}/log", strong="NEVER_MATCHED +ALLOW User:b"),),
    "accesses unused": (
        Row(words="unused --acls {}/acls --index {}/index --days 1 --gap 3d", strong="^ +2 +2 +never matched$"),
    ),
    "accesses suggest": (Row(words="suggest --acls {}/acls --accesses {}/log", strong="note: proved"),),
    "accesses simulate": (
        Row(
            words="simulate --acls {}/acls --accesses {}/log --to-acls {}/fewer",
            strong=r"^2 +- +SAME$(?!\n1 +- +NOT_JUDGED)",
            check=True,
        ),
    ),
    "diff": (Row(words="diff --acls {}/acls --accesses {}/log --to-acls {}/fewer", strong="^0 of the accesses flip$"),),
    "accesses coverage": (
        Row(
            words="coverage --accesses {}/log --gap 3d",
            strong=r"^\(not named\) +2 .*\n\nthe lines do not name .*\n\Z",
            check=True,
        ),
    ),
    "plan": (
        Row(
            words="plan --log {}/place --change {}/unpay --journal {}/journal --adopt --accesses {}/log",
            strong="never used: no access matched it",
        ),
    ),
    "lint": (Row(words="lint --acls {}/near --accesses {}/log --select 06", strong=r"^error \[06"),),
    "report": "counts what usage and unused judge: see these",
    "query": "prints the accesses that were read, and warns of the others: tests/cli/test_query.py",
    "accesses denied": "lists what is refused, and counts what may be: tests/cli/test_unread_accesses.py",
    "accesses index": "keeps what is unread: see unused",
    "spark": "in tests/pipeline",
    "review": "doubts what it could not read: tests/cli/test_review.py",
    "test": "records how accesses are decided, and counts the others",
    "rollback": "prints a plan, as plan does",
    "mcp": "unused and usage answer",
    "console": "tests/cli/test_console_findings.py",
}


def test_every_command_that_reads_accesses_has_a_row():
    reading = {
        name if name.startswith("accesses") else name.split()[0]
        for name, command in COMMANDS.items()
        if takes(command, "--accesses")
    }
    assert reading == set(ACCESSES)


def takes(command, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def log_with(home, *planted: object):
    """A log of two accesses of User:a, with others between, and all that commands want beside it."""
    (home / "log").write_text(lines_of(access("User:a", "orders"), *planted, access("User:a", "orders")))
    (home / "acls").write_text(lines_of(*map(row_of, (RULES[0], PAY, RULES[2]))))
    (home / "fewer").write_text(lines_of(*map(row_of, (RULES[0], RULES[2]))))
    (home / "near").write_text(lines_of(row_of(acl("orders", "User:A"))))
    (home / "unpay").write_text(lines_of({"action": "REMOVE", "rule": row_of(PAY)}))
    aclog("import", home / "acls", "--log", home / "place").ok()
    aclog("usage-index", "--acls", home / "acls", "--accesses", home / "log", "--index", home / "index").ok()
    return home


PLANTED = {**UNREAD, **NOBODYS}
TELLING = NOBODYS["everybody"], NOBODYS["no type of principal"]
READING = [(command, row) for command, rows in ACCESSES.items() if not isinstance(rows, str) for row in rows]


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
@pytest.mark.sample(6)
def test_what_could_not_be_read_is_never_never(tmp_path, planted):
    for name, lines in (("control", ()), ("planted", (planted,))):
        home = tmp_path / name
        home.mkdir()
        log_with(home, *lines)
        for command, row in READING:
            found = aclog(*row.line(home))
            said = found.out + found.err
            is_said = re.search(row.strong, said, re.MULTILINE) is not None
            if name == "control":
                assert is_said, found
                assert not row.check or found.code == 0
                continue
            if command == "lint" and (planted not in NOBODYS.values() or planted in TELLING):
                continue  # it tells who it was
            if command in {"accesses simulate", "diff"} and planted == UNREAD["no time"]:
                continue  # they need none
            assert not is_said, found
            assert re.search("could not be read|unread accesses, which may be of any principal", said), found
            assert not row.check or found.code != 0


# names with *

PII = acl("pii-eu", "User:a")
NAMED: dict[str, tuple[Row, ...] | str] = {
    "authorize": (
        Row(words="authorize --principal User:a --operation READ --topic pii*", strong="^DENIED DefaultDeny$"),
    ),
    "explain": (Row(words="explain --principal User:a --operation READ --topic pii*", strong="^DENIED: User:a"),),
    "why": (Row(words="why User:a pii*", strong="^DENIED +User:a"),),
    "who-can": (Row(words="who-can --operation READ --topic pii*", strong="^no principal$"),),
    "when": (Row(words="when --operation READ --topic pii*", strong="^never: (?!.* unless )"),),
    "check not-granted": (
        Row(words="check not-granted --operation READ --topic pii*", strong="^PROVED", check=True, object_=PROVED),
    ),
    "check only": (
        Row(
            words="check only --operation READ --topic pii* --principal User:z",
            strong="^PROVED",
            check=True,
            object_=PROVED,
        ),
    ),
    "check no-public": (
        Row(words="check no-public --operation READ --topic pii*", strong="^PROVED", check=True, object_=PROVED),
    ),
    "check no-new-access": (
        Row(
            words="check no-new-access --as-of 0 --to-as-of latest --topic pii*",
            strong="^PROVED",
            check=True,
            object_=PROVED,
        ),
    ),
    "report": "the same rows as `who-can`: tests/cli/test_report_access.py",
    "grant": "adds a rule on the prefix",
    "revoke": "removes rules on names that begin so",
    "acls list": "Kafka's command: the name is as it is, with a warning",
    "acls history": "selects ACLs as `acls list` does",
    "acls add": "Kafka's command: the name is as it is, with a warning",
    "acls remove": "Kafka's command: the name is as it is, with a warning",
}


def test_every_command_that_asks_about_a_topic_has_a_row():
    assert {name for name, command in COMMANDS.items() if takes(command, "--topic")} == set(NAMED) - {"why"} | {
        "spark when"
    }  # a topic is an argument of `why`


@pytest.mark.parametrize(
    "row",
    [row for rows in NAMED.values() if not isinstance(rows, str) for row in rows],
    ids=lambda row: " ".join(row.words.split()[:2]),
)
def test_a_star_is_all_names_that_begin_so(tmp_path, row):
    for name, rules in (
        ("control", [RULES[0]]),
        ("planted", [RULES[0], PII if "no-public" not in row.words else PUBLIC]),
    ):
        write_log(
            tmp_path / name, [acl_record(number + 1, rule) for number, rule in enumerate(rules)], [broker(1, OLD)]
        )
        words = ("--log", str(tmp_path / name))
        found = answered(row, tmp_path, words, tmp_path / "x")
        assert (re.search(row.strong, found.out, re.MULTILINE) is not None) is (name == "control"), found
        assert not row.check or (found.code == 0) is (name == "control")
        if name == "planted" and row.object_ is not None:
            objects(row, tmp_path, words, tmp_path / "x")


PUBLIC = acl("pii-eu", "User:*")


# what stands for many exact rows

MANY = [acl(f"pii-{number}", f"User:u{number % 50}") for number in range(60)]
SHUT = acl("pii-", "User:*", operation=AclOperation.ALL, permission_type=AclPermissionType.DENY,
           pattern_type=PatternType.PREFIXED)  # fmt: skip


def shown_differences(home, old: str, new: str, change: str) -> Iterator[tuple[str, str]]:
    """What each surface says of two states, for people."""
    sides = ("--acls", home / old, "--to-acls", home / new)
    yield "diff", aclog("diff", *sides).out
    yield "diff --format markdown", aclog("diff", *sides, "--format", "markdown").out
    yield "check", aclog("check", "equal", *sides).out
    place = home / f"log-{old}"
    aclog("import", home / old, "--log", place).ok()
    asked = ("--change", home / change, "--journal", home / "j", "--adopt", "--no-allow-everyone-if-no-acl-found")
    yield "plan", aclog("plan", "--log", place, *asked).out
    with library.open_log(home / old) as one, library.open_log(home / new) as other:
        yield "library", str(one.image().diff(other.image()))
    with console_on_source(("--acls", str(home / old))) as console:
        yield "draft", shown(console, "/draft", rules=(home / change).read_text())


def test_a_summary_says_that_it_is_a_bound(tmp_path):
    states = {"many": MANY, "shut": [*MANY, SHUT], "few": MANY[:1], "less": []}
    for name, rules in states.items():
        (tmp_path / name).write_text(lines_of(*map(row_of, rules)))
    (tmp_path / "change-many").write_text(lines_of({"action": "ADD", "rule": row_of(SHUT)}))
    (tmp_path / "change-few").write_text(lines_of({"action": "REMOVE", "rule": row_of(MANY[0])}))
    for where, text in shown_differences(tmp_path, "many", "shut", "change-many"):
        assert "at most" in text, (where, text)
        assert not re.search(r"everyone: ALL on TOPIC pii-\*", text), (where, text)
    for where, text in shown_differences(tmp_path, "few", "less", "change-few"):
        assert "User:u0" in text, (where, text)
        assert not re.search(r"at most [A-Z]", text), (where, text)  # the page of a draft has a limit of its own


# pages


STATED = Settings()


@contextmanager
def console_on_source(words: tuple[str, str], settings: Settings = STATED, **more: object) -> Iterator[Console]:
    """A console on a source, as `aclog console` makes it, with its history if it has one."""
    flag, value = words
    chosen = choose_source(SourceSelection(**{flag.removeprefix("--").replace("-", "_"): path_of(flag, value)}))
    premises = LivePremises(settings=lambda: premises_of(chosen.source, frozenset()), tell=lambda _: None)

    def made(live: LiveState, history: History | None) -> Console:
        states = States(live=live, settings=settings, premises=premises)
        return Console(name="it", states=states, command=ShownLine(source=words), history=history, **more)

    if chosen.source.log is None:
        live = LiveState(source=chosen.source, seconds=60, tell=lambda _: None)
        console = made(live, None)
        live._look()
        yield console
        return
    live = LiveState(source=chosen.source, seconds=0.02, tell=lambda _: None)
    history = LiveHistory(live=live, log=chosen.source.log)
    console = made(live, History(live=history, settings=settings))
    live.start()
    history.start()
    try:
        whole(history)
        wait_until(lambda: console.states._newest is not None)
        yield console
    finally:
        history.stop()
        live.stop()
        chosen.source.close()


def path_of(flag: str, value: str) -> object:
    return Path(value) if flag == "--log" else value


def shown(console: Console, path: str, **asked_of: object) -> str:
    """The text of a page."""
    reply = ask(WebConsole(console=console).app(), "GET", f"{path}{url('', **asked_of)}")
    text = re.sub(r"<(script|style)[^>]*>.*?</\1>|<[^>]*>", " ", reply.text, flags=re.DOTALL)
    return re.sub(r"[ \t]+", " ", html.unescape(text))


@frozen(kw_only=True)
class PageRow:
    """A page that claims something."""

    asked: dict[str, str]
    strong: str
    by: frozenset[str] = ALL
    live: bool = True


TOPIC = {"type": "TOPIC", "name": "other"}
PAGES: dict[str, PageRow | str] = {
    "/resource": PageRow(
        asked={**TOPIC, "operation": "WRITE"}, strong=r"WRITE on TOPIC other: no principals(?! unless)"
    ),
    "/principal": PageRow(asked={"name": "User:z"}, strong=r"User:z: no permissions(?! unless)"),
    "/why": PageRow(asked={**TOPIC, "principal": "User:b", "operation": "READ"}, strong="DENIED: User:b"),
    "/when": PageRow(
        asked={**TOPIC, "principal": "User:b", "operation": "READ"}, strong=r"Never allowed\.", live=False
    ),
    "/changes": PageRow(
        asked={"since": "3", "all": "1"}, strong=r"every request is decided the same\.", by=ONLY_ONE, live=False
    ),
    "/draft": PageRow(
        asked={"rules": "+ ALLOW User:a READ on TOPIC LITERAL 'orders' from 10.0.0.9"},
        strong=r"every request is decided the same(?! unless)",
        by=ONLY_ONE,
    ),
    "/draft/plan": "prints a plan, as `plan` does",
    "/findings": "in test_findings",
    "/": "counts rules",
    "/search": "lists names in rules",
    "/names": "lists names in rules",
    "/rules": "lists rules",
}


def test_every_page_has_a_row():
    assert set(PAGES) == set(VIEWS)


def page_cases() -> Iterator[object]:
    for path, row in PAGES.items():
        for name, premise in PREMISES.items():
            bears = isinstance(row, PageRow) and not row.by.isdisjoint(premise.group.split())
            if bears and (premise.log is not None or row.live):
                yield pytest.param(path, premise, id=f"{path} with {name}")


@pytest.fixture(scope="module")
def lengthened(world):
    """Logs as those of the world, in which a rule was added at the end that changes no decision."""
    covered = [acl_record(7, acl("orders", "User:a", operation=AclOperation.DESCRIBE))]
    home = world / "lengthened"
    home.mkdir()
    rules = [acl_record(number + 1, rule) for number, rule in enumerate(RULES)]
    write_log(home / "known", rules, covered, [broker(1, OLD)])
    newer = FeatureLevelRecord(name="metadata.version", feature_level=99)
    write_log(home / "newer", rules, covered, [broker(1, OLD)], [newer])
    shutil.copytree(home / "known", home / "torn")
    [segment] = (home / "torn").glob("*.log")
    segment.write_bytes(segment.read_bytes() + bytes(7))
    return home


@pytest.mark.parametrize(("path", "premise"), list(page_cases()))
@pytest.mark.sample(12)
def test_no_page_claims_what_it_does_not_know(lengthened, path, premise):
    row = PAGES[path]
    with source(lengthened, premise, known=True) as words, console_on_source(words) as console:
        assert re.search(row.strong, shown(console, path, **row.asked))
    with source(lengthened, premise) as words, console_on_source(words) as console:
        text = shown(console, path, **row.asked)
    assert re.search(premise.name, text), text
    assert not re.search(row.strong, text), text
    claimed = [line for line in text.splitlines() if CLAIM.search(line) and not HARMLESS.search(line)]
    assert claimed == [], claimed


# pages where one Kafka would decide otherwise than another

RANGED_TOPIC = {"type": "TOPIC", "name": "ranged", "operation": "READ"}
AT_ADDRESS = {**RANGED_TOPIC, "principal": "User:r", "host": "10.1.2.3"}
RANGED_PAGES = {
    "/resource": PageRow(asked=RANGED_TOPIC, strong="READ on TOPIC ranged: no principals$"),
    "/principal": PageRow(asked={"name": "User:r"}, strong="User:r: no permissions$"),
    "/why": PageRow(asked=AT_ADDRESS, strong="^DENIED: User:r"),
    "/when": PageRow(asked=AT_ADDRESS, strong=r"^Never allowed\.$"),
    "/changes": PageRow(asked={"since": "3", "all": "1"}, strong=r"every request is decided the same\.$"),
    "/draft": PageRow(asked={"rules": f"- {acl_text(RANGED)}"}, strong="every request is decided the same$"),
    "/draft of a first range": PageRow(
        asked={"rules": f"+ ALLOW User:new READ on TOPIC LITERAL 'orders' from {RANGE}"},
        strong="every request is decided the same$",
    ),
}


def test_every_page_that_decides_has_a_row_of_generations():
    assert {path.split()[0] for path in RANGED_PAGES} == {
        path for path, row in PAGES.items() if isinstance(row, PageRow)
    }


@pytest.mark.parametrize("path", RANGED_PAGES)
@pytest.mark.parametrize("name", GENERATIONS)
@pytest.mark.sample(14)
def test_no_page_claims_what_one_kafka_would_not(tmp_path, path, name):
    """At the end of the log, the rule on the range is the change; a draft of a first range is on a log without any."""
    row, nodes = RANGED_PAGES[path], [broker(1, OLD), broker(2, NEW)] if name == "brokers that differ" else []
    rules = [acl_record(number + 1, rule) for number, rule in enumerate(RULES)]
    ranged = () if path.endswith("first range") else ([acl_record(9, RANGED)],)
    words = ("--log", str(write_log(tmp_path / "log", rules, *([nodes] if nodes else []), *ranged)))
    path = path.split()[0]
    asked = url(path, **row.asked, format="json")
    with console_on_source(words, settings=Settings(cidr=False)) as console:
        assert re.search(row.strong, ask(WebConsole(console=console).app(), "GET", asked).json["answer"])
    with console_on_source(words, settings=Settings(is_kafka_stated=False)) as console:
        text = shown(console, path, **row.asked)
        planted = ask(WebConsole(console=console).app(), "GET", asked)
    assert re.search(GENERATIONS[name].name, text), text
    for each in (text, planted.text):
        assert re.search("Kafka 4.4 only|On Kafka 4.4:", each), each
    assert not re.search(row.strong, planted.json["answer"]), planted.json["answer"]
    claimed = [line for line in text.splitlines() if CLAIM.search(line) and "On Kafka 4.3: " not in line]
    assert [line for line in claimed if not HARMLESS.search(line)] == [], claimed


def test_the_history_of_an_access_is_by_the_kafka_of_each_moment(tmp_path):
    """As `aclog when` has it: the upgrade of one broker lets it in on 4.4 only, that of the other one on all."""
    steps = ([broker(1, OLD), broker(2, OLD)], [acl_record(9, RANGED)], [broker(2, NEW)], [broker(1, NEW)])
    log = write_log(tmp_path / "log", *steps)
    listed = [json.loads(line) for line in aclog("when", "--log", log, *WHEN, "--format", "jsonl").ok().lines]
    with console_on_source(("--log", str(log)), settings=Settings(is_kafka_stated=False)) as console:
        reply = ask(WebConsole(console=console).app(), "GET", url("/when", **AT_ADDRESS, format="json"))
        changes = ask(
            WebConsole(console=console).app(), "GET", url("/changes", **{"from": "3"}, to="5", format="json")
        ).json
    rows = reply.json["intervals"]["rows"]
    assert [(row["from"], row["to"], row["generation"]) for row in rows] == [
        ("4", "now", ""), ("3", "4", "Kafka 4.4 only"),
    ]  # fmt: skip
    assert [(each["from"]["offset"], each.get("generation")) for each in listed] == [(3, "4.4"), (4, None)]
    assert "the brokers differ" in rows[1]["from_change"]
    assert rows[0]["from_change"] == "all brokers run Kafka 4.4"
    assert re.search(
        r"No rule changes .*, but another Kafka decides: Kafka 4.3, then Kafka 4.4: 1 gained", changes["answer"]
    )


FINDERS = {
    "lint": ("DENY blocks nothing", ALL - {USERS}),
    "index": ("removable", ONLY_ONE),
    "log": ("removable", ALL - {USERS}),
    "tests": ("1 of 1 tests pass", ALL),
}


OF_STATES = ("hidden super users", "hidden allow.everyone", "another authorizer", "newer Kafka")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in FINDERS
        for name in OF_STATES
        if not FINDERS[kind][1].isdisjoint(PREMISES[name].group.split())
    ],
)
def test_findings(world, kind, name):
    premise, strong = PREMISES[name], FINDERS[kind][0]
    with source(world, premise, known=True) as words, console_on_source(words) as console:
        assert found_by(kind, world, words, console.states.now())[strong]
    with source(world, premise) as words, console_on_source(words) as console:
        found = found_by(kind, world, words, console.states.now())
    assert not found[strong], found


def found_by(kind: str, home, words: tuple[str, str], state) -> dict[str, bool]:
    """What a finder says of a state: whether it calls a rule needless, removable, or all tests passed."""
    chosen = choose_source(
        SourceSelection(**{words[0].removeprefix("--").replace("-", "_"): path_of(words[0], words[1])})
    )
    accesses = AccessesFlags(accesses=[str(home / "accesses.jsonl")])
    finders = {
        "lint": LintFinder(choice=chosen, settings=load_repository_settings(None)),
        "index": IndexFinder(
            index=home / "index", question=UnusedQuestion(days=1, gap=3 * DAY), log=None, proof=None, origins=NO_ORIGINS
        ),
        "log": LogFinder(accesses=accesses, days=90, log=None, is_kafka_named=True, origins=NO_ORIGINS),
        "tests": TestsFinder(
            files=[str(home / "cases.yaml")], authorizer=AuthorizerFlags(), origins=NO_ORIGINS, place=ChangePlace()
        ),
    }
    looked = finders[kind].look(state)
    text = "\n".join([looked.summary, *looked.notes, *(f"{each.text} {each.advice}" for each in looked.items)])
    return {
        "DENY blocks nothing": "DENY blocks nothing" in text,
        "removable": any(each.changes for each in looked.items),
        "1 of 1 tests pass": "1 of 1 tests pass" in text,
    }


@pytest.mark.parametrize("name", GENERATIONS)
def test_no_finding_claims_what_one_kafka_would_not(world, name):
    """A test that holds on one Kafka only fails; a finding of one only is marked, and has no fix."""
    words = ("--log", str(world / GENERATIONS[name].log))
    chosen = choose_source(SourceSelection(log=world / GENERATIONS[name].log))
    tests = TestsFinder(
        files=[str(world / "ranged.yaml")], authorizer=AuthorizerFlags(), origins=NO_ORIGINS, place=ChangePlace()
    )
    lint = LintFinder(choice=chosen, settings=load_repository_settings(None))
    with console_on_source(words, settings=Settings(cidr=False)) as console:
        assert tests.look(console.states.now()).summary == "1 of 1 tests pass"
    with console_on_source(words, settings=Settings(is_kafka_stated=False)) as console:
        state = console.states.now()
        failed = tests.look(state)
        assert failed.summary == "0 of 1 tests pass"
        assert "(on Kafka 4.4 only)" in failed.items[0].text
        assert tests.had(state, failed) == {failed.items[0].key}
        of_range = [item for item in lint.look(state).items if item.name == "04 cidr-host"]
    assert {rule.acl for item in of_range for rule in item.rules} == {RANGED, BARRED, LEFT[1]}
    assert all("(on Kafka 4.3 only)" in item.text and not item.changes for item in of_range), of_range


def test_what_a_draft_appends_is_enough_for_each_kafka(tmp_path):
    """On 4.4 the rule on the range covers the client; on 4.3 it does not, so that the draft needs one of its own."""
    rules = [acl("new", "User:*", RANGE), acl("g", "User:m", resource_type=ResourceType.GROUP)]
    log = write_log(tmp_path / "log", [acl_record(number + 1, rule) for number, rule in enumerate(rules)])
    preset = Preset(intent=Intent.CONSUME, principal="User:m", topics=("new",), groups=("g",))
    lines = {}
    for settings in (Settings(cidr=False), Settings(cidr=True), Settings(is_kafka_stated=False)):
        with console_on_source(("--log", str(log)), settings=settings) as console:
            lines[settings.generation] = preset_lines(preset, drafted(console, "", {}).effect)
    assert lines[None] == lines[Generation.V4_3] == ["+ ALLOW User:m READ on TOPIC LITERAL 'new' from *"]


# tools of assistants

TOOL_ROWS = {
    "who_can": (Row(words="who-can --operation WRITE --topic t", strong="no principal can do this"),),
    "what_can": (Row(words="what-can --principal User:z", strong="can do nothing"),),
    "explain": (
        Row(
            words="explain --principal User:b --operation READ --topic other",
            strong='"decision": "DENIED"(?!.*premises)',
        ),
    ),
    "diff": (Row(words=f"diff {BOTH}", strong="every request is decided the same", by=ONLY_ONE),),
    "check": (Row(words="check no-public", strong="the claim is proved|PROVED"),),
    "when": (Row(words="when --operation WRITE --topic t", strong="never allowed", live=False),),
    "lint": (Row(words="lint --select 04", strong="none: no finding"),),
    "unused": (Row(words="unused --index {}/index --days 1 --gap 3d", strong='"removable": true', by=ONLY_ONE),),
}


def test_every_tool_has_a_row():
    assert set(TOOL_ROWS) == {tool.name for tool in TOOLS}


def tool_cases() -> Iterator[object]:
    for tool in TOOLS:
        for row in TOOL_ROWS[tool.name]:
            for name, premise in PREMISES.items():
                if not row.by.isdisjoint(premise.group.split()) and (row.log if premise.log else row.live):
                    yield pytest.param(tool, row, premise, id=f"{tool.name} with {name}")


@pytest.mark.parametrize(("tool", "row", "premise"), list(tool_cases()))
@pytest.mark.sample(12)
def test_no_tool_claims_what_it_does_not_know(world, tmp_path, tool, row, premise):
    with source(world, premise, known=True) as words:
        assert re.search(row.strong, told(tool, row, world, words, tmp_path))
    with source(world, premise) as words:
        text = told(tool, row, world, words, tmp_path)
    assert re.search(premise.name, text), text
    assert not re.search(row.strong, text), text


def told(tool, row: Row, home, words: tuple[str, str], fresh) -> str:
    """The answer of a tool, of what its command prints here instead of in a process of its own."""
    form = "json" if tool.name == "explain" else "jsonl"
    ended = answered(row, home, words, fresh, "--format", form)
    notices = [line.removeprefix("aclog: ") for line in ended.err.splitlines()]
    rows = Rows(skip=0, has_head=tool.name == "check")
    rows.feed(ended.out.encode())
    state = AskedState(source="it", end_offset=None, why_none="none", as_of=None)
    line = CommandLine(words=("x",), stdin=None, state=state, to_state=None)
    return json.dumps(answer_of(tool, line, Ended(code=ended.code, notices=tuple(notices), error=None), rows))


# the library, and the decision point


@pytest.mark.parametrize("name", [name for name, premise in PREMISES.items() if premise.group not in {"live", "log"}])
def test_the_library(world, name):
    premise = PREMISES[name]
    for known in (True, False):
        with source(world, premise, known=known) as (flag, value):
            opened = library.open_log(value) if flag == "--log" else library.open_log(bootstrap_server=value)
            with opened as log:
                image = log.image()
            authorizer = image.authorizer()
            answer = authorizer.check("User:b", "READ", "other")
            same = image.diff(image)
            texts = [str(answer), answer.explain(), str(same)]
        assert [text for text in texts[:2] if text.startswith("DENIED: ")] == (texts[:2] if known else [])
        assert ("premises" in answer.to_dict()) is not known
        assert bool(authorizer.premises) is not known
        for grants in (authorizer.who_can("WRITE", "t"), authorizer.what_can("User:z")):
            assert (grants, list(grants), len(grants)) == ([], [], 0)
            assert grants.premises == authorizer.premises
            assert repr(grants) == "[]" if known else re.fullmatch(r"<\[\] unless .+>", repr(grants))
        if not known:
            assert re.search(premise.name, "; ".join(each.note() for each in authorizer.premises.unknown))
            is_same = premise.group in {"users", "open", "users open"}  # both have them
            assert bool(same.premises) is not is_same


@pytest.mark.parametrize("name", [name for name, premise in PREMISES.items() if premise.group not in {"live", "log"}])
def test_the_decision_point(world, name):
    premise = PREMISES[name]
    for known in (True, False):
        with source(world, premise, known=known) as words:
            flag, value = words
            given = {flag.removeprefix("--").replace("-", "_"): path_of(flag, value)}
            chosen = choose_source(SourceSelection(**given))
            premises = LivePremises(settings=lambda at=chosen.source: premises_of(at, frozenset()), tell=lambda _: None)
            live = LiveState(source=chosen.source, seconds=60, tell=lambda _: None)
            deciders = Deciders(
                live=live, settings=Settings(), mapping=default_mapping(), max_age=60.0, premises=premises
            )
            live._look()
            request = KafkaRequest(
                principal="User:b", host="::1", operation=AclOperation.READ, resource_type=2, name="other"
            )
            answer = json.loads(deciders.at(None).decide(request).text(0))
        assert answer["decision"] is False
        assert ("premises" in answer.get("context", {})) is not known


@pytest.mark.parametrize("name", GENERATIONS)
def test_the_decision_point_takes_the_stricter_kafka(world, tmp_path, name):
    """It says so in its answer, and in the audit."""
    asked = {
        "subject": {"type": "User", "id": "r"}, "action": {"name": "READ"},
        "resource": {"type": "topic", "id": "ranged"}, "context": {"host": "10.1.2.3"},
    }  # fmt: skip
    settings, source_ = Settings(is_kafka_stated=False), LogSource(world / GENERATIONS[name].log, lambda _: None)
    audit, decisions = tmp_path / "audit", tmp_path / "decisions"
    point = point_of(source_, settings=settings, audit=audit, decision_log=decisions)
    answer = ask(point.app(), "POST", "/access/v1/evaluation", asked).json
    assert answer["decision"] is False
    assert answer["context"]["allowedOnlyOn"] == ["4.4"]
    assert json.loads(audit.read_text().splitlines()[-1])["answer"]["context"]["allowedOnlyOn"] == ["4.4"]
    of_opa = ask(point.app(), "POST", "/v1/data/kafka/authz", {"input": asked}).json["result"]
    assert (of_opa["allow"], of_opa["allowedOnlyOn"]) == (False, ["4.4"])
    assert ask(point.app(), "POST", "/v1/data/kafka/authz/allow", {"input": asked}).json["result"] is False
    for line in decisions.read_text().splitlines():
        assert json.loads(line)["allowedOnlyOn"] == ["4.4"]
    elsewhere = {**asked, "context": {"host": "11.0.0.1"}}
    assert "allowedOnlyOn" not in ask(point.app(), "POST", "/access/v1/evaluation", elsewhere).json["context"]
    for kafka, decision in ((False, False), (True, True)):
        known = point_of(source_, settings=Settings(cidr=kafka))
        answer = ask(known.app(), "POST", "/access/v1/evaluation", asked).json
        assert (answer["decision"], "allowedOnlyOn" in answer["context"]) == (decision, False)


def test_a_viewer_sees_all_only_if_each_kafka_allows_it():
    """DESCRIBE and ALTER on the cluster from a range; a DENY of one of the two Kafkas counts."""
    described = acl("kafka-cluster", "User:r", RANGE, AclOperation.DESCRIBE, resource_type=ResourceType.CLUSTER)
    barred = acl("kafka-cluster", "User:s", RANGE, AclOperation.ALL, resource_type=ResourceType.CLUSTER,
                 permission_type=AclPermissionType.DENY)  # fmt: skip
    every = acl("kafka-cluster", "User:*", "*", AclOperation.DESCRIBE, resource_type=ResourceType.CLUSTER)
    sees = {}
    for settings in (Settings(cidr=False), Settings(cidr=True), Settings(is_kafka_stated=False)):
        for name, rules in (("User:r", [described]), ("User:s", [barred, every])):
            sights = Sights(newest=partial(image_of, *rules), settings=settings)
            sees[settings.generation, name] = isinstance(sights.of(name, "10.1.2.3"), All)
    assert [sees[each, "User:r"] for each in (Generation.V4_3, Generation.V4_4, None)] == [False, True, False]
    assert [sees[each, "User:s"] for each in (Generation.V4_3, Generation.V4_4, None)] == [True, False, False]


def test_the_shell_names_the_kafka_of_each_answer(world, tmp_path):
    log = write_log(tmp_path / "log", [acl_record(1, RULES[0])], [acl_record(9, RANGED)])
    found = aclog("shell", "--log", log, "diff", "--of", "access", "1", "latest").ok()
    assert found.lines[:3] == ["On Kafka 4.3:", "no difference: every request is decided the same", ""]
    assert found.lines[3] == "On Kafka 4.4:"
    assert "GAINED  User:r: READ, DESCRIBE on TOPIC ranged, from 10.0.0.0/8" in found.lines
    assert "state it with --kafka-version V" in found.err
    rows = aclog("shell", "--log", log, "diff", "--of", "access", "--format", "jsonl", "1", "latest").ok()
    assert [json.loads(line)["generation"] for line in rows.lines] == ["4.4"]
    for version, said in (("4.3", "no difference"), ("4.4", "GAINED")):
        alone = aclog("shell", "--log", log, "diff", "--of", "access", "--kafka-version", version, "1", "latest").ok()
        assert (alone.lines[0].startswith(said), "On Kafka" in alone.out, alone.err.count("settles it")) == (
            True,
            False,
            0,
        )
    asked = ("why", "User:r", "READ", "topic:ranged", "--host")
    both = aclog("shell", "--log", world / "rolling", *asked, "10.1.2.3").ok()
    heads = [both.lines[at + 1] for at, line in enumerate(both.lines) if line.startswith("On Kafka")]
    assert heads == [f"{each}: User:r READ TOPIC 'ranged' from 10.1.2.3" for each in ("DENIED", "ALLOWED")]
    one = aclog("shell", "--log", world / "rolling", *asked, "11.0.0.1").ok()
    assert [line.partition(":")[0] for line in one.lines if "DENIED: " in line or "ALLOWED: " in line] == ["DENIED"] * 2


# what is not a question about rules


def test_a_damaged_checkpoint(world, tmp_path):
    [checkpoint] = (world / "checkpoints").glob("*.checkpoint")
    control = aclog("snapshot", "verify", checkpoint).ok()
    assert ": whole: " in control.out
    damaged = tmp_path / checkpoint.name
    data = bytearray(checkpoint.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    found = aclog("snapshot", "verify", damaged)
    assert found.code == 1
    assert ": whole: " not in found.out
    refused = aclog("check", "no-public", "--snapshot", damaged)
    assert (refused.code, refused.out) == (2, "")


@pytest.mark.parametrize("name", ["hidden allow.everyone", "another authorizer", "newer Kafka"])
@pytest.mark.parametrize("command", ["usage", "usage-index", "suggest", "simulate"])
def test_jobs_on_spark(world, tmp_path, monkeypatch, command, name):
    pytest.importorskip("pyspark")
    from aclog.cli.spark import spark_session

    session = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    monkeypatch.setattr(spark_session, "spark_session", lambda _master: nullcontext(session))
    premise = PREMISES[name]
    more = {
        "usage": ("--requests", world / "accesses.jsonl", "--out", tmp_path / "out"),
        "usage-index": ("--accesses", world / "accesses.jsonl", "--index", tmp_path / "index"),
        "suggest": ("--accesses", world / "accesses.jsonl"),
        "simulate": (
            *("--requests", world / "accesses.jsonl", "--out", tmp_path / "out"),
            *("--to-acls", world / "same.jsonl"),
        ),
    }[command]
    with source(world, premise) as words:
        moment = ("--as-of", "5") if premise.log else ()
        refused = aclog("spark", command, *words, *moment, *more)
    assert refused.code == 2
    assert re.search(premise.name, refused.err)
    assert refused.out == ""
