"""Operations and types are ASCII wherever they are written: what is WRITE in capitals only is no WRITE."""

import json

import pytest

import aclog as library
from aclog.analysis.rule_tests.case import parse_resource as in_tests
from aclog.analysis.rule_tests.expectations import parse_rule_text
from aclog.authorizer.acl import parse_name
from aclog.authorizer.audit import operation_name, resource_type_name
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.console.draft import parse_rule_line
from aclog.metalog.errors import ConfigError
from aclog.shell.commands import parse_operation, parse_resource
from tests.support.cli.command import aclog
from tests.support.cli.mcp_client import with_assistant

WRITE, DESCRIBE, TOPIC = "wr\u0131te", "de\u017fcribe", "top\u0131c"
LOG = "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
LETTERS = {"i": "\u0131", "I": "\u0130", "s": "\u017f", "S": "\u017f", "k": "\u212a", "K": "\u212a"}


def lookalikes(name):
    """A name with one of its letters in a form that is ASCII in capitals, or in small letters."""
    for form in (name, name.lower(), name.title()):
        for place, letter in enumerate(form):
            if letter in LETTERS:
                yield f"{form[:place]}{LETTERS[letter]}{form[place + 1 :]}"


@pytest.mark.parametrize("kind", [AclOperation, ResourceType, PatternType, AclPermissionType])
def test_no_lookalike_is_a_name(kind):
    found = [(value, text) for value in kind for text in lookalikes(value.name)]
    assert found
    for value, text in found:
        with pytest.raises(ConfigError) as caught:
            parse_name(kind, text)
        odd = next(each for each in text if not each.isascii())
        assert f"has {odd!r} (U+{ord(odd):04X}): expected ASCII" in str(caught.value)
        if kind is AclOperation:
            assert operation_name(text) is None
        elif kind is ResourceType:
            assert resource_type_name(text) is None
            with pytest.raises(ConfigError):
                in_tests(f"{text}:x")
        assert parse_name(kind, value.name.lower()) is value


@pytest.mark.parametrize("operation", [WRITE, DESCRIBE])
@pytest.mark.parametrize(
    "words",
    [
        ("authorize", "--principal", "User:a", "--topic", "t"), ("explain", "--principal", "User:a", "--topic", "t"),
        ("who-can", "--topic", "t"), ("when", "--topic", "t"), ("check", "not-granted", "--topic", "t"),
    ],
)  # fmt: skip
def test_no_command_takes_one_for_an_operation(words, operation):
    result = aclog(*words, "--log", LOG, "--operation", operation)
    assert result.code == 2
    assert "expected ASCII" in result.complaint


def test_no_flag_of_acls_takes_one(tmp_path):
    (tmp_path / "none").write_text("")
    aclog("import", tmp_path / "none", "--log", tmp_path / "log").ok()
    add = ("acls", "add", "--log", tmp_path / "log", "--allow-principal", "User:a", "--topic", "t")
    for flags in (("--operation", WRITE), ("--operation", "READ", "--resource-pattern-type", "l\u0131teral")):
        result = aclog(*add, *flags)
        assert (result.code, "expected ASCII" in result.complaint) == (2, True)
    assert aclog("acls", "list", "--log", tmp_path / "log", "--format", "jsonl").ok().out == ""


def test_the_library_takes_none():
    image = library.open_log(LOG).image()
    for call in (
        lambda: image.authorizer().check("User:a", WRITE, "t"),
        lambda: image.acls(operation=DESCRIBE),
        lambda: image.acls(resource_type=TOPIC),
        lambda: image.acls(pattern="l\u0131teral"),
    ):
        with pytest.raises(library.ConfigError, match="expected ASCII"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: parse_operation(WRITE),
        lambda: parse_resource(f"{TOPIC}:t"),
        lambda: in_tests("delegation-to\u212aen:x"),
        lambda: parse_rule_text(f"{WRITE} literal x"),
        lambda: parse_rule_text("write l\u0131teral x"),
        lambda: parse_rule_text("\u017for write literal x"),
        lambda: parse_rule_line(f"ALLOW User:a {WRITE} on topic t"),
        lambda: parse_rule_line(f"ALLOW User:a write on {TOPIC} t"),
        lambda: parse_rule_line("ALLOW User:a write on topic l\u0131teral 't'"),
        lambda: parse_rule_line("add\u0131ng: ALLOW User:a write on topic t"),
    ],
)
def test_no_text_of_the_shell_of_a_test_or_of_a_draft_takes_one(call):
    with pytest.raises(ConfigError):
        call()


def test_the_shell_says_what_is_wrong():
    for words, text in (
        (("why", "User:a", WRITE, "topic:t"), WRITE),
        (("why", "User:a", "WRITE", f"{TOPIC}:t"), TOPIC),
    ):
        result = aclog("shell", "--log", LOG, *words)
        assert result.code != 0
        assert text in result.err
        assert ", in ASCII" in result.err


def test_tests_of_rules_take_none(tmp_path):
    for test in (
        {"principal": "User:a", "can": {WRITE: ["topic:t"]}},
        {"principal": "User:a", "can": {"WRITE": [f"{TOPIC}:t"]}},
    ):
        (tmp_path / "tests.yaml").write_text(json.dumps({"tests": [test]}))
        result = aclog("test", tmp_path / "tests.yaml", "--log", LOG)
        assert result.code == 2
        assert "tests.yaml:1: " in result.complaint


@pytest.mark.slow(4)
@pytest.mark.process
def test_no_tool_of_an_assistant_takes_one():
    async def questions(asking):
        for tool, given in (
            ("who_can", {"operation": WRITE, "topics": ["t"]}),
            ("explain", {"principal": "User:a", "operation": DESCRIBE, "topic": "t"}),
            ("check", {"check": "not-granted", "operation": WRITE, "topics": ["t"]}),
            ("when", {"operation": WRITE, "topics": ["t"]}),
        ):
            answer = await asking.tell(tool, **given)
            assert "expected ASCII" in answer.error

    with_assistant(questions, "--log", LOG)
