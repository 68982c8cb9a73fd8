"""Times, silences, what could not be read, and reasons in words."""

from aclog.terminal.output import time_text
from aclog.usage.unused import Silence, Unjudged, Unused
from aclog.usage.window import UnreadAccesses


def time_of(micros: int) -> str:
    """Return a time in us since 1970 as ISO 8601."""
    return time_text(micros // 1000)


def silence_text(silence: Silence) -> str:
    """Return which broker logged nothing, and when."""
    who = "no line that names no broker" if silence.broker is None else f"broker {silence.broker}: no line"
    if silence.since is None and silence.to is None:
        return f"{who} at all"
    if silence.since is None:
        return f"{who} before {time_of(silence.to or 0)}"
    return f"{who} after {time_of(silence.since)}" + ("" if silence.to is None else f" until {time_of(silence.to)}")


def unread_text(unread: UnreadAccesses) -> str:
    """Return how many accesses could not be read or decided, and why."""
    parts = []
    if unread.total:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in unread.by_reason().most_common() if count)
        parts.append(f"{unread.total:,} accesses could not be read or decided ({reasons})")
    if not unread.is_counted:
        parts.append("an older aclog made this index, and what it could not read is not known")
    return "; ".join(parts)


def unread_of_rule(count: int) -> str:
    """Return why a rule is not judged that so many accesses may have needed."""
    if not count:
        return "what an older aclog could not read of the log is not known: make a new index of it"
    return f"{count:,} accesses that may need it could not be read or decided"


def unjudged_text(result: Unused, number: int) -> str:
    """Return why a rule is not judged; nothing for one that is."""
    why = Unjudged(int(result.judgement.unjudged[number]))
    if why is Unjudged.NOT_INDEXED:
        return "the index has not seen it in force: update it with these rules"
    if why is Unjudged.YOUNG:
        return f"known since {time_of(int(result.lives.begin[number]))}: younger than the window"
    if why is Unjudged.SILENCE:
        more = f", and {len(result.silences) - 1:,} more holes" if len(result.silences) > 1 else ""
        return silence_text(result.silences[0]) + more
    if why is Unjudged.UNREAD:
        return unread_of_rule(int(result.unread_counts[number]))
    return ""
