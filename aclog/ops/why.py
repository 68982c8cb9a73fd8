"""Since when a request has been decided as it is now, and by which change of the log: what `aclog why` adds."""

from collections.abc import Iterable, Iterator
from itertools import takewhile

from attrs import define, field, frozen

from aclog.analysis.policy import Policy
from aclog.analysis.timeline import Event, Question, concerns_controllers, intervals, policy_after
from aclog.authorizer.acl import is_cidr
from aclog.authorizer.settings import Settings
from aclog.planning.plan import ApplyNote
from aclog.snapshots.deciding_kafka import KafkaChange, kafka_history
from aclog.snapshots.history import Change
from aclog.snapshots.image import StateSource
from aclog.sources.logs import LogSource, history_of, log_of
from aclog.targets.applies import read_applies, with_applies


@frozen(kw_only=True)
class Since:
    """The last change of an answer in a log.

    `event.change` is None if the log begins with this answer, which may be older. `made_by` is the apply that made the
    change, if the record of applies beside the log has it. `before` is the policy just before the change; None
    without a change, or if it depends on the Kafka that decided then.
    """

    allowed: bool
    event: Event
    made_by: ApplyNote | None = None
    before: Policy | None = None


def answer_since(source: StateSource, end_offset: int, question: Question, settings: Settings) -> Since:
    """Return since when the answer to a question has been what it is in the state at `end_offset`.

    Reads the log once, and a second time for the Kafka that its nodes ran, if `settings` has none and a rule with an
    address range takes part. Changes that became visible together are one step.

    Raises:
        ConfigError: the source is a single state.
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    history = history_of(source)
    begin = history.begin
    applies = read_applies(source.directory) if isinstance(source, LogSource) else None
    changes = takewhile(lambda change: change.end_offset <= end_offset, history.changes)
    concerned = _Concerned(question=question, settings=settings)
    passing = concerned.passing(with_applies(changes, () if applies is None else applies.applied, begin.end_offset))

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
    if not isinstance(event.change, Change):
        return Since(allowed=allowed, event=event)
    earlier = [change for change, _ in concerned.changes if change.end_offset < event.end_offset]
    before = policy_after(begin, earlier, question, settings)
    has_ranges = any(is_cidr(rule.acl.host) for rule in before.acls)
    return Since(
        allowed=allowed,
        event=event,
        made_by=next((note for change, note in concerned.changes if change is event.change), None),
        before=None if has_ranges and not settings.is_kafka_stated else before,
    )


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
