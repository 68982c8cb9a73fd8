"""What may stand in the place of a word on a command line of aclog."""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

from attrs import frozen
from typer._click.shell_completion import CompletionItem, _resolve_context, _resolve_incomplete
from typer.core import TyperArgument, TyperOption

from aclog.cli.completion.names import kind_of, names_like
from aclog.cli.flags.context import complete_contexts
from aclog.metalog.printable import printable

_MOST = 1000
_MARKUP = re.compile(r"(?<!\\)\[/?[a-z ]*\]")
_FILES = re.compile(r"^(FILE|PATH|CONFIG|PROPERTIES)\b")


class Kind(StrEnum):
    """What a shell does with the candidates."""

    WORDS = "words"
    JOINED = "joined"
    """No space after them: more is to be typed."""
    FILES = "files"
    """None from here: the shell completes files."""
    DIRECTORIES = "directories"


@frozen(kw_only=True)
class Candidate:
    """A word, and what it means."""

    value: str
    help: str = ""


@frozen(kw_only=True)
class Candidates:
    """All of them."""

    kind: Kind = Kind.WORDS
    found: Sequence[Candidate] = ()


def candidates(command: Any, words: Sequence[str], word: str) -> Candidates:
    """Return what `word` may become, after the words before it; `command` is `aclog`, which is not among them."""
    before = list(words)
    context = _resolve_context(command, {}, "aclog", list(words))
    place, typed = _resolve_incomplete(context, before, word)
    if words and words[-1] in {"-c", "--context"}:  # after a command too, whose own option it is not
        return Candidates(found=_shown([Candidate(value=name) for name in complete_contexts(word)]))
    if isinstance(place, TyperOption | TyperArgument):
        return _values(context, place, typed, joined=word[: len(word) - len(typed)])
    items = [_described(item, context) for item in place.shell_complete(context, typed)]
    return Candidates(found=_shown(items))


def _values(context: Any, place: TyperOption | TyperArgument, typed: str, *, joined: str) -> Candidates:
    """Return the values of an option or argument; `joined` is `--flag=` if it stands in the same word."""
    items = [Candidate(value=item.value, help=item.help or "") for item in place.shell_complete(context, typed)]
    if kind_of(place) is not None:
        items += [Candidate(value=name) for name in names_like(context, place, typed, most=_MOST)]
    elif not items:
        return Candidates(kind=_path_kind(place))
    found = _shown([Candidate(value=joined + item.value, help=item.help) for item in items])
    ends = {item.value[-1:] for item in found}
    return Candidates(kind=Kind.JOINED if ends and ends <= {"/", ":", ","} else Kind.WORDS, found=found)


def _path_kind(place: TyperOption | TyperArgument) -> Kind:
    metavar = place.metavar or ""
    if re.match(r"^(\w+=)?DIR\b", metavar):
        return Kind.DIRECTORIES
    annotation = getattr(getattr(place, "type_descriptor", None), "annotation", None)
    is_path = Path in (annotation, *get_args(annotation))
    return Kind.FILES if is_path or _FILES.match(metavar) else Kind.WORDS


def _described(item: CompletionItem, context: Any) -> Candidate:
    """Return a flag or a command with the first sentence of its help."""
    command = getattr(context.command, "commands", {}).get(item.value)
    text = (getattr(command, "help", None) or item.help or "").split("\n\n")[0]
    plain = _MARKUP.sub("", text).replace("\\[", "[")
    return Candidate(value=item.value, help=" ".join(plain.split()).split(". ")[0].rstrip(".:"))


def _shown(items: Sequence[Candidate]) -> Sequence[Candidate]:
    """Leave out what would steer a terminal, or could not stand on one line."""
    return [item for item in items if item.value and printable(item.value) == item.value][:_MOST]
