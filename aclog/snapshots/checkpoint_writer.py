"""Writes checkpoints: an image as the batches of a snapshot file (RecordsSnapshotWriter, FileRawSnapshotWriter)."""

from collections.abc import Callable, Iterator
from pathlib import Path

from aclog.metalog.batch_groups import MAX_BATCH_BYTES, grouped
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import SnapshotFooter, control_batch, snapshot_header_records
from aclog.metalog.errors import CheckpointError
from aclog.metalog.filelog.file_names import checkpoint_name
from aclog.metalog.filelog.filesystem import log_error, write_all
from aclog.metalog.filelog.partial_files import written_whole
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image
from aclog.snapshots.mapped_file import check_mapping


def checkpoint_batches(image: Image, *, max_batch_bytes: int = MAX_BATCH_BYTES) -> Iterator[bytes]:
    """Yield the batches of a checkpoint one by one, so that a large one is never in memory as a whole.

    Control records come first, then feature levels, brokers, uninterpreted records in log order, ACLs, SCRAM
    credentials and tokens; the footer is last. Offsets begin at 0, epoch and timestamp are the image's: the same image
    yields the same bytes.

    Raises:
        CheckpointError: kraft.version is 1 without a voter set: a cluster could not elect a leader from that
            checkpoint.

    """
    provenance = image.provenance
    if provenance.kraft_version and provenance.voters is None:
        raise CheckpointError(
            f"the image at offset {image.end_offset} has kraft.version {provenance.kraft_version} and no voters: "
            "expected a KRaftVoters record before that offset; no cluster can start from a checkpoint without it"
        )
    epoch, timestamp = image.epoch, max(image.timestamp, 0)
    header = snapshot_header_records(
        last_contained_log_timestamp=timestamp,
        kraft_version=provenance.kraft_version,
        voters=provenance.voters,
    )
    yield control_batch(*header, base_offset=0, leader_epoch=epoch, timestamp=timestamp)
    offset = len(header)
    for values in grouped(_values(image), max_batch_bytes):
        yield build_batch(values, base_offset=offset, leader_epoch=epoch, timestamp=timestamp)
        offset += len(values)
    yield control_batch(SnapshotFooter(), base_offset=offset, leader_epoch=epoch, timestamp=timestamp)


def _values(image: Image) -> Iterator[bytes]:
    yield from map(encode_record, image.features.records())
    yield from map(encode_record, image.cluster.records(image.features.level(METADATA_VERSION)))
    yield from image.opaque.values()
    yield from image.acls.records()
    yield from map(encode_record, image.scram.records())
    yield from map(encode_record, image.tokens.records())


def write_checkpoint(image: Image, directory: Path | str, *, progress: Callable[[int], None] | None = None) -> Path:
    """Write `<end offset>-<epoch>.checkpoint` into `directory`, atomically: it gets its name only when complete.

    `progress` is called with the number of bytes written so far.

    Raises:
        LogError: the disk is full or fails, or the image file that the state is mapped from was overwritten.
        CheckpointError: see `checkpoint_batches`.

    """
    path = Path(directory) / checkpoint_name(image.end_offset, image.epoch)
    written = 0
    try:
        with written_whole(path) as fd:
            for batch in checkpoint_batches(image):
                write_all(fd, batch)
                written += len(batch)
                if progress is not None:
                    progress(written)
            # Retention removes segments that the checkpoint covers: what an overwritten image file says must not become
            # the state.
            check_mapping(image.acls)
    except OSError as error:
        raise log_error(error, path, "cannot write the checkpoint") from error
    return path
