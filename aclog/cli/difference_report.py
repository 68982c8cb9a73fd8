"""The difference of two policies with what is counted for each part of it, for `diff` and `check`."""

from collections import Counter
from collections.abc import Iterator

from attrs import define

from aclog.analysis.deciding import deciding
from aclog.analysis.difference import differences
from aclog.analysis.existing_names import ExistingNames
from aclog.analysis.folding import rows
from aclog.analysis.names import Names
from aclog.analysis.region import Difference, Direction, Request
from aclog.analysis.region_json import JsonObject, difference_object, witness_object
from aclog.analysis.row import Row
from aclog.analysis.row_report import ReportRow, row_lines
from aclog.analysis.witness import has_legal_name, witness
from aclog.authorizer.acl import ResourceType
from aclog.cli.accesses import Accesses
from aclog.cli.policies import Sides


@define(eq=False, kw_only=True)
class DifferenceReport:
    """Regions in which two policies decide differently."""

    sides: Sides
    differences: list[Difference]
    topics: ExistingNames | None = None
    """The topics that exist, if they are known."""
    flips: Counter[Request] | None = None
    """The accesses that flip, and how often each occurred, if any were given."""

    @staticmethod
    def of(
        sides: Sides,
        *,
        topics: ExistingNames | None = None,
        accesses: Accesses | None = None,
        direction: Direction | None = None,
    ) -> "DifferenceReport":
        """Compare two policies, in both directions or in one."""
        changed = [change.acl for change in sides.changes]
        found = differences(sides.old, sides.new, changed=changed)
        return DifferenceReport(
            sides=sides,
            differences=[each for each in found if direction in (None, each.direction)],
            topics=topics,
            flips=None if accesses is None else accesses.flipped(sides.old, sides.new),
        )

    def json_lines(self) -> Iterator[JsonObject]:
        """Yield an object for each region; `topics` and `accesses` count, if that is known."""
        for difference in self.differences:
            region = difference.region
            example = witness(region)
            old, new = deciding(self.sides.old, example), deciding(self.sides.new, example)
            line = difference_object(difference, old=old, new=new)
            line |= witness_object(example, legal=has_legal_name(region))
            if self.topics is not None and region.resource_type == ResourceType.TOPIC:
                line["topics"] = len(self.topics.among(region.names))
            if self.flips is not None:
                line["accesses"] = sum(count for request, count in self.flips.items() if request in region)
            yield line

    def rows(self) -> list[ReportRow]:
        """Return the rows in which a person reads it."""
        changed = ((change.added, change.acl) for change in self.sides.changes)
        found = rows(self.differences, self.sides.old, self.sides.new, changed)
        return [ReportRow(row=row, topics=self._topics_of(row), accesses=self._accesses_of(row)) for row in found]

    def text_lines(self) -> Iterator[str]:
        """Yield the rows as lines for people, and the number of rows."""
        found = self.rows()
        for report in found:
            yield from row_lines(report)
        counts = Counter(direction for report in found for direction in report.row.directions)
        if not found:
            yield "no difference: every request is decided the same"
        elif len(found) > 1:
            yield f"{len(found):,} rows: {counts[Direction.GAINED]:,} gained, {counts[Direction.LOST]:,} lost"
        if self.flips is not None:
            yield f"{self.flips.total():,} of the accesses flip"

    def _topics_of(self, row: Row) -> int | None:
        parts: list[Names] = [each.names for each in row.clauses if each.resource_type == ResourceType.TOPIC]
        if self.topics is None or not parts:
            return None
        return len(set[str]().union(*map(self.topics.among, parts)))

    def _accesses_of(self, row: Row) -> int | None:
        if self.flips is None:
            return None
        return sum(count for request, count in self.flips.items() if request in row)
