"""What a review says, in the order of what matters: the verdict, points that come first, and sections with all."""

from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import frozen

from aclog.analysis.by_generation import only_on
from aclog.analysis.regions.region import Direction
from aclog.analysis.review.document import Document, Item, Section
from aclog.analysis.review.everyone import tells_of_everyone
from aclog.analysis.review.outcomes import Proof
from aclog.analysis.review.points import ROOM, Points, chosen
from aclog.analysis.review.review import Review
from aclog.analysis.review.risk import is_deny, risk
from aclog.analysis.review.verdict import Kind
from aclog.analysis.rows.row_report import ReportRow, row_lines
from aclog.analysis.rows.row_text import summary_text
from aclog.authorizer.acl import ResourceType, StandardAcl, acl_text
from aclog.authorizer.origin import origin_text

_NOTHING = "no effective change"
_PLACES = 5
"""Changed lines behind a row that are shown."""
_TOPICS = 3
"""Existing topics that are named."""


def document_of(review: Review) -> Document:
    """Return what people read of a review."""
    return _Writer(review).document()


@frozen(eq=False)
class _Writer:
    review: Review

    def document(self) -> Document:
        """Return the whole."""
        # It does not say "passes": what no check covers may be wrong.
        verdict = "FAILS" if self.review.fails else "no blocking check failed"
        return Document(
            head=f"aclog review: {verdict}: {', '.join(self._counts())}",
            points=tuple(chosen(list(self._points()))),
            sections=tuple(section for section in self._sections() if section.items),
            foot=tuple(self.review.foot),
        )

    def _counts(self) -> Iterator[str]:
        counts = Counter(direction for report in self.review.rows for direction in report.row.directions)
        gained, lost = counts[Direction.GAINED], counts[Direction.LOST]
        yield f"{gained:,} gained, {lost:,} lost" if self.review.rows else _NOTHING
        if Kind.EVERYONE in self.review.found:
            yield "everyone gains access"
        refuted = sum(not proof.holds for proof in self.review.proofs)
        yield from _counted(refuted, "proof refuted", "proofs refuted")
        yield from _counted(len(self.review.tests.failures), "test fails", "tests fail")
        yield from _counted(self._broken(), "recent access breaks", "recent accesses break")
        yield from _counted(len(self.review.lint.new_errors), "new lint error", "new lint errors")
        yield from _counted(len(self.review.lint.new_warnings), "new lint warning", "new lint warnings")
        yield from _counted(len(self.review.lint.suppressed), "finding suppressed", "findings suppressed")
        replaced = sum(each.rules for each in self.review.replacements)
        yield from _counted(replaced, "rule replaced by Terraform", "rules replaced by Terraform")
        yield from _counted(len(self.review.own_checks), "file of the checks changed", "files of the checks changed")

    def _broken(self) -> int:
        return sum(each.accesses for each in self.review.flipped if each.direction is Direction.LOST)

    def _points(self) -> Iterator[Points]:
        """Yield what matters most, first; the head counts what there is no room for."""
        refuted = [f"refuted: {proof.text}{only_on(proof.only)}" for proof in self.review.proofs if not proof.holds]
        yield Points(texts=[*refuted, *(f"test fails: {failure.text}" for failure in self.review.tests.failures)])
        yield Points(texts=self.review.doubts)
        broken = self._broken_text()
        yield Points(texts=[each.text() for each in self.review.renames], after=broken)
        broken = "" if self.review.renames else broken
        ranked = [report for report in self._ranked() if not self._is_of_rename(report)]
        for direction in Direction:
            rows = [report for report in ranked if report.row.directions[0] is direction]
            loses = any(Direction.LOST in report.row.directions for report in rows)
            yield Points(texts=[*map(self._row_text, rows[:ROOM])], total=len(rows), after=broken if loses else "")
            broken = "" if loses else broken
        if self.review.own_checks:
            yield Points(texts=[f"the change touches the checks themselves: {', '.join(self.review.own_checks)}"])
        yield _one_of_each_lint("new lint", (*self.review.lint.new_errors, *self.review.lint.new_warnings))
        yield _one_of_each_lint("suppressed", self.review.lint.suppressed)
        for changes in (self.review.replacements, self.review.moves):
            yield Points(texts=[each.text() for each in changes[:1]], total=len(changes))

    def _ranked(self) -> list[ReportRow]:
        return sorted(self.review.rows, key=lambda report: (not tells_of_everyone(report.row), risk(report)))

    def _is_of_rename(self, report: ReportRow) -> bool:
        """Return whether a rename tells what a row does: both are about the same principals, and no others."""
        renamed = {name for each in self.review.renames if each.is_whole for name in (each.old, each.new)}
        principals, summary = report.row.principals, report.row.summary
        by = () if summary is None else (rule.principal for rule in summary.cause.rules)
        return not principals.complement and renamed.issuperset((*principals.named, *by))

    def _row_text(self, report: ReportRow) -> str:
        """Return a row on one line: of a summary, what was counted as well, and which DENY is gone."""
        row = report.row
        head, *_ = row_lines(report)
        text = head if row.summary is None else f"{head}: {summary_text(row, row.summary)}"
        removed = row.before if is_deny(row.before) and self._is_removed(row.before) else None
        gone = f"; removed: {acl_text(removed)}" if isinstance(removed, StandardAcl) else ""
        return f"{text}{self._topics_text(report)}{gone}"

    def _is_removed(self, rule: StandardAcl | str | None) -> bool:
        return any(not change.added and change.acl == rule for change in self.review.comparison.changes)

    def _broken_text(self) -> str:
        broken = [each for each in self.review.flipped if each.direction is Direction.LOST]
        if not broken:
            return ""
        more = f", and {len(broken) - 1:,} more kinds of access" if broken[1:] else ""
        return f"; breaks {broken[0].text()}{more}"

    def _topics_text(self, report: ReportRow) -> str:
        """Return which of the topics that exist a row is about, such as `: 12 topics exist: a, b, c, ...`."""
        known = self.review.comparison.topics
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
        found, lint = self.review, self.review.lint
        refuted = [_refuted(each) for each in found.proofs if not each.holds]
        proved = [Item(text=f"PROVED: {each.text}") for each in found.proofs if each.holds]
        yield Section(title="Proofs", items=(*refuted, *proved))
        yield Section(title="Tests that fail", items=found.tests.failures)
        yield Section(title="Effective change", items=tuple(map(self._row_item, self._ranked())), command="aclog diff")
        yield Section(title="Renamed principals", items=tuple(Item(text=each.text()) for each in found.renames))
        for direction, title in ((Direction.LOST, "broken"), (Direction.GAINED, "denied until now that would pass")):
            items = tuple(Item(text=each.text()) for each in found.flipped if each.direction is direction)
            yield Section(title=f"Recent accesses {title}", items=items)
        yield Section(title="New lint findings", items=(*lint.new_errors, *lint.new_warnings))
        yield Section(title="Suppressed since the change", items=lint.suppressed)
        yield Section(title="Replaced by Terraform", items=tuple(Item(text=each.text()) for each in found.replacements))
        yield Section(title="Moved", items=tuple(Item(text=each.text()) for each in found.moves), folded=True)
        yield Section(title="Lint findings that are gone", items=lint.gone, folded=True)
        yield Section(title="Lint findings from before", items=lint.old, folded=True, command="aclog lint")


def _refuted(proof: Proof) -> Item:
    return Item(text=f"REFUTED: {proof.text}{only_on(proof.only)}", details=proof.details)


def _one_of_each_lint(what: str, items: Sequence[Item]) -> Points:
    """Return the first finding of each lint, such as `new lint: 13 consumer-without-group: ...`."""
    first: dict[str, str] = {}
    for item in items:
        first.setdefault(item.text.partition(":")[0], item.text)
    return Points(texts=[f"{what}: {text}" for text in first.values()], total=len(items))


def _counted(count: int, one: str, many: str) -> Iterator[str]:
    if count:
        yield f"{count:,} {one if count == 1 else many}"
