"""One line of kafka-authorizer.log behind its time, as any Kafka since 0.9 writes it, taken apart.

Four forms: StandardAuthorizer's (`operation = READ`, a request, a rule), AclAuthorizer's of Kafka 2.4 to 3.9
(`Operation = Read`, a request, no rule), SimpleAclAuthorizer's of 2.0 to 2.3 (no request) and older ones (no pattern
type either).

Clients choose principals and names, so a line may hold parts of the layout twice, and then be read in more than one
way. Every part is searched in the whole line, and a line that has one twice is not guessed at but rejected.
"""

import re
from enum import IntEnum
from typing import Final, NamedTuple

from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.pipeline.accesses.access_table import Reason, bad_value, known_names

TIME: Final = r"\[\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2},\d{3}"
TIME_SIZE: Final = len("[2026-11-21 10:00:00,123")

# Quantifiers are possessive or bounded, but for the free texts: a hostile line costs no more than its length, for a
# part that comes twice is found before the free texts between the parts are looked for.
_HEAD = r"\] ([A-Z]+) Principal = "
_ASKED = (
    r" is (Allowed|Denied) ([oO])peration = ([A-Za-z_]{1,40}+) from host = (\S{1,255}+)"
    r" on resource = ([A-Za-z_]{1,40}+):"
)
_REQUEST = r" for request = (\w{1,60}+) with resourceRefCount = (\d{1,10}+)"
_RULE = r"SuperUser|DefaultAllow|DefaultDeny|MatchingAcl\(acl=StandardAcl(?:\[.*\]|\(.*\))\)"
_TAIL = r" \(kafka\.authorizer\.logger\)\r?\Z"
_LITERAL = "LITERAL:"

_FREE = r"([^ ]*+(?: [^ ]*+)*?)"
"""Any text, as short as may be, word by word: what follows it begins with a space."""
_LINE = re.compile(
    rf"{_HEAD}{_FREE}{_ASKED}{_FREE}(?:{_REQUEST}(?: based on rule ({_RULE}))?)?{_TAIL}", re.ASCII | re.DOTALL
)
_FIND_REQUEST = re.compile(_REQUEST, re.ASCII).search
_PARTS: Final = (
    (" Principal = ", re.compile(TIME + _HEAD, re.ASCII), 0),
    (" from host = ", re.compile(_ASKED, re.ASCII), 1),
    (" for request = ", re.compile(_REQUEST, re.ASCII), 1),
)
"""A text that stands in the part and is looked for more quickly, the part, and how often it may come: the first head
is without its time here."""

_ANY_HEAD = re.compile(rf"{TIME}\] [A-Z]+ ", re.ASCII)
_ANY_TAIL = re.compile(r" \([\w.$-]++\)\r?\Z", re.ASCII)
_OUR_TAIL = re.compile(_TAIL, re.ASCII)
_BLANK = re.compile(r"\s*+\Z", re.ASCII)


class ParsedLine(NamedTuple):
    """What a line tells but its time: the columns of ACCESS_COLUMNS in their order, or why it is no access."""

    principal: str | None = None
    host: str | None = None
    operation: str | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    decision: str | None = None
    rule: str | None = None
    request: str | None = None
    reference_count: int | None = None
    level: str | None = None
    reason: str | None = None
    detail: str | None = None


def read_line(text: str) -> ParsedLine:
    """The line that goes on with `text` after its time (`] INFO Principal = ...`)."""
    for mark, part, allowed in _PARTS:
        if text.count(mark) > 1 and len(part.findall(text)) > allowed:
            return ParsedLine(reason=_reason_by_tail(text) or Reason.AMBIGUOUS)
    found = _LINE.match(text)
    if found is None:
        return ParsedLine(reason=_reason_by_tail(text) or Reason.UNREADABLE)
    level, principal, answer, case, operation, host, kind, name, request, count, rule = found.groups()
    literal = name.startswith(_LITERAL)
    if case == "O":
        if rule is not None or (request is None and _FIND_REQUEST(name)):
            return ParsedLine(reason=Reason.AMBIGUOUS)  # SimpleAclAuthorizer's with such a name, or none of Kafka's
    elif rule is None or not literal:
        return ParsedLine(reason=Reason.UNREADABLE)
    known_operation = _OPERATIONS.get(operation) or _OPERATIONS.get(_bare(operation))
    known_type = _TYPES.get(kind) or _TYPES.get(_bare(kind))
    if not principal or known_operation is None or known_type is None:
        return _bad_value(principal, operation, kind)
    return ParsedLine(
        principal, host, known_operation, known_type,
        name[len(_LITERAL) :] if literal else name,
        "LITERAL" if literal else None,
        "ALLOWED" if answer == "Allowed" else "DENIED",
        rule, request, _count(count), level,
    )  # fmt: skip


def _bad_value(principal: str, operation: str, kind: str) -> ParsedLine:
    if not principal:
        return ParsedLine(reason=Reason.MISSING_VALUE, detail="no principal")
    if _bare(operation) not in _OPERATIONS:
        return ParsedLine(reason=Reason.BAD_OPERATION, detail=bad_value(Reason.BAD_OPERATION, operation))
    return ParsedLine(reason=Reason.BAD_RESOURCE_TYPE, detail=bad_value(Reason.BAD_RESOURCE_TYPE, kind))


def read_other(line: str) -> Reason:
    """Why a whole line without `[time] LEVEL Principal = ` at its beginning is no access."""
    if _BLANK.match(line):
        return Reason.BLANK
    if not _ANY_HEAD.match(line):
        return Reason.NO_HEAD
    return _reason_by_tail(line) or Reason.OTHER_MESSAGE


def _reason_by_tail(text: str) -> Reason | None:
    if _OUR_TAIL.search(text[-_TAIL_SIZE:]):
        return None
    return Reason.OTHER_LOGGER if _ANY_TAIL.search(text) else Reason.TORN


_TAIL_SIZE = len(" (kafka.authorizer.logger)\r")


def _bare(name: str) -> str:
    return name.replace("_", "").upper()


def _count(text: str | None) -> int | None:
    number = None if text is None else int(text)
    return number if number is None or number < 1 << 31 else None


def _names(kind: type[IntEnum]) -> dict[str, str]:
    """By each form that Kafka writes (ALTER_CONFIGS, AlterConfigs), and by the bare one."""
    forms = (str, _bare, lambda name: name.title().replace("_", ""))
    return {form(name): name for name in known_names(kind) for form in forms}


_OPERATIONS, _TYPES = _names(AclOperation), _names(ResourceType)
