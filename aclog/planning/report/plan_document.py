"""What a plan says for people: what changes for them, whose rules are touched, and the steps in order."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from aclog.analysis.comparison import rows_of_each
from aclog.analysis.regions.region import Direction
from aclog.analysis.review.document import Document, Item, Section
from aclog.analysis.review.risk import risk
from aclog.analysis.rows.row_report import ReportRow, row_lines
from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.planning.plan_file import plan_digest
from aclog.planning.report.plan_report import PlanReport
from aclog.planning.report.step_items import step_items, steps_title

SHOWN = 20
"""Rows, rules of a kind, adds and deletes, unless all are asked for."""
_ALL = "--full"
"""The flag that shows all."""


def document_of(report: PlanReport, *, full: bool = False) -> Document:
    """Return what people read of a plan; `full`: however long it is."""
    return _Writer(report, None if full else SHOWN).document()


@frozen(eq=False)
class _Writer:
    report: PlanReport
    shown: int | None

    def document(self) -> Document:
        """Return the whole."""
        return Document(
            head=f"Plan: {self._summary()}",
            points=tuple(self._points()),
            sections=tuple(section for section in self._sections() if section.items),
            foot=tuple(self._foot()),
            command="aclog plan",
        )

    def _summary(self) -> str:
        plan = self.report.plan
        if plan.is_empty:
            return "nothing to do"
        adds = sum(step.adds for step in plan.steps)
        adopted = f", {len(plan.adopt):,} to adopt" if plan.adopt else ""
        released = f", {len(plan.release):,} to release" if plan.release else ""
        return f"{_count(adds, 'rule')} to add, {len(plan.steps) - adds:,} to delete{adopted}{released}"

    def _points(self) -> Iterator[str]:
        found, plan, change = self.report, self.report.plan, self.report.change
        if not plan.base.exists:
            yield f"{found.name}: new; it is made by applying this plan"
        else:
            at = "" if plan.base.end_offset is None else f" at offset {plan.base.end_offset}"
            owned = "" if plan.journal is None else f"; {plan.journal.path} owns {change.owned:,} of them"
            yield f"{found.name}: {_count(plan.base.rules, 'rule')}{at}{owned}"
        if not plan.settings_known:
            yield (
                "It is not known whether names without rules are open (allow.everyone.if.no.acl.found): they count as "
                "open, unless --no-allow-everyone-if-no-acl-found is given"
            )
        if plan.generations is not None and len(plan.generations) > 1:
            why = "" if found.kafka is None else f": {found.kafka.reason()}"
            yield f"{' or '.join(map(str, plan.generations))} may decide{why}; what only one of them decides is marked"
        if plan.transient:
            yield "Requests are denied for a moment on the way: apply wants --accept-transient-denials"

    def _sections(self) -> Iterator[Section]:
        change, plan = self.report.change, self.report.plan
        shared = set(change.shared)
        yield self._effect()
        yield self._rules("Adopted: there already, and owned from now on", change.adopted)
        yield self._rules(
            "Present: there already and not owned, so they stay, and are never deleted (--adopt owns them)",
            [acl for acl in change.present if acl not in shared],
        )
        yield self._rules(
            "Wanted by two: another journal owns them, too, so they stay when this source no longer wants them",
            change.shared,
        )
        yield self._rules("Released: owned no more, and not deleted: gone already, or somebody else's", change.released)
        yield self._rules("Deleted though not owned, as asked", change.unowned)
        yield self._rules("Not there, so there is nothing to delete", change.gone)
        yield self._section(
            "Denied for a moment, though allowed before and after",
            [Item(text=str(region["text"])) for region in plan.transient],
        )
        steps = step_items(self.report, self.shown)
        yield Section(title=steps_title(plan.place.batching), items=tuple(steps), shown=None)

    def _effect(self) -> Section:
        found = {generation: effect.comparison for generation, effect in self.report.effects.items()}
        rows = sorted(rows_of_each(found), key=risk)
        if not rows:
            same = self.report.turning.decided("no difference: every request is decided the same")
            return self._section("What changes for people", [Item(text=same)])
        counts = Counter(direction for report in rows for direction in report.row.directions)
        numbers = f"{counts[Direction.GAINED]:,} gained, {counts[Direction.LOST]:,} lost"
        return self._section(f"What changes for people ({numbers})", map(_row_item, rows))

    def _rules(self, title: str, acls: Sequence[StandardAcl]) -> Section:
        return self._section(f"{title} ({len(acls):,})", [Item(text=acl_text(acl)) for acl in acls])

    def _section(self, title: str, items: Iterable[Item]) -> Section:
        return Section(title=title, items=tuple(items), command=_ALL, shown=self.shown)

    def _foot(self) -> Iterator[str]:
        report = self.report
        if report.change.foreign:
            be = "is" if report.change.foreign == 1 else "are"
            yield f"Not touched: {_count(report.change.foreign, 'rule')} that {be} there, not wanted and not owned"
        if report.uses is not None:
            yield f"Last uses by {report.uses.span()}"
        if not report.plan.is_empty:
            yield f"plan {plan_digest(report.plan)[:16]}"


def _row_item(report: ReportRow) -> Item:
    head, *details = row_lines(report)
    return Item(text=head, details=tuple(line.strip() for line in details))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
