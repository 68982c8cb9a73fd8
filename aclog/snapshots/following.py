"""Following a log: one visible state after the other, with what changed in between."""

from collections.abc import Callable, Iterator

from attrs import frozen

from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import LogError
from aclog.metalog.log import LogReader
from aclog.snapshots.applier import Applier
from aclog.snapshots.delta import AclChange
from aclog.snapshots.image import Image
from aclog.snapshots.mapped_file import check_mapping
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.state_source import StateSource

WAIT_S = 1.0
"""How long one poll of the log waits, in seconds; Ctrl-C takes effect within this time."""

_MANY_CHANGES = 1024
"""ACL changes after which they are merged into the index: whoever compares two states walks through those left."""

_SHARE = 128
"""A large index is merged only when this part of it has changed: a merge takes about as long as reading it anew."""


@frozen(kw_only=True)
class Followed:
    """A visible state, the one that was seen before, and the ACL records between them, in order.

    `changes` is None if states in between were not seen: a snapshot has replaced the records that made them.
    """

    before: Image
    after: Image
    changes: tuple[AclChange, ...] | None


def follow(
    source: StateSource, log: LogReader, image: Image, idle: Callable[[], None] = lambda: None
) -> Iterator[Followed]:
    """Yield each visible state after `image`; never ends.

    One batch at a time, or one metadata transaction. If retention has removed the records that follow, the source's
    newest state is next.

    `idle` is called whenever WAIT_S has passed without a record.

    Raises:
        MetadataError: the log is damaged or deleted, or can never be followed again; or the image file that the state
            is mapped from was overwritten.

    """
    applier = _applier(image)
    while True:
        chunk = next_batches(log, applier.next_offset, WAIT_S)
        check_mapping(applier.image.acls)
        if chunk is None:
            before, applier = applier.image, _applier(source.image())
            yield Followed(before=before, after=applier.image, changes=None)
            continue
        if not chunk:
            idle()
        for position, header in iter_batches(chunk):
            before, applier.journal = applier.image, []
            after = applier.apply(chunk[position : position + header.size])
            if after is not before:  # within a transaction the image does not change
                yield Followed(before=before, after=after, changes=tuple(applier.journal))
            if after.acls.overlay_size > max(_MANY_CHANGES, len(after.acls) // _SHARE):
                merged = after.acls.merged()
                check_mapping(after.acls)  # else what was written over a file would live on in the merged index
                applier.put_acls(merged)


def _applier(image: Image) -> Applier:
    return Applier(image=image, newer=NewerKafka(strict=False))


def next_batches(log: LogReader, offset: int, timeout: float) -> bytes | None:
    """Return the batches from an offset; none if none is committed in time, None if the log begins above it.

    Raises:
        MetadataError: the log is damaged, deleted or closed, or can never be followed again.

    """
    if offset < log.start_offset():
        return None
    try:
        return log.read(offset) if log.wait(offset, timeout) else b""
    except LogError:
        if offset < log.start_offset():  # it has begun to in the meantime
            return None
        raise
