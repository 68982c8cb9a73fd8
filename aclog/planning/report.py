"""The report of a plan for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import evolve

from aclog.analysis.comparison import Comparison, SidePremises, rows_of_each
from aclog.analysis.policy import Policy, marked
from aclog.analysis.regions import Direction
from aclog.analysis.review.review import Document, Item, Section, risk
from aclog.analysis.rows.report import ReportRow, row_lines
from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acls_image import RuleChange, changed_acls
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, Generation, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import plural
from aclog.metalog.values import define, frozen
from aclog.planning.effect import TakenAway, taken_away
from aclog.planning.plan import Batching, PlaceState, Plan, plan_digest
from aclog.planning.planner import PlannedChange
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.output import time_text
from aclog.usage.index.used import Use

# The last uses of ACLs, from access logs.


@frozen(kw_only=True)
class RuleUse:
    """The last access that an ACL matched, and the last one that would have been decided otherwise without it."""

    matched: Use | None = None
    needed: Use | None = None
    since: int | None = None
    """When the ACL is first known to be in force, in us since 1970; None: it counts as always in force."""
    unread: int | None = None
    """The number of accesses that may have needed it and could not be read or decided; 0: an unknown number; None:
    no such accesses."""


@frozen(eq=False, kw_only=True)
class RuleUses:
    """The last uses of some ACLs."""

    source: str
    """The source of the accesses, for people."""
    first: int
    last: int
    """The times of the first and the last access, in us since 1970."""
    of_rules: Mapping[StandardAcl, RuleUse]
    """Without ACLs that the index has not seen in force."""

    def text(self, acl: StandardAcl) -> str:
        """Return a text with the last use of an ACL."""
        use = self.of_rules.get(acl)
        if use is None:
            return "last use unknown: the index has not seen it in force"
        since = use.since if use.since is not None and use.since > self.first else None
        if since is not None and since > self.last:
            return f"last use unknown: known to be in force only since {_time(since)}, after the last access"
        return "; ".join(_texts(use, "" if since is None else f" since {_time(since)}"))

    def span(self) -> str:
        """Return the source and the period of the accesses."""
        return f"{self.source!r}, which covers {_time(self.first)} to {_time(self.last)}"


def _texts(use: RuleUse, since: str) -> Iterator[str]:
    if use.needed is None and use.unread is not None:
        count = plural(use.unread, "access") if use.unread else "accesses"
        yield f"last use unknown: it may apply to {count} that could not be read or decided"
        return
    if use.matched is None and use.needed is None:
        yield f"never used{since}: no access matched it"
        return
    if use.needed is None:
        yield f"never needed{since}: every access would have been decided the same without it"
    else:
        yield f"last needed {_use(use.needed)}"
    if use.matched is not None and use.matched != use.needed:
        yield f"last matched {_use(use.matched)}"


def _use(use: Use) -> str:
    return f"{_time(use.time)} by {use.principal} from {use.host}"


def _time(micros: int) -> str:
    return time_text(micros // 1000)


# A plan and its effect.


@define(eq=False, slots=False, kw_only=True)
class PlanEffect:
    """The policies before and after a plan in one generation of Kafka, and their comparison.

    Immutable by convention.
    """

    before: Policy
    end: Policy
    comparison: Comparison

    @cached_property
    def closed_end(self) -> Policy:
        """The policy after the plan if resources without ACLs are closed."""
        return _closed(self.end)

    def differs_when_closed(self, changes: Sequence[RuleChange]) -> bool:
        """Return whether the plan changes a decision if resources without ACLs are closed; it counts them as open."""
        return bool(Comparison.of(_closed(self.before), self.closed_end, changes=changes).differences)


@define(eq=False, slots=False, kw_only=True)
class PlanReport:
    """The changes that a plan makes to a target. Immutable by convention."""

    name: str
    """The target's name, for people."""
    state: PlaceState
    plan: Plan
    change: PlannedChange
    uses: RuleUses | None = None
    """The last uses of the ACLs that the plan deletes, if accesses were given."""
    kafka: DecidingKafka | None = None
    """The generations of Kafka that may decide, if it is known why there are several."""
    premises: Premises = ALL_KNOWN
    """The unknown premises of decisions; the plan's settings count them as no super user, and as open."""

    @cached_property
    def effects(self) -> dict[Generation | None, PlanEffect]:
        """The plan's effect for each generation of Kafka that may decide; under None, if there is only one."""
        return {each: self._effect(settings) for each, settings in self.plan.each_settings.items()}

    def _effect(self, settings: Settings) -> PlanEffect:
        acls = self.state.acls.with_options(documented=settings.documented, cidr=settings.cidr)
        before, end = Policy(acls, settings), Policy(changed_acls(acls, self.change.changes), settings)
        return PlanEffect(before=before, end=end, comparison=Comparison.of(before, end, changes=self.change.changes))

    @cached_property
    def turning(self) -> Premises:
        """The unknown premises that could give an effect to a plan that has none; empty if no ACL changes."""
        changes = self.change.changes
        if not changes:
            return ALL_KNOWN
        remaining = self.premises.without({ALLOW_EVERYONE_CONFIG})
        premises = SidePremises(old=remaining, new=remaining).turning(None, lambda: False)
        if remaining == self.premises or not any(each.differs_when_closed(changes) for each in self.effects.values()):
            return premises
        return premises.also(
            Premises(tuple(each for each in self.premises.unknown if each.name == ALLOW_EVERYONE_CONFIG))
        )


def _closed(policy: Policy) -> Policy:
    return Policy(policy.acls, evolve(policy.settings, allow_everyone=False))


# The steps of a plan in order; each delete with the access that it takes away, and its last use.


_REGIONS = 3
"""How many regions are listed per delete."""

_TITLES = {
    Batching.ALL: "Steps (applied together, atomically)",
    Batching.RESOURCE: "Steps (in this order; steps with the same number are atomic)",
    Batching.RULE: "Steps (in this order, each applied separately)",
}


def steps_title(batching: Batching) -> str:
    """Return the heading of the steps in a target with this batching."""
    return _TITLES[batching]


def step_items(report: PlanReport, limit: int | None) -> Iterator[Item]:
    """Yield the steps in order, up to `limit` adds and `limit` deletes (None: all); gaps are counted where they occur.

    Deletes come last and matter most, so adds before them do not use up their limit.
    """
    room = {True: limit, False: limit}
    hidden, hidden_adds = 0, True
    for step in report.plan.steps:
        remaining = room[step.adds]
        if remaining == 0:
            if hidden and hidden_adds is not step.adds:
                yield _hidden(hidden, adds=hidden_adds)
                hidden = 0
            hidden, hidden_adds = hidden + 1, step.adds
            continue
        if hidden:
            yield _hidden(hidden, adds=hidden_adds)
            hidden = 0
        if remaining is not None:
            room[step.adds] = remaining - 1
        number = f"{step.batch + 1:,}: " if report.plan.place.batching is Batching.RESOURCE else ""
        if step.adds:
            yield Item(text=f"{number}+ {acl_text(step.acl)}")
        else:
            yield Item(text=f"{number}- {acl_text(step.acl)}", details=tuple(_details(report, step.acl)))
    if hidden:
        yield _hidden(hidden, adds=hidden_adds)


def _takes_nothing(report: PlanReport, effect: PlanEffect, removal: TakenAway) -> Iterator[str]:
    """Yield that a delete takes no access away, and what it takes away if an unknown premise decides otherwise."""
    unknown = report.premises.turning(allowed=True)
    if ALLOW_EVERYONE_CONFIG in unknown.names:  # the plan counts resources without ACLs as open
        closed = taken_away(effect.closed_end, removal.acl)
        if closed.differences:
            yield f"no effect if resources without ACLs are open: {removal.text()}; otherwise:"
            yield from map(str, closed.differences[:_REGIONS])
            return
        unknown = unknown.without({ALLOW_EVERYONE_CONFIG})
    yield f"{unknown.decided('no effect')}: {removal.text()}"


def _hidden(count: int, *, adds: bool) -> Item:
    return Item(text=f"and {count:,} more to {'add' if adds else 'delete'}: --full shows all")


def _details(report: PlanReport, acl: StandardAcl) -> Iterator[str]:
    lines = {each: _removal_lines(report, effect, acl) for each, effect in report.effects.items()}
    yield from marked(lines)
    if report.uses is not None:
        yield report.uses.text(acl)


def _removal_lines(report: PlanReport, effect: PlanEffect, acl: StandardAcl) -> Iterator[str]:
    removal = taken_away(effect.end, acl)
    if removal.nothing is not None:
        yield from _takes_nothing(report, effect, removal)
    yield from map(str, removal.differences[:_REGIONS])
    if len(removal.differences) > _REGIONS:
        yield f"and {len(removal.differences) - _REGIONS:,} more sets of requests"


# The report of a plan: its effective change, the other ACLs that it concerns, and its steps in order.


MOST_ITEMS = 20
"""How many rows, ACLs of a kind, adds and deletes are shown by default."""
_ALL = "--full"
"""The flag that shows all rows."""


def document_of(report: PlanReport, *, full: bool = False) -> Document:
    """Return the report of a plan; `full`: without limits on its length."""
    return _Writer(report, None if full else MOST_ITEMS).document()


@frozen(eq=False)
class _Writer:
    report: PlanReport
    limit: int | None

    def document(self) -> Document:
        """Return the whole document."""
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
        adopted = f", {plural(len(plan.adopt), 'existing rule')} to adopt (record as managed)" if plan.adopt else ""
        released = f", {len(plan.release):,} to release" if plan.release else ""
        return f"{plural(adds, 'rule')} to add, {len(plan.steps) - adds:,} to delete{adopted}{released}"

    def _points(self) -> Iterator[str]:
        report, plan, change = self.report, self.report.plan, self.report.change
        if not plan.base.exists:
            yield f"{report.name}: new; applying this plan creates it"
        else:
            at = "" if plan.base.end_offset is None else f" at offset {plan.base.end_offset}"
            journal = plan.journal
            owned = plural(change.owned, "rule")
            managed = "" if journal is None else f"; the journal {journal.path} records {owned} as managed"
            yield f"{report.name}: {plural(plan.base.rules, 'rule')}{at}{managed}"
        if not plan.settings_known:
            yield (
                "allow.everyone.if.no.acl.found is unknown and assumed true, so resources without ACLs are open to "
                "all; "
                "if it is false, pass --no-allow-everyone-if-no-acl-found"
            )
        if plan.generations is not None and len(plan.generations) > 1:
            why = "" if report.kafka is None else f": {report.kafka.reason()}"
            yield f"{' or '.join(map(str, plan.generations))} may decide{why}; differences between them are marked"
        if plan.transient:
            yield "Some requests are denied transiently during the apply: pass --accept-transient-denials to allow it"

    def _sections(self) -> Iterator[Section]:
        change, plan = self.report.change, self.report.plan
        shared = set(change.shared)
        yield self._effect()
        yield self._rules(change.adopted, "existing rule", "To adopt ({}, to be recorded as managed)")
        yield self._rules(
            [acl for acl in change.present if acl not in shared],
            "desired rule",
            "Unmanaged ({} already in the target, but not managed; no plan deletes such a rule unless you first make "
            "it managed with --adopt)",
        )
        yield self._rules(
            change.shared,
            "rule",
            "Shared ({}, also managed by another journal; a shared rule stays when this source no longer contains it)",
        )
        yield self._rules(
            change.released,
            "rule",
            "Released ({}, no longer managed by this source, and not deleted: already gone, managed by another "
            "journal, or adopted by the apply that a rollback reverses)",
        )
        yield self._rules(change.unowned, "rule", "Not managed ({}, to be deleted as requested)")
        yield self._rules(change.absent, "rule", "Already absent ({} to delete, not in the target)")
        yield self._section(
            "Transiently denied (allowed before and after)",
            [Item(text=str(region["text"])) for region in plan.transient],
        )
        steps = step_items(self.report, self.limit)
        yield Section(title=steps_title(plan.place.batching), items=tuple(steps), limit=None)

    def _effect(self) -> Section:
        comparisons = {generation: effect.comparison for generation, effect in self.report.effects.items()}
        rows = sorted(rows_of_each(comparisons), key=risk)
        if not rows:
            same = self.report.turning.decided("no difference: every request is decided the same")
            return self._section("Effective change", [Item(text=same)])
        counts = Counter(direction for report in rows for direction in report.row.directions)
        numbers = f"{counts[Direction.GAINED]:,} gained, {counts[Direction.LOST]:,} lost"
        return self._section(f"Effective change ({numbers})", map(_row_item, rows))

    def _rules(self, acls: Sequence[StandardAcl], word: str, title: str) -> Section:
        """Return the section of some rules; `{}` in its title is their number with a word for one rule."""
        return self._section(title.format(plural(len(acls), word)), [Item(text=acl_text(acl)) for acl in acls])

    def _section(self, title: str, items: Iterable[Item]) -> Section:
        return Section(title=title, items=tuple(items), command=_ALL, limit=self.limit)

    def _foot(self) -> Iterator[str]:
        report = self.report
        if report.change.foreign:
            foreign = plural(report.change.foreign, "other rule")
            yield f"Unchanged: {foreign}{' (neither desired nor managed)' if report.plan.journal else ''}"
        if report.uses is not None:
            yield f"Times of last use according to {report.uses.span()}"
        if not report.plan.is_empty:
            yield f"plan id: {plan_digest(report.plan)[:16]}"


def _row_item(report: ReportRow) -> Item:
    head, *details = row_lines(report)
    return Item(text=head, details=tuple(line.strip() for line in details))
