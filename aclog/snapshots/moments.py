"""Moments (`--as-of`), and the end offset in a log that each of them names; moment_texts.py reads them."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.log import LogReader

Moment: TypeAlias = int | datetime
"""A state in the past: an end offset (exclusive: the state after the record before it), or a time with a zone."""

LATEST = "latest"
"""The text of the newest state."""

READ_BYTES = 64 << 20
"""How much of a log is read at once: enough for bulk replay, and small enough to keep in memory."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def utc_of(time: datetime) -> datetime:
    """Return the same instant in UTC. Raises ConfigError: it is outside the years 1 to 9999 there."""
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ConfigError(f"{time.isoformat()} is outside the years 1 to 9999 in UTC") from None


def moment_text(moment: Moment | None) -> str:
    """Return the text of a moment, which `read_moment` reads as the same one."""
    if moment is None:
        return LATEST
    if isinstance(moment, int):
        return str(moment)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def milliseconds(time: datetime) -> int:
    """Return a time in ms since 1970, rounded down, so that no batch of a later ms is part of the state at that time.

    Raises:
        ConfigError: the time has no zone.

    """
    if time.tzinfo is None:
        raise ConfigError(f"{time.isoformat()} has no time zone: expected one, such as {time.isoformat()}Z")
    return (time - _EPOCH) // _MILLISECOND


def end_offset_at(reader: LogReader, time: datetime) -> int:
    """Return the end offset of the state at `time`: the base offset of the first batch with a later max timestamp.

    The high-water mark if there is none. Timestamps may go back when the leader changes, so the first later batch
    counts: a state includes all batches before it, never a selection.

    A log may begin in the middle of a cluster's life (sync, import, migrate), so its first record is where knowledge
    begins: the state before it is unknown, not empty.

    Raises:
        DecodeError: damage in the log.
        LogError: the log cannot be read, or begins at offset 0 with a record that is later than `time`, or has none.

    """
    end = reader.high_watermark()
    if end <= 0:
        raise LogError(f"{reader.name}: as of {moment_text(time)}: the state is unknown: the log has no record")
    found = first_later(reader, milliseconds(time), reader.start_offset())
    if found.offset == 0:
        what = f"the state is unknown: the log's first record is of {_time_text(found.timestamp)}"
        raise LogError(f"{reader.name}: as of {moment_text(time)}: {what}")
    return found.offset


class Later(NamedTuple):
    """Where a log goes on after a time: the first batch with a later max timestamp (ms since 1970); -1: there is none.

    Without one, `offset` is the high-water mark.
    """

    offset: int
    timestamp: int


def first_later(reader: LogReader, latest: int, offset: int) -> Later:
    """Return the first batch from an offset on that is later than a time in ms since 1970.

    Raises:
        DecodeError: damage in the log. LogError: the log cannot be read.

    """
    end = reader.high_watermark()
    while offset < end:
        batches, damage = scan_batches(reader.read(offset, READ_BYTES))
        later = (batches.max_timestamp > latest).nonzero()[0]
        if len(later):
            return Later(int(batches.base_offset[later[0]]), int(batches.max_timestamp[later[0]]))
        if damage is not None or not len(batches):
            raise LogError(f"{reader.name}: offset {offset}: damaged batches, which its reader should have rejected")
        offset = int(batches.base_offset[-1] + batches.record_count[-1])
    return Later(max(offset, end), -1)


def timestamp_text(timestamp: int) -> str:
    """Return a time in ms since 1970 as text in UTC, to the millisecond."""
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:  # a record may bear any number
        return f"{timestamp} ms after 1970"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time_text(timestamp: int) -> str:
    try:
        return moment_text(_EPOCH + timedelta(milliseconds=timestamp))
    except OverflowError:  # a record may bear any number
        return f"{timestamp} ms after 1970"
