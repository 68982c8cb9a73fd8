"""Questions in words: `who can read orders`, `why can alice write orders`, `changes since yesterday`."""

import re
from collections.abc import Iterable, Iterator, Sequence

from aclog.authorizer.acl import ResourcePattern, code_name
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.console.pages.page import OPERATIONS, TYPES, name_parameters, resource_url, url
from aclog.console.pages.states import Console, Entry, State, pattern_text

LONGEST = 300
"""Characters of a text that may be a question."""
_MOST = 48
"""Names that are looked at for a question."""
_OPERATIONS = {each.name: each for each in OPERATIONS}
_TYPES = {each.name: each for each in TYPES}
_WHO = re.compile(r"who can (\w+) (?:(\w+) )?(.*)", re.IGNORECASE | re.DOTALL)
_WHY = re.compile(r"(?:why )?(?:can|may|is|cannot) (\S+) (\w+) (?:(\w+) )?(.*)", re.IGNORECASE | re.DOTALL)
_WHEN = re.compile(r"when (?:can |could |was )?(\S+) (\w+) (?:(\w+) )?(.*)", re.IGNORECASE | re.DOTALL)
_WHAT = re.compile(r"what can (.*)", re.IGNORECASE | re.DOTALL)
_CHANGES = re.compile(r"(?:what changed|changes)(?: since)? (.*)", re.IGNORECASE | re.DOTALL)


def questions(console: Console, state: State, text: str, as_of: str) -> Iterator[tuple[str, str]]:
    """Yield the questions that a text may be, with names that the viewer sees: each in full, and its address."""
    sees_all = console.own is None
    if (match := _WHO.fullmatch(text)) and (operation := _operation(match[1])):
        for kind, name, pattern in _names(state, _type(match[2]), _rest(match[2], match[3])):
            label = f"who can {operation.name} {code_name(ResourceType, kind)} {pattern_text(name, pattern)}"
            address = resource_url(kind, name, pattern, as_of)
            yield label, f"{address}&operation={operation.name}"
    elif match := _WHAT.fullmatch(text):
        for principal in _principals(console, state, match[1]):
            yield f"what can {principal} do", url("/principal", name=principal, as_of=as_of)
    elif sees_all and (match := _CHANGES.fullmatch(text)):
        yield f"changes since {match[1]}", url("/changes", since=match[1].strip())
    elif (match := _WHEN.fullmatch(text)) and sees_all:
        yield from _requests(console, state, "when could", "/when", match, as_of="")
    elif match := _WHY.fullmatch(text):
        yield from _requests(console, state, "why can", "/why", match, as_of=as_of)


def _requests(
    console: Console, state: State, words: str, path: str, match: re.Match[str], as_of: str
) -> Iterator[tuple[str, str]]:
    operation = _operation(match[2])
    if operation is None:
        return
    principals = list(_principals(console, state, match[1]))[:2]
    for kind, name, pattern in _names(state, _type(match[3]), _rest(match[3], match[4])):
        if pattern == PatternType.PREFIXED:  # its names may be decided differently
            continue
        for principal in principals:
            where = f"{code_name(ResourceType, kind)} {pattern_text(name, pattern)}"
            fields = _name_fields(kind, name, pattern)
            address = url(path, principal=principal, operation=operation.name, **fields, as_of=as_of)
            yield f"{words} {principal} {operation.name} {where}", address


def _name_fields(kind: int, name: str, pattern: int) -> dict[str, object]:
    return name_parameters(ResourcePattern(resource_type=kind, name=name, pattern_type=pattern))


def _operation(word: str) -> AclOperation | None:
    return _OPERATIONS.get(word.upper())


def _type(word: str | None) -> ResourceType | None:
    return _TYPES.get((word or "").upper())


def _rest(word: str | None, text: str) -> str:
    """Return the name in a question: a word before it that is no type belongs to it."""
    return text if word is None or word.upper() in _TYPES else f"{word} {text}"


def _names(state: State, kind: ResourceType | None, text: str) -> Sequence[tuple[int, str, int]]:
    """Return names with a text in them; without one in rules, the text as a name of a topic."""
    needle = text.strip()
    entries: Iterable[Entry] = state.listing.names_index.find(needle.removesuffix("*"), _MOST) if needle else ()
    names = [each for each in entries if not isinstance(each, str) and kind in (None, each[0])]
    if needle and not any(each[1] == needle for each in names) and "*" not in needle:
        names.append((kind or ResourceType.TOPIC, needle, PatternType.LITERAL))
    return names[:6]


def _principals(console: Console, state: State, text: str) -> Iterator[str]:
    needle = text.strip()
    if console.own is not None:
        if needle.lower() in console.own.principal.lower():
            yield console.own.principal
        return
    exact = needle if ":" in needle else f"User:{needle}"
    if exact in state.listing.principals:
        yield exact
    matches = state.listing.names_index.find(needle, _MOST) if needle else list(state.listing.principals)[:_MOST]
    yield from (each for each in matches if isinstance(each, str) and each != exact)
