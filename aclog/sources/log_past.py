"""What the log of a source tells about rules and topics of its state: when each came into being."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from uuid import UUID

from attrs import field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.origin import LogOrigin, Origin
from aclog.metalog.records import AccessControlEntryRecord, RecordType
from aclog.snapshots.state_source import StateSource
from aclog.snapshots.topic_history import TopicHistory
from aclog.snapshots.visible_records import visible_records
from aclog.sources.log_history import log_of, start_of

_ID, _REST = 3, 19
"""Where the id begins in the record of an ACL, and the rest after it: the frame's header has three bytes."""


@frozen(kw_only=True)
class LogPast:
    """Where some rules were added, and when topics existed (aclog.authorizer.origin.Origins)."""

    topics: TopicHistory
    _added: Mapping[StandardAcl, tuple[LogOrigin, int]] = field(alias="added")

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return the record that added a rule; none if it was asked of no log, or is older than the log reaches."""
        found = self._added.get(acl)
        return () if found is None else (found[0],)

    def added(self, acls: Iterable[StandardAcl]) -> Iterator[tuple[StandardAcl, int]]:
        """Yield those of some rules whose addition the log has, with the end offset of the first state with each."""
        return ((acl, self._added[acl][1]) for acl in acls if acl in self._added)


@frozen
class _Wanted:
    """Which records are worth decoding: not the millions that add ACLs nobody asked for."""

    _ids: Collection[bytes]

    def __call__(self, value: bytes) -> bool:
        """Tell by the apiKey and the id in a record's value, both at fixed places."""
        if len(value) < _REST:
            return True  # it may be damaged, which decoding says
        if value[1] == RecordType.ACCESS_CONTROL_ENTRY_RECORD:
            return value[_ID:_REST] in self._ids
        return value[1] != RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD


def past_of(
    source: StateSource, end_offset: int, rules: Mapping[UUID, StandardAcl], pause: Pause = no_pause
) -> LogPast:
    """Read the log of a source up to a state; note where those of its rules were added, and all of its topics.

    `pause` is called at each record that is read for that.

    Raises:
        ConfigError: the source has no log.
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    log, begin = log_of(source), start_of(source)
    topics, added = TopicHistory.beginning(begin), dict[StandardAcl, tuple[LogOrigin, int]]()
    for seen in visible_records(begin.provenance, log, _Wanted({each.bytes for each in rules})):
        pause()
        if seen.end_offset > end_offset:
            break
        if isinstance(seen.record, AccessControlEntryRecord):
            origin = LogOrigin(offset=seen.offset, timestamp=seen.timestamp)
            added[rules[seen.record.id]] = (origin, seen.end_offset)
        else:
            topics.replay(seen)
    return LogPast(topics=topics, added=added)
