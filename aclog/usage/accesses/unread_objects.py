"""What lines of JSON tell of accesses that cannot be read."""

from datetime import tzinfo
from typing import Final

from aclog.authorizer.access_reject import Reason
from aclog.authorizer.audit_line_reader import AccessTrace, access_trace
from aclog.usage.accesses.access_times import micros_of_millis, micros_of_text
from aclog.usage.accesses.json_object import SIGNS_OF_OBJECTS, JsonObject, at, object_of, text_at
from aclog.usage.unread import UnreadCounter, UnreadSpan

_FOREIGN: Final = frozenset({Reason.OTHER_LOGGER, Reason.OTHER_MESSAGE})
_KEYS: Final = frozenset({"principal", "operation", "resourcetype", "resourcename", "resource"})
"""Keys of which an object about an access has at least one, however it writes them."""
_PRINCIPALS: Final[tuple[tuple[str, ...], ...]] = (
    ("principal",),
    ("audit", "principal"),
    ("data", "principal"),
    ("data", "authenticationInfo", "principal"),
    ("actor", "user", "uid"),
)
_TIMES: Final[tuple[tuple[str, ...], ...]] = (("timestamp",), ("audit", "timestamp"), ("time",))
_DECISIONS: Final[tuple[tuple[str, ...], ...]] = (("loggedDecision",), ("audit", "result"), ("result",))


def note_unread(counter: UnreadCounter, reason: Reason, line: bytes, value: JsonObject | None, zone: tzinfo) -> None:
    """Count a line that is no access, if it may be about one; `value` is the object in it, None if there is none.

    An object of which no key is one of an access, such as a line of another log, is about none; nor is a line without
    any of an object's signs, which a torn one has.
    """
    if reason is Reason.BLANK:
        return
    trace = access_trace(line.decode(errors="replace"))
    if trace is not None:
        # the text of another line in a string, where some characters are escaped
        is_escaped = trace.principal is not None and "\\" in trace.principal
        found = AccessTrace(decision=trace.decision) if is_escaped else trace
    elif reason in _FOREIGN:
        return
    elif value is None:
        if not any(sign in line for sign in SIGNS_OF_OBJECTS):
            return
        found = AccessTrace()
    elif reason is Reason.MISSING_VALUE and not any(key.lower().replace("_", "") in _KEYS for key in value):
        return
    else:
        found = AccessTrace(principal=_principal_of(value), decision=_decision_of(value))
    time = None if value is None else _time_of(value, zone)
    counter.add(*found, reason, UnreadSpan(1, time, time))


def note_text(counter: UnreadCounter, reason: Reason, text: str, zone: tzinfo) -> None:
    """Count a line that a table tells of, of JSON or of kafka-authorizer.log, if it may be about an access."""
    line = text.encode(errors="replace")
    if reason is Reason.MALFORMED or line.lstrip().startswith(b"{"):
        value = object_of(line)
        note_unread(counter, reason, line, None if isinstance(value, Reason) else value, zone)
        return
    trace = access_trace(text)
    if trace is not None:
        counter.add(*trace, reason, UnreadSpan(1, None, None))


def _principal_of(value: JsonObject) -> str | None:
    """Return the principal that an object names, None if it names none."""
    name = text_at(value, "actor", "user", "name")
    found = next((text for text in (text_at(value, *path) for path in _PRINCIPALS) if text), None)
    return found or (f"User:{name}" if name else None)


def _decision_of(value: JsonObject) -> str | None:
    found = {text_at(value, *path) for path in _DECISIONS} - {None}
    return found.pop() if len(found) == 1 and found <= {"ALLOWED", "DENIED"} else None


def _time_of(value: JsonObject, zone: tzinfo) -> int | None:
    given = next((each for each in (at(value, *path) for path in _TIMES) if each is not None), None)
    if isinstance(given, str):
        return micros_of_text(given, zone)
    return micros_of_millis(given) if isinstance(given, int) and not isinstance(given, bool) else None
