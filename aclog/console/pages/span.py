"""Two moments of a history, as a URL names them: by handles of a slider, or by texts."""

from datetime import UTC, datetime

from attrs import frozen

from aclog.console.live_history import KnownHistory, LiveHistory
from aclog.console.pages.asked import Asked, BadAskedError
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError
from aclog.snapshots.moment_texts import read_moment
from aclog.snapshots.moments import Moment, milliseconds, moment_text

_MOST_OFFSET = (1 << 63) - 1


@frozen(kw_only=True)
class Handle:
    """A moment of a history: the end offset of its state, and how many changes that has (RuleTimeline)."""

    offset: int
    position: int
    time: str
    """The time that was asked for, in UTC; empty if it was an offset."""
    is_newest: bool = False
    """Whether it goes on with the log."""

    def __str__(self) -> str:
        return f"offset {self.offset:,} ({self.time})" if self.time else f"offset {self.offset:,}"

    @property
    def asked(self) -> str | int:
        """What names it in an address."""
        return self.time or self.offset


@frozen(kw_only=True)
class Span:
    """What lies between two moments, the earlier one first."""

    first: Handle
    last: Handle
    notes: tuple[str, ...] = ()
    """What was asked for and is not known."""


def span_of(asked: Asked, known: KnownHistory, history: LiveHistory) -> Span:
    """Return the span that a URL asks for; without one it is the last change.

    `since` and `until` are texts, which come before the handles `from` and `to`.

    Raises:
        BadAskedError: no moment, or one that has not come yet.
        MetadataError: the log cannot be read.

    """
    timeline, notes = known.timeline, list[str]()
    newest = Handle(offset=timeline.end, position=len(timeline), time="", is_newest=True)
    reader = _Reader(known=known, history=history, notes=notes, newest=newest)
    last = reader.read(asked, "until", "to")
    first = reader.read(asked, "since", "from")
    if last is None:
        last = newest
    if first is None:
        position = timeline.before(last.position)
        first = Handle(offset=timeline.offset(position), position=position, time="")
    if first.offset > last.offset:
        first, last = last, first
    return Span(first=first, last=last, notes=tuple(dict.fromkeys(notes)))


def begin_text(known: KnownHistory) -> str:
    """Return from where on a history is known, and why not earlier; empty if all of it is."""
    timeline = known.timeline
    where = f"The history is known from offset {timeline.begin:,} on"
    if known.is_reading:
        return f"{where} so far: older changes are still being read, and what they were is not shown yet."
    return f"{where}: {known.older}. What was before is unknown." if known.older else ""


@frozen(kw_only=True)
class _Reader:
    known: KnownHistory
    history: LiveHistory
    notes: list[str]
    newest: Handle

    def read(self, asked: Asked, text_name: str, range_name: str) -> Handle | None:
        """Return the handle that a text or a slider names; None if neither does. Raises BadAskedError: no such one."""
        text = asked.word(text_name)
        if text:
            return self._of_moment(self._moment(text_name, text), f"{text_name} {text[:80]}")
        if not asked.word(range_name):
            return None
        offset = asked.number(range_name, 0, 0, _MOST_OFFSET)
        return self._of_offset(offset, "", f"{range_name} {offset}")

    def _moment(self, name: str, text: str) -> Moment | None:
        try:
            return read_moment(text, now=datetime.fromtimestamp(current_time_ms() / 1000, UTC)).moment
        except ConfigError as error:
            raise BadAskedError(f"{name}: {error}") from error

    def _of_moment(self, moment: Moment | None, asked: str) -> Handle:
        if moment is None:
            return self.newest
        if isinstance(moment, int):
            return self._of_offset(moment, "", asked)
        offset = min(self.history.times.after(milliseconds(moment)), self.known.timeline.end)
        return self._of_offset(offset, moment_text(moment), asked)

    def _of_offset(self, offset: int, time: str, asked: str) -> Handle:
        timeline = self.known.timeline
        if offset > timeline.end:
            raise BadAskedError(f"{asked}: the log ends at offset {timeline.end}")
        # A log that begins with a record of later says nothing of the time before it.
        if offset < timeline.begin or (offset == 0 and time):
            self.notes.append(
                f"{asked}: the state at that moment is unknown: shown from offset {timeline.begin:,} on, "
                "where the history begins" + (" so far" if self.known.is_reading else "")
            )
            offset = timeline.begin
        return Handle(offset=offset, position=timeline.position(offset), time=time)
