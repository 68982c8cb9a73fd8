"""The changes of rules between two offsets of a log, and the rules at each of them (RuleTimeline)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from attrs import evolve, frozen

from aclog.authorizer.acl_records import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.index.overlay_changes import Change as RecordChange
from aclog.metalog.errors import ReplayError
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.snapshots.rule_history import Change, ChangeKind

_STEP = 64
"""Changes between two states that are kept: others are made from the one before, at about 20 us a change."""
_FEWEST_MERGED, _SHARE = 4096, 8
"""An overlay is merged when it has so many changes, or this part of the rules if that is more: what bases take then
follows the number of changes."""


@frozen(eq=False, kw_only=True)
class Anchor:
    """The rules after so many changes. Most share the base of their neighbours."""

    position: int
    acls: AclsImage
    is_after_gap: bool = False
    """Whether what led to it was not seen: the changes before it may not lead to the same ids."""


@frozen(eq=False, kw_only=True)
class RuleTimeline:
    """All that happened to rules from the state at `begin` to the state at `end`.

    A position is a number of changes. Immutable: what follows, or goes before, makes another one that shares its parts.
    """

    begin: int
    """The end offset of the first state that is known."""
    begin_time: int
    """Of its last record, in ms since 1970; -1 if that is unknown."""
    end: int
    """The end offset of the last state that is known."""
    changes: tuple[Change, ...]
    ends: tuple[int, ...]
    """The end offset of the first state with each change; never decreasing."""
    anchors: tuple[Anchor, ...]
    """By position: of the first and the last one, and of enough in between."""

    @staticmethod
    def at(acls: AclsImage, *, offset: int, timestamp: int) -> "RuleTimeline":
        """Return one that knows a single state."""
        anchor = Anchor(position=0, acls=acls)
        return RuleTimeline(begin=offset, begin_time=timestamp, end=offset, changes=(), ends=(), anchors=(anchor,))

    @staticmethod
    def back_from(
        newer: "RuleTimeline",
        changes: Sequence[Change],
        *,
        begin: int,
        timestamp: int,
        pause: Pause = no_pause,
    ) -> "RuleTimeline":
        """Return what led to the first state of another one, made by taking back all these changes from it.

        `begin` is the end offset of the state before them, `timestamp` that of its last record. `pause` is called at
        each change.

        Raises:
            ReplayError: they did not lead to that state.

        """
        acls = newer.anchors[0].acls
        anchors = [Anchor(position=len(changes), acls=acls)]
        for position in range(len(changes) - 1, -1, -1):
            pause()
            acls = kept_small(acls.apply((_undone(changes[position]),)), pause)
            if position % _STEP == 0:
                anchors.append(Anchor(position=position, acls=acls))
        return RuleTimeline(
            begin=begin,
            begin_time=timestamp,
            end=newer.begin,
            changes=tuple(changes),
            ends=tuple(change.end_offset for change in changes),
            anchors=tuple(reversed(anchors)),
        )

    def __len__(self) -> int:
        return len(self.changes)

    def followed_by(self, changes: Sequence[Change], *, end: int, acls: AclsImage) -> "RuleTimeline":
        """Return this one with the changes that came next, and the rules after them."""
        last, total = self.anchors[-1], len(self.changes) + len(changes)
        if not changes and acls is last.acls:
            return evolve(self, end=end)
        # In a gap a rule may have come back under another id, of which no change tells.
        is_after_gap = not changes or any(change.gap for change in changes)
        # The last one is there for being the last one: it stays only if the one before it is far enough.
        kept = self.anchors
        if len(kept) > 1 and not last.is_after_gap and last.position - kept[-2].position < _STEP:
            kept = kept[:-1]
        between = () if len(changes) <= _STEP else self._between(last.acls, changes)
        return evolve(
            self,
            end=end,
            changes=self.changes + tuple(changes),
            ends=self.ends + tuple(change.end_offset for change in changes),
            anchors=(*kept, *between, Anchor(position=total, acls=acls, is_after_gap=is_after_gap)),
        )

    def joined(self, newer: "RuleTimeline") -> "RuleTimeline":
        """Return this one and another that begins where it ends."""
        size = len(self.changes)
        moved = (evolve(each, position=each.position + size) for each in newer.anchors[1:])
        return RuleTimeline(
            begin=self.begin,
            begin_time=self.begin_time,
            end=newer.end,
            changes=self.changes + newer.changes,
            ends=self.ends + newer.ends,
            anchors=(*self.anchors, *moved),
        )

    def shortened(self, most: int) -> "RuleTimeline":
        """Return this one with about so many of its newest changes: what became visible together stays together."""
        cut = len(self.changes) - most
        if cut <= 0:
            return self
        cut = bisect_right(self.ends, self.ends[cut - 1])
        first = Anchor(position=0, acls=self.acls_at(cut))
        later = (evolve(each, position=each.position - cut) for each in self.anchors if each.position > cut)
        return RuleTimeline(
            begin=self.ends[cut - 1],
            begin_time=self.changes[cut - 1].timestamp,
            end=self.end,
            changes=self.changes[cut:],
            ends=self.ends[cut:],
            anchors=(first, *later),
        )

    def position(self, offset: int) -> int:
        """Return how many changes the state at an offset has; between two states it is the earlier one."""
        return bisect_right(self.ends, offset)

    def offset(self, position: int) -> int:
        """Return the end offset from which on the rules are those of a position."""
        return self.ends[position - 1] if position else self.begin

    def time(self, position: int) -> int:
        """Return the time of the last change before a position, in ms since 1970; -1 if it is unknown."""
        return self.changes[position - 1].timestamp if position else self.begin_time

    def before(self, position: int) -> int:
        """Return the position before the changes that became visible last at this one; 0 if there are none."""
        return bisect_left(self.ends, self.ends[position - 1]) if position else 0

    def after(self, position: int) -> int:
        """Return the position after the changes that became visible next; the last one if there are none."""
        return bisect_right(self.ends, self.ends[position]) if position < len(self.ends) else len(self.ends)

    def acls_at(self, position: int) -> AclsImage:
        """Return the rules at a position."""
        number = bisect_right(self.anchors, position, key=lambda each: each.position) - 1
        anchor = self.anchors[number]
        changes = self.changes[anchor.position : position]
        return anchor.acls.apply(map(done, changes)) if changes else anchor.acls

    def _between(self, acls: AclsImage, changes: Sequence[Change]) -> list[Anchor]:
        """Return the states between the last one and those changes that come next."""
        found: list[Anchor] = []
        if any(change.gap for change in changes):  # it is one step: nobody asks for a state in it
            return found
        start = len(self.changes)
        for number, change in enumerate(changes[:-1], 1):
            acls = kept_small(acls.apply((done(change),)))
            if number % _STEP == 0:
                found.append(Anchor(position=start + number, acls=acls))
        return found


def done(change: Change) -> RecordChange:
    """Return the record that makes a change. Raises ReplayError: it has no id."""
    return _added(change) if change.kind is ChangeKind.ADDED else _removed(change)


def _undone(change: Change) -> RecordChange:
    return _removed(change) if change.kind is ChangeKind.ADDED else _added(change)


def _added(change: Change) -> RecordChange:
    if change.rule.id is None:
        raise ReplayError(f"a change has no id: {change}")
    return record_of(change.rule.acl, change.rule.id)


def _removed(change: Change) -> RecordChange:
    if change.rule.id is None:
        raise ReplayError(f"a change has no id: {change}")
    return RemoveAccessControlEntryRecord(id=change.rule.id)


def merge_at(rules: int) -> int:
    """Return how many changes an overlay over so many rules may have."""
    return max(_FEWEST_MERGED, rules // _SHARE)


def kept_small(acls: AclsImage, pause: Pause = no_pause) -> AclsImage:
    """Return the same rules, merged into a new base if too much was changed since the old one was built."""
    return acls.merged(pause) if acls.overlay_size > merge_at(len(acls)) else acls
