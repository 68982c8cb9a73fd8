"""Values of flags: enum names with their completions, and text as UTF-8 whatever the locale."""

import os
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, TypeVar

import typer

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType, parse_name
from aclog.metalog.errors import ConfigError

_Enum = TypeVar("_Enum", bound=IntEnum)

OPERATIONS = tuple(op for op in AclOperation if op not in {AclOperation.UNKNOWN, AclOperation.ANY})
RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind not in {ResourceType.UNKNOWN, ResourceType.ANY})
PATTERN_TYPES = tuple(kind for kind in PatternType if kind is not PatternType.UNKNOWN)


TOPIC_HELP = "A topic; [cyan]'pii-*'[/] is all that begin with pii-."
GROUP_HELP = r"A consumer group; [cyan]'g*'[/] is all that begin with g, [cyan]'g\*'[/] a name with a star."
_PATTERN_HELP = (
    "Take names as they are, as Kafka's commands do: [cyan]literal[/], these names; [cyan]prefixed[/], all that begin "
    "so. [dim]Default: 'x*' is prefixed, other names are literal[/]"
)
"""Of the flags that name the resources of a question."""
_QUESTION_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)


def pattern_type_option(panel: str, *, more: str = "") -> Any:  # what typer's own function returns
    """Return the flag that says whether the names of a question are prefixes; `more`: a sentence for its help."""
    return typer.Option(
        "--resource-pattern-type",
        parser=named(_QUESTION_PATTERNS),
        autocompletion=completions(_QUESTION_PATTERNS),
        metavar="TYPE",
        help=f"{_PATTERN_HELP}{more}",
        rich_help_panel=panel,
    )


def named(values: Sequence[_Enum]) -> Callable[[str], _Enum]:
    """Return a parser of the names of these values; its BadParameter lists the accepted names."""

    def parse(text: str) -> _Enum:
        try:
            return parse_name(values, text)
        except ConfigError as error:
            raise typer.BadParameter(str(error)) from error

    return parse


def completions(values: Sequence[IntEnum]) -> Callable[[str], list[str]]:
    """Return a completer of the names of these values, for shell completion."""
    return lambda incomplete: [value.name for value in values if value.name.startswith(incomplete.upper())]


def typed_text(text: str) -> str:
    """Return a name from the command line as UTF-8 text.

    Python decodes arguments by the locale and turns bytes it cannot decode into surrogates; names in a log are UTF-8.

    Raises:
        ConfigError: the name is not UTF-8.

    """
    try:
        return text if text.isascii() else os.fsencode(text).decode()
    except UnicodeError:
        # Under an ASCII locale fsencode refuses a name that has been decoded already: that one is fine.
        if not any("\ud800" <= character <= "\udfff" for character in text):
            return text
    raise ConfigError(f"{ascii(text)[:100]} is not UTF-8")
