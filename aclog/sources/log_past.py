"""What the log of a source tells about rules and topics of its state: when each came into being."""

from collections.abc import Collection, Iterator, Mapping
from uuid import UUID

from attrs import field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.origin import LogOrigin, Origin
from aclog.metalog.records import AccessControlEntryRecord
from aclog.snapshots.image import Image
from aclog.snapshots.state_source import StateSource
from aclog.snapshots.topic_history import TopicHistory
from aclog.snapshots.visible_records import visible_records
from aclog.sources.log_history import log_of, start_of


@frozen(kw_only=True)
class LogPast:
    """Where some rules were added, and when topics existed (aclog.authorizer.origin.Origins)."""

    topics: TopicHistory
    _added: Mapping[StandardAcl, tuple[LogOrigin, int]] = field(alias="added")

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return the record that added a rule; none if it was asked of no log, or is older than the log reaches."""
        found = self._added.get(acl)
        return () if found is None else (found[0],)

    def added(self) -> Iterator[tuple[StandardAcl, int]]:
        """Yield the rules whose addition the log has, with the end offset of the first state that has each."""
        return ((acl, end_offset) for acl, (_, end_offset) in self._added.items())


def past_of(source: StateSource, image: Image, acls: Collection[StandardAcl]) -> LogPast:
    """Read the log of a source up to a state; note where those of its rules were added.

    Raises:
        ConfigError: the source has no log.
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    log = log_of(source)
    wanted = {found: acl for acl in acls if (found := image.acls.find(acl)) is not None}
    begin = start_of(source)
    topics, added = TopicHistory.beginning(begin), dict[UUID, tuple[LogOrigin, int]]()
    for seen in visible_records(begin.provenance, log):
        if seen.end_offset > image.end_offset:
            break
        record = seen.record
        if isinstance(record, AccessControlEntryRecord):
            if record.id in wanted:
                added[record.id] = (LogOrigin(offset=seen.offset, timestamp=seen.timestamp), seen.end_offset)
        else:
            topics.replay(seen)
    return LogPast(topics=topics, added={acl: added[id_] for id_, acl in wanted.items() if id_ in added})
