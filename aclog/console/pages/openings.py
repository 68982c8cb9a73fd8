"""Access that opened and closed again between two moments: neither of their states shows that."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction
from aclog.analysis.rows.report import ReportRow, row_cells
from aclog.authorizer.acls_image import RuleChange, changed_acls
from aclog.authorizer.codes import AclPermissionType
from aclog.authorizer.settings import Generation
from aclog.console.live import RuleTimeline
from aclog.console.pages.states import History, is_added
from aclog.metalog.values import frozen
from aclog.snapshots.history import Change
from aclog.snapshots.moments import timestamp_text

MOST = 20
"""Openings that are compared; each costs two states of the past."""


@frozen(eq=False, kw_only=True)
class Opening:
    """Access that opened with one state and closed with a later one."""

    rows: tuple[ReportRow, ...]
    """What it gained, beside the state before it."""
    opened: Change
    closed: Change
    is_whole: bool
    """Whether it is known that the state after it lacks all that was gained; a part may remain otherwise."""

    def __str__(self) -> str:
        head = (
            "opened and closed within this range"
            if self.is_whole
            else "opened within this range, and closed at least in part"
        )
        return f"{head}: {_moment(self.opened)} to {_moment(self.closed)}"


@frozen(eq=False, kw_only=True)
class Openings:
    """The openings between two moments, in order."""

    found: tuple[Opening, ...] = ()
    left_off: int = 0
    """Later ones that were not compared."""


def openings(history: History, timeline: RuleTimeline, first: int, last: int) -> Openings:
    """Return the access that opened and closed again between the states at two offsets."""
    pairs: dict[tuple[int, int], list[tuple[Change, Change]]] = defaultdict(list)
    for opened, closed in _pairs(timeline.changes[timeline.position(first) : timeline.position(last)]):
        if opened.end_offset < closed.end_offset:  # a state had it
            pairs[opened.end_offset, closed.end_offset].append((opened, closed))
    if not pairs:
        return Openings()
    kafka = history.kafka_of_both(timeline, first, last)
    generations = list(dict.fromkeys(each for one in kafka for each in one.generations))
    groups = list(pairs.values())
    found = (_opening(history, timeline, group, generations) for group in groups[:MOST])
    return Openings(found=tuple(each for each in found if each is not None), left_off=len(groups[MOST:]))


def _pairs(changes: Iterable[Change]) -> Iterator[tuple[Change, Change]]:
    """Yield each change that may open access with the change that undoes it."""
    opened: dict[object, Change] = {}
    for change in changes:
        acl = change.rule.acl
        if is_added(change) is (acl.permission_type == AclPermissionType.ALLOW):
            opened[acl] = change
        elif (begin := opened.pop(acl, None)) is not None:
            yield begin, change


def _opening(
    history: History, timeline: RuleTimeline, group: Sequence[tuple[Change, Change]], generations: Sequence[Generation]
) -> Opening | None:
    """Return what some rules opened together; None if they opened nothing, or if other rules kept it open."""
    opened, closed = group[0]
    changes = [RuleChange(added=is_added(each), acl=each.rule.acl) for each, _ in group]
    positions = timeline.before(timeline.position(opened.end_offset)), timeline.position(closed.end_offset)
    for generation in generations:
        policies = [history.policy(timeline, each, generation) for each in positions]
        before, after = (_gained(each, changes) for each in policies)
        if before and after:
            is_whole = _texts(before) == _texts(after)
            if not is_whole:
                # All that was gained, and that the later state still has, would be gained between the two states.
                rows = Comparison.of(*policies, changes=history.net(timeline, *positions)).rows()
                is_whole = not any(Direction.GAINED in each.row.directions for each in rows)
            return Opening(rows=before, opened=opened, closed=closed, is_whole=is_whole)
    return None


def _gained(policy: Policy, changes: Sequence[RuleChange]) -> tuple[ReportRow, ...]:
    """Return what changes would open in a policy; nothing if it has them already."""
    lacking = [each for each in changes if (policy.acls.find(each.acl) is None) is each.added]
    if not lacking:
        return ()
    changed = Policy(changed_acls(policy.acls, lacking), policy.settings)
    rows = Comparison.of(policy, changed, changes=lacking).rows()
    return tuple(each for each in rows if Direction.GAINED in each.row.directions)


def _texts(rows: Iterable[ReportRow]) -> list[tuple[str, ...]]:
    # Who, what and from where; which rules decide, and the example, may differ.
    return sorted(row_cells(each)[1:4] for each in rows)


def _moment(change: Change) -> str:
    return timestamp_text(change.timestamp) if change.timestamp >= 0 else f"offset {change.offset:,}"
