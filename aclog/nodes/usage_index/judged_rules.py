"""The rules by which the accesses of an interval were decided: those of all its images, each while it decided."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from aclog.metalog.uuids import uuid_text
from aclog.metalog.vectors import Int64s
from aclog.nodes.usage_index.image_changes import image_changes
from aclog.nodes.usage_index.recorder import ImageAccesses
from aclog.usage.decisions.acl_intervals import RULE_COLUMNS, rule_table
from aclog.usage.decisions.rules import Rules
from aclog.usage.index.seen_rules import SeenRules, always
from aclog.usage.run_rules import seen_rules


@frozen(eq=False, kw_only=True)
class JudgedRules:
    """The rules of one or several images."""

    rules: Rules
    newest: int | None
    """When the last image with a new rule began, in us since 1970; None if none has."""
    begins: Int64s
    """When each image began to decide, in ms since 1970: ascending, each once. What the first is does not matter."""

    @classmethod
    def of(cls, images: Sequence[ImageAccesses]) -> Self:
        """Join the rules of images; there is at least one, and they are in order."""
        table, begins = rule_table(images[0].image), [images[0].since // 1000]
        came, gone = dict[str, int](), dict[str, int]()
        more: list[dict[str, str | None]] = []
        for old, new in pairwise(images):
            # two images may have begun in one millisecond, or the clock been set back
            begins.append(max(new.since // 1000, begins[-1] + 1))
            changes = image_changes(old.image, new.image)
            gone |= {uuid_text(each): begins[-1] for each in changes.removed}
            for each in changes.added:
                row = each.to_dict()
                more.append(row)
                came[str(row["id"])] = begins[-1]
        if more:
            columns = {name: pa.array([row[name] for row in more], pa.string()) for name in RULE_COLUMNS}
            table = pa.concat_tables([table, pa.table(columns)])
        if came or gone:
            ids = table.column("id").to_pylist()
            for name, times in (("visible_from", came), ("visible_to", gone)):
                table = table.append_column(name, pa.array([times.get(str(each)) for each in ids], pa.int64()))
        return cls(
            rules=Rules.of_table(table),
            newest=max(came.values()) * 1000 if came else None,
            begins=np.array(begins, np.int64),
        )

    def within(self, place: int, times: Int64s) -> Int64s:
        """Return times (us since 1970) as times at which the image at a place decided.

        A request goes on with the image that it began with, so that its accesses may come after the image's time.
        """
        limits = np.iinfo(np.int64)
        low = limits.min if place == 0 else self.begins[place] * 1000
        high = limits.max if place + 1 == len(self.begins) else self.begins[place + 1] * 1000 - 1
        return np.clip(times, low, high)

    def seen(self) -> SeenRules:
        """Return the rules as the index takes them.

        A life begins when this node first decided by the rule. Its exact times, which only the log knows, are left out:
        the same life taken from the log would count as another one. Rules that came within the interval count from the
        last of them on: rather too late than too early.
        """
        found = seen_rules(self.rules, own_time=False)
        begins, ends = always(len(found))
        return evolve(found, begins=begins, ends=ends, known_from=self.newest)
