"""Completion of the search: names, rules, pages and questions, while they are typed."""

from collections.abc import Iterator

from aclog.authorizer.acl import acl_text, code_name
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, PatternType, ResourceType
from aclog.console.listing import Entry, pattern_text
from aclog.console.pages.page import Parameters, resource_url, url
from aclog.console.pages.questions import LONGEST, is_rule, questions
from aclog.console.pages.states import Console, State
from aclog.console.pages.views import AT_A_MOMENT, MENU, OWN_VIEWS
from aclog.metalog.errors import printable

COMPLETE_PATH = "/complete"
_MOST = 12
_FEW_USERS = 1_000
"""SCRAM users that are compared with a text in a millisecond."""
_BEGINNINGS = ("why can ", "what can ")


def are_quick(console: Console, text: str) -> bool:
    """Return whether the completions of a text take a few milliseconds at most. Raises NotReadyError: as the pages."""
    state = console.states.now()
    listing = state.late.made
    if listing is None or not listing.has_short_names_index():
        return False
    return text.isprintable() and len(text) <= LONGEST and len(state.image.scram) <= _FEW_USERS


def completions(console: Console, parameters: Parameters) -> list[dict[str, str]]:
    """Return what a text may mean, the likeliest first: `text` to show, its `kind`, and its `url`.

    Names are those of the rules, and the users, that the viewer sees.

    Raises:
        BadParameterError, NotReadyError: as the pages.

    """
    text, as_of = parameters.text("q").lstrip(), parameters.word("as_of")
    state = console.states.at(as_of)
    is_empty = not text.strip()
    matches: dict[str, dict[str, str]] = {}
    for label, kind, address in _examples(console, state, as_of) if is_empty else _all(console, state, text, as_of):
        matches.setdefault(address, {"text": printable(label), "kind": kind, "url": address})
        if len(matches) == _MOST:
            break
    return list(matches.values())


def _examples(console: Console, state: State, as_of: str) -> Iterator[tuple[str, str, str]]:
    """Yield a question of each kind about the first rule, for viewers who do not know what can be typed."""
    rule = next((each.acl for each in state.listing if each.acl.principal != WILDCARD_PRINCIPAL), None)
    texts: tuple[str, ...] = ()
    if rule is not None:
        kind = code_name(ResourceType, rule.resource_type).lower().replace("_", "-")
        is_cluster = rule.resource_type == ResourceType.CLUSTER
        name = kind if is_cluster else f"{kind} {pattern_text(rule.resource_name, rule.pattern_type)}"
        verb = AclOperation.DESCRIBE if rule.operation == AclOperation.ALL else rule.operation
        texts = (
            f"who can access {name}",
            f"since when can {rule.principal} {code_name(AclOperation, verb).lower()} {name}",
            f"is {acl_text(rule)} used",
        )
    for text in (*texts, "what changed last night", "what would my change do", "unused rules"):
        for each in questions(console, state, text, as_of)[:1]:
            yield text, "example", each.address


def _all(console: Console, state: State, text: str, as_of: str) -> Iterator[tuple[str, str, str]]:
    yield from ((each.words, each.kind, each.address) for each in questions(console, state, text, as_of))
    if is_rule(text):  # no name has it
        return
    needle = text[:LONGEST].strip()
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
