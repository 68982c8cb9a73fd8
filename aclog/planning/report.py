"""What a plan says for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import define, evolve, frozen

from aclog.analysis.comparison import Comparison, SidePremises, rows_of_each
from aclog.analysis.policy import Policy, marked
from aclog.analysis.regions import Direction
from aclog.analysis.review.document import Document, Item, Section
from aclog.analysis.review.review import risk
from aclog.analysis.rows.report import ReportRow, row_lines
from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acls_image import RuleChange, changed_acls
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, Generation, Settings
from aclog.planning.effect import TakenAway, taken_away
from aclog.planning.plan import Batching, PlaceState, Plan, plan_digest
from aclog.planning.planner import PlannedChange
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.output import time_text
from aclog.usage.index.used import Use

# When ACLs were last used, as accesses tell it.


@frozen(kw_only=True)
class RuleUse:
    """The last accesses that an ACL was about, and that would have been decided otherwise without it."""

    matched: Use | None = None
    needed: Use | None = None
    since: int | None = None
    """Since when the ACL is known to be in force, in us since 1970; None: it counts as in force all the time."""
    unread: int | None = None
    """How many accesses that may have needed it could not be read or decided; 0: an unknown number; None: there are
    none."""


@frozen(eq=False, kw_only=True)
class RuleUses:
    """The last uses of some ACLs."""

    source: str
    """Where the accesses are, for people."""
    first: int
    last: int
    """The times of the first and the last access, in us since 1970."""
    of_rules: Mapping[StandardAcl, RuleUse]
    """Without the ACLs that the accesses tell nothing of: an index that has not seen them in force."""

    def text(self, acl: StandardAcl) -> str:
        """Return when an ACL was last used."""
        use = self.of_rules.get(acl)
        if use is None:
            return "last use unknown: the index has not seen it in force"
        since = use.since if use.since is not None and use.since > self.first else None
        if since is not None and since > self.last:
            return f"last use unknown: it is known since {_time(since)}, after the last access"
        return ", ".join(_texts(use, "" if since is None else f" since {_time(since)}"))

    def span(self) -> str:
        """Return which accesses tell it."""
        return f"accesses of {self.source}: {_time(self.first)} to {_time(self.last)}"


def _texts(use: RuleUse, since: str) -> Iterator[str]:
    if use.needed is None and use.unread is not None:
        count = f"{use.unread:,} accesses" if use.unread else "accesses"
        yield f"last use unknown: {count} that may need it could not be read or decided"
        return
    if use.matched is None and use.needed is None:
        yield f"never used{since}: no access was about what it covers"
        return
    if use.needed is None:
        yield f"never needed{since}: each access was decided as without it"
    else:
        yield f"last needed {_use(use.needed)}"
    if use.matched is not None and use.matched != use.needed:
        yield f"last matched {_use(use.matched)}"


def _use(use: Use) -> str:
    return f"{_time(use.time)} by {use.principal} from {use.host}"


def _time(micros: int) -> str:
    return time_text(micros // 1000)


# A plan, and all that is known of what it does.


@define(eq=False, slots=False, kw_only=True)
class PlanEffect:
    """What decides before and after a plan, by one generation of Kafka, and what the plan gives and takes.

    Immutable by convention.
    """

    before: Policy
    end: Policy
    comparison: Comparison

    @cached_property
    def closed_end(self) -> Policy:
        """What decides after it if no name without ACLs is open, which the plan need not know."""
        return _closed(self.end)

    def differs_when_closed(self, changes: Sequence[RuleChange]) -> bool:
        """Return whether the plan changes a decision if no name without ACLs is open: it takes them for open."""
        return bool(Comparison.of(_closed(self.before), self.closed_end, changes=changes).differences)


@define(eq=False, slots=False, kw_only=True)
class PlanReport:
    """What a plan changes in a place. Immutable by convention."""

    name: str
    """Of the place, for people."""
    state: PlaceState
    plan: Plan
    change: PlannedChange
    uses: RuleUses | None = None
    """When the ACLs that it deletes were last used, if anybody asked."""
    kafka: DecidingKafka | None = None
    """What may decide there, if it is known why several generations may."""
    premises: Premises = ALL_KNOWN
    """What decides there and is unknown; the settings of the plan count it as no super user, and as open."""

    @cached_property
    def effects(self) -> dict[Generation | None, PlanEffect]:
        """What the plan does by each generation of Kafka that may decide; under None, if that is one."""
        return {each: self._effect(settings) for each, settings in self.plan.each_settings.items()}

    def _effect(self, settings: Settings) -> PlanEffect:
        acls = self.state.acls.with_options(documented=settings.documented, cidr=settings.cidr)
        before, end = Policy(acls, settings), Policy(changed_acls(acls, self.change.changes), settings)
        return PlanEffect(before=before, end=end, comparison=Comparison.of(before, end, changes=self.change.changes))

    @cached_property
    def turning(self) -> Premises:
        """What is unknown and could make a difference of an effect without any; nothing if no ACL changes."""
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


# The steps of a plan in order; each delete with what it takes away, and when it was last used.


_REGIONS = 3
"""Regions that a delete is told to take away."""

_TITLES = {
    Batching.ALL: "Steps, in order; all become visible at once",
    Batching.RESOURCE: "Steps, in order; those of one number become visible together",
    Batching.RULE: "Steps, in order; they become visible one by one",
}


def steps_title(batching: Batching) -> str:
    """Return what stands above the steps in a place that shows so much at once."""
    return _TITLES[batching]


def step_items(report: PlanReport, limit: int | None) -> Iterator[Item]:
    """Yield the steps in order, so many adds and so many deletes (None: all); what is left out is counted in place.

    Deletes come last, and matter most: many adds before them do not hide them.
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
    """Yield that a delete takes nothing away, and what it does if what is unknown decides otherwise."""
    unknown = report.premises.turning(allowed=True)
    if ALLOW_EVERYONE_CONFIG in unknown.names:  # names without ACLs count as open
        closed = taken_away(effect.closed_end, removal.acl)
        if closed.differences:
            yield f"takes nothing away if names without ACLs are open: {removal.text()}; if they are not:"
            yield from map(str, closed.differences[:_REGIONS])
            return
        unknown = unknown.without({ALLOW_EVERYONE_CONFIG})
    yield f"{unknown.decided('takes nothing away')}: {removal.text()}"


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


# What a plan says for people: what changes for them, whose rules are touched, and the steps in order.


MOST_ITEMS = 20
"""Rows, rules of a kind, adds and deletes, unless all are asked for."""
_ALL = "--full"
"""The flag that shows all."""


def document_of(report: PlanReport, *, full: bool = False) -> Document:
    """Return what people read of a plan; `full`: however long it is."""
    return _Writer(report, None if full else MOST_ITEMS).document()


@frozen(eq=False)
class _Writer:
    report: PlanReport
    limit: int | None

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
        report, plan, change = self.report, self.report.plan, self.report.change
        if not plan.base.exists:
            yield f"{report.name}: new; it is made by applying this plan"
        else:
            at = "" if plan.base.end_offset is None else f" at offset {plan.base.end_offset}"
            owned = "" if plan.journal is None else f"; {plan.journal.path} owns {change.owned:,} of them"
            yield f"{report.name}: {_count(plan.base.rules, 'rule')}{at}{owned}"
        if not plan.settings_known:
            yield (
                "It is not known whether names without rules are open (allow.everyone.if.no.acl.found): they count as "
                "open, unless --no-allow-everyone-if-no-acl-found is given"
            )
        if plan.generations is not None and len(plan.generations) > 1:
            why = "" if report.kafka is None else f": {report.kafka.reason()}"
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
        yield self._rules("Not there, so there is nothing to delete", change.absent)
        yield self._section(
            "Denied for a moment, though allowed before and after",
            [Item(text=str(region["text"])) for region in plan.transient],
        )
        steps = step_items(self.report, self.limit)
        yield Section(title=steps_title(plan.place.batching), items=tuple(steps), limit=None)

    def _effect(self) -> Section:
        comparisons = {generation: effect.comparison for generation, effect in self.report.effects.items()}
        rows = sorted(rows_of_each(comparisons), key=risk)
        if not rows:
            same = self.report.turning.decided("no difference: every request is decided the same")
            return self._section("What changes for people", [Item(text=same)])
        counts = Counter(direction for report in rows for direction in report.row.directions)
        numbers = f"{counts[Direction.GAINED]:,} gained, {counts[Direction.LOST]:,} lost"
        return self._section(f"What changes for people ({numbers})", map(_row_item, rows))

    def _rules(self, title: str, acls: Sequence[StandardAcl]) -> Section:
        return self._section(f"{title} ({len(acls):,})", [Item(text=acl_text(acl)) for acl in acls])

    def _section(self, title: str, items: Iterable[Item]) -> Section:
        return Section(title=title, items=tuple(items), command=_ALL, limit=self.limit)

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
