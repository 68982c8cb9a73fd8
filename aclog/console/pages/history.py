"""The history of a source, and what is derived from its states."""

from collections.abc import Sequence
from itertools import islice

from attrs import define, field, frozen

from aclog.analysis.comparison import Comparison
from aclog.analysis.difference import differences
from aclog.analysis.policy import Policy
from aclog.analysis.rows.row_report import ReportRow
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.rule_change import RuleChange, net_changes
from aclog.authorizer.settings import Settings
from aclog.console.followed_applies import FollowedApplies
from aclog.console.kept import Kept
from aclog.console.live_history import KnownHistory, LiveHistory
from aclog.console.pages.states import NotReadyError
from aclog.console.rule_timeline import RuleTimeline
from aclog.metalog.errors import MetadataError
from aclog.places.applied_changes import with_applies
from aclog.planning.place import ApplyNote
from aclog.snapshots.deciding_kafka import settled
from aclog.snapshots.rule_history import Change, ChangeKind

_POLICIES = 24
"""That are kept, each with what it has read of its rules."""
_COMPARISONS = 128
_WARMING = 100
"""Rules that are compared to begin with."""
_WAIT_S = 0.3
"""For the history to reach the newest state, which is read beside it."""


@frozen(eq=False, kw_only=True)
class Compared:
    """What lies between two states of a history, given as positions."""

    net: tuple[RuleChange, ...]
    """The rules that only one of them has."""
    comparison: Comparison
    rows: tuple[ReportRow, ...]


@define(eq=False, kw_only=True)
class History:
    """Safe for any number of threads."""

    live: LiveHistory
    settings: Settings
    applies: FollowedApplies | None = None
    """None if no file tells of applies."""
    _policies: Kept[Policy] = field(factory=lambda: Kept(_POLICIES), init=False)
    _compared: Kept[Compared] = field(factory=lambda: Kept(_COMPARISONS), init=False)

    @property
    def edition(self) -> int:
        """Another one whenever more is known of the past, or there is other trouble."""
        known = self.live.known
        return -1 if known is None else known.edition

    def known(self, offset: int) -> KnownHistory:
        """Return what is known; waits a little for it to reach an offset. Raises NotReadyError: nothing yet."""
        known = self.live.caught_up(offset, _WAIT_S)
        if known is None:
            raise NotReadyError("the history was not read yet")
        return known

    def policy(self, timeline: RuleTimeline, position: int) -> Policy:
        """Return the policy of a position."""

        def made() -> Policy:
            """Return the policy, made of the nearest image that is known."""
            acls = timeline.acls_at(position)
            settings = self.decided()
            return Policy(acls.with_options(documented=settings.documented, cidr=settings.cidr), settings)

        return self._policies.get((timeline.offset(position),), made)

    def decided(self) -> Settings:
        """Return the settings by which all of it is decided: those of the newest state.

        Raises:
            ConfigError: which generation of Kafka decides is not stated, and matters.

        """
        newest = self.live.live.newest
        return self.settings if newest is None else settled(self.settings, newest.image)

    def net(self, timeline: RuleTimeline, first: int, last: int) -> tuple[RuleChange, ...]:
        """Return the rules that only one of two positions has, as changes from the earlier to the later one."""
        changes = timeline.changes[first:last]
        return tuple(net_changes(RuleChange(added=is_added(each), acl=each.rule.acl) for each in changes))

    def compared(self, timeline: RuleTimeline, first: int, last: int, net: tuple[RuleChange, ...]) -> Compared:
        """Return what two positions decide differently, of which `net` tells."""

        def made() -> Compared:
            """Compare them."""
            old, new = self.policy(timeline, first), self.policy(timeline, last)
            found = Comparison.of(old, new, changes=net)
            return Compared(net=net, comparison=found, rows=tuple(found.rows()))

        return self._compared.get((timeline.offset(first), timeline.offset(last)), made)

    def was_compared(self, timeline: RuleTimeline, first: int, last: int) -> bool:
        """Return whether `compared` knows the answer already."""
        return self._compared.has((timeline.offset(first), timeline.offset(last)))

    def with_applies(
        self, timeline: RuleTimeline, first: int, last: int
    ) -> tuple[Sequence[tuple[Change, ApplyNote | None]], str]:
        """Return the changes between two positions with who made each, and why that is not known, if it is not."""
        changes = timeline.changes[first:last]
        if self.applies is None:
            return [(each, None) for each in changes], "the log does not tell who made a change"
        try:
            applied = self.applies.read()
        except MetadataError as error:
            return [(each, None) for each in changes], f"who made a change is unknown: {error}"
        if applied is None:
            return [
                (each, None) for each in changes
            ], "no apply of aclog changed this log, and the log tells nobody else"
        # An apply may have begun before the first of these changes.
        begun = [each.offset for each in applied if each.done and timeline.begin <= each.offset]
        since = max((each for each in begun if changes and each <= changes[0].offset), default=None)
        start = first
        while since is not None and start > 0 and timeline.changes[start - 1].offset >= since:
            start -= 1
        told = with_applies(timeline.changes[start:last], applied, timeline.begin)
        return list(islice(told, first - start, None)), ""


def warm(acls: AclsImage, settings: Settings) -> None:
    """Compare rules with themselves: what comparisons find out about a base is kept with it."""
    chosen = acls.with_options(documented=settings.documented, cidr=settings.cidr)
    some = [rule.acl for rule in islice(chosen, _WARMING)]
    for _ in differences(Policy(chosen, settings), Policy(chosen, settings), changed=some):
        pass


def is_added(change: Change) -> bool:
    """Return whether a change adds its rule."""
    return change.kind is ChangeKind.ADDED
