"""Since when a request has been decided as it is now, and by which change of the log: what `aclog why` adds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from attrs import evolve, field

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Query, Region, only, pattern_meets, without_exceptions
from aclog.analysis.timeline import (
    Event,
    Question,
    RegionsSince,
    concerns_controllers,
    event_of,
    intervals,
    policy_after,
)
from aclog.analysis.who_can import Permission
from aclog.authorizer.acl import StandardAcl, is_cidr
from aclog.authorizer.codes import WILDCARD_PRINCIPAL
from aclog.authorizer.settings import Settings
from aclog.metalog.values import define, frozen
from aclog.planning.plan import ApplyNote
from aclog.snapshots.deciding_kafka import KafkaChange, kafka_history
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.image import StateSource
from aclog.sources.logs import history_of, log_of
from aclog.targets.applies import applied_of, with_applies


@frozen(kw_only=True)
class Since:
    """The last change of an answer in a log.

    `event.change` is None if the log begins with this answer, which may be older. `made_by` is the apply that made the
    change, if the record of applies beside the log has it. `before` is the policy just before the change; None
    without a change, or if it depends on the Kafka that decided then. `rule_added` is the last addition of the rule
    that decides now; None if the log begins with it, or no rule decides. `before_rule` is the policy just before this
    addition, if the log begins with the answer; None as for `before`.
    """

    allowed: bool
    event: Event
    made_by: ApplyNote | None = None
    before: Policy | None = None
    rule_added: Event | None = None
    before_rule: Policy | None = None


def answer_since(
    source: StateSource, end_offset: int, question: Question, settings: Settings, rule: StandardAcl | None = None
) -> Since:
    """Return since when the answer to a question has been what it is in the state at `end_offset`.

    `rule`: the one that decides there.

    Reads the log once, and a second time for the Kafka that its nodes ran, if `settings` has none and a rule with an
    address range takes part. Changes that became visible together are one step.

    Raises:
        ConfigError: the source is a single state.
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    history = history_of(source)
    begin = history.begin
    changes = takewhile(lambda change: change.end_offset <= end_offset, history.changes)
    concerned = _Concerned(question=question, settings=settings)
    passing = concerned.passing(with_applies(changes, applied_of(source) or (), begin.end_offset))

    def kafka() -> Iterable[KafkaChange]:
        """Read the log once more, for what its nodes ran."""
        all_changes = kafka_history(begin, log_of(source), controllers=concerns_controllers(question))
        return takewhile(lambda change: change.end_offset <= end_offset, all_changes)

    last = None
    for interval in intervals(begin, passing, question, settings, None if settings.is_kafka_stated else kafka):
        last = interval
    if last is None:
        event = Event(offset=begin.end_offset, end_offset=begin.end_offset, timestamp=begin.timestamp, change=None)
    else:
        event = last.start if last.end is None else last.end
    allowed = last is not None and last.end is None
    rule_added = concerned.addition_of(rule)

    def before(later: Event) -> Policy | None:
        """Return the policy just before an event; None if it depends on the Kafka that decided then."""
        earlier = [change for change, _ in concerned.changes if change.end_offset < later.end_offset]
        policy = policy_after(begin, earlier, question, settings)
        has_ranges = any(is_cidr(rule.acl.host) for rule in policy.acls)
        return None if has_ranges and not settings.is_kafka_stated else policy

    if not isinstance(event.change, Change):
        before_rule = None if event.change is not None or rule_added is None else before(rule_added)
        return Since(allowed=allowed, event=event, rule_added=rule_added, before_rule=before_rule)
    return Since(
        allowed=allowed,
        event=event,
        made_by=next((note for change, note in concerned.changes if change is event.change), None),
        before=before(event),
        rule_added=rule_added,
    )


@define(eq=False, kw_only=True)
class RowsSince:
    """Since when each region of an answer has been allowed, in the history of a log."""

    _dated: RegionsSince
    _made_by: Mapping[int, ApplyNote]
    """By offset."""
    _is_kafka_stated: bool
    _events: dict[Region, Since | None] = field(factory=dict, init=False)

    def since(self, region: Region) -> Since | None:
        """Return since when all requests of an allowed region have been allowed; None if that depends on the Kafka."""
        if region not in self._events:
            self._events[region] = self._read(region)
        return self._events[region]

    def dated(self, permission: Permission) -> Iterator[tuple[Permission, Since | None]]:
        """Yield a permission in parts, by principals and then by names, each with its date, as `since`.

        What began with one change stays together.
        """
        region = permission.region
        principals = [region.principals] if region.principals.complement else [only(p) for p in region.principals.named]
        for who in self._together([evolve(region, principals=each) for each in principals]).values():
            named = only(*(name for each in who for name in each.principals.named))
            whose = evolve(region, principals=region.principals if region.principals.complement else named)
            for since, parts in self._together([evolve(whose, names=(part,)) for part in region.names]).items():
                part = evolve(whose, names=tuple(name for each in parts for name in each.names))
                yield self._of_part(permission, part), since

    def _together(self, regions: Iterable[Region]) -> Mapping[Since | None, Sequence[Region]]:
        """Return the regions in groups, by the change that each began with."""
        groups: dict[Since | None, list[Region]] = {}
        for region in regions:
            groups.setdefault(self.since(region), []).append(region)
        return groups

    def _of_part(self, permission: Permission, region: Region) -> Permission:
        """Return the permission on a part of its region, with the rules that are about it."""
        return evolve(
            permission,
            region=region,
            rules=tuple(each for each in permission.rules if isinstance(each, str) or self._is_about(each, region)),
            denies=tuple(each for each in permission.denies if self._is_about(each, region)),
        )

    def _is_about(self, rule: StandardAcl, region: Region) -> bool:
        is_theirs = (
            region.principals.complement or rule.principal in region.principals or rule.principal == WILDCARD_PRINCIPAL
        )
        documented = self._dated.settings.documented
        # A DENY rule on a name that the region leaves out explains why the name is left out.
        names = tuple(map(without_exceptions, region.names))
        meets = pattern_meets(rule.resource_name, rule.pattern_type, names, documented=documented)
        return (is_theirs or ":" not in rule.principal) and meets

    def _read(self, region: Region) -> Since | None:
        if not self._is_kafka_stated and self._dated.has_ranges(region):
            return None
        event = self._dated.event(region)
        return Since(allowed=True, event=event, made_by=self._made_by.get(event.offset) if event.change else None)


def rows_since(
    source: StateSource, end_offset: int, policy: Policy, queries: Sequence[Query], *, is_kafka_stated: bool
) -> RowsSince:
    """Return since when regions of some queries have been allowed, which the state at `end_offset` allows by `policy`.

    Reads the log once.

    Raises:
        ConfigError: the source is a single state.
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    history = history_of(source)
    changes = takewhile(lambda change: change.end_offset <= end_offset, history.changes)
    made_by: dict[int, ApplyNote] = {}

    def noted() -> Iterator[Change]:
        """Yield the changes, and keep who made them."""
        for change, note in with_applies(changes, applied_of(source) or (), history.begin.end_offset):
            if note is not None:
                made_by[change.offset] = note
            yield change

    dated = RegionsSince.of(history.begin, noted(), policy, queries)
    return RowsSince(dated=dated, made_by=made_by, is_kafka_stated=is_kafka_stated)


@define(kw_only=True)
class _Concerned:
    """The changes that can affect an answer, kept while all changes pass: few of them, as the log may be long."""

    question: Question
    settings: Settings
    changes: list[tuple[Change, ApplyNote | None]] = field(factory=list)

    def passing(self, applied: Iterable[tuple[Change, ApplyNote | None]]) -> Iterator[Change]:
        """Yield the changes."""
        for change, note in applied:
            if self.question.concerns(change.rule.acl, self.settings):
                self.changes.append((change, note))
            yield change

    def addition_of(self, rule: StandardAcl | None) -> Event | None:
        """Return the last change that added a rule; None if the history begins with it."""
        added = (
            change
            for change, _ in reversed(self.changes)
            if change.rule.acl == rule and change.kind is ChangeKind.ADDED and not change.first_seen
        )
        change = next(added, None)
        return None if change is None else event_of(change)
