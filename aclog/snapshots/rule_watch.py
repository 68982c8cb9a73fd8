"""Watching a log: every change of an ACL after a state, as it is committed."""

from collections.abc import Callable

from attrs import define, field

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acl_records import acl_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.rule_change import changes_between
from aclog.metalog.errors import DecodeError, MetadataError, ReplayError
from aclog.metalog.log import LogReader
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.uuids import uuid_text
from aclog.snapshots.following import next_batches
from aclog.snapshots.image import Image
from aclog.snapshots.mapped_file import check_mapping
from aclog.snapshots.rule_history import Change, ChangeKind
from aclog.snapshots.visible_records import RecordReplay, VisibleRecord

_MANY_CHANGES = 32_768
"""Changes after which they are merged into the index, which keeps their memory small."""


@define(kw_only=True, eq=False)
class RuleWatch:
    """A watch in progress; owned by one thread. It holds no file: `log` is its source's."""

    log: LogReader
    newest: Callable[[], Image]
    """Returns the newest state of the source, in any thread."""
    _acls: AclsImage
    _records: RecordReplay
    _notify: Callable[[str], None]
    merge_at: int = _MANY_CHANGES
    """Changes after which they are merged into the index."""
    pause: Pause = no_pause
    """Called at each record, for who lets others go first."""
    _failure: MetadataError | None = field(default=None, init=False)

    @staticmethod
    def after(
        image: Image,
        log: LogReader,
        *,
        newest: Callable[[], Image],
        notify: Callable[[str], None],
        merge_at: int = _MANY_CHANGES,
        pause: Pause = no_pause,
    ) -> "RuleWatch":
        """Return a watch that begins with the first change after a state; of gaps `notify` is told."""
        records = RecordReplay(replayed_to=image.provenance)
        return RuleWatch(
            log=log, newest=newest, acls=image.acls, records=records, notify=notify, merge_at=merge_at, pause=pause
        )

    @property
    def end_offset(self) -> int:
        """Everything below it has been seen."""
        return self._records.replayed_to.end_offset

    @property
    def acls(self) -> AclsImage:
        """The rules after what has been seen."""
        return self._acls

    def step(self, timeout: float) -> tuple[Change, ...]:
        """Return the next changes, in the order of the log; none if nothing was committed within `timeout` seconds.

        If a snapshot has replaced the next records, those are the changes that lead to the newest state, with `gap`.
        After damage every later call raises the same error: no change is ever skipped.

        Raises:
            MetadataError: the log is damaged, deleted or closed, or can never be followed again; or the image file that
                the state is mapped from was overwritten.

        """
        if self._failure is not None:
            raise self._failure
        if self._acls.overlay_size > self.merge_at:
            self._merge()
        chunk = next_batches(self.log, self.end_offset, timeout)
        check_mapping(self._acls)
        return self._over_gap() if chunk is None else self._replayed(chunk)

    def _replayed(self, chunk: bytes) -> tuple[Change, ...]:
        found = []
        try:
            for seen in self._records.replay(chunk):
                self.pause()
                change = self._change(seen)
                if change is not None:
                    found.append(change)
        except DecodeError as error:
            # What is good before it is told first.
            self._failure = error.at(path=self.log.name)
            if not found:
                raise self._failure from None
        return tuple(found)

    def _merge(self) -> None:
        merged = self._acls.merged(self.pause)
        check_mapping(self._acls)  # else what was written over a file would live on in the merged index
        self._acls = merged

    def _change(self, seen: VisibleRecord) -> Change | None:
        record = seen.record
        if isinstance(record, AccessControlEntryRecord):
            acl, kind = acl_of(record), ChangeKind.ADDED
        elif isinstance(record, RemoveAccessControlEntryRecord):
            found, kind = self._acls.get(record.id), ChangeKind.REMOVED
            if found is None:
                raise ReplayError(f"ACL {uuid_text(record.id)} is removed, but does not exist", offset=seen.offset)
            acl = found
        else:
            return None
        self._acls = self._acls.apply((record,))
        rule = StandardAclWithId(id=record.id, acl=acl)
        return Change(offset=seen.offset, end_offset=seen.end_offset, timestamp=seen.timestamp, kind=kind, rule=rule)

    def _over_gap(self) -> tuple[Change, ...]:
        before, first, newest = self._acls, self.end_offset, self.newest()
        self._notify(
            f"{self.log.name}: offsets {first} to {newest.end_offset - 1} were not watched: a snapshot has replaced "
            "records of them; what they changed as a whole is told"
        )
        self._acls, self._records = newest.acls, RecordReplay(replayed_to=newest.provenance)
        return tuple(
            Change(
                offset=newest.end_offset - 1,
                end_offset=newest.end_offset,
                timestamp=newest.timestamp,
                kind=ChangeKind.ADDED if change.added else ChangeKind.REMOVED,
                rule=StandardAclWithId(id=(newest.acls if change.added else before).find(change.acl), acl=change.acl),
                gap=True,
            )
            for change in changes_between(before, newest.acls)
        )
