"""The records of a log in the order in which they became visible, without those of aborted transactions."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from attrs import define, field

from aclog.metalog.batches import BatchHeader, iter_batches, read_values
from aclog.metalog.codec import decode_record
from aclog.metalog.errors import DecodeError
from aclog.metalog.log import LogReader
from aclog.metalog.records import MetadataRecord
from aclog.snapshots.metadata_transactions import Transactions
from aclog.snapshots.provenance import Provenance, check_follows

_READ_BYTES = 4 << 20


class VisibleRecord(NamedTuple):
    """A committed record: its offset, and the time of its batch (ms since 1970).

    `end_offset` is that of the first state that includes it: records with the same one became visible together.
    """

    offset: int
    end_offset: int
    timestamp: int
    record: MetadataRecord


def visible_records(
    start: Provenance, reader: LogReader, wanted: Callable[[bytes], bool] | None = None
) -> Iterator[VisibleRecord]:
    """Yield every record from a state on, up to the high-water mark.

    `wanted` is asked with the value of each; others are neither decoded nor yielded. Markers of transactions must be
    wanted.

    Raises:
        LogError: the log cannot be read.
        DecodeError: damage, a ReplayError if its records are inconsistent; with path and offset.

    """
    found = RecordReplay(replayed_to=start, wanted=wanted)
    try:
        while found.replayed_to.end_offset < reader.high_watermark():
            yield from found.replay(reader.read(found.replayed_to.end_offset, _READ_BYTES))
    except DecodeError as e:
        raise type(e)(e.what, offset=e.offset, path=e.path or reader.name) from None


@define(kw_only=True)
class RecordReplay:
    """A replay in progress: the batches since the last visible state."""

    replayed_to: Provenance
    wanted: Callable[[bytes], bool] | None = None
    """Of which values the records are of interest, as in `visible_records`."""
    _transactions: Transactions = field(factory=Transactions, init=False)
    _times: list[tuple[int, int]] = field(factory=list, init=False)

    def replay(self, chunk: bytes) -> Iterator[VisibleRecord]:
        """Yield the records of whole batches that continue the log, once they are visible. Raises DecodeError."""
        for position, header in iter_batches(chunk):
            check_follows(self.replayed_to, header, position)
            self.replayed_to = Provenance(end_offset=header.end_offset, epoch=header.leader_epoch)
            if not header.is_control:
                # A transaction may span batches: a record has the time of its own batch, but the last makes it visible.
                self._times.append((header.end_offset, header.max_timestamp))
                for offset, record in self._decoded(chunk, position, header):
                    self._transactions.add(offset, record)
            if not self._transactions.is_open:
                yield from self._visible()

    def _decoded(self, chunk: bytes, position: int, header: BatchHeader) -> Iterator[tuple[int, MetadataRecord]]:
        for offset, (start, value) in enumerate(read_values(chunk, position, header), header.base_offset):
            if self.wanted is None or self.wanted(value):
                try:
                    yield offset, decode_record(value)
                except DecodeError as e:
                    raise e.at(offset=offset, base=start) from None

    def _visible(self) -> Iterator[VisibleRecord]:
        times = iter(self._times)
        self._times = []
        end, timestamp = -1, -1
        visible_at = self.replayed_to.end_offset
        for offset, record in self._transactions.take():
            while offset >= end:
                end, timestamp = next(times)
            yield VisibleRecord(offset, visible_at, timestamp, record)
