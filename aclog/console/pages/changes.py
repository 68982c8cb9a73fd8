"""The page of changes: what two states of the past decide differently, and the changes between them."""

from collections import Counter

from aclog.analysis.regions.region import Direction
from aclog.analysis.rows.row_report import TITLES, ReportRow, row_cells
from aclog.analysis.side_premises import turning_same
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.rule_change import RuleChange
from aclog.console.pages.asked import Asked, url
from aclog.console.pages.cells import PAGE_ROWS, RULE_COLUMNS, paged, rule_cells
from aclog.console.pages.console import Console
from aclog.console.pages.history import Compared, History
from aclog.console.pages.no_history import history_notices, no_history
from aclog.console.pages.page import (
    Cell,
    Column,
    Facts,
    Mark,
    Notice,
    Page,
    Part,
    Row,
    Table,
)
from aclog.console.pages.past_cells import CHANGES, change_url, kind_cell, time_of, who_cells
from aclog.console.pages.span import Span, span_of
from aclog.console.pages.span_parts import span_facts, span_form, span_handles, steps
from aclog.console.rule_timeline import RuleTimeline
from aclog.planning.place import ApplyNote
from aclog.snapshots.rule_history import Change

PATH = CHANGES
AT_ONCE = 100
"""Rules that differ, up to which a page compares states without being asked."""
MOST = 10_000
"""With more the command line is told instead."""
_DIFFERENCE = "Who gained and lost what"
_WHO_COLUMNS = (
    Column(key="apply", title="Apply"),
    Column(key="who", title="By"),
    Column(key="git", title="Commit"),
)


def changes_page(console: Console, asked: Asked) -> Page:
    """Return what changed between two moments. Raises BadAskedError: no such moments."""
    state = console.states.now()
    history = console.history
    if history is None:
        return no_history(console, PATH, "Changes", state.offset)
    known = history.known(state.offset)
    span = span_of(asked, known, history.live)
    first, last = span.first, span.last
    timeline = known.timeline
    net = history.net(timeline, first.position, last.position)
    compared = _compared(history, timeline, span, net, wanted=asked.flag("all"))
    made = _made(history, timeline, span, asked)
    parts: list[Part] = [span_form(asked, timeline, span), span_facts(console, timeline, span, net)]
    parts += steps(timeline, span)
    unknown = ALL_KNOWN if compared is None else turning_same(state.premises, compared.comparison)
    parts += [_not_compared(span, net) if compared is None else _difference(compared, unknown), made]
    return Page(
        path=PATH,
        title="Changes",
        answer=_answer(span, net, compared, unknown),
        command=console.command.of("diff", "--to-as-of", str(last.offset), as_of=str(first.offset)),
        parts=tuple(parts),
        handles=span_handles(timeline, span),
        notices=history_notices(known, state.offset) + tuple(Notice(text=each) for each in span.notes),
        offset=last.offset,
        data=tuple(compared.comparison.json_lines()) if compared is not None and asked.word("format") == "json" else (),
    )


def _compared(
    history: History, timeline: RuleTimeline, span: Span, net: tuple[RuleChange, ...], *, wanted: bool
) -> Compared | None:
    first, last = span.first.position, span.last.position
    is_cheap = len(net) <= AT_ONCE or history.was_compared(timeline, first, last)
    if not is_cheap and not (wanted and len(net) <= MOST):
        return None
    return history.compared(timeline, first, last, net)


def _answer(span: Span, net: tuple[RuleChange, ...], compared: Compared | None, unknown: Premises) -> str:
    """Return the answer; `unknown`: what could make a difference of none."""
    count = span.last.position - span.first.position
    where = f"between {span.first} and {span.last}"
    if not count:
        return f"No rule changed {where}."
    rules = f"{count:,} rule change{'' if count == 1 else 's'} {where}"
    if not net:
        return f"{rules}, which took each other back: every request is decided the same."
    if compared is None:
        return f"{rules}: {len(net):,} rules differ; what they give and take is not worked out yet."
    counts = Counter(direction for report in compared.rows for direction in report.row.directions)
    if not counts:
        return f"{rules}: {unknown.decided('every request is decided the same')}."
    return f"{rules}: {counts[Direction.GAINED]:,} gained, {counts[Direction.LOST]:,} lost"


def _not_compared(span: Span, net: tuple[RuleChange, ...]) -> Facts:
    """Return what stands in the place of the difference: no table, which could be taken for an empty one."""
    if len(net) <= MOST:
        until = None if span.last.is_newest else span.last.asked
        cell = Cell("compare them", url(PATH, since=span.first.asked, until=until, all=True))
        why = f"{len(net):,} rules differ; more than {AT_ONCE} are compared when it is asked for"
    else:
        cell = Cell("on the command line above")
        why = f"{len(net):,} rules differ; more than {MOST:,} are not compared here"
    return Facts(key="not-compared", title=_DIFFERENCE, items=((why, cell),))


def _difference(compared: Compared, unknown: Premises) -> Table:
    columns = tuple(Column(key=title.replace(" ", "_"), title=title.capitalize()) for title in TITLES)
    shown = compared.rows[:PAGE_ROWS]
    left = len(compared.rows) - len(shown)
    return Table(
        key="difference",
        title=_DIFFERENCE,
        columns=columns,
        rows=tuple(_difference_row(each) for each in shown),
        none=f"{unknown.decided('Every request is decided the same')}.",
        total=len(compared.rows),
        note=f"the first {PAGE_ROWS} of {len(compared.rows):,}: the command line shows all" if left else "",
    )


def _difference_row(report: ReportRow) -> Row:
    texts = row_cells(report)
    directions = set(report.row.directions)
    mark = None if len(directions) > 1 else Mark.GAINED if Direction.GAINED in directions else Mark.LOST
    cells = (Cell(texts[0], mark=mark), *map(Cell, texts[1:]))
    return Row(key=repr(texts), cells=cells, mark=mark)


def _made(history: History, timeline: RuleTimeline, span: Span, asked: Asked) -> Table:
    """Return the changes between the two states, the newest first."""
    low, high = span.first.position, span.last.position
    first = asked.number("first", 0, 0, 1 << 40)
    end = max(high - first, low)
    begin = max(end - PAGE_ROWS, low)
    told, unknown = history.with_applies(timeline, begin, end)
    columns = (
        Column(key="offset", title="Offset", is_number=True),
        Column(key="time", title="Time"),
        Column(key="change", title="Change"),
        *RULE_COLUMNS,
        *(() if unknown else _WHO_COLUMNS),
    )
    rows = tuple(_change_row(timeline, each, note, knows_who=not unknown) for each, note in reversed(told))
    table = Table(
        key="changes",
        title="Rule changes, the newest first",
        columns=columns,
        rows=rows,
        none="No rule changed in between.",
        total=high - low,
        note=unknown,
    )
    others = {name: value for name, value in asked.given.items() if name not in ("first", "format", "table")}
    return paged(table, first, PATH, **others)


def _change_row(timeline: RuleTimeline, change: Change, note: ApplyNote | None, *, knows_who: bool) -> Row:
    cells = (
        Cell(f"{change.offset:,}", change_url(timeline, change.end_offset)),
        Cell(time_of(change.timestamp)),
        kind_cell(change),
        *rule_cells(change.rule.acl, str(change.end_offset)),
        *(who_cells(note) if knows_who else ()),
    )
    mark = kind_cell(change).mark
    return Row(key=f"{change.offset} {change.rule.id}", cells=cells, mark=mark)
