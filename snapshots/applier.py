"""The applier: replays committed batches, in order, into the next image (MetadataLoader, MetadataBatchLoader)."""

from attrs import define, field

from metalog.batches import BatchHeader, check_crc, read_header, read_records
from metalog.codec import decode_values
from metalog.control import KRaftVersion, KRaftVoters, SnapshotFooter, SnapshotHeader, decode_control
from metalog.errors import DecodeError, MetadataError, ReplayError
from snapshots.delta import AclChange, Delta, in_value
from snapshots.image import Image, Provenance
from snapshots.newer_kafka import NewerKafka
from snapshots.transactions import Placed, Transactions


@define(kw_only=True)
class Applier:
    """Owned by the one thread that replays a log. `image` is always the state after a whole batch.

    `next_offset` is where the next chunk must begin: above `image.end_offset` only while a transaction is open.
    `newer` says what to do about a log of a newer Kafka: to stop, unless told otherwise.
    """

    image: Image = Image.EMPTY
    newer: NewerKafka = field(factory=NewerKafka)
    next_offset: int = field(init=False)
    journal: list[AclChange] | None = field(default=None, init=False)
    _read_to: Provenance = field(init=False)
    _transactions: Transactions = field(factory=Transactions, init=False)
    _failure: MetadataError | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.load(self.image)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open at `next_offset`."""
        return self._transactions.is_open

    def load(self, image: Image) -> None:
        """Go on from this image, as from a checkpoint, whatever was replayed before."""
        self.image, self._read_to, self.next_offset = image, image.provenance, image.end_offset
        self._transactions, self._failure, self.journal = Transactions(), None, None

    def apply(self, chunk: bytes, position: int = 0, end: int | None = None) -> Image:
        """The image after a chunk of whole committed batches, such as LogReader.read returns.

        `position` and `end` are where in the chunk they stand, all of it unless said.

        After an error the image is the one after the last good batch, and every later call raises the same error:
        nothing is ever skipped. Positions in errors are byte positions in the chunk.

        Raises:
            DecodeError: damaged bytes, or a record that is interpreted in a version that is not known.
            ReplayError: a gap in offsets, an epoch that goes back, a transaction marker out of place, an ACL added
                twice, removed while absent, or with the content of another.

        """
        if self._failure is not None:
            raise self._failure
        try:
            end = len(chunk) if end is None else end
            while position < end:
                position = self._apply_batch(chunk, position)
        except MetadataError as e:
            self._failure = e
            raise
        return self.image

    def _apply_batch(self, chunk: bytes, position: int) -> int:
        header = read_header(chunk, position)
        check_crc(chunk, position, header)
        check_order(header, position, self._read_to)
        if header.is_control:
            self._read_to = read_control(chunk, position, header, self._read_to)
        else:
            for offset, record in enumerate(decode_values(chunk, position, header), header.base_offset):
                self._transactions.add(offset, record)
            self._read_to = _read_to(self._read_to, header)
        if not self._transactions.is_open:
            self._show(self._transactions.take())
        self.next_offset = header.end_offset
        return position + header.size

    def _show(self, records: list[Placed]) -> None:
        """Make records visible, and with them everything up to the last batch."""
        delta = Delta(newer=self.newer)
        for offset, record in records:
            delta.replay(record, offset)
        self.image = delta.apply(self.image, self._read_to)
        if self.journal is not None:
            self.journal += delta.acls


def check_order(header: BatchHeader, position: int, before: Provenance) -> None:
    """Check what the CRC does not cover: the batch follows the one before it.

    Raises:
        ReplayError: its offset leaves a gap or goes back, or its epoch goes back.

    """
    if header.base_offset != before.end_offset:
        raise ReplayError(
            f"a batch begins at offset {header.base_offset}: expected {before.end_offset}",
            position=position,
            offset=header.base_offset,
        )
    if header.leader_epoch < before.epoch:
        raise ReplayError(
            f"leader epoch {header.leader_epoch} after epoch {before.epoch}: expected no going back",
            position=position,
            offset=header.base_offset,
        )


def read_control(chunk: bytes, position: int, header: BatchHeader, before: Provenance) -> Provenance:
    """Where the log stands after a control batch.

    Raises:
        DecodeError: a damaged control record.
        ReplayError: a record that stands in checkpoints only.

    """
    kraft_version, voters = before.kraft_version, before.voters
    for record in read_records(chunk, position, header):
        offset = header.base_offset + record.offset_delta
        try:
            control = decode_control(record.key or b"", record.value)
        except DecodeError as e:
            raise in_value(e, offset) from None
        match control:
            case KRaftVersion():
                kraft_version = control.kraft_version
            case KRaftVoters():
                voters = control
            case SnapshotHeader() | SnapshotFooter():
                raise ReplayError(f"{type(control).__name__} in a log: expected in a checkpoint only", offset=offset)
    return Provenance(
        end_offset=header.end_offset,
        epoch=header.leader_epoch,
        timestamp=header.max_timestamp,
        kraft_version=kraft_version,
        voters=voters,
    )


def _read_to(before: Provenance, header: BatchHeader) -> Provenance:
    return Provenance(
        end_offset=header.end_offset,
        epoch=header.leader_epoch,
        timestamp=header.max_timestamp,
        kraft_version=before.kraft_version,
        voters=before.voters,
    )
