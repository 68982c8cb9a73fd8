"""A review: everything that is to be said of a change of rules, ordered by what matters."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from attrs import define, field

from aclog.analysis.comparison import Comparison
from aclog.analysis.regions.region import Direction
from aclog.analysis.review.document import Document, Item, Section
from aclog.analysis.review.flipped import Flipped
from aclog.analysis.review.move import Move
from aclog.analysis.review.outcomes import LintOutcome, Proof, TestsOutcome
from aclog.analysis.review.points import ROOM, Points, chosen
from aclog.analysis.review.rename import Rename
from aclog.analysis.review.replacement import Replacement
from aclog.analysis.review.risk import is_deny, risk
from aclog.analysis.review.verdict import DEFAULT_FAIL_ON, Kind
from aclog.analysis.rows.row_report import ReportRow, row_lines
from aclog.analysis.rows.row_text import summary_text
from aclog.authorizer.acl import ResourceType, StandardAcl
from aclog.authorizer.explanation_text import acl_text
from aclog.authorizer.origin import origin_text

_NOTHING = "no effective change"
_PLACES = 5
"""Changed lines behind a row that are shown."""
_TOPICS = 3
"""Existing topics that are named."""


@define(eq=False, kw_only=True)
class Review:
    """What was found of a change, and how it is judged."""

    comparison: Comparison
    rows: Sequence[ReportRow]
    renames: Sequence[Rename] = ()
    moves: Sequence[Move] = ()
    replacements: Sequence[Replacement] = ()
    proofs: Sequence[Proof] = ()
    tests: TestsOutcome = field(factory=TestsOutcome)
    lint: LintOutcome = field(factory=LintOutcome)
    flipped: Sequence[Flipped] = ()
    own_checks: Sequence[str] = ()
    """The files among the checks themselves that the change touches."""
    doubts: Sequence[str] = ()
    """Why the review may not be of what people think it is of."""
    foot: Sequence[str] = ()
    fail_on: Collection[Kind] = DEFAULT_FAIL_ON

    @property
    def found(self) -> set[Kind]:
        """The kinds of which something was found."""
        directions = {direction for report in self.rows for direction in report.row.directions}
        present = {
            Kind.GAINED: Direction.GAINED in directions,
            Kind.LOST: Direction.LOST in directions,
            Kind.BREAKS: any(each.direction is Direction.LOST for each in self.flipped),
            Kind.PROOFS: not all(proof.holds for proof in self.proofs),
            Kind.TESTS: bool(self.tests.failures),
            Kind.LINT_ERROR: bool(self.lint.new_errors),
            Kind.LINT_WARNING: bool(self.lint.new_warnings),
            Kind.CHECKS: bool(self.own_checks),
        }
        return {kind for kind, is_there in present.items() if is_there}

    @property
    def fails(self) -> bool:
        """Whether something was found that is not accepted."""
        return bool(self.found & set(self.fail_on))

    def document(self) -> Document:
        """Return what people read."""
        return Document(
            head=f"aclog review: {'FAILS' if self.fails else 'passes'}: {', '.join(self._counts())}",
            points=tuple(chosen(list(self._points()))),
            sections=tuple(section for section in self._sections() if section.items),
            foot=tuple(self.foot),
        )

    def _counts(self) -> Iterator[str]:
        counts = Counter(direction for report in self.rows for direction in report.row.directions)
        gained, lost = counts[Direction.GAINED], counts[Direction.LOST]
        yield f"{gained:,} gained, {lost:,} lost" if self.rows else _NOTHING
        refuted = sum(not proof.holds for proof in self.proofs)
        yield from _counted(refuted, "proof refuted", "proofs refuted")
        yield from _counted(len(self.tests.failures), "test fails", "tests fail")
        yield from _counted(self._broken(), "recent access breaks", "recent accesses break")
        yield from _counted(len(self.lint.new_errors), "new lint error", "new lint errors")
        yield from _counted(len(self.lint.new_warnings), "new lint warning", "new lint warnings")
        yield from _counted(len(self.lint.suppressed), "finding suppressed", "findings suppressed")
        replaced = sum(each.rules for each in self.replacements)
        yield from _counted(replaced, "rule replaced by Terraform", "rules replaced by Terraform")
        yield from _counted(len(self.own_checks), "file of the checks changed", "files of the checks changed")

    def _broken(self) -> int:
        return sum(each.accesses for each in self.flipped if each.direction is Direction.LOST)

    def _points(self) -> Iterator[Points]:
        """Yield what matters most, first; the head counts what there is no room for."""
        refuted = [f"refuted: {proof.text}" for proof in self.proofs if not proof.holds]
        yield Points(texts=[*refuted, *(f"test fails: {failure.text}" for failure in self.tests.failures)])
        yield Points(texts=self.doubts)
        broken = self._broken_text()
        yield Points(texts=[each.text() for each in self.renames], after=broken)
        broken = "" if self.renames else broken
        ranked = [report for report in self._ranked() if not self._is_of_rename(report)]
        for direction in Direction:
            rows = [report for report in ranked if report.row.directions[0] is direction]
            loses = any(Direction.LOST in report.row.directions for report in rows)
            yield Points(texts=[*map(self._row_text, rows[:ROOM])], total=len(rows), after=broken if loses else "")
            broken = "" if loses else broken
        if self.own_checks:
            yield Points(texts=[f"the change touches the checks themselves: {', '.join(self.own_checks)}"])
        yield _one_of_each_lint("new lint", (*self.lint.new_errors, *self.lint.new_warnings))
        yield _one_of_each_lint("suppressed", self.lint.suppressed)
        for changes in (self.replacements, self.moves):
            yield Points(texts=[each.text() for each in changes[:1]], total=len(changes))

    def _ranked(self) -> list[ReportRow]:
        return sorted(self.rows, key=risk)

    def _is_of_rename(self, report: ReportRow) -> bool:
        """Return whether a rename tells what a row does: both are about the same principals, and no others."""
        renamed = {name for each in self.renames if each.is_whole for name in (each.old, each.new)}
        principals = report.row.principals
        return not principals.complement and renamed.issuperset(principals.named)

    def _row_text(self, report: ReportRow) -> str:
        """Return a row on one line: of a summary, what was counted as well, and which DENY is gone."""
        row = report.row
        head, *_ = row_lines(report)
        text = head if row.summary is None else f"{head}: {summary_text(row, row.summary)}"
        removed = row.before if is_deny(row.before) and self._is_removed(row.before) else None
        gone = f"; removed: {acl_text(removed)}" if isinstance(removed, StandardAcl) else ""
        return f"{text}{self._topics_text(report)}{gone}"

    def _is_removed(self, rule: StandardAcl | str | None) -> bool:
        return any(not change.added and change.acl == rule for change in self.comparison.changes)

    def _broken_text(self) -> str:
        broken = [each for each in self.flipped if each.direction is Direction.LOST]
        if not broken:
            return ""
        more = f", and {len(broken) - 1:,} more kinds of access" if broken[1:] else ""
        return f"; breaks {broken[0].text()}{more}"

    def _topics_text(self, report: ReportRow) -> str:
        """Return which of the topics that exist a row is about, such as `: 12 topics exist: a, b, c, ...`."""
        known = self.comparison.topics
        parts = [each.names for each in report.row.clauses if each.resource_type == ResourceType.TOPIC]
        found = [] if known is None else sorted(set[str]().union(*map(known.among, parts)))
        shown = ", ".join(found[:_TOPICS]) + (", ..." if len(found) > _TOPICS else "")
        return f": {report.counts()}: {shown}" if found else ""

    def _row_item(self, report: ReportRow) -> Item:
        head, *details = row_lines(report)
        counts, topics = report.counts(), self._topics_text(report)
        lines = [topics.removeprefix(": ") if topics and line.strip() == counts else line.strip() for line in details]
        places = ", ".join(map(origin_text, report.places[:_PLACES]))
        more = f" and {len(report.places) - _PLACES:,} more" if len(report.places) > _PLACES else ""
        return Item(text=head, details=(*lines, f"changed: {places}{more}") if places else tuple(lines))

    def _sections(self) -> Iterator[Section]:
        refuted = [Item(text=f"REFUTED: {each.text}", details=each.details) for each in self.proofs if not each.holds]
        proved = [Item(text=f"PROVED: {each.text}") for each in self.proofs if each.holds]
        yield Section(title="Proofs", items=(*refuted, *proved))
        yield Section(title="Tests that fail", items=self.tests.failures)
        yield Section(title="Effective change", items=tuple(map(self._row_item, self._ranked())), command="aclog diff")
        yield Section(title="Renamed principals", items=tuple(Item(text=each.text()) for each in self.renames))
        for direction, title in ((Direction.LOST, "broken"), (Direction.GAINED, "denied until now that would pass")):
            items = tuple(Item(text=each.text()) for each in self.flipped if each.direction is direction)
            yield Section(title=f"Recent accesses {title}", items=items)
        yield Section(title="New lint findings", items=(*self.lint.new_errors, *self.lint.new_warnings))
        yield Section(title="Suppressed since the change", items=self.lint.suppressed)
        yield Section(title="Replaced by Terraform", items=tuple(Item(text=each.text()) for each in self.replacements))
        yield Section(title="Moved", items=tuple(Item(text=each.text()) for each in self.moves), folded=True)
        yield Section(title="Lint findings that are gone", items=self.lint.gone, folded=True)
        yield Section(title="Lint findings from before", items=self.lint.old, folded=True, command="aclog lint")


def _one_of_each_lint(what: str, items: Sequence[Item]) -> Points:
    """Return the first finding of each lint, such as `new lint: 13 consumer-without-group: ...`."""
    first: dict[str, str] = {}
    for item in items:
        first.setdefault(item.text.partition(":")[0], item.text)
    return Points(texts=[f"{what}: {text}" for text in first.values()], total=len(items))


def _counted(count: int, one: str, many: str) -> Iterator[str]:
    if count:
        yield f"{count:,} {one if count == 1 else many}"
