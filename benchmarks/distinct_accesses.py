"""Logs of which every access is another one: what a million distinct accesses cost `usage`, `denied` and the index.

And what 200,000 cost `suggest`.

CPU time of one process, after the lines are read. Each rule has several accesses: from four hosts, on names of their
own under a prefix; one access in ten is of a principal without a rule on the name.
"""

import os
import resource
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Int64s
from aclog.usage.counting import COUNTED_BY_DAY, AccessCounter, DayTallies, RowCounts, SeenAccesses
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from aclog.usage.denied import refusals
from aclog.usage.judging import Judged, report
from aclog.usage.needs import Needs
from aclog.usage.suggestion import Question, suggest
from aclog.usage.suggestion_proof import prove
from aclog.usage.window import DAY, UnreadAccesses, Window
from benchmarks import shapes
from benchmarks.report import Row

_RULES = 100_000
_HOSTS = 4
_FIRST_DAY = 20_000
_DAYS = 80
_SUGGESTED = 200_000
_BATCH = 1 << 16
"""Rows that are counted together, as a reader of a log returns them."""
_PER_SECOND = 500_000
"""Distinct accesses to decide per second, with all cores."""

_Result = TypeVar("_Result")


def run(count: int) -> Iterator[Row]:
    """Yield rows for so many distinct accesses."""
    acls = list(shapes.million(_RULES))
    rules = Rules.of_image(AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls))
    settings, counted = Settings(), accesses(acls, count)
    what = f"{count:,} distinct accesses, {_RULES:,} rules"
    counter = AccessCounter(SeenAccesses(None))
    columns: list[Any] = [counted.column(name).combine_chunks() for name in REQUEST_COLUMNS]
    times = np.asarray(counted.column("first"))
    before = _resident()  # with the accesses themselves, which a reader holds a batch of
    _, took = _spent(lambda: _count(counter, columns, times))
    yield Row(what=f"{what}: counting, per access", ours=took / count * 1e6, unit="us")
    yield Row(what=f"{what}: memory of counting, per access", ours=(_resident() - before) / count, unit="B", target=200)
    authorizer, took = _spent(lambda: BulkAuthorizer.of(rules.intervals, settings))
    yield Row(what=f"{_RULES:,} rules: indexing them", ours=took, unit="s")
    _, took = _spent(lambda: authorizer.decide_once(columns))
    cores = os.cpu_count() or 1
    target = _PER_SECOND / cores
    yield Row(
        what=f"{what}: decided per CPU second ({_PER_SECOND:,} with {cores} cores)",
        ours=count / took,
        unit="",
        target=target,
        more_is_better=True,
    )
    begin, end = (datetime.fromtimestamp((_FIRST_DAY + day) * 86_400, UTC) for day in (0, _DAYS))
    judged = Judged(rules=rules, settings=settings, window=Window(start=begin, until=end), own_time=False)
    rows, days = RowCounts(total=count), range(_FIRST_DAY, _FIRST_DAY + _DAYS)
    by_rule = counted.drop_columns(["day"])
    few = by_rule.slice(0, min(count, _SUGGESTED))
    _, took = _spent(lambda: _suggested(acls, few, settings))
    yield Row(what=f"{len(few):,} distinct accesses, {_RULES:,} rules: suggestion with its proof", ours=took, unit="s")
    _, took = _spent(lambda: report(by_rule, judged, rows, days, top=100, unread=UnreadAccesses()))
    yield Row(what=f"{what}: report of `usage`", ours=took, unit="s")
    _, took = _spent(lambda: refusals(by_rule, rules, settings))
    yield Row(what=f"{what}: denials of `denied`", ours=took, unit="s")
    tallies = DayTallies.of(rules.intervals, settings, own_time=False)
    _, took = _spent(lambda: sum(tally.accesses for tally in tallies.tallies(counted)))
    yield Row(what=f"{what}: tallies of `usage-index`", ours=took, unit="s")


def _count(counter: AccessCounter, columns: list[Any], times: Int64s) -> None:
    for start in range(0, len(times), _BATCH):
        counter.add([column.slice(start, _BATCH) for column in columns], times[start : start + _BATCH])


def _suggested(acls: list[StandardAcl], counted: pa.Table, settings: Settings) -> int:
    image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls)
    needs = Needs.of(counted, Rules.of_image(image), settings)
    suggestion = suggest(needs, acls, Question(settings=settings))
    return prove(image, suggestion.acls, counted, settings, before=needs.decided).replayed


def _spent(call: Callable[[], _Result]) -> tuple[_Result, float]:
    begin = time.process_time()
    return call(), time.process_time() - begin


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def accesses(acls: list[Any], count: int) -> pa.Table:
    """Return distinct accesses (COUNTED_BY_DAY), each made once."""
    random = np.random.default_rng(7)
    rows: list[tuple[str, str, str, str, str]] = []
    for at in range(count):
        # the host and the end of the name number the accesses of a rule
        number, turn = at % len(acls), at // len(acls)
        acl = acls[number]
        place, host = divmod(turn, _HOSTS) if acl.pattern_type == PatternType.PREFIXED else (0, turn)
        name = f"{acl.resource_name}.v{place}" if acl.pattern_type == PatternType.PREFIXED else acl.resource_name
        principal = acl.principal if at % 10 else f"User:other-{number % 1_000}"
        where = f"10.{host % 250}.{number >> 8 & 255}.{number & 255}"
        rows.append((principal, where, AclOperation(acl.operation).name, ResourceType(acl.resource_type).name, name))
    times = _FIRST_DAY * DAY + np.sort(random.integers(0, _DAYS * DAY, count))
    texts = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    days = (times // DAY).astype(np.int32)
    numbers = [np.zeros(count, np.int64), np.ones(count, np.int64), times, times, days]
    return pa.table([*texts, *map(pa.array, numbers)], schema=COUNTED_BY_DAY)
