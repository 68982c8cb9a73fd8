"""Completion of the search: names, rules, pages and questions, while they are typed."""

import re
from collections.abc import Iterable, Iterator, Sequence

from aclog.authorizer.acl import ResourcePattern, code_name
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.console.pages.page import OPERATIONS, TYPES, Parameters, name_parameters, resource_url, url
from aclog.console.pages.states import Console, Entry, State, pattern_text
from aclog.console.pages.views import AT_A_MOMENT, MENU, OWN_VIEWS
from aclog.metalog.errors import printable

COMPLETE_PATH = "/complete"
_MOST = 12
_LONGEST = 300
"""Characters of a text that is completed."""
_OPERATIONS = {each.name: each for each in OPERATIONS}
_TYPES = {each.name: each for each in TYPES}
_WHO = re.compile(r"who can (\w+) (?:(\w+) )?(.*)", re.IGNORECASE | re.DOTALL)
_WHY = re.compile(r"(?:why )?(?:can|may|is|cannot) (\S+) (\w+) (?:(\w+) )?(.*)", re.IGNORECASE | re.DOTALL)
_WHEN = re.compile(r"when (?:can |could |was )?(\S+) (\w+) (?:(\w+) )?(.*)", re.IGNORECASE | re.DOTALL)
_WHAT = re.compile(r"what can (.*)", re.IGNORECASE | re.DOTALL)
_CHANGES = re.compile(r"(?:what changed|changes)(?: since)? (.*)", re.IGNORECASE | re.DOTALL)
_BEGINNINGS = ("why can ", "what can ")


def completions(console: Console, parameters: Parameters) -> list[dict[str, str]]:
    """Return what a text may mean, the likeliest first: `text` to show, its `kind`, and its `url`.

    Names are those of the rules, and the users, that the viewer sees.

    Raises:
        BadParameterError, NotReadyError: as the pages.

    """
    text, as_of = parameters.text("q").lstrip()[:_LONGEST], parameters.word("as_of")
    state = console.states.at(as_of)
    if not text.strip():
        return []
    matches: dict[str, dict[str, str]] = {}
    for label, kind, address in _all(console, state, text, as_of):
        matches.setdefault(address, {"text": printable(label), "kind": kind, "url": address})
        if len(matches) == _MOST:
            break
    return list(matches.values())


def _all(console: Console, state: State, text: str, as_of: str) -> Iterator[tuple[str, str, str]]:
    yield from _questions(console, state, text, as_of)
    needle = text.strip()
    entries = state.listing.names_index.find(needle, _MOST)
    yield from (_entry(each, as_of) for each in entries[: _MOST - 4])
    yield from _users(state, needle, as_of)
    lower = needle.lower()
    for path, name in MENU:
        is_seen = console.own is None or path in OWN_VIEWS
        if is_seen and lower in name.lower():
            yield name, "page", url(path, as_of=as_of if path in AT_A_MOMENT else None)
    example = next(iter(state.listing.principals), "User:alice")
    for begin in _BEGINNINGS:
        if begin.startswith(lower):
            yield f"{begin}{example}", "question", url("/principal", name=example, as_of=as_of)
    yield f"rules with “{needle}”", "rules", url("/rules", q=needle, as_of=as_of)


def _entry(entry: Entry, as_of: str) -> tuple[str, str, str]:
    """Return a principal, or a name."""
    if isinstance(entry, str):
        return entry, "principal", url("/principal", name=entry, as_of=as_of)
    kind, name, pattern = entry
    words = "prefix" if pattern == PatternType.PREFIXED else ""
    label = code_name(ResourceType, kind).lower().replace("_", " ")
    return pattern_text(name, pattern), f"{label} {words}".strip(), resource_url(kind, name, pattern, as_of)


def _users(state: State, needle: str, as_of: str) -> Iterator[tuple[str, str, str]]:
    """Yield SCRAM users that no rule names."""
    lower = needle.lower().removeprefix("user:")
    for each in state.image.scram.describe():
        principal = f"User:{each.user}"
        if lower in each.user.lower() and principal not in state.listing.principals:
            yield principal, "user", url("/principal", name=principal, as_of=as_of)


# Questions in words: `who can read orders`, `why can alice write orders`, `changes since yesterday`.


def _questions(console: Console, state: State, text: str, as_of: str) -> Iterator[tuple[str, str, str]]:
    sees_all = console.own is None
    if (match := _WHO.fullmatch(text)) and (operation := _operation(match[1])):
        for kind, name, pattern in _names(state, _type(match[2]), _rest(match[2], match[3])):
            label = f"who can {operation.name} {code_name(ResourceType, kind)} {pattern_text(name, pattern)}"
            address = resource_url(kind, name, pattern, as_of)
            yield label, "question", f"{address}&operation={operation.name}"
    elif match := _WHAT.fullmatch(text):
        for principal in _principals(console, state, match[1]):
            yield f"what can {principal} do", "question", url("/principal", name=principal, as_of=as_of)
    elif sees_all and (match := _CHANGES.fullmatch(text)):
        yield f"changes since {match[1]}", "question", url("/changes", since=match[1].strip())
    elif (match := _WHEN.fullmatch(text)) and sees_all:
        yield from _requests(console, state, "when could", "/when", match, as_of="")
    elif match := _WHY.fullmatch(text):
        yield from _requests(console, state, "why can", "/why", match, as_of=as_of)


def _requests(
    console: Console, state: State, words: str, path: str, match: re.Match[str], as_of: str
) -> Iterator[tuple[str, str, str]]:
    operation = _operation(match[2])
    if operation is None:
        return
    principals = list(_principals(console, state, match[1]))[:2]
    for kind, name, pattern in _names(state, _type(match[3]), _rest(match[3], match[4])):
        if pattern == PatternType.PREFIXED:  # its names may be decided differently
            continue
        for principal in principals:
            label = (
                f"{words} {principal} {operation.name} {code_name(ResourceType, kind)} {pattern_text(name, pattern)}"
            )
            where = _name_fields(kind, name, pattern)
            address = url(path, principal=principal, operation=operation.name, **where, as_of=as_of)
            yield label, "question", address


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
    entries: Iterable[Entry] = state.listing.names_index.find(needle.removesuffix("*"), 4 * _MOST) if needle else ()
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
    matches = state.listing.names_index.find(needle, 4 * _MOST) if needle else list(state.listing.principals)[:_MOST]
    yield from (each for each in matches if isinstance(each, str) and each != exact)
