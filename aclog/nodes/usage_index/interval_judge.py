"""Judges what a node has decided in an interval by the rules that decided it, for the index of last use."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from attrs import define, field, frozen

from aclog.authorizer.acl import AclOperation, ResourceType, code_name
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.settings import Settings
from aclog.nodes.usage_index.judged_rules import JudgedRules
from aclog.nodes.usage_index.recorder import ImageAccesses
from aclog.usage.access_counter import COUNTED_BY_DAY
from aclog.usage.day_tally import DayTallies
from aclog.usage.index.seen_rules import SeenRules
from aclog.usage.index.tallies import DayTally

_MOST_REMEMBERED = 1 << 16
"""Distinct accesses after which a judge, which remembers them all, is made anew."""


@frozen(eq=False, kw_only=True)
class _Judge:
    """A judge by the rules of one interval. If these did not change meanwhile it serves the next one, too."""

    indexes: tuple[AclIndex, ...]
    """Of the images."""
    rules: JudgedRules
    seen: SeenRules
    tallies: DayTallies


@define(eq=False)
class IntervalJudge:
    """Judges one interval after another; one thread owns it."""

    settings: Settings
    _judge: _Judge | None = field(default=None, init=False)
    _remembered: int = field(default=0, init=False)

    def judged(self, images: Sequence[ImageAccesses]) -> tuple[SeenRules, DayTally]:
        """Return the rules of some images, at least one, and what their accesses matched and needed of them."""
        judge = self._judge_of(images)
        counted = _counted(images, judge)
        self._remembered += len(counted)
        return judge.seen, judge.tallies.tally(counted) if len(counted) else DayTally.nothing()

    def _judge_of(self, images: Sequence[ImageAccesses]) -> _Judge:
        indexes = tuple(each.image.index for each in images)
        known = self._judge
        if known is None or self._remembered > _MOST_REMEMBERED or not _same(known.indexes, indexes):
            rules = JudgedRules.of(images)
            tallies = DayTallies.of(rules.rules.intervals, self.settings, own_time=True)
            known = _Judge(indexes=indexes, rules=rules, seen=rules.seen(), tallies=tallies)
            # of an interval with several images the rules will not come again
            self._judge = known if len(images) == 1 else None
            self._remembered = 0
        return known


def _same(before: Sequence[AclIndex], now: Sequence[AclIndex]) -> bool:
    return len(before) == len(now) and all(old is new for old, new in zip(before, now, strict=True))


def _counted(images: Sequence[ImageAccesses], judge: _Judge) -> pa.Table:
    parts = [_part(each, place, judge) for place, each in enumerate(images) if each.counts]
    return pa.concat_tables(parts) if parts else COUNTED_BY_DAY.empty_table()


def _part(accesses: ImageAccesses, place: int, judge: _Judge) -> pa.Table:
    keys, days, counts, firsts, lasts = zip(*accesses.counts, strict=True)
    principals, hosts, operations, types, names = zip(*keys, strict=True)
    first = judge.rules.within(place, np.array(firsts, np.int64))
    columns = [
        principals,
        hosts,
        [code_name(AclOperation, code) for code in operations],
        [code_name(ResourceType, code) for code in types],
        names,
        judge.tallies.authorizer.index.versions.at(first),
        np.array(counts, np.int64),
        first,
        np.maximum(np.array(lasts, np.int64), first),
        np.array(days, np.int32),
    ]
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, COUNTED_BY_DAY, strict=True)]
    return pa.table(arrays, schema=COUNTED_BY_DAY)
