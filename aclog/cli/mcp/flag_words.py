"""Flags that were given, as the words of another command line."""

import shlex
from collections.abc import Iterable, Iterator
from typing import Any, get_type_hints

import attrs


def flag_words(group: attrs.AttrsInstance, *, without: Iterable[str] = ()) -> list[str]:
    """Return the words that give a command the same values of a group of flags; those with their defaults are left out.

    `group` is an attrs class whose fields are annotated as typer expects (aclog.cli.flags.groups). Each word is a
    `--flag=value`, which no value can make into another flag. `without`: names of fields.
    """
    left_out = frozenset(without)
    hints = get_type_hints(type(group), include_extras=True)
    return [
        word
        for each in attrs.fields(type(group))
        if each.name not in left_out
        for word in _words(_flag(hints[each.name]), getattr(group, each.name), _default(each.default))
    ]


def line_text(words: Iterable[str]) -> str:
    """Return a command line for a POSIX shell."""
    return shlex.join(["aclog", *words])


def _words(flag: str, value: Any, default: Any) -> Iterator[str]:
    if value == default:
        return
    if isinstance(value, bool):
        yield flag if value else f"--no-{flag.removeprefix('--')}"
    else:
        yield from (f"{flag}={each}" for each in (value if isinstance(value, list) else [value]))


def _flag(hint: Any) -> str:
    """Return the first flag of an option: of `--cidr/--no-cidr` the one that switches it on."""
    [option] = hint.__metadata__
    declared: str = option.default  # typer takes the first of an annotation for the default, until it makes the option
    return declared.partition("/")[0]


def _default(default: Any) -> Any:
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
