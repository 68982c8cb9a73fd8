"""The tools of `aclog mcp`: their arguments, and the command lines that answer them."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.files import list_checkpoints, parse_checkpoint_name
from aclog.metalog.values import frozen
from aclog.snapshots.moments import LATEST, Moment, end_offset_at
from aclog.sources.checkpoint import CheckpointSource
from aclog.sources.choice import AclsSource, ChosenSource
from aclog.sources.logs import LogSource

# The arguments of each tool, as values whose JSON schemas are the tools' input schemas.


_LONGEST_TEXT, _LONGEST_LIST, _LONGEST_CHANGE = 40_000, 100, 1 << 20
"""Characters, items, characters. One word of a command line may have 128 KiB; no name has more than 32,767 bytes."""
_MOST_PROBLEMS = 5


def _word(text: str) -> str:
    if "\0" in text:
        raise ValueError("a NUL cannot be part of it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not Unicode: it has half of a surrogate pair") from None
    return text


def _text(description: str, *, longest: int = _LONGEST_TEXT) -> Any:
    return Field(description=description, max_length=longest)


_Word = Annotated[str, AfterValidator(_word), Field(max_length=_LONGEST_TEXT)]
_Words = Annotated[list[_Word], Field(max_length=_LONGEST_LIST)]
_Count = Annotated[int, Field(ge=0, le=1 << 40)]
_AS_OF = "The state at this moment: an end offset, or a time such as 2026-11-20T10:00:00Z, 'yesterday 18:00' or -3d."
_NAMES = "'pii-*' is all whose names begin with pii-, and '*' is all."
_HOST = "Only requests from this IP address."


class Arguments(BaseModel):
    """What every tool takes. A field is an option of the command: see `option_words`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    as_of: Annotated[_Word | None, _text(f"{_AS_OF} By default the newest state.")] = None
    kafka_version: Annotated[
        _Word | None,
        Field(
            description="The Kafka that decides, such as 4.3.1: from 4.4 on, the host of a rule may be a range. By "
            "default what the brokers run; where that is not known and matters, the answer is of each, and generation "
            "marks what only one of them decides."
        ),
    ] = None
    skip: Annotated[_Count, Field(description="Leave out so many rows of the answer: to read on where it was cut.")] = 0


class _Comparing(Arguments):
    """What compares a state with another one."""

    to_kafka_version: Annotated[
        _Word | None, Field(description="The Kafka that decides on the second state: what would its upgrade change?")
    ] = None
    to_as_of: Annotated[
        _Word | None,
        Field(description="The second state, of this moment; by default the newest one if as_of is given."),
    ] = None
    change: Annotated[
        str | None,
        Field(
            max_length=_LONGEST_CHANGE,
            description='Instead of a second moment, a change of the first state, as JSON lines: {"action":"ADD",'
            '"rule":{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a",'
            '"host":"*","operation":"READ","permissionType":"ALLOW"}}, or REMOVE; it is only thought, never made.',
        ),
    ] = None


class _Asking(BaseModel):
    """An operation or an intent, on resources."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    operation: Annotated[
        _Word | None, Field(description="The operation, such as READ, WRITE or ALTER_CONFIGS; or give an intent.")
    ] = None
    intent: Annotated[
        Literal["produce", "consume", "transact", "stream", "admin"] | None,
        Field(description="All that a client needs for this, instead of an operation."),
    ] = None
    topics: Annotated[_Words, Field(description=f"Topics. {_NAMES}")] = []
    groups: Annotated[_Words, Field(description=rf"Consumer groups. {_NAMES} 'g\*' is a name with a star.")] = []
    transactional_ids: Annotated[_Words, Field(description="Transactional ids.")] = []
    delegation_tokens: Annotated[_Words, Field(description="Delegation tokens.")] = []
    users: Annotated[_Words, Field(description="Users as resources, such as User:alice.")] = []
    cluster: Annotated[bool, Field(description="The cluster itself.")] = False
    prefixed: Annotated[
        bool, Field(description="The names are prefixes as they are, without a star: all resources that begin so.")
    ] = False


class _Subjects(BaseModel):
    """Principals and a host."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    principals: Annotated[_Words, Field(description="Only these principals, such as User:alice.")] = []
    host: Annotated[_Word | None, Field(description=_HOST)] = None


class WhoCan(Arguments, _Asking):
    """Of who_can."""

    host: Annotated[_Word | None, Field(description=_HOST)] = None


class WhatCan(Arguments):
    """Of what_can."""

    principal: Annotated[_Word, Field(description="The principal, such as User:alice.")]
    host: Annotated[_Word | None, Field(description=_HOST)] = None


class Explain(Arguments):
    """Of explain: one request."""

    principal: Annotated[_Word, Field(description="The principal of the request, such as User:alice.")]
    operation: Annotated[_Word, Field(description="The operation, such as READ, WRITE or ALTER_CONFIGS.")]
    topic: Annotated[
        _Word | None, Field(description=f"On this topic. Exactly one resource must be given. {_NAMES}")
    ] = None
    group: Annotated[_Word | None, Field(description="On this consumer group.")] = None
    transactional_id: Annotated[_Word | None, Field(description="On this transactional id.")] = None
    delegation_token: Annotated[_Word | None, Field(description="On this delegation token.")] = None
    user: Annotated[_Word | None, Field(description="On this user, such as User:bob.")] = None
    cluster: Annotated[bool, Field(description="On the cluster.")] = False
    host: Annotated[_Word | None, Field(description="The client's IP address; by default 127.0.0.1.")] = None


class Diff(_Comparing):
    """Of diff."""


class Check(_Comparing, _Asking, _Subjects):
    """Of check."""

    check: Annotated[
        Literal["no-new-access", "equal", "not-granted", "only", "no-public"],
        Field(
            description="What to prove. no-new-access: a second state allows nothing new, on the given resources if "
            "there are any; equal: it decides everything the same (both take the second state of diff: to_as_of, "
            "change, to_kafka_version, or the newest one if as_of is given). not-granted: no principal, or none of the "
            "given ones, is allowed this; only: only the principals are allowed this; no-public: a principal that no "
            "rule names is allowed nothing, or none of the requests."
        ),
    ]


class When(Arguments, _Asking, _Subjects):
    """Of when."""

    except_principals: Annotated[_Words, Field(description="Any principal except these.")] = []


class Lint(Arguments):
    """Of lint."""

    select: Annotated[
        _Word | None, Field(description="Only these lints, by number or name, with commas between them: 08,11.")
    ] = None


class Unused(Arguments):
    """Of unused."""

    days: Annotated[int | None, Field(ge=1, le=100_000, description="The length of the window; by default 90.")] = None
    until: Annotated[
        _Word | None, Field(description="The end of the window, as a time; by default that of the latest access.")
    ] = None
    gap: Annotated[
        _Word | None, Field(description="How long a broker may log nothing before that is a gap: 6h, 1d, 2w.")
    ] = None
    ignore_brokers: Annotated[
        _Words, Field(description="Brokers, by id, that are no more or log nothing: their silence is no gap.")
    ] = []


_OPTIONS = {
    "topics": "--topic",
    "groups": "--group",
    "transactional_ids": "--transactional-id",
    "delegation_tokens": "--delegation-token",
    "users": "--user-principal",
    "user": "--user-principal",
    "principals": "--principal",
    "except_principals": "--except-principal",
    "ignore_brokers": "--ignore-broker",
}
"""Of the fields whose options are named otherwise."""
_NOT_OPTIONS = frozenset(("as_of", "skip", "to_as_of", "change", "check", "prefixed"))


def option_words(arguments: Arguments) -> Iterator[str]:
    """Yield the words by which a command takes these arguments, except those that need more than one look.

    Each is an option on its own, or `--option=value`, which no value can make into another option.
    """
    for name in type(arguments).model_fields:
        value = getattr(arguments, name)
        if name in _NOT_OPTIONS or value in (None, False):
            continue
        option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
        if value is True:
            yield option
        else:
            yield from (f"{option}={each}" for each in (value if isinstance(value, list) else [value]))
    if getattr(arguments, "prefixed", False):
        yield "--resource-pattern-type=prefixed"


def read_arguments(kind: type[Arguments], values: dict[str, Any] | None) -> Arguments:
    """Return the arguments that an assistant gave. Raises ConfigError: one is missing, unknown or of another type."""
    try:
        return kind.model_validate(values or {})
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        messages = [f"{'.'.join(map(str, each['loc']))[:80]}: {each['msg']}" for each in problems[:_MOST_PROBLEMS]]
        more = f"; and {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
        raise ConfigError(f"arguments: {'; '.join(messages)}{more}") from None


# A tool: what it is for, what it takes, and which command answers it.


@frozen(kw_only=True)
class Tool:
    """A kind of question."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    none: str
    """What an answer without rows means."""
    narrow: str
    """How to get fewer rows."""
    exit_codes: frozenset[int] = frozenset((0,))
    """Those of the command with which its answer is whole."""


# All tools.


_JUDGED = frozenset((0, 1))
"""1: the states differ, the claim is refuted, something was found."""
_RESOURCES = "topics, groups, transactional_ids, delegation_tokens, users or cluster"

TOOLS = (
    Tool(
        name="who_can",
        title="Who can do this",
        description="All principals that may do an operation, or all of an intent, on resources; their hosts, and the "
        f"rules that allow it. Takes operation or intent, and {_RESOURCES}. The list is complete: a row of principals "
        "'except' includes all others, which no rule names. With 'pii-*' it lists access to any name that begins "
        "so; covers is ALL or SOME of these names.",
        arguments=WhoCan,
        none="no principal can do this (except super users)",
        narrow="name fewer resources, or give a host",
    ),
    Tool(
        name="what_can",
        title="What a principal can do",
        description="All that a principal may do, on every resource and from every host, with the rules that allow it "
        "and those that deny a part. Includes what every principal may do.",
        arguments=WhatCan,
        none="this principal can do nothing",
        narrow="give a host, or use explain for one request, or who_can for one resource",
    ),
    Tool(
        name="explain",
        title="Why a request is allowed or refused",
        description="Why one request is ALLOWED or DENIED: the rule that decides (role DECIDES) with its id and, of a "
        "log, the offset and time at which it was added; every other rule that covers the resource; and the least "
        "change that would reverse the decision. Takes principal, operation and exactly one resource. Kafka decides "
        "WRITE, READ, DESCRIBE and so on each by itself, so explain the operation that was refused. Without a rule "
        "that decides, the answer is DefaultDeny: no rule matches. 'pii-*' is explained if all names that begin so are "
        "decided alike; otherwise it is an error with an example of each.",
        arguments=Explain,
        none="there is no explanation",
        narrow="the command line shows all of it",
        exit_codes=_JUDGED,
    ),
    Tool(
        name="diff",
        title="What another state gives and takes",
        description="Which requests a second state allows and the first one does not (GAINED), and which it no longer "
        "allows (LOST); exact, over all principals, hosts, operations and names. The first state is that of as_of. The "
        "second is that of to_as_of, or the first with a change. What changed since yesterday: as_of=yesterday.",
        arguments=Diff,
        none="every request is decided the same in both states",
        narrow="compare moments that are closer, or use when or who_can for one resource",
        exit_codes=_JUDGED,
    ),
    Tool(
        name="check",
        title="Prove or refute a claim",
        description="Prove a statement about one state or two, for all requests, or refute it with counterexamples. "
        "The "
        "verdict is PROVED or REFUTED; rows are what refutes it. not-granted and only take operation or intent, and "
        f"{_RESOURCES}.",
        arguments=Check,
        none="the claim is proved: nothing refutes it",
        narrow="claim something of fewer resources or principals",
        exit_codes=_JUDGED,
    ),
    Tool(
        name="when",
        title="When this was allowed",
        description="The intervals of a log in which something was allowed, each with the change, offset "
        "and time that began and ended it; without a principal, those of each principal. Who lost access, and by which "
        "change: the end of the last interval. Takes "
        f"operation or intent, and {_RESOURCES}. Needs a log.",
        arguments=When,
        none="it was never allowed, as far back as the log reaches",
        narrow="name fewer resources or principals",
    ),
    Tool(
        name="lint",
        title="Rules that are odd",
        description="ACLs that are ineffective, redundant, or broader than intended; each finding with its rules, "
        "their locations, the access that is lost or opened, and the fix.",
        arguments=Lint,
        none="no finding",
        narrow="select fewer lints",
        exit_codes=_JUDGED,
    ),
    Tool(
        name="unused",
        title="Rules that no access needed",
        description="What accesses needed of each rule in a window of days, by the index of last use or the access "
        "log that the server was started with: which were never matched, matched but never needed, or needed. A rule "
        "whose use is not known for the whole window is reported as not judged.",
        arguments=Unused,
        none="there is no rule",
        narrow="read on with skip",
        exit_codes=_JUDGED,
    ),
)


# The end offset of the state that a tool reads.


OpenSource: TypeAlias = Callable[[str | None], ChosenSource]
"""Returns the source of the server at the moment of an `as_of`; None: at that of its own flags, or the newest."""


@frozen(kw_only=True)
class AskedState:
    """A state of a source: its end offset, and how `--as-of` names it so that it stays the same."""

    source: str
    """The name of the source."""
    end_offset: int | None
    why_none: str | None
    """Why there is no end offset; None if there is one."""
    as_of: str | None
    """None for a source with a single state."""


def asked_state(source: OpenSource, as_of: str | None) -> AskedState:
    """Return the state of a source at a moment, which `as_of` names; by default that of the flags, or the newest.

    A log is opened each time, so that another one in its place is not taken for it.

    Raises:
        ConfigError: the text names no moment. MetadataError, OSError: the source cannot be read, or not so far back.

    """
    choice = source(as_of)
    with closing(choice.source):
        moment = choice.moment
        log = choice.source.log
        if log is not None:
            end = _end_in_log(log, moment)
            return AskedState(source=choice.source.name, end_offset=end, why_none=None, as_of=str(end))
        return _of_single_state(choice, moment)


def _end_in_log(log: LogReader, moment: Moment | None) -> int:
    if isinstance(moment, datetime):
        return end_offset_at(log, moment)
    return max(log.high_watermark(), 0) if moment is None else moment


def _of_single_state(choice: ChosenSource, moment: Moment | None) -> AskedState:
    source, end, why = choice.source, None, None
    if isinstance(source, AclsSource):
        why = "files of rules have no offsets"
    elif isinstance(source, CheckpointSource):
        named = parse_checkpoint_name(source.path.name)
        end = None if named is None else named[0]
    elif not isinstance(source, LogSource):
        why = "a cluster's admin API returns none: --bootstrap-controller does"
    elif isinstance(moment, datetime):
        why = "there is no log to find the time in"
    else:
        end = _newest_checkpoint(source) if moment is None else moment
    return AskedState(source=source.name, end_offset=end, why_none=why, as_of=choice.as_of)


def _newest_checkpoint(source: LogSource) -> int | None:
    checkpoints = list_checkpoints(source.directory)
    return checkpoints[-1].end_offset if checkpoints else None


# The command line that answers a question.


_COMPARISONS = frozenset(("no-new-access", "equal"))


@frozen(kw_only=True)
class Fixed:
    """What the server was started with, as words of a command line: no question changes it."""

    open_source: OpenSource
    source: tuple[str, ...]
    """The source, without its moment."""
    authorizer: tuple[str, ...]
    """What decides."""
    authorizer_of_any_kafka: tuple[str, ...]
    """The same, without the Kafka that decides, for questions that name one."""
    uses: tuple[str, ...]
    """The index of last use, and the access log."""
    has_index: bool
    has_accesses: bool


@frozen(kw_only=True)
class CommandLine:
    """A command line, and the state or the two states that it is about."""

    words: tuple[str, ...]
    """After `aclog`."""
    stdin: str | None
    """What the command reads there."""
    state: AskedState
    to_state: AskedState | None

    @property
    def text(self) -> str:
        """The line, for a shell."""
        return shlex.join(["aclog", *self.words])


def command_line(tool: Tool, arguments: Arguments, fixed: Fixed) -> CommandLine:
    """Return the command line for a question: about offsets, so that its answer never changes.

    Raises:
        ConfigError: the arguments do not go together, or name no moment.
        MetadataError, OSError: the source cannot be read, or not so far back.

    """
    change: str | None = getattr(arguments, "change", None)
    to_as_of = _second_moment(tool, arguments)
    command = _command(tool, arguments, fixed)
    # Each moment becomes an offset here: a time, or no moment, would be another state when the line is run again.
    state = asked_state(fixed.open_source, arguments.as_of)
    to_state = None if to_as_of is None else asked_state(fixed.open_source, to_as_of)
    words = [
        *command,
        *fixed.source,
        *(() if state.as_of is None else (f"--as-of={state.as_of}",)),
        *(() if to_state is None else (f"--to-as-of={to_state.as_of or to_as_of}",)),
        *(() if change is None else ("--change=-",)),
        *option_words(arguments),
        *(() if command[:2] == ["accesses", "unused"] else _authorizer(fixed, arguments)),
        f"--format={'json' if tool.name == 'explain' else 'jsonl'}",
    ]
    return CommandLine(words=tuple(words), stdin=change, state=state, to_state=to_state)


def _authorizer(fixed: Fixed, arguments: Arguments) -> tuple[str, ...]:
    """Return what the server was started with, except for a Kafka that the question names."""
    return fixed.authorizer if arguments.kafka_version is None else fixed.authorizer_of_any_kafka


def _command(tool: Tool, arguments: Arguments, fixed: Fixed) -> list[str]:
    if isinstance(arguments, Check):
        return ["check", arguments.check]
    if isinstance(arguments, Unused):
        return _unused(arguments, fixed)
    return [tool.name.replace("_", "-"), *(["--origins"] if tool.name == "explain" else [])]


def _unused(arguments: Unused, fixed: Fixed) -> list[str]:
    if fixed.has_index:
        if arguments.kafka_version is not None:
            raise ConfigError("kafka_version: the index was made with what decided: expected no such argument")
        return ["accesses", "unused", *fixed.uses]
    if not fixed.has_accesses:
        raise ConfigError("no access log and no index: start aclog mcp with --index DIR or --accesses PATH")
    if arguments.gap is not None or arguments.ignore_brokers:
        raise ConfigError(
            "gap, ignore_brokers: only an index has the times when brokers logged: start aclog mcp with --index DIR"
        )
    return ["accesses", "usage", *fixed.uses]


def _second_moment(tool: Tool, arguments: Arguments) -> str | None:
    """Return the moment of the second state; None if the question has none. Raises ConfigError: it needs one."""
    to_as_of: str | None = getattr(arguments, "to_as_of", None)
    change: str | None = getattr(arguments, "change", None)
    if to_as_of is not None and change is not None:
        raise ConfigError("to_as_of and change: expected one of them")
    if to_as_of is not None or change is not None:
        return to_as_of
    if tool.name == "diff" or (isinstance(arguments, Check) and arguments.check in _COMPARISONS):
        if getattr(arguments, "to_kafka_version", None) is not None and arguments.as_of is None:
            return None  # of the same state
        if arguments.as_of is None:
            raise ConfigError(
                "expected to_as_of, change or to_kafka_version, or as_of to compare with the newest state"
            )
        return LATEST
    return None
