"""What `aclog simulate` prints: how many accesses change, and which."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from aclog.analysis.policy import generation_object, merged
from aclog.authorizer.premises import ALL_KNOWN
from aclog.authorizer.settings import Generation
from aclog.cli.answers import with_generation
from aclog.cli.diff_report import SideFlags
from aclog.cli.flags.common import AccessesFlags, Output
from aclog.cli.usage_report import time_text
from aclog.metalog.errors import printable
from aclog.ops.policies import Sides
from aclog.ops.usage import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.terminal.columns import Column, Row, json_text
from aclog.terminal.output import say, warn
from aclog.terminal.tables import aligned
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from aclog.usage.judging import CountedLog
from aclog.usage.simulation import Change, Simulation
from aclog.usage.simulation import simulate as simulate_changes
from aclog.usage.unused import Answer
from aclog.usage.window import UnreadAccesses

_MAX_ROWS: Final = 10

FLIP_COLUMNS: Final = (
    Column(key="change"),
    Column(key="principal", cut=True),
    Column(key="host", cut=True),
    Column(key="operation"),
    Column(key="resourceType", title="TYPE"),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="count"),
    Column(key="firstAt", title="FIRST", spare=True),
    Column(key="lastAt", title="LAST"),
    Column(key="decisionBefore", spare=True),
    Column(key="ruleBefore", cut=True),
    Column(key="ruleIdBefore", spare=True),
    Column(key="decisionAfter", spare=True),
    Column(key="ruleAfter", cut=True),
    Column(key="ruleIdAfter", spare=True),
)


def report_simulation(flags: SideFlags, accesses: AccessesFlags, output: Output) -> int:
    """Print the accesses that two policies decide differently, and return the exit code: 1 if there are any, or may be.

    Raises:
        MetadataError, OSError: the log or a source cannot be read.

    """
    flags.check({})
    log = AccessLog.of(accesses)
    each = flags.states().read_each()
    one = next(iter(each.values()))
    judging = Judging(rules=Rules.of_image(one.old.acls), settings=one.old.settings, own_time=False)
    counted = log.count(judging.how(None, timeless=True))
    simulations = {generation: _simulated(counted, sides) for generation, sides in each.items()}
    flips = any(len(own.flips) for own in simulations.values())

    def differs_when_open() -> bool:
        """Decide the accesses once more."""
        return any(len(_simulated(counted, sides, is_open=True).flips) for sides in each.values())

    turning = ALL_KNOWN if flips else one.premises.turning(None, differs_when_open)
    ordered = {generation: _ordered(own) for generation, own in simulations.items()}
    if output.is_rows:
        output.print_rows(with_generation(FLIP_COLUMNS, simulations), _rows(ordered))
    else:
        for number, (generation, own) in enumerate(simulations.items()):
            if generation is not None:
                say("\n" * (number > 0) + f"On {generation}:")
            for line in _summary(own, ordered[generation], is_sure=not turning):
                say(printable(line))
    warn_of_rejects(counted.rejects)
    unread = next((own.unread for own in simulations.values() if own.unread), UnreadAccesses())
    warn_of_unread(unread, "rules change that they may need, so that they may be decided differently")
    if turning:
        warn(turning.decided("every access is decided the same"))
    return int(bool(flips or unread or turning))


def _simulated(counted: CountedLog, sides: Sides, *, is_open: bool = False) -> Simulation:
    """Decide the accesses by both sides; `is_open`: as if what no rule covers were open to everyone."""
    before, after = (
        (Rules.of_image(policy.acls), evolve(policy.settings, allow_everyone=is_open or policy.settings.allow_everyone))
        for policy in (sides.old, sides.new)
    )
    return simulate_changes(counted.accesses, before, after, counted.unread)


def _ordered(simulation: Simulation) -> Any:
    return simulation.flips.sort_by([("count", "descending"), *((name, "ascending") for name in REQUEST_COLUMNS)])


def _rows(ordered: Mapping[Generation | None, Any]) -> Iterator[Row]:
    """Yield the rows of all generations of Kafka that may decide; what only one decides so is marked."""
    rows = {generation: map(_row, flips.to_pylist()) for generation, flips in ordered.items()}
    for row, only in merged(rows, json_text):
        yield {**row, **generation_object(only)}


def _row(flip: dict[str, Any]) -> Row:
    row = {name: flip[name] for name in ("change", *REQUEST_COLUMNS, "count")}
    for key, name in (("firstAt", "first_at"), ("lastAt", "last_at")):
        row[key] = None if flip[name] is None else time_text(flip[name])
    for side in ("Before", "After"):
        for key, name in (("decision", "decision"), ("rule", "rule"), ("ruleId", "rule_id")):
            row[f"{key}{side}"] = flip[f"{name}_{side.lower()}"]
    return row


def _summary(simulation: Simulation, ordered: Any, *, is_sure: bool) -> Iterator[str]:
    """Yield the lines; `is_sure`: whether nothing that is unknown could change an access that is the same."""
    changes = ordered.column("change")
    rows = []
    for change in Change:
        flips = ordered.filter(pc.equal(changes, pa.scalar(change.value)))
        if len(flips) or change in {Change.GAINED, Change.LOST}:
            rows.append((f"{pc.sum(flips.column('count')).as_py() or 0:,}", f"{len(flips):,}", change.value))
    rows.append((f"{simulation.same if is_sure else 0:,}", "", "SAME"))
    unjudged = simulation.unread.total + (0 if is_sure else simulation.same)
    if simulation.unread or not is_sure:
        rows.append((f"{unjudged:,}", "", Answer.NOT_JUDGED.value))
    yield from aligned(("accesses", "distinct requests", "change"), rows)
    for change in Change:
        flips = ordered.filter(pc.equal(changes, pa.scalar(change.value)))
        if len(flips):
            yield ""
            yield from _most(flips, change)


def _most(flips: Any, change: Change) -> Iterator[str]:
    header = (change.value.lower(), "principal", "host", "operation", "resource", "before", "after")
    rows = (
        (
            f"{row['count']:,}",
            *(str(row[name]) for name in ("principal", "host", "operation")),
            f"{row['resourceType']}:{row['resourceName']}",
            row["rule_id_before"] or row["rule_before"],
            row["rule_id_after"] or row["rule_after"],
        )
        for row in flips.slice(0, _MAX_ROWS).to_pylist()
    )
    yield from aligned(header, rows)
    if len(flips) > _MAX_ROWS:
        yield f"... and {len(flips) - _MAX_ROWS:,} more"
