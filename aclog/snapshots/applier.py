"""The applier: replays committed batches, in order, into the next image (MetadataLoader, MetadataBatchLoader)."""

from attrs import define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.batches import CONTROL, LENGTH_END, check_crc, read_header
from aclog.metalog.codec import decode_values
from aclog.metalog.errors import MetadataError, ReplayError
from aclog.metalog.records import MetadataRecord
from aclog.snapshots.bulk_replay import BULK_BYTES, replay_bulk
from aclog.snapshots.delta import AclChange, Delta, apply_acls, only_acls
from aclog.snapshots.image import Image
from aclog.snapshots.metadata_transactions import OffsetAndRecord, Transactions
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.provenance import Provenance, after_control, after_data, check_follows


@define(kw_only=True)
class Applier:
    """Owned by the one thread that replays a log. `image` is always the state after a whole batch.

    `next_offset` is where the next chunk must begin: above `image.end_offset` only while a transaction is open. `newer`
    is the policy for records of a newer Kafka: by default, stop. `journal`, if set to a list, collects every ACL change
    that becomes visible; it is reset to None when the image is replaced or rebuilt. Chunks of at least `bulk_bytes` are
    replayed in bulk.
    """

    image: Image = Image.EMPTY
    newer: NewerKafka = field(factory=NewerKafka)
    bulk_bytes: int = BULK_BYTES
    next_offset: int = field(init=False)
    journal: list[AclChange] | None = field(default=None, init=False)
    _replayed_to: Provenance = field(init=False)
    _transactions: Transactions = field(factory=Transactions, init=False)
    _failure: MetadataError | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.load(self.image)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open at `next_offset`."""
        return self._transactions.is_open

    @property
    def failed(self) -> bool:
        """Whether replay has failed; it does not continue until an image is loaded."""
        return self._failure is not None

    def load(self, image: Image) -> None:
        """Continue from this image, such as a checkpoint's, discarding what was replayed before."""
        self.image, self._replayed_to, self.next_offset = image, image.provenance, image.end_offset
        self._transactions, self._failure, self.journal = Transactions(), None, None

    def put_acls(self, acls: AclsImage) -> Image:
        """Replace the ACLs by the same ACLs in another representation (merged), and continue from there."""
        self.image = self.image.with_acls(acls)
        return self.image

    def apply(self, chunk: bytes, position: int = 0, end: int | None = None) -> Image:
        """Replay a chunk of whole committed batches, as LogReader.read returns it, and return the new image.

        `position` and `end` limit what of the chunk is replayed; the default is all of it.

        After an error the image is that after the last good batch, and every later call raises the same error: nothing
        is ever skipped. Positions in errors are byte positions in the chunk.

        Raises:
            DecodeError: damaged bytes, or an interpreted record type in an unknown version.
            ReplayError: an offset gap, a leader epoch that decreases, a misplaced transaction marker, an ACL that is
                added twice, removed while absent, or duplicates another one.

        """
        if self._failure is not None:
            raise self._failure
        try:
            self._apply(chunk, position, len(chunk) if end is None else end)
        except MetadataError as e:
            self._failure = e
            raise
        except BaseException as e:
            # An interrupt may have left a batch half applied: fail closed, rather than continue from an unknown state.
            what = f"replay was interrupted by a {type(e).__name__}: reload from a checkpoint"
            self._failure = ReplayError(what, offset=self.next_offset)
            raise
        return self.image

    def _apply(self, chunk: bytes, position: int, end: int) -> None:
        """Replay in bulk if possible; where that stops, replay twice as many batches one by one as the last time.

        So a chunk full of batches that bulk replay cannot handle is scanned a few times only, not once per batch.
        """
        if end - position < self.bulk_bytes:
            while position < end:
                position = self._apply_batch(chunk, position)
            return
        one_by_one, patience = 0, 1
        while position < end:
            # Bulk replay starts outside of transactions only: it does not carry held-back records from chunk to chunk.
            if one_by_one == 0 and end - position >= self.bulk_bytes and not self.in_transaction:
                position = self._apply_in_bulk(chunk, position, end)
                one_by_one, patience = patience, 2 * patience
            else:
                position = self._apply_batch(chunk, position)
                one_by_one = max(one_by_one - 1, 0)

    def _apply_in_bulk(self, chunk: bytes, position: int, end: int) -> int:
        done = replay_bulk(chunk, position, end, image=self.image, before=self._replayed_to, newer=self.newer)
        if done is None:
            return position
        self.image, self._replayed_to = done.image, done.image.provenance
        self.next_offset = self.image.end_offset
        if done.acl_changes is None:
            self.journal = None
        elif self.journal is not None:
            self.journal += done.acl_changes
        return done.position

    def _apply_batch(self, chunk: bytes, position: int) -> int:
        header = read_header(chunk, position)
        check_crc(chunk, position, header)
        # Base offset and leader epoch are outside of the CRC: a batch is only accepted in its place.
        check_follows(self._replayed_to, header, position)
        if header.attributes & CONTROL:
            self._replayed_to = after_control(self._replayed_to, header, chunk, position)
            # A control batch has no metadata records, but the image must advance past it to reach the high-water mark.
            self._replay_records(header.base_offset, [])
        else:
            records = decode_values(chunk, position, header)
            self._replayed_to = after_data(self._replayed_to, header)
            if not self._transactions.is_open and only_acls(records):
                self._make_acls_visible(header.base_offset, records)
            else:
                self._replay_records(header.base_offset, records)
        self.next_offset = header.base_offset + header.record_count
        return position + header.batch_length + LENGTH_END

    def _replay_records(self, offset: int, records: list[MetadataRecord]) -> None:
        """Hold records back while a transaction is open, else make them visible with what was held back."""
        for at, record in enumerate(records, offset):
            self._transactions.add(at, record)
        if not self._transactions.is_open:
            self._make_visible(self._transactions.take())

    def _make_visible(self, records: list[OffsetAndRecord]) -> None:
        """Make records visible, and with them everything up to the last batch."""
        delta = Delta(newer=self.newer)
        for offset, record in records:
            delta.replay(record, offset)
        self.image = delta.apply(self.image, self._replayed_to)
        if self.journal is not None:
            self.journal += delta.acls

    def _make_acls_visible(self, offset: int, changes: list[AclChange]) -> None:
        """Do the same for the most common batch, which has only ACL changes, without a Delta."""
        image = self.image
        try:
            acls = image.acls.apply(changes)
        except ReplayError:
            acls = apply_acls(image.acls, changes, range(offset, offset + len(changes)))  # says which one it was
        # No evolve, and positional arguments (keywords double the cost of the call): this runs for every ACL change.
        self.image = Image(
            acls, image.scram, image.tokens, image.features, image.cluster, image.opaque, self._replayed_to
        )
        if self.journal is not None:
            self.journal += changes
