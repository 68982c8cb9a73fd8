"""A comparison of two policies: regions in which they decide differently, rows for people, and what is counted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from aclog.analysis.by_generation import merged
from aclog.analysis.deciding import deciding
from aclog.analysis.difference import differences
from aclog.analysis.flips import Flips
from aclog.analysis.policy import Policy
from aclog.analysis.regions.existing_names import ExistingNames
from aclog.analysis.regions.region import Difference, Direction
from aclog.analysis.regions.region_json import JsonObject, difference_object, witness_object
from aclog.analysis.regions.witness import has_legal_name, witness
from aclog.analysis.rows.changed_rules import ChangedRules
from aclog.analysis.rows.folding import rows
from aclog.analysis.rows.row import Row
from aclog.analysis.rows.row_report import TITLES, ReportRow, row_cells, row_lines
from aclog.analysis.rows.table_forms import Kind, arrow_table, html_table, pandas_frame
from aclog.authorizer.acl import ResourceType
from aclog.authorizer.generation import Generation
from aclog.authorizer.origin import TwoOrigins
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.rule_change import RuleChange, changes_between
from aclog.metalog.printable import printable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NO_DIFFERENCE = "no difference: every request is decided the same"
_KINDS = dict.fromkeys(TITLES, Kind.TEXT)


@define(eq=False, kw_only=True, repr=False)
class Comparison:
    """Two policies, and the requests on which they decide differently."""

    old: Policy
    new: Policy
    changes: Sequence[RuleChange]
    """The rules that only one of them has."""
    differences: list[Difference]
    topics: ExistingNames | None = None
    """The topics that exist, if they are known."""
    flips: Flips | None = None
    """The accesses that flip, if any were given."""
    origins: TwoOrigins = field(factory=TwoOrigins)
    """Where the rules of both stand."""
    premises: Premises = ALL_KNOWN
    """What is unknown, and could turn that nothing differs; none if something does."""

    def __bool__(self) -> bool:
        """Return whether any request is decided differently: `if old.diff(new)` reads as it says."""
        return bool(self.differences)

    def __repr__(self) -> str:
        counts = Counter(difference.direction for difference in self.differences)
        return f"Comparison(gained={counts[Direction.GAINED]}, lost={counts[Direction.LOST]})"

    def __str__(self) -> str:
        return "\n".join(map(printable, self.text_lines()))

    def _repr_html_(self) -> str:
        found = self.rows()
        caption = repr(self) if found else self.premises.decided(_NO_DIFFERENCE)
        return html_table(TITLES, map(row_cells, found), caption=caption, total=len(found))

    def to_dict(self) -> dict[str, object]:
        """Return the exact regions, as the objects of `json_lines`, under `differences`."""
        return {"differences": list(self.json_lines()), **self.premises.key()}

    def to_arrow(self) -> "pa.Table":
        """Return the rows for people as a table of texts. Raises ConfigError: pyarrow is not installed."""
        return arrow_table(_KINDS, map(row_cells, self.rows()))

    def to_pandas(self) -> "pd.DataFrame":
        """Return the same as a data frame. Raises ConfigError: pandas is not installed."""
        return pandas_frame(_KINDS, map(row_cells, self.rows()))

    @staticmethod
    def of(
        old: Policy,
        new: Policy,
        *,
        changes: Sequence[RuleChange] | None = None,
        direction: Direction | None = None,
        topics: ExistingNames | None = None,
        flips: Flips | None = None,
        origins: TwoOrigins | None = None,
    ) -> "Comparison":
        """Compare two policies, in both directions or in one; `changes`, if known, saves comparing all rules."""
        known = changes_between(old.acls, new.acls) if changes is None else changes
        found = differences(old, new, changed=[change.acl for change in known])
        kept = [each for each in found if direction in (None, each.direction)]
        return Comparison(
            old=old,
            new=new,
            changes=known,
            differences=kept,
            topics=topics,
            flips=flips,
            origins=origins or TwoOrigins(),
        )

    def json_lines(self) -> Iterator[JsonObject]:
        """Yield an object for each region (docs/commands.md); `topics` and `accesses` count, if that is known."""
        for difference in self.differences:
            region = difference.region
            example = witness(region)
            before, after = deciding(self.old, example), deciding(self.new, example)
            line = difference_object(difference, old=before, new=after, origins=self.origins)
            line |= witness_object(example, legal=has_legal_name(region))
            if self.topics is not None and region.resource_type == ResourceType.TOPIC:
                line["topics"] = len(self.topics.among(region.names))
            if self.flips is not None:
                line["accesses"] = self.flips.among(region)
            yield line

    def rows(self) -> list[ReportRow]:
        """Return the rows in which a person reads it."""
        changed = ((change.added, change.acl) for change in self.changes)
        found, behind = rows(self.differences, self.old, self.new, changed), ChangedRules(self.changes, self.origins)
        return [self._report(row, behind) for row in found]

    def text_lines(self) -> Iterator[str]:
        """Yield the rows as lines for people, and the number of rows."""
        found = self.rows()
        for report in found:
            yield from row_lines(report)
        counts = Counter(direction for report in found for direction in report.row.directions)
        if not found:
            yield self.premises.decided(_NO_DIFFERENCE)
        elif len(found) > 1:
            yield f"{len(found):,} rows: {counts[Direction.GAINED]:,} gained, {counts[Direction.LOST]:,} lost"
        if self.flips is not None:
            more = f", and {self.flips.unread:,} that could not be read or decided may" if self.flips.unread else ""
            yield f"{self.flips.total:,} of the accesses flip{more}"

    def _report(self, row: Row, behind: ChangedRules) -> ReportRow:
        return ReportRow(
            row=row,
            topics=self._topics_of(row),
            accesses=self._accesses_of(row),
            origins=self.origins,
            places=tuple(behind.places(row)),
        )

    def _topics_of(self, row: Row) -> int | None:
        parts = [each.names for each in row.clauses if each.resource_type == ResourceType.TOPIC]
        if self.topics is None or not parts:
            return None
        return len(set[str]().union(*map(self.topics.among, parts)))

    def _accesses_of(self, row: Row) -> int | None:
        return None if self.flips is None else self.flips.among(row)


def rows_of_each(
    compared: Mapping[Generation, Comparison] | Mapping[Generation | None, Comparison],
) -> Iterator[ReportRow]:
    """Yield the rows for people of the comparisons of all generations that may decide, each with `only`."""
    found = merged({generation: comparison.rows() for generation, comparison in compared.items()}, row_cells)
    yield from (evolve(report, only=only) for report, only in found)
