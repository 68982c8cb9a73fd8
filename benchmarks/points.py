"""One table of what each speed goal came to: `python -m benchmarks.points` reads the kept results.

It measures nothing. Each row names the run that it comes from; within a run, what is compared was measured in turn.
"""

import json
import re
from collections.abc import Iterator
from functools import cache

from attrs import frozen

from benchmarks.report import RESULTS

FILE = RESULTS / "points.md"
_TITLE = "# Speed: what each goal came to"
_HEAD = ("what", "aclog", "compared with", "ratio", "goal", "met", "run")


@frozen(kw_only=True)
class Point:
    """One figure of one kept run, and its goal."""

    part: str
    """The name of the results, without a suffix."""
    what: str
    """The row's."""
    beside: str = ""
    """What the row's other figure is of."""
    most: float | None = None
    """The largest figure that meets the goal."""
    times: float | None = None
    """The smallest ratio to the other figure that meets the goal."""


_FORMER = "456ea3fc"
_ACCESSES = "200,000 distinct accesses, 100,000 rules"
_CROWD = "CreateAcls at a controller, 1,000 clients"
_REMOVALS = "1,000 removals beside 100,000 rules"
POINTS = (
    Point(part="former", what="check no-public, 4,000 rules of `public`: CPU", beside=_FORMER),
    Point(part="former", what="who-can over a prefix, 4,000 hosts of one client: CPU", beside=_FORMER),
    Point(part="former", what="diff of a rule, 4,000 hosts of one client: CPU", beside=_FORMER, times=0.95),
    Point(part="sync", what="first poll, 1,010,000 rules: CPU time", most=15),
    Point(part="sync", what="nothing changed, --once: CPU time", most=2),
    Point(part="former", what="log verify, 1,000,000 batches: CPU", beside=_FORMER, most=2),
    Point(part="former", what="log verify, 1,000,000 batches: memory", beside=_FORMER, most=150),
    Point(part="former", what="when, of a name, 1,000,000 batches: CPU", beside=_FORMER, most=2),
    Point(part="former", what="when, of a name, 1,000,000 batches: memory", beside=_FORMER, most=150),
    Point(part="former", what="authorize --log, 1,000,000 batches: CPU", beside=_FORMER, most=0.5),
    Point(part="former", what="authorize --log, 1,000,000 batches: memory", beside=_FORMER, most=150),
    Point(part="former", what="acls list --log, 1,000,000 ACLs: CPU", beside=_FORMER, most=3),
    Point(part="to-arrow", what="to_arrow, 1,000,000 rules", most=1),
    Point(part="to-arrow", what="to_pandas, 1,000,000 rules, against reading Parquet", beside="Parquet", most=1),
    Point(
        part="distinct-accesses",
        what="1,000,000 distinct accesses, 100,000 rules: decided per CPU second (500,000 with 2 cores)",
    ),
    Point(
        part="distinct-accesses",
        what="1,000,000 distinct accesses, 100,000 rules: memory of counting, per access",
        most=200,
    ),
    Point(part="former", what=f"usage, {_ACCESSES}: CPU", beside=_FORMER, times=4),
    Point(part="former", what=f"denied, {_ACCESSES}: CPU", beside=_FORMER, times=4),
    Point(part="former", what=f"suggest, {_ACCESSES}: CPU", beside=_FORMER, times=4),
    Point(part="former", what=f"usage-index, {_ACCESSES}", beside=_FORMER, times=4),
    Point(part="pdp", what="one question over HTTP, a CPU second, vs. OPA", beside="OPA", times=1),
    Point(
        part="pdp",
        what="batches of 1,000 over HTTP, asked for the first time, a CPU second, vs. OPA",
        beside="OPA",
        times=1,
    ),
    Point(part="crowd", what=f"{_CROWD}: per CPU second", beside="Kafka", times=2),
    Point(part="crowd", what=f"{_CROWD}: per second", beside="Kafka", times=0.7),
    Point(part="commands", what="aclog authorize --snapshot, 1,000 rules: CPU", most=0.15),
    Point(part="commands", what="aclog explain --snapshot, 1,000 rules: CPU", most=0.15),
    Point(part="commands", what="aclog acls list --snapshot --topic, 1,000 rules: CPU", most=0.15),
    Point(part="commands", what="aclog --help: CPU", most=0.08),
    Point(part="removals", what=f"{_REMOVALS}, own and shared topics", beside="a filter for each", times=5),
    Point(part="removals", what=f"{_REMOVALS}, 20 topics of all", beside="a filter for each", times=5),
)
"""In the order of the goals; those that are measured apart have tables of their own."""
_ELSEWHERE = """The growth of 15 questions on ten kinds of estates is in [questions](questions), a file for each kind \
that was measured whole. Decisions beside Kafka's class, on changed states too and without the native core, are in \
[shapes.md](shapes.md); replay of small batches, decisions in handlers and denied requests that are logged in \
[logs-and-handlers.md](logs-and-handlers.md); questions about everyone and many hosts in \
[everyone-and-hosts.md](everyone-and-hosts.md), each with the machine's load."""


@frozen(kw_only=True)
class _Row:
    what: str
    ours: float
    unit: str
    theirs: float | None
    ratio: float | None
    more_is_better: bool


@cache
def _run(part: str) -> tuple[str, list[_Row]]:
    """Return when, of which commit and at which load a part was measured, and its rows."""
    data = json.loads((RESULTS / f"{part}.json").read_text("utf-8"))
    title = (RESULTS / f"{part}.md").read_text("utf-8").partition("\n")[0]
    load = re.search(r"load average ([\d.]+) before, ([\d.]+) after", title)
    made = re.search(r"(\d{4}-\d\d-\d\d)[^,]*(?:, commit (\w+))?", data["machine"])
    if made is None:
        raise ValueError(f"{part}: no date: {data['machine']}")
    commit = f", {made[2]}" if made[2] else ""
    names = ("what", "ours", "unit", "theirs", "ratio", "more_is_better")
    rows = [_Row(**{name: row[name] for name in names}) for row in data["rows"]]
    return f"[{part}]({part}.md) {made[1]}{commit}{f', load {load[1]} to {load[2]}' if load else ''}", rows


def _row(part: str, what: str) -> _Row:
    _, rows = _run(part)
    matching = [row for row in rows if row.what.startswith(what)]
    if not matching:
        raise ValueError(f"{part}: no row that begins with {what!r}")
    return matching[0]


def _cells(point: Point) -> tuple[str, ...]:
    row = _row(point.part, point.what)
    goals = []
    met = []
    if point.most is not None:
        goals.append(f"<= {_number(point.most, row.unit)}")
        met.append(row.ours <= point.most)
    if point.times is not None and row.ratio is not None:
        goals.append(f">= {point.times:g}x")
        met.append(row.ratio >= point.times)
    return (
        row.what,
        _number(row.ours, row.unit),
        f"{_number(row.theirs, row.unit)} ({point.beside})" if row.theirs is not None and point.beside else "",
        f"{row.ratio:.3g}x" if row.ratio is not None and point.beside else "",
        ", ".join(goals),
        "" if not met else "yes" if all(met) else "NO",
        _run(point.part)[0],
    )


def _number(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def lines() -> Iterator[str]:
    """Yield the lines of the table's file. Raises ValueError: a result lacks a row."""
    yield from (_TITLE, "", f"Made by `python -m benchmarks.points` of these runs; {_FORMER} is the commit before.", "")
    yield "| " + " | ".join(_HEAD) + " |"
    yield "|---|" + "---:|" * (len(_HEAD) - 2) + "---|"
    for point in POINTS:
        yield "| " + " | ".join(_cells(point)) + " |"
    yield from ("", _ELSEWHERE)


def main() -> None:
    """Write the table."""
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
