"""What each tool may be asked: the arguments as values, whose JSON schemas are the tools' input schemas."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from aclog.metalog.errors import ConfigError

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

    principal: Annotated[_Word, Field(description="Who asks, such as User:alice.")]
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
            description="What to prove. no-new-access: a second state allows nothing new; equal: it decides everything "
            "the same (both take the second state of diff: to_as_of, change, to_kafka_version, or the newest one if "
            "as_of is given). not-granted: nobody, or none of the principals, is allowed this; only: only the "
            "principals are allowed this; no-public: a principal that nothing names is allowed nothing, or nothing of "
            "what is asked."
        ),
    ]


class When(Arguments, _Asking, _Subjects):
    """Of when."""

    except_principals: Annotated[_Words, Field(description="Anybody but these principals.")] = []


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
        _Word | None, Field(description="How long a broker may log nothing before that is a hole: 6h, 1d, 2w.")
    ] = None
    ignore_brokers: Annotated[
        _Words, Field(description="Brokers, by id, that are no more or log nothing: their silence is no hole.")
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
    """Yield the words by which a command takes these arguments, but for those that need more than one look.

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


def read_arguments(kind: type[Arguments], given: dict[str, Any] | None) -> Arguments:
    """Return the arguments that an assistant gave. Raises ConfigError: one is missing, unknown or of another type."""
    try:
        return kind.model_validate(given or {})
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        shown = [f"{'.'.join(map(str, each['loc']))[:80]}: {each['msg']}" for each in problems[:_MOST_PROBLEMS]]
        more = f"; and {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
        raise ConfigError(f"arguments: {'; '.join(shown)}{more}") from None
