"""Why a line or row of an access log is not an access, whoever reads it."""

from enum import IntEnum, StrEnum
from typing import Final

SHOWN = 80
"""The number of characters of a bad value in a detail."""


class Reason(StrEnum):
    """Why a line or row is not an access. BLANK lines are counted, but are not rejects."""

    BLANK = "BLANK"
    NOT_UTF8 = "NOT_UTF8"
    NO_HEAD = "NO_HEAD"
    TORN = "TORN"
    OTHER_LOGGER = "OTHER_LOGGER"
    OTHER_MESSAGE = "OTHER_MESSAGE"
    AMBIGUOUS = "AMBIGUOUS"
    UNREADABLE = "UNREADABLE"
    MALFORMED = "MALFORMED"
    MISSING_VALUE = "MISSING_VALUE"
    BAD_TIMESTAMP = "BAD_TIMESTAMP"
    BAD_OPERATION = "BAD_OPERATION"
    BAD_RESOURCE_TYPE = "BAD_RESOURCE_TYPE"
    BAD_PATTERN_TYPE = "BAD_PATTERN_TYPE"
    BAD_DECISION = "BAD_DECISION"


WANTED: Final = {
    Reason.BAD_OPERATION: ("operation", "READ, WRITE, ... or ALL"),
    Reason.BAD_RESOURCE_TYPE: (
        "resourceType",
        "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER",
    ),
    Reason.BAD_PATTERN_TYPE: ("patternType", "LITERAL, the pattern type of all requests"),
    Reason.BAD_DECISION: ("loggedDecision", "ALLOWED or DENIED"),
}
"""The column that a bad value is in, and what was expected."""


def known_names(kind: type[IntEnum]) -> list[str]:
    """Return the names of an enum that may occur in a request: all but UNKNOWN and ANY."""
    return [member.name for member in kind if member.name not in {"UNKNOWN", "ANY"}]


def bad_value(reason: Reason, value: str) -> str:
    """Return the detail for an invalid value."""
    name, wanted = WANTED[reason]
    return f"{name} `{value[:SHOWN]}`: expected {wanted}"
