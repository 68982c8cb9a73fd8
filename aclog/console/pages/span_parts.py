"""What the page of changes has around its answer: the handles of the slider, where they are, and steps from there."""

from datetime import UTC, datetime, timedelta

from aclog.authorizer.rule_change import RuleChange
from aclog.console.pages.asked import Asked, url
from aclog.console.pages.console import Console
from aclog.console.pages.page import Cell, Facts, Field, Form, Kind, Links
from aclog.console.pages.page import Handle as SliderHandle
from aclog.console.pages.past_cells import CHANGES, time_of
from aclog.console.pages.span import Handle, Span
from aclog.console.rule_timeline import RuleTimeline
from aclog.snapshots.moments import moment_text

_HINT = "an offset, or a time (UTC): yesterday 18:00, 2h ago, 2026-03-01; empty: the handle"


def span_form(asked: Asked, timeline: RuleTimeline, span: Span) -> Form:
    """Return the two handles, and the texts beside them."""
    least, most = timeline.begin, timeline.end
    fields = (
        Field(
            name="from",
            label="From offset",
            value=str(span.first.offset),
            kind=Kind.RANGE,
            least=least,
            most=most,
            empties="since",
        ),
        Field(
            name="to",
            label="To offset",
            value=str(span.last.offset),
            kind=Kind.RANGE,
            least=least,
            most=most,
            empties="until",
            is_open=True,
        ),
        Field(name="since", label="Since", value=asked.text("since"), hint=_HINT),
        Field(name="until", label="Until", value=asked.text("until"), hint="the same; empty: the handle, or now"),
    )
    return Form(key="span", title="Between", path=CHANGES, fields=fields)


def span_handles(timeline: RuleTimeline, span: Span) -> tuple[SliderHandle, ...]:
    """Return where the two handles are."""
    ends = (("from", span.first), ("to", span.last))
    least, most = timeline.begin, timeline.end
    return tuple(SliderHandle(name=name, value=each.offset, least=least, most=most) for name, each in ends)


def span_facts(console: Console, timeline: RuleTimeline, span: Span, net: tuple[RuleChange, ...]) -> Facts:
    """Return where a span begins and ends; `net` are the rules that only one of both states has."""
    first, last = span.first, span.last
    command = console.command.of("acls history", "--since", str(first.offset), as_of=str(last.offset), settings=False)
    return Facts(
        key="span",
        title="Between",
        items=(
            ("From", Cell(_handle_text(timeline, first), url("/rules", as_of=first.offset))),
            ("To", Cell(_handle_text(timeline, last), url("/rules", as_of=last.offset))),
            ("Rule changes", Cell(f"{last.position - first.position:,}, {len(net):,} of them left")),
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
    return f"{len(timeline):,} changes from {begin} to offset {timeline.end:,}"


def steps(timeline: RuleTimeline, span: Span) -> list[Links]:
    """Return the ways to the spans beside this one."""
    first, last = span.first, span.last
    before, after = timeline.before(first.position), timeline.after(last.position)
    whole = [Cell("the last change", url(CHANGES))]
    if first.position > before:
        at = timeline.offset(first.position)
        whole.insert(0, Cell("the change before", url(CHANGES, since=timeline.offset(before), until=at)))
    if last.position < after:
        start = timeline.offset(last.position)
        whole.append(Cell("the change after", url(CHANGES, since=start, until=timeline.offset(after))))
    whole.append(Cell("all that is known", url(CHANGES, since=timeline.begin)))
    return [
        Links(key="steps", title="Step", links=tuple(whole)),
        Links(key="steps-from", title="Move the beginning", links=tuple(_moves(timeline, span, moves_first=True))),
        Links(key="steps-to", title="Move the end", links=tuple(_moves(timeline, span, moves_first=False))),
    ]


def _moves(timeline: RuleTimeline, span: Span, *, moves_first: bool) -> list[Cell]:
    """Return the ways to have one end earlier or later: by a change, an hour, a day."""
    moved = span.first if moves_first else span.last
    until = None if span.last.is_newest else span.last.asked
    since = span.first.asked

    def to(text: object) -> str:
        return url(CHANGES, since=text, until=until) if moves_first else url(CHANGES, since=since, until=text)

    found = []
    before, after = timeline.before(moved.position), timeline.after(moved.position)
    if before < moved.position:
        found.append(Cell("a change earlier", to(timeline.offset(before))))
    if after > moved.position:
        found.append(Cell("a change later", to(timeline.offset(after))))
    time = _time(timeline, moved)
    if time is not None:
        for name, step in (("an hour", timedelta(hours=1)), ("a day", timedelta(days=1))):
            earlier, later = _moved(time, -step), _moved(time, step)
            if earlier is not None:
                found.append(Cell(f"{name} earlier", to(earlier)))
            if later is not None and not moved.is_newest:
                found.append(Cell(f"{name} later", to(later)))
    return found


def _time(timeline: RuleTimeline, handle: Handle) -> datetime | None:
    """Return the time of a handle, or that of the last change before it; None if none is known."""
    timestamp = timeline.time(handle.position)
    try:
        found = datetime.fromisoformat(handle.time) if handle.time else datetime.fromtimestamp(timestamp / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a record may bear any number
        return None
    return found if handle.time or timestamp >= 0 else None


def _moved(time: datetime, step: timedelta) -> str | None:
    """Return the text of a time, moved; None if it left the calendar."""
    try:
        return moment_text(time + step)
    except OverflowError:
        return None
