"""When the answer to a question was yes: intervals of a log, each end with the change that made it."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Protocol

from attrs import define, frozen

from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl_records import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.overlay_changes import Change as RecordChange
from aclog.authorizer.settings import Settings
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.snapshots.image import Image
from aclog.snapshots.rule_history import Change, ChangeKind

_MANY_CHANGES = 4096
"""From this size on an overlay is merged, unless most rules are in it."""


class Question(Protocol):
    """What is asked of each state; it may remember the last answer, as it is asked in the order of the log."""

    @property
    def queries(self) -> tuple[Query, ...]:
        """The requests on which the answer depends."""
        ...

    def concerns(self, rule: StandardAcl, settings: Settings) -> bool:
        """Return whether a rule can have a part in any answer."""
        ...

    def holds(self, old: Policy, new: Policy, changed: StandardAcl | None) -> bool:
        """Return whether the answer is yes in `new`, which differs from `old`, the last state asked, in one rule.

        None: in any rules.
        """
        ...


@frozen(kw_only=True)
class Event:
    """An end of an interval. `change` is None where the log begins: the state was so before it.

    `offset` and `timestamp` (ms since 1970; -1: unknown) are those of the change's record, `end_offset` is that of the
    first state that includes it.
    """

    offset: int
    end_offset: int
    timestamp: int
    change: Change | None


@frozen(kw_only=True)
class Interval:
    """From the first state in which the answer was yes to the first one in which it was no longer; None: until now."""

    start: Event
    end: Event | None


def intervals(begin: Image, changes: Iterable[Change], question: Question, settings: Settings) -> Iterator[Interval]:
    """Yield the intervals in which the answer was yes, in the order of the log.

    `begin` is the state with which the history begins, `changes` are what came after it, in order; rules of the
    beginning among them are left out (aclog.snapshots.rule_history.history_from). Changes that became visible together
    are one step: what was so only between them was never so.
    """
    state = _State(question=question, policy=Policy(_of_matter(begin.acls, question, settings), settings))
    start = _beginning(begin) if state.holds(None) else None
    concerned = (each for each in changes if not each.first_seen and question.concerns(each.rule.acl, settings))
    for _, step in groupby(concerned, lambda change: change.end_offset):
        flipped = state.flipped(step)
        if flipped is None:
            continue
        if start is None:
            start = flipped
        else:
            yield Interval(start=start, end=flipped)
            start = None
    if start is not None:
        yield Interval(start=start, end=None)


def _of_matter(acls: AclsImage, question: Question, settings: Settings) -> AclsImage:
    """Return those ACLs that can have a part in the answer."""
    return AclsImage.from_acls(rule for rule in acls if question.concerns(rule.acl, settings))


def _beginning(image: Image) -> Event:
    return Event(offset=image.end_offset, end_offset=image.end_offset, timestamp=image.timestamp, change=None)


@define(kw_only=True)
class _State:
    """The state so far, of the rules that matter, and the answer in it."""

    question: Question
    policy: Policy
    answer: bool = False

    def holds(self, changed: StandardAcl | None, acls: AclsImage | None = None) -> bool:
        """Move on to other rules, if given, and return the answer."""
        new = self.policy if acls is None else Policy(acls, self.policy.settings)
        self.answer = self.question.holds(self.policy, new, changed)
        self.policy = new
        return self.answer

    def flipped(self, changes: Iterable[Change]) -> Event | None:
        """Apply changes that became visible together; return the one that changed the answer, if it did."""
        before, last = self.answer, None
        for change in changes:
            was, acls = self.answer, self.policy.acls.apply((_record(change),))
            if acls.overlay_size > max(_MANY_CHANGES, len(acls) // 4):
                acls = acls.merged()
            if self.holds(change.rule.acl, acls) is not was:
                last = change
        return _event(last) if last is not None and self.answer is not before else None


def _record(change: Change) -> RecordChange:
    id = change.rule.id  # noqa: A001  # Kafka's name for it
    if id is None:
        raise ValueError(f"a change of a log has an id: {change}")
    return record_of(change.rule.acl, id) if change.kind is ChangeKind.ADDED else RemoveAccessControlEntryRecord(id=id)


def _event(change: Change) -> Event:
    return Event(offset=change.offset, end_offset=change.end_offset, timestamp=change.timestamp, change=change)
