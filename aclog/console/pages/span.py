"""Two moments of a history, as pages of the past show them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from attrs import evolve

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acls_image import RuleChange
from aclog.console.live import KnownHistory, LiveHistory, RuleTimeline
from aclog.console.pages.page import (
    BadParameterError,
    Bar,
    Cell,
    Chart,
    Column,
    Facts,
    Field,
    Form,
    Kind,
    Links,
    Mark,
    Notice,
    Page,
    Parameters,
    Row,
    Since,
    Table,
    as_of_field,
    rule_url,
    url,
)
from aclog.console.pages.page import Handle as SliderHandle
from aclog.console.pages.states import Console, History, State
from aclog.metalog.errors import ConfigError, MetadataError, plural
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import frozen
from aclog.planning.plan import ApplyNote
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.moments import Moment, milliseconds, moment_text, read_moment, timestamp_text

# Two moments of a history, as a URL names them: by handles of a slider, or by texts.


_MOST_OFFSET = (1 << 63) - 1


@frozen(kw_only=True)
class Handle:
    """A moment of a history: the end offset of its state, and how many changes that has (RuleTimeline)."""

    offset: int
    position: int
    time: str
    """The requested time, in UTC; empty if an offset was requested."""
    is_newest: bool = False
    """Whether it follows the log."""

    def __str__(self) -> str:
        return f"offset {self.offset:,} ({self.time})" if self.time else f"offset {self.offset:,}"

    @property
    def parameter(self) -> str | int:
        """Return its parameter in an address."""
        return self.time or self.offset


@frozen(kw_only=True)
class Span:
    """The interval between two moments, the earlier one first."""

    first: Handle
    last: Handle
    notes: tuple[str, ...] = ()
    """Notices on requested moments that are unknown."""


def span_of(parameters: Parameters, current: KnownHistory, history: LiveHistory) -> Span:
    """Return the span of a URL; without parameters it is the last change.

    `since` and `until` are texts, which come before the handles `from` and `to`. With `as_of` the span ends at that
    moment by default, and relative texts count from there.

    Raises:
        BadParameterError: no moment, or one that has not come yet.
        MetadataError: the log cannot be read.

    """
    timeline, notes = current.timeline, list[str]()
    newest = Handle(offset=timeline.end, position=len(timeline), time="", is_newest=True)
    now = datetime.fromtimestamp(current_time_ms() / 1000, UTC)
    reader = _Reader(current=current, history=history, notes=notes, newest=newest, now=now)
    as_of = reader.read(parameters, "as_of", "")
    if as_of is not None and not as_of.is_newest:
        reader = evolve(reader, now=_time(timeline, as_of) or now)
    last = reader.read(parameters, "until", "to")
    first = reader.read(parameters, "since", "from")
    if last is None:
        last = newest if as_of is None else as_of
    if first is None:
        position = timeline.before(last.position)
        first = Handle(offset=timeline.offset(position), position=position, time="")
    if first.offset > last.offset:
        first, last = last, first
    return Span(first=first, last=last, notes=tuple(dict.fromkeys(notes)))


def begin_text(current: KnownHistory) -> str:
    """Return where the known history begins, and why not earlier; empty if all of it is known."""
    timeline = current.timeline
    where = f"The history is known from offset {timeline.begin:,}"
    if current.is_reading:
        return f"{where} so far: older changes are still being read."
    return f"{where}: {current.older}. Earlier changes are unknown." if current.older else ""


@frozen(kw_only=True)
class _Reader:
    current: KnownHistory
    history: LiveHistory
    notes: list[str]
    newest: Handle
    now: datetime
    """What relative texts count from."""

    def read(self, parameters: Parameters, text_name: str, range_name: str) -> Handle | None:
        """Return the handle that a text or a slider names; None: neither. Raises BadParameterError: no such one."""
        text = parameters.word(text_name)
        if text:
            return self._of_moment(self._moment(text_name, text), f"{text_name} {text[:80]}")
        if not parameters.word(range_name):
            return None
        offset = parameters.number(range_name, 0, 0, _MOST_OFFSET)
        return self._of_offset(offset, "", f"{range_name} {offset}")

    def _moment(self, name: str, text: str) -> Moment | None:
        try:
            return read_moment(text, now=self.now).moment
        except ConfigError as error:
            raise BadParameterError(f"{name}: {error}") from error

    def _of_moment(self, moment: Moment | None, text: str) -> Handle:
        if moment is None:
            return self.newest
        if isinstance(moment, int):
            return self._of_offset(moment, "", text)
        offset = min(self.history.times.after(milliseconds(moment)), self.current.timeline.end)
        return self._of_offset(offset, moment_text(moment), text)

    def _of_offset(self, offset: int, time: str, text: str) -> Handle:
        timeline = self.current.timeline
        if offset > timeline.end:
            raise BadParameterError(f"{text}: the log ends at offset {timeline.end}")
        # A log whose first record is of a later time has no data on the time before.
        if offset < timeline.begin or (offset == 0 and time):
            self.notes.append(
                f"{text}: unknown state: shown from offset {timeline.begin:,} on, "
                "where the history begins" + (" so far" if self.current.is_reading else "")
            )
            offset = timeline.begin
        return Handle(offset=offset, position=timeline.position(offset), time=time)


# Pages and notices for a history that is incomplete or missing.


def no_history(console: Console, path: str, title: str, offset: int) -> Page:
    """Return the page of a source that is a single state."""
    return Page(
        path=path,
        title=title,
        answer="This source has no history: it is a single state.",
        mark=Mark.WARNING,
        notices=(
            Notice(
                text=f"{console.name}: a metadata log has the history of changes: "
                "--log DIR or --bootstrap-controller HOST:PORT"
            ),
        ),
        offset=offset,
    )


def history_notices(current: KnownHistory, offset: int) -> tuple[Notice, ...]:
    """Return the notices on an incomplete history; `offset` is the newest state's."""
    notices = []
    begin = begin_text(current)
    if begin:
        notices.append(Notice(text=begin))
    if current.trouble is not None:
        text = f"The history after offset {current.timeline.end:,} is unknown: {current.trouble}"
        notices.append(Notice(text=text, mark=Mark.ERROR))
    elif current.timeline.end < offset:
        text = f"The history is known up to offset {current.timeline.end:,}; the newest state is at {offset:,}."
        notices.append(Notice(text=text))
    return tuple(notices)


# Cells of the pages of the past: moments, changes, and their authors.


CHANGES = "/changes"
_SHARED_CELLS = 4_096
"""Cells that are kept for the next page."""


def time_of(timestamp: int) -> str:
    """Return a time in ms since 1970 as text; empty if it is unknown."""
    return timestamp_text(timestamp) if timestamp >= 0 else ""


def change_url(timeline: RuleTimeline, end_offset: int) -> str:
    """Return the link to the changes that became visible with the state at an offset."""
    before = timeline.offset(timeline.before(timeline.position(end_offset)))
    return url(CHANGES, since=before, until=end_offset)


def last_change_url(timeline: RuleTimeline) -> str:
    """Return the link to the last changes of a timeline that has any."""
    return change_url(timeline, timeline.ends[-1])


def day_url(timestamp: int) -> str:
    """Return the link to the changes of the day (UTC) of a time in ms since 1970."""
    day = datetime.fromtimestamp(timestamp // 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    until = day + timedelta(days=1)
    is_over = until.timestamp() * 1000 <= current_time_ms()
    return url(CHANGES, since=day.date(), until=until.date() if is_over else None)


def known_history(console: Console) -> KnownHistory | None:
    """Return the history as far as it is known now; None: the source has no history, or nothing was read yet.

    A page of the newest state does not wait for it: many viewers share its threads.
    """
    return None if console.history is None else console.history.live.current


def since_of(console: Console, offset: int) -> Since | None:
    """Return what shows since when the rules of the state at an offset are there; None without a known history."""
    history, current = console.history, known_history(console)
    if history is None or current is None:
        return None
    timeline = current.timeline

    def since(acl: StandardAcl) -> Cell:
        """Return the time of the change that added it."""
        change = history.added(timeline, acl, offset)
        if change is not None:
            before = timeline.offset(timeline.before(timeline.position(change.end_offset)))
            return _added_cell(change.timestamp, change.offset, before, change.end_offset)
        if timeline.end < offset and not is_at_end(timeline, acl):
            return Cell(f"after offset {timeline.end:,}")
        return Cell("not known", mark=Mark.QUIET)

    return since


@lru_cache(_SHARED_CELLS)
def _added_cell(timestamp: int, offset: int, before: int, end_offset: int) -> Cell:
    """Return the day of a change, with the link to the changes between two offsets."""
    return Cell(day_of(timestamp) or f"offset {offset:,}", url(CHANGES, since=before, until=end_offset))


def is_at_end(timeline: RuleTimeline, acl: StandardAcl) -> bool:
    """Return whether the last known state of a history has a rule."""
    acls = timeline.anchors[-1].acls
    return any(rule.acl == acl for rule in acls.candidates(acl.resource_type, acl.resource_name))


def added_items(console: Console, state: State, acl: StandardAcl) -> list[tuple[str, Cell]]:
    """Return since when a rule of a state is there, and who added it, as facts; none without a known history."""
    history, current = console.history, known_history(console)
    if history is None or current is None:
        return []
    timeline = current.timeline
    change = history.added(timeline, acl, state.offset)
    if change is None and timeline.end < state.offset and not is_at_end(timeline, acl):
        return [("Since", Cell(f"after offset {timeline.end:,}"))]
    if change is None:
        return [("Since", Cell(f"offset {timeline.begin:,} or before: older changes are not known"))]
    time = time_of(change.timestamp)
    since = f"{time}, offset {change.offset:,}" if time else f"offset {change.offset:,}"
    position = timeline.position(change.end_offset)
    pairs, unknown = history.with_applies(timeline, timeline.before(position), position)
    note = next((note for each, note in pairs if each is change), None)
    return [
        ("Since", Cell(since, change_url(timeline, change.end_offset))),
        ("Added by", Cell(unknown or "unknown" if note is None else _author(note))),
    ]


def _author(note: ApplyNote) -> str:
    return f"{note.who}, apply {note.apply}" + (f", commit {note.git}" if note.git else "")


def is_settled(console: Console, offset: int) -> bool:
    """Return whether a page of the state at an offset has all of the history that it can have."""
    current = known_history(console)
    return console.history is None or (current is not None and current.timeline.end >= offset)


def day_of(timestamp: int) -> str:
    """Return a time as its day, UTC; empty if it is unknown."""
    return time_of(timestamp)[:10]


def kind_cell(change: Change) -> Cell:
    """Return whether a rule was added or removed."""
    added = change.kind is ChangeKind.ADDED
    text = "added" if added else "removed"
    return Cell(f"{text}, at this offset or before" if change.gap else text, mark=Mark.ADDED if added else Mark.REMOVED)


def who_cells(note: ApplyNote | None) -> tuple[Cell, ...]:
    """Return the author of an apply, the commit that it was made from, and its id."""
    if note is None:
        return (Cell(""), Cell(""), Cell(""))
    return (Cell(note.who), Cell(note.git or ""), Cell(note.apply))


def change_text(change: Change) -> str:
    """Return a change in words."""
    return f"{'added' if change.kind is ChangeKind.ADDED else 'removed'} {acl_text(change.rule.acl)}"


_LATEST_COLUMNS = (
    Column(key="time", title="Time", is_whole=True),
    Column(key="change", title="Change"),
    Column(key="rule", title="Rule"),
    Column(key="who", title="By"),
)


def latest_table(
    timeline: RuleTimeline, pairs: Sequence[tuple[Change, ApplyNote | None]], *, title: str, none: str
) -> Table:
    """Return changes, the newest first, each with its apply, as a table."""
    rows = tuple(
        Row(
            key=f"{change.offset} {change.rule.id}",
            cells=(
                Cell(time_of(change.timestamp) or f"offset {change.offset:,}", change_url(timeline, change.end_offset)),
                kind_cell(change),
                Cell(acl_text(change.rule.acl), rule_url(change.rule.acl)),
                Cell("" if note is None else note.who),
            ),
        )
        for change, note in pairs
    )
    return Table(key="latest", title=title, columns=_LATEST_COLUMNS, rows=rows, none=none)


def without_rule(table: Table) -> Table:
    """Return a table of changes that are all of one rule."""
    at = [column.key for column in table.columns].index("rule")
    rows = tuple(evolve(row, cells=(*row.cells[:at], *row.cells[at + 1 :])) for row in table.rows)
    return evolve(table, columns=(*table.columns[:at], *table.columns[at + 1 :]), rows=rows)


# Parts of the page of changes around its answer: the handles of the slider, their positions, and steps from there.


_HINT = "yesterday 18:00"


def span_form(parameters: Parameters, timeline: RuleTimeline, span: Span) -> Form:
    """Return the two handles, and the texts beside them."""
    least, most = timeline.begin, timeline.end
    first, last = (
        Field(
            name=name,
            label=label,
            value=str(handle.offset),
            kind=Kind.RANGE,
            least=least,
            most=most,
            empties=empties,
            is_open=name == "to",
        )
        for name, label, handle, empties in (
            ("from", "From offset", span.first, "since"),
            ("to", "To offset", span.last, "until"),
        )
    )
    fields = (
        Field(name="since", label="Since", value=parameters.text("since"), hint=_HINT),
        Field(name="until", label="Until", value=parameters.text("until"), hint="now"),
        first,
        last,
        as_of_field(parameters.text("as_of")),
    )
    return Form(key="span", title="Between", path=CHANGES, fields=fields)


_BARS = 60
"""Bars of the strip."""


def strip(history: History, timeline: RuleTimeline, span: Span) -> Chart:
    """Return the changes over the known history, over offsets as the slider, with the chosen ones marked."""
    begin, end = timeline.begin, timeline.end
    bounds = sorted({begin + (end - begin) * number // _BARS for number in range(_BARS + 1)})
    bars = []
    for low, high, (added, removed) in zip(bounds, bounds[1:], history.index.density(timeline, bounds), strict=False):
        time = time_of(timeline.time(timeline.position(high)))
        bars.append(
            Bar(
                label=f"offset {high:,}" + (f", {time}" if time else ""),
                added=added,
                removed=removed,
                url=url(CHANGES, since=low, until=high) if added or removed else None,
                is_chosen=low < span.last.offset and high > span.first.offset,
            )
        )
    return Chart(key="strip", title="Timeline", bars=tuple(bars))


def presets(history: History, timeline: RuleTimeline, as_of: str) -> Links:
    """Return the ways to frequent intervals, which end at a moment of the past if one is shown."""
    links = [Cell(name, url(CHANGES, since=since, as_of=as_of)) for name, since in _PRESETS]
    deploy = _last_apply(history, timeline)
    if deploy is not None:
        links.append(Cell("since the last apply", url(CHANGES, since=deploy, as_of=as_of)))
    links.append(Cell("the whole known history", url(CHANGES, since=timeline.begin, as_of=as_of)))
    return Links(key="presets", title="Show", links=tuple(links))


_PRESETS = (("last hour", "1h ago"), ("last day", "24h ago"), ("last week", "168h ago"))


def _last_apply(history: History, timeline: RuleTimeline) -> int | None:
    """Return the offset at which the newest apply began; None if it is not known."""
    try:
        applied = None if history.applies is None else history.applies.read()
    except MetadataError:
        return None
    offsets = [each.offset for each in applied or () if timeline.begin <= each.offset <= timeline.end]
    return max(offsets, default=None)


def span_handles(timeline: RuleTimeline, span: Span) -> tuple[SliderHandle, ...]:
    """Return where the two handles are."""
    ends = (("from", span.first), ("to", span.last))
    least, most = timeline.begin, timeline.end
    return tuple(SliderHandle(name=name, value=each.offset, least=least, most=most) for name, each in ends)


def span_facts(console: Console, timeline: RuleTimeline, span: Span, net: tuple[RuleChange, ...]) -> Facts:
    """Return where a span begins and ends; `net` are the rules that only one of both states has."""
    first, last = span.first, span.last
    command = console.command.of("acls history", "--since", str(first.offset), as_of=str(last.offset), settings=False)
    changes = plural(last.position - first.position, "change")
    return Facts(
        key="span",
        title="Between",
        is_folded=True,
        items=(
            ("From", Cell(_handle_text(timeline, first), url("/rules", as_of=first.offset))),
            ("To", Cell(_handle_text(timeline, last), url("/rules", as_of=last.offset))),
            ("Rule changes", Cell(f"{changes}; the two states differ in {plural(len(net), 'rule')}")),
            ("History", Cell(_history_text(timeline))),
            ("The changes on a command line", Cell(command or "")),
        ),
    )


def _handle_text(timeline: RuleTimeline, handle: Handle) -> str:
    time = time_of(timeline.time(handle.position))
    parts = [f"offset {handle.offset:,}" + (", the newest" if handle.is_newest else "")]
    if handle.time:
        parts.append(f"as of {handle.time}")
    if time:
        parts.append(f"last change {time}" if handle.position else f"last record {time}")
    return "; ".join(parts)


def _history_text(timeline: RuleTimeline) -> str:
    time = time_of(timeline.begin_time)
    begin = f"offset {timeline.begin:,}" + (f" ({time})" if time else "")
    return f"{plural(len(timeline), 'change')} from {begin} to offset {timeline.end:,}"


def steps(timeline: RuleTimeline, span: Span) -> list[Links]:
    """Return the ways to the spans beside this one."""
    first, last = span.first, span.last
    before, after = timeline.before(first.position), timeline.after(last.position)
    whole = [
        Cell("the last change", url(CHANGES)),
        Cell("permalink", url(CHANGES, since=first.offset, until=last.offset)),
        Cell("as a comment (Markdown)", url(CHANGES, since=first.offset, until=last.offset, format="markdown")),
    ]
    if first.position > before:
        at = timeline.offset(first.position)
        whole.insert(0, Cell("the change before", url(CHANGES, since=timeline.offset(before), until=at)))
    if last.position < after:
        start = timeline.offset(last.position)
        whole.append(Cell("the change after", url(CHANGES, since=start, until=timeline.offset(after))))
    return [
        Links(key="steps", title="Step", links=tuple(whole)),
        Links(key="steps-from", title="From", links=tuple(_moves(timeline, span, moves_first=True))),
        Links(key="steps-to", title="To", links=tuple(_moves(timeline, span, moves_first=False))),
    ]


def _moves(timeline: RuleTimeline, span: Span, *, moves_first: bool) -> list[Cell]:
    """Return the ways to have one end earlier or later: by a change, an hour, a day."""
    moved = span.first if moves_first else span.last
    until = None if span.last.is_newest else span.last.parameter
    since = span.first.parameter

    def to(text: object) -> str:
        return url(CHANGES, since=text, until=until) if moves_first else url(CHANGES, since=since, until=text)

    cells = []
    before, after = timeline.before(moved.position), timeline.after(moved.position)
    if before < moved.position:
        cells.append(Cell("a change earlier", to(timeline.offset(before))))
    if after > moved.position:
        cells.append(Cell("a change later", to(timeline.offset(after))))
    time = _time(timeline, moved)
    if time is not None:
        for name, step in (("an hour", timedelta(hours=1)), ("a day", timedelta(days=1))):
            earlier, later = _moved(time, -step), _moved(time, step)
            if earlier is not None:
                cells.append(Cell(f"{name} earlier", to(earlier)))
            if later is not None and not moved.is_newest:
                cells.append(Cell(f"{name} later", to(later)))
    return cells


def _time(timeline: RuleTimeline, handle: Handle) -> datetime | None:
    """Return the time of a handle, or that of the last change before it; None if unknown."""
    timestamp = timeline.time(handle.position)
    try:
        moment = datetime.fromisoformat(handle.time) if handle.time else datetime.fromtimestamp(timestamp / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a record may bear any number
        return None
    return moment if handle.time or timestamp >= 0 else None


def _moved(time: datetime, step: timedelta) -> str | None:
    """Return the text of a time, moved; None if it left the calendar."""
    try:
        return moment_text(time + step)
    except OverflowError:
        return None
