"""Sources without a flag: each is read as by its flag, what could be two is refused, and so is one beside a flag."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclog.cli.app import app
from aclog.cli.completion import candidates
from aclog.cli.flags.many_requests import SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import CommandArgument
from aclog.protocol.api_keys import API_VERSIONS
from aclog.protocol.responses import CONTROLLER_APIS, ApiVersion
from tests.cli.test_documentation import COMMANDS
from tests.support.builders.acls import acl, acl_row
from tests.support.cli.command import Result, aclog
from tests.support.fakes.broker import FakeBroker

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
READ = ("--operation", "READ", "--topic", "orders")
GITOPS = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata:
  name: fraud
  labels:
    strimzi.io/cluster: prod
spec:
  authorization:
    type: simple
    acls:
      - resource: {type: topic, name: orders}
        operations: [Read]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with one source of each kind that a path can be, and no context."""
    monkeypatch.setenv("ACLOG_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.delenv("ACLOG_CONTEXT", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    shutil.copytree(LOG, tmp_path / "log")
    shutil.copy(next(LOG.glob("*-*.checkpoint")), tmp_path)
    (tmp_path / "rules.jsonl").write_text(json.dumps(acl_row("orders", principal="User:a", operation="READ")) + "\n")
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "user.yaml").write_text(GITOPS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def contexts(home: Path) -> Path:
    config = home / "config.toml"
    config.write_text(
        '[contexts.prod]\nlog = "log"\nsuper-users = "User:root"\n[contexts.kafka]\nacls = "rules.jsonl"\n'
    )
    config.chmod(0o600)
    return config


@pytest.fixture
def repository(home: Path) -> Path:
    for words in (["init", "-q", "-b", "main"], ["add", "kafka", "rules.jsonl"], ["commit", "-q", "-m", "rules"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, cwd=home)
    return home


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker([acl("orders", "User:live")]) as running:
        yield running


def same(word: str, flag: str, value: str | None = None) -> Result:
    """Assert that a word is read as a flag reads it, and return the result."""
    by_word, by_flag = aclog("who-can", word, *READ), aclog("who-can", flag, value or word, *READ)
    assert (by_word.code, by_word.out, by_word.err) == (by_flag.code, by_flag.out, by_flag.err)
    assert by_word.code == 0
    assert "User:" in by_word.out
    return by_word


def test_each_kind_of_path_is_read_as_by_its_flag(home: Path) -> None:
    same("log", "--log")
    same(str(home / "log"), "--log")
    same(next(home.glob("*.checkpoint")).name, "--snapshot")
    assert same("rules.jsonl", "--acls").out.startswith("User:a: ")
    assert same("kafka", "--acls").out.startswith("User:fraud: ")
    content = (home / "rules.jsonl").read_bytes()
    assert aclog("who-can", "-", *READ, stdin=content).ok().out.startswith("User:a: ")


def test_a_context_is_read_with_its_settings(contexts: Path) -> None:
    named = same("prod", "--context")
    assert "super users, who may do everything: User:root" in named.out
    assert aclog("acls", "list", "prod").ok().out == aclog("acls", "list", "--log", "log").ok().out


@pytest.mark.process
def test_a_path_needs_no_contexts_and_another_word_does(home: Path) -> None:
    (home / "config.toml").write_text("xx[")
    assert aclog("acls", "list", "rules.jsonl").ok().out == aclog("acls", "list", "--acls", "rules.jsonl").ok().out
    assert "config.toml:1: not TOML" in aclog("acls", "list", "prod").complaint


def test_a_path_in_a_commit_and_in_the_index(repository: Path) -> None:
    assert "User:fraud" in same("main:kafka", "--ref").out
    assert "User:a" in same(":rules.jsonl", "--ref").out
    wrong = aclog("who-can", "master:kafka", *READ).complaint
    assert "no commit 'master' in a git repository" in wrong


def test_servers_are_told_apart_by_their_apis(home: Path, broker: FakeBroker) -> None:
    assert "User:live" in same(broker.address, "--bootstrap-server").out
    assert "User:live" in same(f"127.0.0.1:1,{broker.address}", "--bootstrap-server").out
    with FakeBroker(apis=CONTROLLER_APIS) as controller:
        refused = aclog("who-can", "--bootstrap-controller", controller.address, *READ)
        assert aclog("who-can", controller.address, *READ).err == refused.err  # both follow it as a controller


def test_servers_that_do_not_answer_are_refused_with_both_flags(home: Path) -> None:
    with FakeBroker() as gone:
        address = gone.address
    refused = aclog("who-can", address, *READ)
    assert refused.code == 2
    assert refused.complaint.removesuffix(" (see `aclog who-can --help`)").endswith(
        f"expected --bootstrap-server {address} or --bootstrap-controller {address}"
    )
    with FakeBroker(apis=(ApiVersion(API_VERSIONS, 0, 3),)) as neither:
        assert "neither a broker nor a controller" in aclog("who-can", neither.address, *READ).complaint


@pytest.mark.parametrize(
    ("word", "flags"),
    [
        ("kafka", "a directory and a context: expected --acls kafka or -c kafka"),
        (
            "main:kafka",
            "a file and a path in the commit main: expected --acls main:kafka or --ref main:kafka",
        ),
        (
            "h:9092",
            (
                "a file and an address HOST:PORT: expected --acls h:9092 or --bootstrap-server h:9092 or --bootstrap-"
                "controller h:9092"
            ),
        ),
    ],
)
@pytest.mark.process
def test_what_could_be_two_sources_is_refused_with_both_flags(
    contexts: Path, repository: Path, word: str, flags: str
) -> None:
    for name in ("main:kafka", "h:9092"):
        shutil.copy("rules.jsonl", repository / name)
    assert aclog("who-can", word, *READ).complaint == f"{word!r} is {flags} (see `aclog who-can --help`)"
    second = aclog("diff", "log", word).complaint
    assert second.startswith(f"{word!r} is ")
    assert "--to-acls" in second
    assert ("--to-context kafka" in second) == (word == "kafka")


def test_a_file_named_as_a_path_that_no_commit_has_is_the_file(repository: Path) -> None:
    shutil.copy("rules.jsonl", repository / "main:none")
    same("main:none", "--acls")


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (("--log", "log"), "--log"),
        (("--acls", "rules.jsonl"), "--acls"),
        (("-c", "prod"), "-c prod"),
    ],
)
def test_a_word_beside_a_flag_that_names_a_source_is_refused(contexts: Path, words: tuple[str, ...], flag: str) -> None:
    for line in (("who-can", "rules.jsonl", *READ, *words), (*words, "who-can", "rules.jsonl", *READ)):
        if line[0] == "who-can" or flag.startswith("-c"):
            refused = aclog(*line)
            assert refused.code == 2
            assert f"'rules.jsonl' and by {flag}: expected one of them" in refused.complaint
    assert aclog("diff", "log", "rules.jsonl", "--to-acls", "kafka").code == 2


def test_a_context_of_the_environment_gives_way_to_a_word(contexts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLOG_CONTEXT", "prod")
    assert aclog("who-can", "rules.jsonl", *READ).ok().out.startswith("User:a: ")


def test_a_word_that_is_no_source_is_refused_with_what_could_be(contexts: Path) -> None:
    assert aclog("who-can", "orders", "--operation", "READ").complaint == (
        "'orders' is no source: there is no such file, directory or context: expected a log directory, a checkpoint, "
        "files of ACLs, HOST:PORT, GITREF:PATH or a context (resources and principals have flags, such as --topic) "
        "(see `aclog who-can --help`)"
    )
    assert aclog("who-can", "prd", *READ).complaint.startswith(
        "'prd' is no source: there is no such file, directory or context: did you mean the context prod?"
    )
    assert aclog("who-can", "", *READ).complaint.startswith("an empty word names no source")
    assert aclog("who-can", "h:99999", *READ).code == 2


def test_two_words_are_two_states(home: Path) -> None:
    words = aclog("diff", "rules.jsonl", "kafka")
    assert words.code == 1
    assert words.out == aclog("diff", "--acls", "rules.jsonl", "--to-acls", "kafka").out
    assert aclog("check", "equal", "log", "log").ok().out.startswith("PROVED")
    assert "unexpected extra argument" in aclog("diff", "log", "kafka", "rules.jsonl").complaint


def test_beside_other_words_the_source_is_the_last(home: Path, contexts: Path) -> None:
    assert aclog("why", "alice", "orders", "log").ok().out.startswith("ALLOWED  User:alice")
    tests = home / "fraud.yaml"
    tests.write_text("tests:\n  - {name: a, principal: User:fraud, can: {READ: topic:orders}}\n")
    by_flag = aclog("test", tests, "--acls", home / "kafka")
    by_word = aclog("test", tests, home / "kafka")
    assert (by_word.code, by_word.out) == (by_flag.code, by_flag.out)
    assert aclog("test", tests, "rules.jsonl").out != by_word.out  # a second file of tests
    assert aclog("test", "none.yaml", "--acls", "kafka").complaint.startswith("none.yaml")


def test_the_shell_takes_a_source_before_its_command(home: Path) -> None:
    by_flag = aclog("shell", "--log", "log", "ls", "/").ok().out
    assert aclog("shell", "log", "ls", "/").ok().out == by_flag
    (home / "ls").mkdir()
    assert aclog("shell", "--log", "log", "ls", "/").ok().out == by_flag
    assert "invalid choice: 'log'" in aclog("shell", "--log", "log", "log").complaint


def test_a_target_is_a_word_as_well(contexts: Path, broker: FakeBroker) -> None:
    rule = ("--allow-principal", "User:new", "--operation", "READ", "--topic", "t")
    assert "Adding ACLs" in aclog("acls", "add", "log", *rule, "--force").ok().out
    assert "already exists" in aclog("acls", "add", "prod", *rule, "--force").ok().out
    copied = aclog("acls", "copy", "log", "--from-principal", "User:new", "--to-principal", "User:b", "--force")
    assert "principal=User:b" in copied.ok().out
    assert aclog("acls", "remove", "log", "--topic", "t", "--force").code == 0
    assert aclog("acls", "list", "log", "--topic", "t").ok().out == ""
    assert "Adding ACLs" in aclog("acls", "add", broker.address, *rule).ok().out
    assert "already exists" in aclog("acls", "add", "--bootstrap-server", broker.address, *rule).ok().out
    assert aclog("acls", "remove", broker.address, "--topic", "t", "--force").code == 0
    assert aclog("acls", "list", broker.address, "--topic", "t").ok().out == ""
    by_word = aclog("status", broker.address)
    by_flag = aclog("status", "--bootstrap-server", broker.address)
    assert (by_word.code, by_word.out, by_word.err) == (by_flag.code, by_flag.out, by_flag.err)
    assert str(broker.address) in by_word.out + by_word.err
    refused = aclog("acls", "add", "rules.jsonl", *rule)
    assert (refused.code, refused.out) == (2, "")
    assert "'rules.jsonl' is a file, which this command does not take: --acls" in refused.complaint
    assert "'log' is a directory with a log, which this command does not take" in aclog("status", "log").complaint
    assert "the source is named twice" in aclog("acls", "add", "log", "--log", "log", *rule).complaint


def test_every_command_with_a_source_takes_it_as_its_last_word() -> None:
    """A command with words of its own that cannot be told from a source is listed here."""
    marked = {"shell", "test"}
    targets = {"acls add", "acls remove", "acls copy", "status"}
    for name, command in COMMANDS.items():
        options = {each for parameter in command.params for each in parameter.opts}
        words = [each.name for each in command.params if isinstance(each, CommandArgument)]
        is_source = {f"--{flag}" for flag in ("log", "snapshot", "acls", "ref", "as-of")} <= options
        if is_source and name not in {*marked, "context add"}:
            assert words[-1:] == (["second_word"] if "--to-log" in options else ["source_word"]), name
        elif name in targets:
            assert words == ["source_word"], name
        else:
            assert not {"source_word", "second_word"} & set(words), name
    assert SourceFlags().source_word is SecondStateFlags().second_word is None


def test_a_word_completes_contexts_and_paths_and_then_names_of_the_source(contexts: Path) -> None:
    offered = candidates(app, ["lint"], "k")
    assert [each.value for each in offered.items] == ["kafka", "kafka/"]
    assert candidates(app, ["lint"], "ru").kind == "files"
    assert candidates(app, ["diff", "log"], "pr").items[0].value == "prod"


def test_an_access_log_beside_a_source_is_named_with_its_flag(home: Path) -> None:
    week = ROOT / "tests/data/week"
    for name in ("kafka-authorizer.log", "accesses.jsonl"):
        shutil.copy(week / name, home / f"a {name}")
        shutil.copy(week / name, home / name)
        hint = f": is {name} an access log? expected --accesses {name}"
        assert hint in aclog("accesses", "denied", name, "--log", "log").complaint
        quoted = aclog("accesses", "denied", f"a {name}", "--log", "log").complaint
        assert f"expected --accesses 'a {name}'" in quoted
        assert "an access log?" not in aclog("acls", "list", name, "--log", "log").complaint
    rule = {"resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:a",
            "host": "10.0.0.1", "operation": "READ", "permissionType": "ALLOW"}  # fmt: skip
    (home / "listed.jsonl").write_text(json.dumps(rule) + "\n")
    for word in ("rules.jsonl", "listed.jsonl", "log", "no-file", "kafka", "-"):
        refused = aclog("accesses", "denied", word, "--log", "log")
        assert (refused.code, "named twice" in refused.complaint) == (2, True)
        assert "an access log?" not in refused.complaint
