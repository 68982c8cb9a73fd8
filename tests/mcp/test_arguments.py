"""Flags that were given are the same flags on another command line, whatever their values are."""

import shlex
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.cli.flags.common import AuthorizerFlags, Semantics
from aclog.cli.flags.source import SourceFlags
from aclog.cli.mcp import McpFlags, flag_words
from aclog.cli.options import Group
from aclog.mcp.tools import AskedState, Check, CommandLine, Explain, WhoCan, option_words, read_arguments
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat

TEXTS = st.one_of(
    st.sampled_from(["-", "--", "--log", "--log=x", "a b", "'", '"', "$(id)", "a\nb", "\u202e", "é", "=", "-x=--y"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=9),
)
PATHS = TEXTS.map(Path)
SOURCE = {
    "log": st.none() | PATHS, "snapshot": st.none() | PATHS, "acls": st.none() | TEXTS, "ref": st.none() | TEXTS,
    "acls_format": st.none() | st.sampled_from(AclsFormat), "modules": st.lists(TEXTS, max_size=3),
    "exclude": st.lists(TEXTS, max_size=3), "accept_unread": st.lists(TEXTS, max_size=3),
    "var_files": st.lists(TEXTS, max_size=3), "variables": st.lists(TEXTS, max_size=3), "workspace": st.none() | TEXTS,
    "topics_file": st.none() | TEXTS, "bootstrap_controller": st.none() | TEXTS, "bootstrap_server": st.none() | TEXTS,
    "command_config": st.none() | PATHS, "as_of": st.none() | TEXTS, "timezone": st.none() | TEXTS,
}  # fmt: skip
AUTHORIZER = {
    "super_users": st.just("") | TEXTS, "allow_everyone": st.booleans(), "no_allow_everyone": st.booleans(),
    "semantics": st.sampled_from(Semantics), "kafka_version": st.none() | st.just("4.4.0"),
    "cidr": st.sampled_from([None, True]),
}  # fmt: skip
MCP = {
    "index": st.none() | TEXTS, "accesses": st.lists(TEXTS, max_size=3), "accesses_format": st.none() | TEXTS,
    "accesses_timezone": TEXTS, "time_limit": st.sampled_from([1.0, 60.0]),
}  # fmt: skip
SOURCES, FLAGS = st.builds(SourceFlags, **SOURCE), st.builds(McpFlags, **MCP)
AUTHORIZERS = st.fixed_dictionaries(AUTHORIZER).filter(
    lambda given: not (given["allow_everyone"] and given["no_allow_everyone"])
).map(lambda given: AuthorizerFlags(**given))  # fmt: skip


@pytest.mark.parametrize(("group", "tried"), [(SourceFlags, SOURCE), (AuthorizerFlags, AUTHORIZER), (McpFlags, MCP)])
def test_every_flag_is_tried(group, tried):
    """A new flag must be in one of the strategies: else it could be lost between two command lines."""
    assert {field.name for field in attrs.fields(group)} - {"source_word"} == tried.keys()


@given(SOURCES, AUTHORIZERS, FLAGS)
def test_words_give_the_same_flags_again(source, authorizer, flags):
    found = []
    app = Group()

    @app.command()
    def command(source: SourceFlags, authorizer: AuthorizerFlags, flags: McpFlags) -> None:
        found.append((source, authorizer, flags))

    words = [*flag_words(source), *flag_words(authorizer), *flag_words(flags)]
    app.commands["command"].main(list(words), standalone_mode=False)
    assert found == [(source, authorizer, flags)]
    state = AskedState(source="", end_offset=None, why_none=None, as_of=None)
    line = CommandLine(words=tuple(words), stdin=None, state=state, to_state=None)
    assert shlex.split(line.text) == ["aclog", *words]


@given(st.lists(TEXTS, max_size=3), TEXTS)
def test_no_argument_is_taken_for_another_option(names, principal):
    explain = Explain(principal=principal, operation="READ", topic=principal)
    assert list(option_words(explain)) == [f"--principal={principal}", "--operation=READ", f"--topic={principal}"]
    asked = WhoCan(operation=principal, topics=names, users=names, prefixed=True, cluster=True)
    assert sorted(option_words(asked)) == sorted((
        f"--operation={principal}", *(f"--topic={name}" for name in names),
        *(f"--user-principal={name}" for name in names), "--cluster", "--resource-pattern-type=prefixed",
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "check: Field required"),
        ({"check": "all"}, "check: Input should be 'no-new-access', 'equal'"),
        ({"check": "only", "topics": "t"}, "topics: Input should be a valid list"),
        ({"check": "only", "topics": ["t"] * 101}, "topics: List should have at most 100 items"),
        ({"check": "only", "topics": ["a\0"]}, "topics.0: Value error, a NUL cannot be part of it"),
        ({"check": "only", "topics": ["\ud800"]}, "topics.0: "),
        ({"check": "only", "cluster": "yes"}, "cluster: Input should be a valid boolean"),
        ({"check": "only", "skip": "1"}, "skip: Input should be a valid integer"),
        ({"check": "only", "change": "x" * (1 << 21)}, "change: String should have at most"),
        ({"check": "only", **{f"x{number}": 1 for number in range(50)}}, "; and 45 more"),
    ],
)
def test_bad_arguments_are_told_in_one_line(given, said):
    with pytest.raises(ConfigError) as refused:
        read_arguments(Check, given)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 600


def test_a_prefix_is_named_as_on_the_command_line():
    asked = read_arguments(WhoCan, {"operation": "READ", "topics": ["pii-*"], "groups": [r"g\*"]})
    assert list(option_words(asked)) == ["--operation=READ", "--topic=pii-*", r"--group=g\*"]
    assert "pii-*" in str(WhoCan.model_json_schema()["properties"]["topics"])
    assert "pii-*" in str(Explain.model_json_schema()["properties"]["topic"])
