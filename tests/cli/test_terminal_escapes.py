r"""No name harms who looks at an output: every command in every format, with one list of hostile names.

On a terminal nothing but \n, \r, \t and rich's own styling may arrive. In a pipe the formats of Kafka's tools keep
their bytes; in the others a name is text: no control character, no formula, no more cells or lines than there are.
"""

import csv
import io
import json
import os
import re
import shutil
import sys
import unicodedata
from datetime import UTC, datetime
from types import SimpleNamespace

import pexpect
import pytest

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import KafkaPrincipal
from aclog.cli.flags.common import Output
from aclog.cli.tokens import print_described
from aclog.client.requests import DelegationToken
from aclog.metalog.errors import printable
from aclog.metalog.json_object import json_string
from aclog.protocol.api_keys import DESCRIBE_ACLS
from aclog.shell.engine import complete
from aclog.snapshots.image import Image
from aclog.sources.choice import AclsSource
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers import WRITERS
from aclog.terminal import output
from aclog.terminal.columns import ROW_FORMATS, OutputFormat, json_text
from aclog.usage.decisions.intervals import Rules
from aclog.usage.index.usage_index import UsageIndex
from tests.cli.test_documentation import COMMANDS
from tests.support.builders.acls import acl
from tests.support.builders.hostile_names import BIDI, NAMES
from tests.support.cli.command import aclog
from tests.support.cli.shell_sources import session
from tests.support.fakes.broker import FakeBroker
from tests.support.models.estates import Request
from tests.support.usage.indexed_timelines import take
from tests.support.usage.timelines import Access

# Since Python 3.12 forking a process with threads, such as a test worker, is a warning
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

PIECES = (
    "\x1b[31mRED",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\u202eevil",
    "\x9dOSC",
    "\x7f",
    "\x85",
    "\u2028",
    "\n\tforged",
    "\r",
    *BIDI,
)
NAME = f"x{''.join(PIECES)}end"
RICH = re.compile(r"\x1b\[(\?25[lh]|2K|1A|[0-9;]*m)")
"""Styles, and what a progress bar does to its own line."""

SESSION = """
import io, json, sys
from aclog.__main__ import run
print("BEGIN")
for words, typed in json.load(open(sys.argv[1])):
    sys.stdin = io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="utf-8")
    try:
        code = run(words)
    except SystemExit as leave:
        code = leave.code
    print(f"@@{code}", flush=True)
print("DONE")
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return make_home(tmp_path_factory.mktemp("home"))


def make_home(parent):
    """A file of ACLs, a log and a checkpoint in a directory with such a name."""
    directory = parent / f"h{NAME}"
    directory.mkdir()
    row = {
        "resourceType": "TOPIC", "resourceName": NAME, "patternType": "LITERAL", "principal": f"User:{NAME}",
        "host": NAME, "operation": "READ", "permissionType": "ALLOW",
    }  # fmt: skip
    rows = [
        row,
        row | {"host": "*", "permissionType": "DENY"},
        row | {"resourceType": "GROUP", "host": f"10.0.0.0/8{NAME}"},
        *(row | {"resourceName": name, "principal": f"User:{name}", "host": "*"} for name in NAMES.values()),
    ]
    (directory / "acls").write_text("\n".join(map(json.dumps, rows)))
    with UsageIndex.create(directory / "index") as index:
        of_rules = Rules.of_image(AclsSource(str(directory / "acls")).image().acls)
        asked = Request(
            principal=f"User:{NAME}", host=NAME, operation=AclOperation.READ, resource_type=ResourceType.TOPIC,
            resource_name=NAME,
        )  # fmt: skip
        take(index, [Access(time=0, broker=NAME, request=asked)], of_rules, own_time=False)
    aclog("import", directory / "acls", "--log", directory / "log").ok()
    shutil.copytree(directory / "log", directory / "damaged")
    [segment] = (directory / "damaged").glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-1] + b"!")
    aclog("snapshot", "create", "--log", directory / "log", "--out", directory / "checkpoints").ok()
    request = {"host": "::1", "operation": "READ", "resourceType": "TOPIC", "resourceName": NAME, "principal": "User:a"}
    requests = [
        request | {"principal": f"User:{NAME}"},
        request | {"operation": NAME},
        request | {"kind": NAME},
        request,
        *(request | {"resourceName": name, "principal": f"User:{name}"} for name in NAMES.values()),
    ]
    (directory / "requests").write_text("\n".join(map(json.dumps, requests)))
    (directory / "bad").write_text(json.dumps(row | {"operation": NAME}))
    (directory / "client").write_text(f"security.protocol={json.dumps(NAME)}\n")
    asked = {"principal": f"User:{NAME}", "cannot": {"ALL": [f"topic:{NAME}*"]}, "can": {"READ": [f"topic:{NAME}"]}}
    (directory / "tests.yaml").write_text(json.dumps({"tests": [asked, {"who_can": {f"READ topic:{NAME}": []}}]}))
    (directory / "bad.jsonl").write_text(json.dumps({NAME: NAME}))
    (directory / "ignore").write_text(f"[[ignore]]\n{json.dumps(NAME)} = 1\n")
    return directory


def commands(home, broker):
    """Every command line, and what is typed into it."""
    log, acls = ("--log", home / "log"), ("--acls", home / "acls")
    [checkpoint] = (home / "checkpoints").glob("*.checkpoint")
    request = ("--principal", f"User:{NAME}", "--operation", "READ", "--topic", NAME)
    rule = ("--allow-principal", f"User:{NAME}", "--allow-host", NAME, "--operation", "READ", "--topic", f"{NAME}2")
    asked = ("--bootstrap-server", str(broker.address))
    yield from (("acls", "list", *acls, "--format", form) for form in ("kafka", *ROW_FORMATS))
    yield "acls", "list", *acls, "--columns", NAME
    yield "acls", "list", *acls
    yield "acls", "list", *acls, "--format", "kafka", "--principal", f"User:{NAME}"
    yield "acls", "list", "--acls", home / "bad"
    yield "acls", "list", *acls, "--principal", NAME
    yield "acls", "list", *acls, "--format", NAME
    yield from (("acls", "add", *log, *rule),) * 2
    yield "acls", "copy", *log, "--from-principal", f"User:{NAME}", "--to-principal", f"User:{NAME}2"
    yield "acls", "copy", *log, "--from-principal", NAME, "--to-principal", NAME
    yield from (("acls", "history", *log, "--format", form) for form in ("table", "jsonl", "csv", "markdown"))
    yield "acls", "history", *log, "--since", NAME
    yield "acls", "remove", *log, *rule
    yield "acls", "remove", *log, "--topic", NAME
    yield "acls", "list", "--log", home / NAME
    yield "acls", "list", *asked
    yield "acls", "list", *asked, "--command-config", home / "client"
    yield from (("authorize", *log, *request, "--format", form) for form in ("text", *ROW_FORMATS))
    yield from (("authorize", *log, "--requests", home / "requests", "--format", form) for form in ROW_FORMATS)
    yield from (("explain", *log, *request, "--format", form) for form in ROW_FORMATS)
    yield from (("log", "dump", home / "log", "--format", form) for form in ROW_FORMATS)
    yield from (("log", "verify", home / "damaged", "--format", form) for form in ROW_FORMATS)
    yield from (("snapshot", "list", home / "checkpoints", "--format", form) for form in ROW_FORMATS)
    yield from (("snapshot", "verify", checkpoint, home / "acls", "--format", form) for form in ROW_FORMATS)
    yield from (("status", *asked, "--format", form) for form in ROW_FORMATS)
    yield "authorize", *log, "--requests", home / "requests"
    yield "authorize", *log, *request, "--host", NAME
    yield "authorize", *log, *request[:-2], "--topic", NAME, "--operation", NAME
    yield "context", "add", "swept", *log, "--timezone", NAME
    yield "context", "add", "swept", *log, "--super-users", f"User:{NAME}"
    yield "context", "add", NAME, *log
    yield "context", "list", "--format", "table"
    yield "context", "show", "swept"
    yield "context", "show", NAME
    yield "context", "use", NAME
    yield "-c", "swept", "authorize", *request
    yield "-c", NAME, "acls", "list"
    yield "context", "rename", "swept", NAME
    yield "context", "remove", NAME
    yield "context", "path", NAME
    yield "completion", NAME
    yield "schema", NAME
    yield from (("schema", "--format", form) for form in ROW_FORMATS)
    yield "help", NAME
    yield "explain", *log, *request
    yield "explain", *log, *request, "--format", "json"
    yield "explain", *log, *request, "--as-of", NAME
    yield from (("why", f"User:{NAME}", NAME, *log, "--format", form) for form in ("text", *ROW_FORMATS))
    yield "why", NAME, f"group:{NAME}", *log
    yield from (("query", "SELECT * FROM acls", home / "log", "--format", form) for form in ROW_FORMATS)
    yield from (("query", sql, home / "log") for sql in (NAME, f'SELECT "{NAME}"', "SELECT * FROM changes"))
    yield "query", "SELECT 1", NAME
    yield "report", home / "log", "--out", home / "report.html"
    yield "report", home / "log", "--out", home / NAME
    yield "report", home / "log", "--out", home / "report.md", "--sections", NAME
    yield "diff", *log, "--to-acls", home / NAME
    yield from (("diff", *log, "--to-as-of", "0", "--format", form) for form in ("text", *ROW_FORMATS, "sarif"))
    yield "diff", *log, "--to-as-of", "0", "--map-names", NAME
    yield "diff", *log, "--change", home / "bad"
    yield "diff", *log, "--to-super-users", f"User:{NAME}", "--accesses", home / "requests"
    yield from (("check", name, *log, "--to-as-of", "0") for name in ("equal", "no-new-access"))
    yield from (("check", name, *log, *request) for name in ("not-granted", "only"))
    yield from (("check", "no-public", *log, *more) for more in ((), ("--topic", NAME, "--format", "jsonl")))
    yield "who-can", *log, *request[2:]
    yield from (("who-can", *log, *request[2:], "--format", form) for form in ROW_FORMATS)
    yield from (("check", "only", *log, *request, "--format", form) for form in ROW_FORMATS)
    yield from (("when", *log, *request[2:], "--format", form) for form in ROW_FORMATS)
    yield from (
        ("accesses", "usage", *log, "--accesses", home / "requests", "--format", form)
        for form in ("text", *ROW_FORMATS)
    )
    suggesting = ("accesses", "suggest", *log, "--accesses", home / "requests")
    yield from ((*suggesting, "--explain", "--format", form) for form in ("text", *ROW_FORMATS))
    yield *suggesting, "--principal", NAME, "--fold", "none"
    yield *suggesting, "--fold", NAME
    simulated = ("accesses", "simulate", *log, "--to-as-of", "0", "--accesses", home / "requests")
    yield from ((*simulated, "--format", form) for form in ("text", *ROW_FORMATS))
    yield from (
        ("accesses", "denied", *log, "--accesses", home / "requests", "--format", form)
        for form in ("text", *ROW_FORMATS)
    )
    yield "accesses", "usage", *log, "--accesses", home / NAME, "--accesses-format", NAME
    yield "what-can", *log, "--principal", f"User:{NAME}", "--super-users", f"User:{NAME}"
    yield "what-can", *log, "--principal", f"User:{NAME}"
    yield "when", *log, *request[2:]
    yield "when", *log, *request[2:], "--principal", f"User:{NAME}", "--format", "jsonl"
    tests = (home / "tests.yaml", *log)
    yield from (("test", *tests, "--format", form, "--coverage", "--mutate") for form in ("text", *ROW_FORMATS))
    yield "test", *tests, "--junit", home / "junit.xml", "--run", NAME
    yield "test", home / "bad.jsonl", *log
    yield "test", home / NAME, *log
    yield "test", "--record", home / "recorded.yaml", *log
    yield "test", "--record", home / NAME / NAME, *log, "--accesses", home / "requests"
    yield "test", home / "recorded.yaml", *log, "--follow", "--exit-on-red", "--webhook", NAME
    yield from (("test", *tests, "--follow", "--exit-on-red", "--format", form) for form in ("text", "jsonl"))
    yield from (("lint", *acls, "--format", form) for form in ("text", *ROW_FORMATS, "sarif"))
    yield "lint", *log
    yield "lint", "--acls", home / NAME, "--config", home / NAME
    yield "lint", *acls, "--select", NAME
    yield "lint", *acls, "--broker-principals", NAME
    yield "lint", *acls, "--ignore", home / "ignore"
    yield "review", home / "acls", "--base", NAME
    yield "review", home / NAME, "--base", "HEAD", "--fail-on", NAME
    yield "log", "dump", home / "log"
    yield "log", "dump", "--json", home / "log"
    yield "log", "dump", home / "damaged"
    yield "log", "verify", home / "log"
    yield "log", "verify", home / "damaged"
    yield "log", "copy", home / "log", home / "copied"
    yield "log", "copy", home / "log", f"kafka://{NAME}/t"
    yield "log", "adopt", home / "client"
    index = ("--index", home / "index")
    yield from (("accesses", "unused", *acls, *index, "--format", form) for form in ("text", *ROW_FORMATS))
    yield "accesses", "unused", *acls, *index, "--ignore-broker", NAME
    yield "accesses", "unused", *acls, *index, "--gap", NAME
    yield "accesses", "unused", *acls, *index, "--until", NAME
    yield "accesses", "unused", *acls, *index, "--out", home / f"out{NAME}"
    yield "accesses", "unused", *acls, "--index", home / NAME
    journal = ("--journal", home / "journal")
    forms = ("text", "markdown", "jsonl")
    yield from (("plan", *log, "--want", home / "acls", *journal, "--format", form) for form in forms)
    yield "plan", *log, "--want", home / "acls", *journal, "--accesses", home / NAME
    yield "plan", *log, "--change", home / NAME, *journal
    yield "plan", "--log", home / NAME, "--want", home / "acls", *journal, "--out", home / f"plan{NAME}"
    yield "plan", *log, "--want", home / "acls", "--journal", home / "acls"
    yield "plan", *log, "--want", home / "acls", *journal, "--max-deletes", NAME
    yield "apply", home / f"plan{NAME}", "--yes"
    yield "pdp", *log, "--mapping", home / NAME
    yield "pdp", *log, "--listen", NAME
    yield "pdp", "--log", home / NAME, "--mapping", home / "acls"
    yield "console", *log, "--listen", NAME
    yield "console", *log, "--as-of", NAME
    yield "console", *log, "--config", home / NAME
    yield "console", *log, "--want", home / NAME
    yield "console", *log, "--index", home / NAME, "--gap", NAME
    yield "console", "--log", home / NAME, "--listen", NAME
    yield "mcp", "--log", home / NAME
    yield "mcp", *log, "--as-of", NAME
    yield "mcp", "--acls", home / NAME, "--index", NAME, "--accesses", NAME
    yield "explain", *log, *request, "--origins"
    want = ("--want", home / "acls")
    yield from (("drift", *log, *want, *journal, "--format", form) for form in ("text", *ROW_FORMATS))
    yield "drift", *log, "--want", home / NAME, "--journal", home / f"journal{NAME}"
    yield "rollback", *log, "--journal", home / f"journal{NAME}"
    yield "rollback", "--log", home / NAME, "--journal", home / "acls", "--apply", NAME
    yield "apply", home / "acls", "--yes"
    intent = ("--principal", f"User:{NAME}", "--intent", "transact", "--topic", "t", "--transactional-id", NAME)
    given = ("--log", home / f"granted{NAME}", *intent)
    yield from (("grant", *given, "--format", form) for form in ("text", "jsonl"))
    yield "grant", *given, "--yes"
    yield "grant", *given, "--yes", "--accept-side-effects"
    yield "grant", *given, "--group-prefix", NAME, "--journal", home / NAME
    yield "grant", *given, "--topic", NAME
    yield "grant", *given, "--host", NAME
    yield "grant", *log, "--principal", NAME, *intent[2:]
    yield "revoke", *given, "--yes"
    yield "revoke", *given, "--allow-everyone-if-no-acl-found", "--accept-side-effects", "--yes"
    yield "revoke", *log, "--principal", "User:*", "--intent", "consume", "--topic", "*", "--group-prefix", NAME
    yield from (("accesses", "coverage", *index, "--format", form) for form in ("text", *ROW_FORMATS))
    yield "accesses", "coverage", "--accesses", home / "requests"
    yield "accesses", "coverage", "--accesses", home / NAME, "--accesses-format", NAME
    yield "accesses", "coverage", *index, "--gap", NAME
    yield "accesses", "index", *acls, "--accesses", home / "requests", "--index", home / f"index{NAME}"
    yield "accesses", "index", *log, "--accesses", home / NAME, *index
    yield "snapshot", "list", home / "checkpoints"
    yield "snapshot", "verify", checkpoint, home / "acls"
    yield "snapshot", "create", *log, "--out", home / "more"
    yield "export", *log, "--format", "jsonl"
    yield "export", *log, "--format", "jsonl", "--history"
    yield from (("export", *acls, "--format", form) for form in AclsFormat if form in WRITERS)
    yield "import", home / "bad", "--log", home / "new"
    yield "import", home / "acls", "--log", home / "log"
    yield from (
        ("shell", *log, *words) for words in (("tree", "/"), ("ls", "/acl/id"), ("ls", "/acl/resource/TOPIC/LITERAL"))
    )
    yield from (
        ("shell", *log, *words) for words in (("cat", "/acl/id/*"), ("cat", "/image/acls/byId/*"), ("cat", NAME))
    )
    yield from (
        ("shell", *log, *words) for words in (("find", "/acl"), ("diff", "0", "latest"), (NAME,), ("man", NAME))
    )
    yield "shell", *log, "why", f"User:{NAME}", "READ", f"topic:{NAME}"
    yield "shell", *log
    yield "sync", *asked, "--to", home / "synced", "--once"
    yield "status", *asked
    yield "tokens", "describe", *asked, "--owner-principal", f"User:{NAME}"
    yield from (("tokens", "list", *log, "--format", form) for form in ("table", "json"))
    yield "tokens", "list", *log, "--expires-before", NAME
    yield "tokens", "create", *asked, "--renewer-principal", NAME, "--max-life-time-period", "1"
    yield "tokens", "renew", *asked, "--hmac", NAME, "--renew-time-period", "1"
    yield "tokens", "expire", *asked, "--hmac", NAME, "--expiry-time-period", "1"
    yield "mirror", "--bootstrap-controller", f"{NAME}:1", "--to", home / "mirrored"
    yield "format", home / NAME
    yield "format", home / "client", "-t", NAME
    yield "serve", home / NAME
    yield "serve", home / "client"
    yield "migrate", "--authorizer-properties", NAME, *log
    yield "doctor", *log
    yield "doctor", "--log", home / NAME, "--format", "table"
    yield "doctor", "--bootstrap-server", f"{NAME}:1"
    yield (NAME,)
    yield "acls", NAME
    yield "acls", "list", f"--{NAME}"
    yield ("--help",)
    yield "acls", "add", "--help"


@pytest.mark.slow(8)
def test_no_command_lets_a_name_steer_the_terminal(home, tmp_path):
    lines = "cat /acl/id/*\nls /acl/principal\nat latest\nat 1\npwd\nnonsense\x1b[31mRED\nhistory\nexit\n"
    with FakeBroker([acl(NAME, f"User:{NAME}", host=NAME)]) as broker, FakeBroker() as refusing:
        refusing.refusals[DESCRIBE_ACLS] = (31, NAME)
        listed = [*commands(home, broker), ("acls", "list", "--bootstrap-server", str(refusing.address))]
        script = [([str(word) for word in words], lines if words[0] == "shell" else "y\ny\n") for words in listed]
        (tmp_path / "script").write_text(json.dumps(script))
        shell = pexpect.spawn(
            sys.executable, ["-c", SESSION, str(tmp_path / "script")],
            env=os.environ
            | {
                "TERM": "xterm-256color", "COLUMNS": "120", "ACLOG_PAGER": "cat -",
                "ACLOG_CONFIG": str(home / "config.toml"),
            },
            timeout=120,
            dimensions=(50, 120), echo=False,
        )  # fmt: skip
        said = shell.read().decode()
        shell.close()
    assert "DONE" in said, said[-2000:]
    parts = re.split(r"@@(?:\d+|None)\r\n", said)
    assert len(parts) == len(script) + 1
    found = {}
    for (words, _), part in zip(script, parts, strict=False):
        raw = [piece for piece in PIECES if piece.replace("\n", "\r\n") in part and piece != "\r"]
        left = [
            c for c in RICH.sub("", part) if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"} and c not in "\r\n\t"
        ]
        stray = re.findall(r"\r(?!\n)", RICH.sub("", part)) if "\x1b[2K" not in part else []
        if raw or left or stray:
            found[" ".join(words)[:80]] = (raw, left, stray)
    assert found == {}
    assert said.count(printable(PIECES[0])) > 50


OF_KAFKA = (
    "acls list",
    "acls add",
    "acls copy",
    "acls remove",
    "log dump",
    "shell",
    "tokens",
    "status",
    "sync",
    "mirror",
)
"""What prints as Kafka's tools do, or lines for people that a pipe gets as they are."""


@pytest.mark.slow(60)
@pytest.mark.process
def test_no_format_of_any_command_lets_a_name_be_more_than_text(tmp_path, monkeypatch):
    home, wrong = make_home(tmp_path), {}
    monkeypatch.setenv("ACLOG_CONFIG", str(home / "config.toml"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # for the doctor, who would start it
    with FakeBroker([acl(NAME, f"User:{NAME}", host=NAME)]) as broker:
        listed = [[str(word) for word in words] for words in commands(home, broker)]
        for line in [*listed, *in_other_formats(listed)]:
            result = aclog(*line, stdin=b"y\ny\n")
            found = [f"stderr: {each!r}" for each in result.err.split("\n") if not each.isprintable()]
            out = result.out
            for path in sorted((word for word in line if word.startswith(str(home))), key=len, reverse=True):
                out = out.replace(path, "PATH")  # which scripts read back as they have given it
            found += [f"{format_of(line)}: {each}" for each in faults(command_of(line), format_of(line), out)]
            if found:
                wrong[" ".join(line).replace(str(home), "HOME")[:100]] = found[:3]
    assert not wrong, "\n".join(f"{line}: {found}" for line, found in wrong.items())


def command_of(line):
    return next((each for each in COMMANDS if line[: len(each.split())] == each.split()), "")


def format_of(line):
    return line[line.index("--format") + 1] if "--format" in line else ""


def in_other_formats(lines):
    """Yield lines of each command in the formats that none of them has."""
    for name, command in COMMANDS.items():
        own = [line for line in lines if command_of(line) == name]
        for form in formats(command) if own and name != "context add" else ():
            if form not in map(format_of, own):
                for line in own[:4]:
                    place = line.index("--format") if "--format" in line else len(line)
                    yield [*line[:place], "--format", form, *line[place + 2 :]]


def formats(command):
    """The values of a command's --format, but for the one that is no text."""
    for parameter in command.params:
        if "--format" in parameter.opts:
            known = [each.value for each in parameter.annotation]
            return [each for each in known if each in (parameter.metavar or str(known)) and each != "avro"]
    return []


def faults(name, form, out):
    """Yield what a name does in an output in a pipe besides being text."""
    if form in ("json", "jsonl", "sarif") and out.strip():
        yield from (repr(each) for each in out.split("\n") if not each.isprintable())
        list(map(json.loads, out.splitlines())) if form == "jsonl" else json.loads(out)
    elif form == "csv":
        header, *rows = csv.reader(io.StringIO(out, newline="")) if out else [[]]
        yield from (f"{len(row)} cells, not {len(header)}" for row in rows if len(row) != len(header))
        for cell in [cell for row in rows for cell in row if not re.fullmatch(r"-?\d+", cell)]:
            begins = [part.lstrip("\0\u00a0\u200b \x1b") for part in re.split(r"[;\t\r\n]", cell)]
            yield from (repr(cell) for part in begins if part.startswith(tuple("=+-@\uff1d\uff0b\uff0d\uff20")))
    elif form in ("table", "markdown") or (form in ("", "text") and not name.startswith(OF_KAFKA)):
        yield from (repr(each) for each in out.split("\n") if not each.isprintable())
        if form == "markdown":
            for each in out.split("\n"):
                if re.search(r"(?<!\\)(?:\\\\)*<(?:img|script)|(?<!\\)\]\(|(?<![\w.])@all\b|https?://", each):
                    yield f"more than text: {each!r}"


def test_a_pipe_gets_the_bytes_of_kafkas_tool(home):
    assert NAME in aclog("acls", "list", "--acls", home / "acls", "--format", "kafka").ok().out


def test_json_is_the_same_value_and_shows_nothing_raw(home):
    for form in (("acls", "list", "--format", "jsonl"), ("export", "--format", "jsonl")):
        out = aclog(*form, "--acls", home / "acls").ok().out
        assert not [c for c in out if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}]
        rows = [json.loads(line) for line in out.splitlines()]
        assert NAME in {row.get("acl", row).get("resourceName") for row in rows}


def test_json_escapes_what_is_escaped_elsewhere():
    """What `printable` shows by escapes, and a JSON string its own: control, bidirectional, unseen and other blanks."""
    for code in (*range(0x3100), *range(0xE000, 0xE010), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0080)):
        text = json_string(f"a{chr(code)}é")
        assert json.loads(text) == f"a{chr(code)}é"
        assert text.isprintable()
        assert (chr(code) in text) == (printable(chr(code)) == chr(code)) or code in b'"\\', hex(code)
    assert json_text("\udc80") == '"\udc80"', "which is no text: it must fail where it is written"
    assert json_text({"\u202e": ["\x9b", "😀", "\U000e0041"]}) == '{"\\u202e":["\\u009b","😀","\\udb40\\udc41"]}'


def test_printable_is_one_line_and_stays_what_it_is():
    assert printable("plain 'é 😀") == "plain 'é 😀"
    shown = printable(NAME + "\udc80\u00a0")
    assert shown.isprintable()
    assert printable(shown) == shown


def test_notices_are_escaped_everywhere(capsys):
    output.warn(f"znode /kafka-acl/{NAME}: unknown")
    said = capsys.readouterr().err
    assert said == f"aclog: warning: znode /kafka-acl/{printable(NAME)}: unknown\n"


def test_the_sweep_has_every_command(home):
    """Except for Spark's, which print tables and need a JVM."""
    with FakeBroker() as broker:
        swept = [" ".join(map(str, words)) for words in commands(home, broker)]
    for name in COMMANDS:
        assert name.startswith("spark ") or any(words.startswith(f"{name} ") for words in swept), name


@pytest.mark.slow(4)
def test_the_prompt_and_its_completion_show_no_name_raw(home, tmp_path):
    shell = pexpect.spawn(
        sys.executable, ["-m", "aclog", "shell", "--log", str(home / "log")],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
        encoding="utf-8", timeout=300, dimensions=(40, 200), echo=False,
    )  # fmt: skip
    said = []
    for typed, awaited in (
        ("cd /acl/resource/TOPIC/LITERAL\r", "LITERAL>"),
        ("ls\r", "end.*LITERAL>"),  # the list as well: each key that is typed shows the prompt again
        ("cd x%1B\t", "end"),
        ("\r", "end>"),
        ("cat \t", "[-_A-Za-z0-9]{22} "),
        ("\x03", "end>"),
        ("cat *\r", "end>"),
        ("watch\r", "stop with Ctrl-C"),
    ):
        shell.send(typed)
        shell.expect(awaited)
        said.append(shell.before + shell.after)
    shell.send("\x03")
    shell.expect_exact("end>")
    shell.sendeof()
    said.append(shell.before + shell.read())
    shell.close()
    text = "".join(said)
    assert [piece for piece in PIECES if len(piece) > 1 and piece in text] == []
    assert [c for c in text if unicodedata.category(c) == "Cf" or "\x80" <= c < "\xa0" or c in "\x7f\u2028"] == []
    assert "%1B[31mRED" in text


def test_no_principal_that_could_garble_the_line_is_offered():
    rules = [acl("t", "User:alice"), acl("t", f"User:{NAME}")]
    image = Image(acls=AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules))
    assert [each.display for each in complete("why User:", session(image)).candidates] == ["User:alice"]


def test_tokens_of_principals_with_such_names(monkeypatch, capsys):
    now, owner = datetime.now(UTC), KafkaPrincipal.parse(f"User:{NAME}")
    token = DelegationToken(
        token_id="id", hmac=b"h", owner=owner, requester=owner, renewers=(owner,), issued=now, expires=now, longest=now
    )
    broker = SimpleNamespace(request=lambda _: [token])
    print_described(broker, [f"User:{NAME}"], Output(form=OutputFormat.KAFKA))
    assert capsys.readouterr().out.count(NAME) == 4  # in a pipe, as Kafka's tool
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    for form in (OutputFormat.KAFKA, *ROW_FORMATS):
        print_described(broker, [f"User:{NAME}"], Output(form=form))
    assert [line for line in capsys.readouterr().out.split("\n") if not line.isprintable()] == []
