"""Contexts on the command line: every command that takes a source takes it from there, and a write asks."""

import contextvars
import json
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from aclog.cli.app import META, SOURCES, STORES, ContextUse, app, written_unless, written_with
from aclog.cli.options import use_context
from tests.cli.test_documentation import COMMANDS, examples
from tests.support.cli.command import aclog

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-4.3.1-small/__cluster_metadata-0"

ABOUT_CONTEXTS = {"apply", "context add"}
WRITES = {
    "acls add": (),
    "acls remove": (),
    "acls copy": (),
    "import": (),
    "migrate": ("--dry-run", "--compare", "--to-zookeeper"),
    "tokens create": (),
    "tokens renew": (),
    "tokens expire": (),
}
"""Commands that change what their source flags name, unless one of these flags is given."""
WRITES_WITH = {"grant": ("--yes",), "revoke": ("--yes",), "console": ("--edit",)}
"""Commands that change it only if one of these flags is given."""
READS = {
    "acls list", "acls history", "authorize", "explain", "diff", "check no-new-access", "check equal",
    "check not-granted", "check only", "check no-public", "test", "who-can", "what-can", "when", "why", "lint",
    "review", "snapshot create", "export", "shell", "doctor", "status", "sync", "tokens describe", "tokens list",
    "mirror", "plan", "rollback", "drift", "pdp", "mcp", "query", "report",
    "accesses usage", "accesses index", "accesses unused", "accesses denied", "accesses simulate", "accesses suggest",
    "spark history", "spark when",
    "spark authorize", "spark follow", "spark usage", "spark simulate", "spark usage-index", "spark suggest",
}  # fmt: skip
"""Commands that only read what their source flags name."""
VALUES = {
    "--log": "/c/log",
    "--snapshot": "/c/s.checkpoint",
    "--acls": "/c/acls",
    "--ref": "main:c",
    "--bootstrap-controller": "c:9093",
    "--bootstrap-server": "c:9092",
    "--zookeeper": "c:2181",
}


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    monkeypatch.setenv("ACLOG_CONFIG", str(path))
    monkeypatch.delenv("ACLOG_CONTEXT", raising=False)
    return path


def write(path: Path, *lines: str, current: str = "") -> Path:
    """Write a file with the context `it`."""
    first = f'current = "{current}"\n' if current else ""
    path.write_text(first + "[contexts.it]\n" + "".join(f"{line}\n" for line in lines))
    path.chmod(0o600)
    return path


def source_options(command) -> list[str]:
    """Return the options by which a command takes a source; the path of `aclog review --base` is files of ACLs."""
    options = {name: each for each in command.params for name in each.opts}
    return [
        name
        for name in (*SOURCES, *STORES)
        if name in options or (name == "--acls" and {"--base", "path"} <= options.keys())
    ]


def test_every_command_is_known_to_read_or_to_write_its_source():
    """A new command with a flag of a source belongs into one of the two; one that writes is marked as such."""
    assert {
        name for name in COMMANDS if source_options(COMMANDS[name])
    } == READS | WRITES.keys() | WRITES_WITH.keys() | ABOUT_CONTEXTS
    assert {name: unless for name in COMMANDS if (unless := written_unless(COMMANDS[name])) is not None} == WRITES
    assert {name: flags for name in COMMANDS if (flags := written_with(COMMANDS[name]))} == WRITES_WITH


def taking() -> list:
    return [
        (name, option)
        for name in sorted(READS | WRITES.keys() | WRITES_WITH.keys())
        for option in source_options(COMMANDS[name])
    ]


@pytest.mark.parametrize(("name", "option"), taking())
def test_every_command_takes_its_source_from_a_context(name, option, path):
    kind = "--zookeeper" if option == "--authorizer-properties" else option
    cluster = 'command-config = "login"' if kind.startswith("--bootstrap") else ""
    write(path, f'{kind.removeprefix("--")} = "{VALUES[kind]}"', cluster, 'super-users = "User:c"', "cidr = true")
    parsed = parameters(name, without_source(name))
    if option == "--authorizer-properties":
        assert parsed["authorizer_properties"] == ["zookeeper.connect=c:2181"]
    else:
        assert str(parsed["path" if name == "review" else option.removeprefix("--").replace("-", "_")]) == VALUES[kind]
    if cluster:
        assert str(parsed["command_config"]) == f"{path.parent}/login"
    assert parsed.get("super_users", "User:c") == "User:c"
    assert parsed.get("cidr", True) is True


def without_source(name: str) -> list[str]:
    """Return the words of an example of a command, without the flags that name its source."""
    if name == "review":
        return ["--base", "main"]
    words = next(each for each in examples(COMMANDS[name].help) if "--list" not in each)[len(name.split()) :]
    kept, skip = [], False
    for word in words:
        is_source = word in ("DIR", "HOST:9092") and not (kept and kept[-1].startswith("--"))
        if not (skip or is_source) and word not in {*VALUES, "--authorizer-properties", "--command-config"}:
            kept.append(word)
        skip = word.startswith("--") and word in {*VALUES, "--authorizer-properties", "--command-config"}
    return kept


def parameters(name: str, words: list[str]) -> dict:
    """Return what a command would be called with, if the context `it` is named."""

    def parse() -> dict:
        use_context("it")
        return COMMANDS[name].make_context("aclog", words, **app.context_settings).params

    return contextvars.copy_context().run(parse)


def test_a_flag_that_names_a_source_wins_and_then_nothing_of_the_context_is_used(path):
    write(path, 'log = "/c/none"', 'super-users = "User:nobody"', "cidr = true", current="it")
    request = ("authorize", "--principal", "User:nobody", "--operation", "READ", "--topic", "none", "--log", LOG)
    plain = aclog(*request)
    assert (plain.code, plain.err) == (1, "")
    named = aclog("-c", "it", *request)
    assert named.out == plain.out
    assert named.err == "aclog: note: context it is not used: a flag names the source\n"
    assert "takes no source from it" in aclog("-c", "it", "log", "verify", LOG).err


def test_a_command_that_needs_no_context_does_not_read_the_file(path):
    path.write_text("not TOML")
    aclog("acls", "list", "--log", LOG).ok()
    aclog("log", "verify", LOG).ok()
    assert aclog("acls", "list").complaint.startswith(f"{path}:1: not TOML")
    assert aclog("-c", "it", "acls", "list", "--log", LOG).complaint.startswith(f"{path}:1: not TOML")


def test_what_decides_besides_the_rules_is_said_once_and_flags_win_over_it(path):
    write(path, f'log = "{LOG}"', 'super-users = ["User:nobody"]', 'timezone = "Europe/Berlin"')
    request = ("-c", "it", "authorize", "--principal", "User:nobody", "--operation", "READ", "--topic", "none")
    allowed = aclog(*request)
    assert (allowed.code, allowed.out) == (0, "ALLOWED SuperUser\n")
    assert allowed.err == "aclog: note: decided with settings of context it: super.users=User:nobody\n"
    assert (aclog(*request, "--super-users", "").code, aclog(*request, "--super-users", "").err) == (1, "")
    assert aclog("-c", "it", "acls", "list").ok().err == ""


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # pexpect forks a process with threads
@pytest.mark.process
def test_flags_win_over_what_a_context_allows(path, tmp_path):
    (tmp_path / "none.jsonl").touch()
    settings = ("allow-everyone-if-no-acl-found = true", "cidr = true", 'semantics = "documented"')
    write(path, 'acls = "none.jsonl"', *settings)
    request = ("-c", "it", "authorize", "--principal", "User:nobody", "--operation", "READ", "--topic", "none")
    allowed = aclog(*request).ok()
    assert allowed.err.endswith(": allow.everyone.if.no.acl.found=true, semantics=documented, cidr=true\n")
    denied = aclog(*request, "--no-allow-everyone-if-no-acl-found", "--no-cidr", "--semantics", "kafka")
    assert (denied.code, denied.err) == (1, "")
    both = aclog(*request, "--no-allow-everyone-if-no-acl-found", "--allow-everyone-if-no-acl-found").complaint
    assert both.endswith("expected one of them")


@pytest.mark.process
def test_a_format_is_that_of_the_context_on_a_terminal_where_a_command_knows_it(path):
    write(path, f'log = "{LOG}"', 'format = "json"')

    def shown(*words: str) -> str:
        command = ["-m", "aclog", "-c", "it", "--no-pager", *words]
        plain = {**os.environ, "NO_COLOR": "1"}
        return pexpect.spawn(
            sys.executable, command, encoding="utf-8", timeout=300, dimensions=(40, 300), env=plain
        ).read()

    assert json.loads(shown("acls", "list"))
    assert shown("acls", "list", "--columns", "principal").startswith("PRINCIPAL")
    assert shown("acls", "list", "--format", "kafka").startswith("Current ACLs")
    assert shown("export", "--format", "jsonl").startswith("{")
    assert aclog("-c", "it", "acls", "list").ok().out.startswith("Current ACLs")  # in a pipe, as ever


def test_a_context_that_does_not_fit_is_told_with_what_would(path):
    write(path, 'log = "/c/log"')
    told = aclog("-c", "it", "status").complaint
    assert (
        told
        == "context it (named here) is --log /c/log: aclog status takes --bootstrap-controller or --bootstrap-server"
    )
    assert "takes --acls" in aclog("-c", "it", "review", "--base", "main").complaint
    write(path, 'zookeeper = "z:2181"')
    assert "context it (named here) is --zookeeper z:2181" in aclog("-c", "it", "who-can").complaint


def test_an_unknown_context_is_told_before_anything_else(path):
    write(path, 'log = "/c/log"')
    assert aclog("-c", "ti", "acls", "list", "--log", LOG).complaint == f"no context 'ti' in {path}: it has it"
    assert aclog("diff", "--log", LOG, "--to-context", "ti").complaint.startswith("no context 'ti'")


def test_the_name_may_stand_before_or_after_the_command(path):
    write(path, f'log = "{LOG}"')
    before = aclog("-c", "it", "acls", "list").ok()
    for words in (("-c", "it"), ("--context=it",), ("-cit",), ("-c", "it", "-c", "it")):
        assert aclog("acls", "list", *words) == before
    assert aclog("-c", "it", "acls", "list", "-c", "it") == before
    for words in (("-c", "it", "acls", "list", "-c", "ti"), ("acls", "list", "-c", "it", "-c", "ti")):
        assert aclog(*words).complaint == "--context is given twice, with different values: expected it once"
    assert "no context 'ti'" in aclog("acls", "list", "-c", "ti").complaint
    assert "requires an argument" in aclog("acls", "list", "-c").complaint


def test_a_migration_takes_either_side_from_a_context(path):
    write(path, 'zookeeper = "z:2181/c"')
    assert parameters("migrate", ["--log", "l"])["zookeeper"] == "z:2181/c"
    assert parameters("migrate", ["--log", "l", "--to-zookeeper", "y:2181"])["zookeeper"] is None
    write(path, 'log = "/c/log"', current="it")
    assert str(parameters("migrate", ["--zookeeper", "y:2181"])["log"]) == "/c/log"
    assert parameters("migrate", ["--zookeeper", "y:2181", "--bootstrap-checkpoint", "b"])["log"] is None
    assert "stdin is not a terminal" in aclog("migrate", "--zookeeper", "y:2181").complaint
    for harmless in ("--dry-run", "--compare"):
        assert not taken("migrate", ["--zookeeper", "y:2181", harmless]).writes
    assert not taken("migrate", ["--to-zookeeper", "y:2181"]).writes


def taken(name: str, words: list[str]) -> ContextUse:
    """Return what a command takes from the current context."""

    def parse() -> ContextUse:
        use_context(None)
        return COMMANDS[name].make_context("aclog", words, **app.context_settings).meta[META]

    return contextvars.copy_context().run(parse)


def test_a_second_state_is_decided_with_the_settings_of_its_context(path, tmp_path):
    rules = tmp_path / "none.jsonl"
    rules.write_text("")
    write(path, f'acls = "{rules}"', 'super-users = "User:boss"')
    said = aclog("diff", "--acls", rules, "--to-context", "it", "--format", "jsonl")
    assert (said.code, "User:boss" in said.out) == (1, True)
    assert "decided with settings of context it: super.users=User:boss" in said.err
    assert aclog("diff", "--acls", rules, "--to-context", "it", "--to-super-users", "").code == 0
    both = aclog("diff", "--acls", rules, "--to-context", "it", "--to-acls", rules).complaint
    assert both.startswith("exactly one second state must be given")
    assert aclog("-c", "it", "diff", "--to-acls", rules).code == 0


REPOSITORY_TEST = "tests: [{name: t, principal: 'User:boss', can: {READ: ['topic:t']}}]\n"


def test_what_a_repository_says_wins_over_a_context_that_the_command_does_not_name(path, tmp_path, monkeypatch):
    (tmp_path / "it.jsonl").write_text("")
    write(path, f'acls = "{tmp_path / "it.jsonl"}"', 'super-users = "User:boss"', current="it")
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "own.jsonl").write_text("")
    (repository / "t.yaml").write_text(REPOSITORY_TEST)
    monkeypatch.chdir(repository)
    assert aclog("test", "t.yaml").code == 0
    assert "super.users=User:boss" in aclog("lint").ok().err
    (repository / "named.yaml").write_text(f"rules: {{context: it}}\n{REPOSITORY_TEST}")
    assert aclog("test", "named.yaml").code == 1  # the rules of the context, and the settings of the file
    (repository / "aclog.toml").write_text('[source]\nacls = "own.jsonl"\n')
    assert aclog("test", "t.yaml").code == 1
    assert "boss" not in aclog("lint").ok().err
    assert aclog("-c", "it", "test", "t.yaml").code == 0
    (repository / "aclog.toml").write_text('[authorizer]\nsuper-users = "User:other"\n')
    assert aclog("test", "t.yaml").code == 1
    (repository / "named.yaml").write_text(f"rules: {{context: ti}}\n{REPOSITORY_TEST}")
    assert aclog("test", "named.yaml").complaint.startswith("named.yaml:1: no context 'ti'")


def test_an_option_of_one_value_is_given_once():
    told = aclog("acls", "list", "--log", "a", "--log", "b").complaint
    assert told == "--log is given twice, with different values: expected it once"
    assert aclog("acls", "list", "--log", LOG, "--log", LOG, "--topic", "a", "--topic", "b").code == 0
    assert aclog("tokens", "renew", "--hmac", "c2VjcmV0", "--hmac=b3RoZXI=").complaint.startswith(
        "--hmac is given twice"
    )
    assert aclog("-c", "a", "--context", "b", "acls", "list").complaint.startswith("--context is given twice")
    both = aclog("diff", "--log", "a", "--to-cidr", "--no-to-cidr").complaint
    assert both == "--to-cidr and --no-to-cidr are both given: expected one of them"


def test_context_commands_change_and_show_the_file(path, tmp_path):
    assert aclog("context", "list").ok().out == ""
    assert aclog("context", "show").complaint.startswith("no context is used now")
    login = tmp_path / "login"
    login.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nssl.truststore.location=none\n"
        "ssl.truststore.password=hidden\nsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule "
        'required username="a" password="hidden";\n'
    )
    login.chmod(0o600)
    aclog("context", "add", "prod", "--bootstrap-server", "b:9092", "--command-config", login, "--use").ok()
    aclog("context", "add", "eu/night", "--log", LOG, "--super-users", "User:a", "--timezone", "local").ok()
    rows = json.loads(aclog("context", "list", "--format", "json").ok().out)
    assert [(row["name"], row["source"], row["current"]) for row in rows] == [
        ("prod", "bootstrap-server", True),
        ("eu/night", "log", False),
    ]
    shown = aclog("context", "show").ok()
    assert ("hidden" in shown.out, shown.out.count("***"), "SASL_SSL" in shown.out, shown.err) == (False, 2, True, "")
    assert json.loads(aclog("context", "show", "eu/night", "--json").ok().out)["super-users"] == "User:a"
    login.chmod(0o640)
    assert f"{login}: others can read the secrets in it (mode 0640): chmod 600 {login}" in aclog("context", "show").err
    assert "others can read the secrets" in aclog("acls", "list").err
    aclog("context", "rename", "prod", "live").ok()
    aclog("context", "remove", "eu/night").ok()
    assert aclog("context", "path").ok().out == f"{path}\n"
    assert [row.split()[1] for row in aclog("context", "list").ok().lines[1:]] == ["live"]


def test_what_is_wrong_with_one_context_does_not_hide_the_others(path, monkeypatch):
    write(path, 'log = "/c/log"', "[contexts.bad]", "[contexts.fine]", 'log = "/d"', current="gone")
    listed = aclog("context", "list")
    assert (listed.code, [line.split()[1] for line in listed.lines[1:]]) == (2, ["it", "fine"])
    assert "context bad has no source" in listed.err
    assert "no context 'gone'" in listed.err
    assert aclog("context", "show", "fine").ok().out.startswith("fine ")
    monkeypatch.setenv("ACLOG_CONTEXT", "away")
    assert "ACLOG_CONTEXT=away is set, and wins" in aclog("context", "use", "fine").ok().err


def test_doctor_says_what_is_wrong_with_a_context_and_goes_on(path, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # a JVM is for tests of another tier
    write(path, f'log = "{LOG}"')
    monkeypatch.setenv("ACLOG_CONTEXT", "ti")
    found = aclog("doctor")
    assert found.code == 1
    assert any(line.startswith(f"fail  contexts: no context 'ti' in {path}: it has it") for line in found.lines)
    monkeypatch.setenv("ACLOG_CONTEXT", "it")
    assert any(line.startswith("ok    log: ") and f"; {LOG} was read in" in line for line in aclog("doctor").ok().lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "x y", "--log", "a"), "'x y' is no name of a context"),
        (("add", "x"), "exactly one source must be given: --log, "),
        (("add", "x", "--log", "a", "--acls", "b"), "exactly one source must be given: --log, "),
        (("add", "x", "--bootstrap-server", "nonsense"), "--bootstrap-server"),
        (("add", "x", "--log", "a", "--command-config", "/none"), "/none"),
        (("add", "x", "--acls", "-"), "stdin is another one each time"),
        (("add", "x", "--log", "a", "--timezone", "Europe/Belrin"), "did you mean Europe/Berlin?"),
        (("add", "x", "--log", "a", "--super-users", "boss"), "boss"),
        (("add", "x", "--log", "a", "--semantics", "other"), "'other' is not one of kafka, documented"),
        (("use",), "expected either NAME or --none"),
        (("use", "x"), "no context 'x'"),
        (("remove", "x"), "no context 'x'"),
        (("rename", "x", "y"), "no context 'x'"),
    ],
)
def test_a_context_that_cannot_be_is_refused_and_nothing_is_written(path, words, said):
    assert said in aclog("context", *words).complaint
    assert not path.exists()


RULE = ("--allow-principal", "User:new", "--operation", "READ", "--topic", "new")


@pytest.fixture
def log(tmp_path):
    shutil.copytree(LOG, tmp_path / "log")
    return tmp_path / "log"


def has_rule(log: Path) -> bool:
    return "User:new" in aclog("acls", "list", "--log", log, "--topic", "new").ok().out


def test_a_write_in_a_pipe_names_its_context_or_is_refused(path, log, monkeypatch):
    write(path, f'log = "{log}"')
    monkeypatch.setenv("ACLOG_CONTEXT", "it")
    refused = aclog("acls", "add", *RULE, stdin=b"y\n")
    assert refused.code == 2
    assert refused.complaint == (
        f"writing to context it (--log {log}), named by ACLOG_CONTEXT: stdin is not a terminal, cannot ask for "
        "confirmation: expected -c it or --force"
    )
    assert not has_rule(log)
    aclog("-c", "it", "acls", "add", *RULE).ok()
    assert has_rule(log)
    aclog("acls", "remove", *RULE, "--force").ok()
    assert not has_rule(log)
    monkeypatch.setenv("ACLOG_CONTEXT", "")
    assert aclog("acls", "add", *RULE).complaint.startswith("exactly one target must be given")


def test_a_grant_asks_for_its_context_only_if_it_writes(path, log, monkeypatch):
    write(path, f'log = "{log}"', "allow-everyone-if-no-acl-found = false")
    monkeypatch.setenv("ACLOG_CONTEXT", "it")
    grant = ("grant", "--principal", "User:new", "--intent", "produce", "--topic", "new")
    assert aclog(*grant).code == 1
    assert "expected -c it or --force" in aclog(*grant, "--yes").complaint
    assert not has_rule(log)
    aclog("-c", "it", *grant, "--yes").ok()
    assert has_rule(log)


@contextmanager
def asked(*words: str):
    """Run a command in a terminal, up to its question."""
    plain = {**os.environ, "NO_COLOR": "1"}
    terminal = pexpect.spawn(
        sys.executable, ["-m", "aclog", *words], env=plain, encoding="utf-8", timeout=300, echo=False
    )  # fmt: skip
    try:
        terminal.expect(r"Write to context .*\? \(y/n\) ")
        yield terminal
    finally:
        terminal.close()


@pytest.mark.process
def test_a_write_at_a_terminal_asks_and_writes_to_what_it_named(path, log, tmp_path):
    write(path, f'log = "{log}"', current="it")
    with asked("acls", "add", *RULE) as terminal:
        assert f"context it (--log {log}), set by `aclog context use`?" in terminal.after
        terminal.sendline("n")
        terminal.expect("aclog: nothing was written to context it")
        terminal.expect(pexpect.EOF)
    assert (terminal.exitstatus, has_rule(log)) == (2, False)
    shutil.copytree(log, tmp_path / "other")
    with asked("acls", "add", *RULE) as terminal:
        write(path, f'log = "{tmp_path / "other"}"', current="it")  # under the question
        terminal.sendline("y")
        terminal.expect("Adding ACLs for resource")
        terminal.expect(pexpect.EOF)
    assert (terminal.exitstatus, has_rule(log), has_rule(tmp_path / "other")) == (0, True, False)


@pytest.mark.process
def test_a_question_that_nobody_sees_or_answers_is_none(path, log):
    write(path, f'log = "{log}"', current="it")
    for streams in ("<&-", "2>/dev/null >/dev/null"):
        words = f"{sys.executable} -m aclog acls add {' '.join(RULE)} {streams}; echo code $?"
        terminal = pexpect.spawn("/bin/sh", ["-c", words], env=dict(os.environ), encoding="utf-8", timeout=300)
        terminal.expect("code 2")
        terminal.close()
    assert not has_rule(log)


@pytest.mark.process
def test_the_end_of_the_terminal_is_no_answer(path, log):
    write(path, f'log = "{log}"', current="it")
    with asked("acls", "add", *RULE) as terminal:
        terminal.sendeof()
        terminal.expect("stdin is not a terminal, cannot ask for confirmation")
        terminal.expect(pexpect.EOF)
    assert (terminal.exitstatus, has_rule(log)) == (2, False)
