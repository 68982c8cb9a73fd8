"""Parser for a line of kafka-authorizer.log after its time, as written by any Kafka since 0.9.

There are four formats: StandardAuthorizer (`operation = READ`, request, rule), AclAuthorizer of Kafka 2.4 to 3.9
(`Operation = Read`, request, no rule), SimpleAclAuthorizer of 2.0 to 2.3 (no request), and older ones (no pattern type
either).

Clients choose principals and names, so a line may contain parts of the layout twice and be ambiguous. Every part is
searched for in the whole line; a line that has one twice is rejected rather than guessed at.

A line that cannot be read may tell of an access all the same, in another layout or torn: `access_trace` says whether it
does, and as much of the access as is certain.
"""

import re
from enum import IntEnum
from typing import Final, NamedTuple

from aclog.authorizer.access_reject import Reason, bad_value, known_names
from aclog.authorizer.acl import AclOperation, ResourceType

TIME: Final = r"\[\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}[,.]\d{3}"
"""As log4j's `%d` and `%d{ISO8601}` write it, in 1 and 2, and logback's."""
TIME_SIZE: Final = len("[2026-11-21 10:00:00,123")
HEAD: Final = rf"^{TIME}\] [A-Z]+ Principal = "
"""How a line about an access begins."""

# All quantifiers but those of free text are possessive or bounded, and a part that occurs twice is found before the
# free texts between the parts are matched: so the time for a hostile line is linear in its length.
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
"""Any text, as short as possible, word by word: the part after it begins with a space."""
_LINE = re.compile(
    rf"{_HEAD}{_FREE}{_ASKED}{_FREE}(?:{_REQUEST}(?: based on rule ({_RULE}))?)?{_TAIL}", re.ASCII | re.DOTALL
)
_FIND_REQUEST = re.compile(_REQUEST, re.ASCII).search
_PARTS: Final = (
    (" Principal = ", re.compile(TIME + _HEAD, re.ASCII), 0),
    (" from host = ", re.compile(_ASKED, re.ASCII), 1),
    (" for request = ", re.compile(_REQUEST, re.ASCII), 1),
)
"""(A literal in the part, the part, how often it may occur). The literal is quicker to count. The head may not occur at
all, since the text begins after the first head's time."""

_ANY_HEAD = re.compile(rf"{TIME}\] [A-Z]+ ", re.ASCII)
_ANY_TAIL = re.compile(r" \([\w.$-]++\)\r?\Z", re.ASCII)
_OUR_TAIL = re.compile(_TAIL, re.ASCII)
_BLANK = re.compile(r"\s*+\Z", re.ASCII)
_HEADED = re.compile(HEAD, re.ASCII)
_PRINCIPAL, _ALLOWED, _DENIED = "Principal = ", " is Allowed", " is Denied"
_HOST, _RESOURCE = " from host = ", " on resource = "


class ParsedLine(NamedTuple):
    """A line without its time: ACCESS_COLUMNS in their order, or the reason why it is not an access."""

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


class AccessTrace(NamedTuple):
    """What is certain of an access whose line cannot be read; None where nothing is."""

    principal: str | None = None
    decision: str | None = None
    """ALLOWED or DENIED."""


def is_headed(line: str) -> bool:
    """Return whether a line begins as one about an access does; its rest after TIME_SIZE is for `read_line`."""
    return _HEADED.match(line) is not None


def access_trace(line: str) -> AccessTrace | None:
    """Return what a line that cannot be read tells of an access; None if it is about none.

    A line may be two torn ones, and clients choose principals and names: what is there twice tells nothing.
    """
    allowed, denied = line.count("is Allowed"), line.count("is Denied")
    heads = line.count(_PRINCIPAL)
    if not allowed + denied + heads:
        # the rest of a torn line; AclAuthorizer's other messages have the resource before the host
        return AccessTrace() if 0 <= line.find(_HOST) < line.find(_RESOURCE) else None
    if allowed + denied != 1 or heads > 1:
        return AccessTrace()
    decision = "ALLOWED" if allowed else "DENIED"
    begin = line.find(_PRINCIPAL) + len(_PRINCIPAL)
    end = line.find(_ALLOWED if allowed else _DENIED)
    principal = line[begin:end] if heads and end > begin else ""
    is_certain = ":" in principal and "\ufffd" not in principal
    return AccessTrace(principal=principal if is_certain else None, decision=decision)


def read_line(text: str) -> ParsedLine:
    """Parse the rest of a line after its time (`] INFO Principal = ...`)."""
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
            return ParsedLine(reason=Reason.AMBIGUOUS)  # SimpleAclAuthorizer with such a name, or a forgery
    elif rule is None or not literal:
        return ParsedLine(reason=Reason.UNREADABLE)
    known_operation, known_type = operation_name(operation), resource_type_name(kind)
    if not principal or known_operation is None or known_type is None:
        return _bad_value(principal, operation, kind)
    return ParsedLine(
        principal=principal,
        host=host,
        operation=known_operation,
        resource_type=known_type,
        resource_name=name[len(_LITERAL) :] if literal else name,
        pattern_type="LITERAL" if literal else None,
        decision="ALLOWED" if answer == "Allowed" else "DENIED",
        rule=rule,
        request=request,
        reference_count=_count(count),
        level=level,
    )


def operation_name(text: str) -> str | None:
    """Return the name of an operation in any form that Kafka writes (ALTER_CONFIGS, AlterConfigs); None if unknown."""
    return _OPERATIONS.get(text) or _OPERATIONS.get(_normalized(text))


def resource_type_name(text: str) -> str | None:
    """Return the name of a resource type in any form that Kafka writes (TRANSACTIONAL_ID, TransactionalId)."""
    return _TYPES.get(text) or _TYPES.get(_normalized(text))


def _bad_value(principal: str, operation: str, kind: str) -> ParsedLine:
    if not principal:
        return ParsedLine(reason=Reason.MISSING_VALUE, detail="no principal")
    if _normalized(operation) not in _OPERATIONS:
        return ParsedLine(reason=Reason.BAD_OPERATION, detail=bad_value(Reason.BAD_OPERATION, operation))
    return ParsedLine(reason=Reason.BAD_RESOURCE_TYPE, detail=bad_value(Reason.BAD_RESOURCE_TYPE, kind))


def read_other(line: str) -> Reason:
    """Return why a line that does not begin with `[time] LEVEL Principal = ` is not an access."""
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


def _normalized(name: str) -> str:
    return name.replace("_", "").upper() if name.isascii() else name  # some other letters are ASCII ones in capitals


def _count(text: str | None) -> int | None:
    number = None if text is None else int(text)
    return number if number is None or number < 1 << 31 else None


def _names(kind: type[IntEnum]) -> dict[str, str]:
    """Return names by each form that Kafka writes (ALTER_CONFIGS, AlterConfigs), and by the normalized one."""
    forms = (str, _normalized, lambda name: name.title().replace("_", ""))
    return {form(name): name for name in known_names(kind) for form in forms}


_OPERATIONS, _TYPES = _names(AclOperation), _names(ResourceType)
