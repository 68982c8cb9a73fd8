"""Questions in words, such as `who can read orders` and `changes since yesterday`; and the text of a rule."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from attrs import evolve

from aclog.authorizer.acl import ResourcePattern, StandardAcl, acl_text, code_name, host_address
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    PatternType,
    ResourceType,
    is_legal_topic,
)
from aclog.authorizer.settings import parse_name
from aclog.console.listing import NameKey, pattern_text
from aclog.console.pages.page import OPERATIONS, TYPES, draft_url, name_parameters, resource_url, rule_url, url
from aclog.console.pages.rule import RULES_PATH, is_in
from aclog.console.pages.span import CHANGES, day_url
from aclog.console.pages.states import Console, State
from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import frozen
from aclog.snapshots.moments import milliseconds, read_moment
from aclog.sources.rule_line import parse_rule_line

LONGEST = 300
"""Characters of a text that may be a question."""
_MOST = 48
"""Names that are looked at for a question."""
_MOST_SHOWN, _PRINCIPALS = 6, 2
"""Names, and principals of each, that a question is offered for."""
_OPERATIONS = {each.name: each for each in OPERATIONS}
_TYPES = {each.name: each for each in TYPES} | {f"{each.name}S": each for each in TYPES}
_FLAGS = re.IGNORECASE | re.DOTALL
_WHO = re.compile(r"who (?:can|could|may) ([\w-]+)\s+(.*)", _FLAGS)
_ACCESS = re.compile(r"who (?:(?:can|could|may) (?:access|use)|(?:has|have|had) access to)\s+(.*)", _FLAGS)
_WHY = re.compile(r"(?:why )?(?:can|may|is|cannot|can't) (\S+) ([\w-]+)\s+(.*)", _FLAGS)
_WHEN = re.compile(r"(?:since )?when (?:(?:can|could|was|is|may|did) )?(\S+) ([\w-]+)\s+(.*)", _FLAGS)
_WHAT = re.compile(r"what (?:can|could|may) (.*?)(?: do)?", _FLAGS)
_CHANGES = re.compile(r"(?:what (?:has )?changed|changes)(?:\s+(since|on))?\s+(.*)", _FLAGS)
_MOMENT = re.compile(r"what\b.*?\b(last night|last evening|yesterday|today)\b.*", _FLAGS)
_LAST_CHANGE = re.compile(
    r"what\b.*?\b(?:last|latest|newest) (?:apply|change|deploy\w*|plan|release|rollout)\b.*", _FLAGS
)
"""What a deploy did, in any words: the changes since then show it."""
_USE = re.compile(
    r"(?:is|are|was|were|when (?:was|were)) (?:(?:the|this|a|any) )?(?:rules? ?)?(.*?) ?\b"
    r"(?:still |ever |last )?(?:used|unused|needed|in use)",
    _FLAGS,
)
_UNUSED = re.compile(r"(?:(?:what|which) )?(?:(?:rules|acls) are )?(?:un|not )used(?: rules| acls)?", _FLAGS)
_WHAT_IF = re.compile(
    r"what if|what (?:would|will|does|could) (?:my|a|the|this|our) (?:new )?(?:change|draft|rule|pull request|pr)\b.*",
    _FLAGS,
)
_QUESTION = re.compile(
    r"(?:who|why|what|which|when|since when|is|are|was|were|can|could|may|does|did|has|how|changes since)\s.*|.*\?",
    _FLAGS,
)
_LAST_NIGHT = {"last night": "yesterday 18:00", "last evening": "yesterday 18:00"}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DAY = re.compile(rf"{_DATE.pattern}|today|yesterday|last \w+day", _FLAGS | re.ASCII)
_RULE = re.compile(
    r"(what if (?:(?:i|we) )?)?"
    r"(([+\-\u2212]\s*|(?:add|adding|remove|removing|delete):?\s+)?(?:allow|deny)\s.*\son\s.*)",
    _FLAGS,
)
"""What begins as a rule: after `what if` or a mark, a change."""
_HOST = re.compile(r"(.*\S)\s+from\s+(\S+)", _FLAGS)
_PREPOSITION = re.compile(r"(?:to|into|on|in|from)\s+", _FLAGS)
_TYPED = re.compile(r"(?:(?:all|any|the|consumer) )?(?:([\w-]+)(?:\s+|$))?(.*)", _FLAGS)
_BEGINNING = re.compile(
    r"(?:(?:with|whose|that|which|a|the|names?) )*"
    r"(?:(?:beginning|begins?|starting|starts?|prefixed) (?:with|by)|with (?:the |a )?prefix) (.*)",
    _FLAGS,
)
FORMS = (
    "who can read orders",
    "who can delete topics beginning with payments.",
    "why can alice write orders from 10.0.0.9",
    "since when can alice read orders",
    "what can alice do",
    "is ALLOW User:alice READ on TOPIC orders used",
    "what did last night's deploy open",
    "changes since yesterday 18:00",
    "what if ALLOW User:alice READ on TOPIC orders",
)
"""Questions that are understood, as examples."""


@frozen(kw_only=True)
class Question:
    """A question in full, and the address of its answer."""

    words: str
    address: str
    kind: str = "question"
    is_complete: bool = False
    """Whether the text states every part: each name is one in rules, or stated as TYPE:NAME or a prefix."""


def questions(console: Console, state: State, text: str, as_of: str) -> list[Question]:
    """Return the questions that a text may be, those that it states in full first, with names that the viewer sees."""
    try:
        rule = AskedRule.of(text)
    except ConfigError:  # the page of the search shows why
        return []
    if rule is not None:
        return list(_about_rule(console, state, rule, as_of))
    text = text.strip()[:LONGEST].rstrip("?").rstrip()
    if match := _CHANGES.fullmatch(text):
        is_since = (match[1] or "").lower() == "since"
        return [] if console.own is not None else list(_changes(state, match[2], as_of, is_since=is_since))
    if console.own is None and _DATE.fullmatch(text):  # or a part of a name
        return [evolve(each, is_complete=False) for each in _changes(state, text, as_of)]
    if others := list(_about_changes_and_use(console, state, text, as_of)):
        return others
    text, host = _host(text)
    return sorted(_parsed_questions(console, state, text, host, as_of), key=lambda each: not each.is_complete)


def _about_changes_and_use(console: Console, state: State, text: str, as_of: str) -> Iterator[Question]:
    """Yield questions in other words: about the use of rules, the changes of a deploy, or a draft."""
    if _UNUSED.fullmatch(text):
        if console.own is None:
            yield Question(words="unused rules", address=url("/findings", kind="unused"), is_complete=True)
    elif match := _USE.fullmatch(text):
        yield from _use_of(state, match[1].strip(), as_of)
    elif console.own is not None:
        return
    elif match := _MOMENT.fullmatch(text):
        yield from _changes(state, match[1], as_of)
    elif _LAST_CHANGE.fullmatch(text):
        yield Question(words="the last change", address=url(CHANGES, as_of=as_of), is_complete=True)
    elif _WHAT_IF.fullmatch(text):
        yield Question(words="what would a change grant or revoke: a draft", address=url("/draft"), is_complete=True)


def _use_of(state: State, text: str, as_of: str) -> Iterator[Question]:
    """Yield the use of a rule, or of the rules with some words."""
    try:
        rule = AskedRule.of(text)
    except ConfigError:  # unfinished
        rule = None
    if rule is not None and rule.is_in(state):
        words = f"use of {rule}"
        yield Question(words=words, address=rule_url(rule.acl, as_of), kind="rule", is_complete=True)
    elif rule is None:
        words = f"use of rules with “{text}”" if text else "use of all rules"
        yield Question(words=words, address=url(RULES_PATH, q=text, as_of=as_of), kind="rules", is_complete=True)


def is_rule(text: str) -> bool:
    """Return whether a text begins as a rule, or as a change of one."""
    return _RULE.fullmatch(text.strip()) is not None


def is_question(text: str) -> bool:
    """Return whether a text begins as a question: with no question found, it was not understood."""
    return _QUESTION.fullmatch(text.strip()) is not None


@frozen(kw_only=True)
class AskedRule:
    """A rule whose text is searched for, or its change."""

    acl: StandardAcl
    added: bool
    is_change: bool

    @classmethod
    def of(cls, text: str) -> "AskedRule | None":
        """Return the rule of a text; None: it is about no rule. Raises ConfigError: it only begins as one."""
        match = _RULE.fullmatch(text.strip())
        if match is None:
            return None
        line = parse_rule_line(match[2].rstrip("?") if match[1] else match[2])
        return cls(acl=line.acl, added=line.added, is_change=bool(match[1] or match[3]))

    def __str__(self) -> str:
        return acl_text(self.acl)

    def is_in(self, state: State) -> bool:
        """Return whether a state has the rule, as far as the viewer sees it."""
        return is_in(self.acl, state)


def _about_rule(console: Console, state: State, rule: AskedRule, as_of: str) -> Iterator[Question]:
    """Yield the rule, if it exists, or its draft."""
    sees_all = console.own is None
    if rule.is_in(state) and not (sees_all and rule.is_change):
        yield Question(words=str(rule), address=rule_url(rule.acl, as_of), kind="rule", is_complete=True)
    elif sees_all:
        words = f"{'' if rule.is_change else 'no such rule; '}draft: {'+' if rule.added else '-'} {rule}"
        address = draft_url(rule.acl, added=rule.added)
        yield Question(words=words, address=address, kind="draft", is_complete=rule.is_change)


def _changes(state: State, text: str, as_of: str, *, is_since: bool = False) -> Iterator[Question]:
    """Yield the changes since a moment, or of a day, if that is known: any other text would be refused."""
    written = " ".join(text.split())
    since = _LAST_NIGHT.get(written.lower(), written)
    try:
        now = _time_of(as_of)
        moment = read_moment(since, now=now).moment
    except ConfigError:
        return
    if isinstance(moment, int):
        if moment <= state.offset:
            yield _changes_since(since, as_of)
    elif moment is None or moment > now:
        return
    elif not is_since and _DAY.fullmatch(written):
        address = day_url(milliseconds(moment))
        yield Question(words=f"changes on {moment.date()}", address=address, is_complete=True)
    else:
        yield _changes_since(since, as_of)


def _changes_since(since: str, as_of: str) -> Question:
    address = url(CHANGES, since=since, as_of=as_of)
    return Question(words=f"changes since {since}", address=address, is_complete=True)


def _time_of(as_of: str) -> datetime:
    """Return what relative times count from: the moment of the page, if that is a time."""
    now = datetime.fromtimestamp(current_time_ms() / 1000, UTC)
    moment = read_moment(as_of, now=now).moment if as_of else None
    return moment if isinstance(moment, datetime) else now


def _host(text: str) -> tuple[str, str]:
    """Return a question without its `from HOST`, and the host, if it has one; else empty."""
    if match := _HOST.fullmatch(text):
        try:
            return match[1], host_address(match[2])
        except (ConfigError, ValueError):  # part of a name, if names of its type may have blanks
            pass
    return text, ""


def _parsed_questions(console: Console, state: State, text: str, host: str, as_of: str) -> Iterator[Question]:
    source = f" from {host}" if host else ""
    if match := _ACCESS.fullmatch(text):
        yield from _who(state, None, match[1], host, as_of)
    elif match := _WHO.fullmatch(text):
        if operation := _operation(match[1]):
            yield from _who(state, operation, match[2], host, as_of)
    elif match := _WHAT.fullmatch(text):
        for principal, is_exact in _principals(console, state, match[1], most=_MOST):
            address = url("/principal", name=principal, host=host, as_of=as_of)
            yield Question(words=f"what can {principal} do{source}", address=address, is_complete=is_exact)
    elif match := _WHEN.fullmatch(text):
        if console.own is None:
            yield from _requests(console, state, ("when could", "/when"), match, host=host)
    elif match := _WHY.fullmatch(text):
        yield from _requests(console, state, ("why can", "/why"), match, host=host, as_of=as_of)


def _who(state: State, operation: AclOperation | None, names: str, host: str, as_of: str) -> Iterator[Question]:
    """Yield which principals can use names; `operation`: None for any."""
    source = f" from {host}" if host else ""
    verb = "access" if operation is None else operation.name
    for each in _Names.of(names).matching(state, operation):
        address = resource_url(*each.key, as_of)
        more = url("", operation=None if operation is None else operation.name, host=host).removeprefix("?")
        words = f"who can {verb} {each}{source}"
        yield Question(words=words, address=f"{address}&{more}" if more else address, is_complete=each.is_exact)


def _requests(
    console: Console, state: State, page: tuple[str, str], match: re.Match[str], **others: str
) -> Iterator[Question]:
    (words, path), operation = page, _operation(match[2])
    if operation is None:
        return
    principals = list(_principals(console, state, match[1], most=_PRINCIPALS))
    source = f" from {others['host']}" if others["host"] else ""
    names = _Names.of(match[3])
    for each in names.matching(state, operation):
        kind, name, pattern = each.key
        if pattern == PatternType.PREFIXED and not names.is_prefix:  # its names may be decided differently
            continue
        fields = name_parameters(ResourcePattern(resource_type=kind, name=name, pattern_type=pattern))
        for principal, is_exact in principals:
            yield Question(
                words=f"{words} {principal} {operation.name} {each}{source}",
                address=url(path, principal=principal, operation=operation.name, **fields, **others),
                is_complete=is_exact and each.is_exact,
            )


def _operation(word: str) -> AclOperation | None:
    return _OPERATIONS.get(word.upper().replace("-", "_"))


@frozen
class _Named:
    """A resource that a question may be about."""

    key: NameKey
    is_exact: bool

    def __str__(self) -> str:
        kind, name, pattern = self.key
        return code_name(ResourceType, kind) + (
            "" if kind == ResourceType.CLUSTER else f" {pattern_text(name, pattern)}"
        )


@frozen(kw_only=True)
class _Names:
    """The resource of a question as it is stated: `orders`, `group g`, `payments.*`, `topics beginning with pii-`."""

    kind: ResourceType | None
    name: str
    is_prefix: bool = False

    @classmethod
    def of(cls, text: str) -> "_Names":
        """Read the text after the operation; a word before the name belongs to it, unless it is a type."""
        text, kind = text.strip(), None
        if match := _PREPOSITION.match(text):
            text = text[match.end() :]
        if (match := _TYPED.fullmatch(text)) and (kind := _TYPES.get((match[1] or "").upper().replace("-", "_"))):
            text = match[2].strip()
        elif text.lower() in ("cluster", "the cluster"):
            kind, text = ResourceType.CLUSTER, ""
        if kind is ResourceType.CLUSTER:
            return cls(kind=kind, name=CLUSTER_NAME)
        if match := _BEGINNING.fullmatch(text):
            return cls(kind=kind, name=match[1].strip().removesuffix(WILDCARD), is_prefix=True)
        if text == WILDCARD:
            return cls(kind=kind, name=text)
        try:
            name, pattern = parse_name(text)
        except ConfigError:  # a star in the middle: no name is meant
            return cls(kind=kind, name="")
        return cls(kind=kind, name=name, is_prefix=pattern is PatternType.PREFIXED)

    def matching(self, state: State, operation: AclOperation | None) -> list[_Named]:
        """Return the resources that may be meant: those that are stated first, then names that contain the name."""
        listing, name = state.listing, self.name
        pattern = PatternType.PREFIXED if self.is_prefix else PatternType.LITERAL
        default = ResourceType.TOPIC if self.kind is None else self.kind
        if not name:
            return []
        kinds = [each for each in TYPES if self.kind in (None, each)]
        stated: list[NameKey] = [
            (each, name, pattern) for each in kinds if _is_possible((each, name, pattern), operation)
        ]
        names = [
            each for each in stated if (listing.count_names(each[0], name) if self.is_prefix else listing.count(*each))
        ]
        is_known = any(kind == default for kind, _, _ in names)
        matches = () if self.is_prefix else listing.names_index.find(name, _MOST)
        others = [
            each
            for each in matches
            if not isinstance(each, str) and each[0] in kinds and each not in names and _is_possible(each, operation)
        ]
        # Rules on prefixes, and settings, decide on names that no rule has.
        beside = [] if is_known else [each for each in stated if each[0] == default]
        others = others[: max(_MOST_SHOWN - len(names) - len(beside), 0)]
        return [
            *(_Named(each, is_known) for each in names),
            *(_Named(each, False) for each in others),
            *(_Named(each, not names and not others) for each in beside),
        ]


def _is_possible(key: NameKey, operation: AclOperation | None) -> bool:
    """Return whether a request may be about a resource: no topic has a blank in its name."""
    kind, name, pattern = key
    if operation is not None and operation not in SUPPORTED_OPERATIONS[ResourceType(kind)]:
        return False
    if kind != ResourceType.TOPIC or (name == WILDCARD and pattern == PatternType.LITERAL):
        return True
    return is_legal_topic(f"{name}x" if pattern == PatternType.PREFIXED else name)


def _principals(console: Console, state: State, text: str, *, most: int) -> list[tuple[str, bool]]:
    """Return the principals that a text may mean, each with whether the text states it."""
    needle = text.strip()
    if console.own is not None:
        own = console.own.principal
        return [(own, state.principal(needle) == own)] if needle.lower() in own.lower() else []
    exact = console.principal(state, needle)
    matches = state.listing.names_index.find(needle, _MOST) if needle else list(state.listing.principals)[:_MOST]
    others = [(each, False) for each in matches if isinstance(each, str) and each != exact]
    if console.has_principal(state, exact):
        return [(exact, True), *others][:most]
    # A principal without rules may have access by rules for all users.
    is_typed, is_one = ":" in needle, bool(needle) and not any(map(str.isspace, needle))
    if is_one and (is_typed or not others):
        return [*others[: most - 1], (needle if is_typed else f"User:{needle}", not others)]
    return others[:most]
