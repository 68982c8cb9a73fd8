"""Where in a log a moment lies: an end offset, or a time."""

from datetime import UTC, datetime, timedelta

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.log import LogReader

READ_BYTES = 64 << 20
"""How much of a log is read and replayed together: enough for bulk replay, little enough to stand in memory."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(time: datetime) -> int:
    """A time as ms since 1970, rounded down: no batch of a later ms is part of the state at that time.

    Raises:
        ConfigError: the time has no zone.

    """
    if time.tzinfo is None:
        raise ConfigError(f"{time.isoformat()} has no time zone: expected one, such as {time.isoformat()}Z")
    return (time - _EPOCH) // _MILLISECOND


def end_offset_at(reader: LogReader, time: datetime) -> int:
    """The end offset of the state at `time`: where the first batch begins whose max timestamp is later.

    Timestamps may go back where the leader changes; the first later batch counts. The high-water mark if none is.

    Raises:
        DecodeError, LogError: the log cannot be read.

    """
    latest, offset, end = milliseconds(time), reader.start_offset(), reader.high_watermark()
    while offset < end:
        batches, damage = scan_batches(reader.read(offset, READ_BYTES))
        later = (batches.max_timestamp > latest).nonzero()[0]
        if len(later):
            return int(batches.base_offset[later[0]])
        if damage is not None or not len(batches):
            raise LogError(f"{reader.name}: offset {offset}: damaged batches, which its reader should have refused")
        offset = int(batches.base_offset[-1] + batches.record_count[-1])
    return offset


def size_below(chunk: bytes, limit: int) -> int:
    """How many bytes of a chunk of whole batches lie below the offset `limit`, to a whole batch."""
    batches, _ = scan_batches(chunk)
    beyond = (batches.base_offset + batches.record_count > limit).nonzero()[0]
    return int(batches.position[beyond[0]]) if len(beyond) else len(chunk)
