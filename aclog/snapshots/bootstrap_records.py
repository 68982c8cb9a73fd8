"""What the first leader of an empty log commits: the records that formatting left for it, which are not state yet.

Kafka up to 4.3 keeps them in bootstrap.checkpoint in the node's directory. From 4.4 on (KIP-1170) they are data batches
of the 0-0 checkpoint beside the log; if it has any, a bootstrap.checkpoint is ignored.
"""

from collections.abc import Sized
from pathlib import Path

from attrs import field, frozen

from aclog.metalog.batches import iter_batches
from aclog.metalog.codec import decode_values
from aclog.metalog.errors import CheckpointError, DecodeError
from aclog.metalog.filelog.file_names import METADATA_DIRECTORY, checkpoint_name
from aclog.metalog.records import MetadataRecord
from aclog.snapshots.checkpoint_reader import BOOTSTRAP_NAME, decode_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka

FIRST_CHECKPOINT = checkpoint_name(0, 0)
"""The checkpoint that formatting leaves in the log's directory: the voters, and from 4.4 on the records."""


@frozen(kw_only=True)
class BootstrapRecords:
    """The records of a file, and the state that they will be, with the voters that the file names."""

    path: Path
    records: tuple[MetadataRecord, ...] = field(repr=False)
    image: Image = field(repr=False)

    @property
    def in_first_checkpoint(self) -> bool:
        """Whether the file is a 0-0 checkpoint, which Kafka before 4.4 reads the voters of only."""
        return self.path.name == FIRST_CHECKPOINT


def find_bootstrap(log_directory: Path) -> BootstrapRecords | None:
    """Return what the first leader of the log in this directory commits; None if formatting left no file for it.

    Raises:
        CheckpointError: a file is damaged, or was written by a newer Kafka.

    """
    first = log_directory / FIRST_CHECKPOINT
    if first.is_file() and (found := read_bootstrap(first)).records:
        return found
    legacy = legacy_bootstrap(log_directory)
    return None if legacy is None else read_bootstrap(legacy)


def uncommitted_bootstrap(log_directory: Path, image: Image) -> str | None:
    """Return what is wrong with a log of this state that was begun without the records of its 0-0 checkpoint.

    Versions of aclog that did not know KIP-1170 read these records as state, and no leader committed them: Kafka does
    not start on such a log, and the users and rules of the file are in nobody's state. None for any other log. Raises
    CheckpointError: as find_bootstrap.
    """
    parts: tuple[Sized, ...] = (image.acls, image.scram, image.tokens, image.cluster, image.opaque)
    if len(image.features) or not any(len(part) for part in parts):
        return None
    found = find_bootstrap(log_directory)
    if found is None or not found.in_first_checkpoint:
        return None
    return (
        f"begun without the {len(found.records)} records of {found.path.name}, and so without metadata.version: export "
        "what the log has (`aclog export --log`), format an empty directory, and import it there"
    )


def legacy_bootstrap(log_directory: Path) -> Path | None:
    """Return the bootstrap.checkpoint beside a metadata log; None if there is none."""
    path = log_directory.absolute().parent / BOOTSTRAP_NAME
    return path if log_directory.name == METADATA_DIRECTORY and path.is_file() else None


def read_bootstrap(path: Path) -> BootstrapRecords:
    """Return the records of a bootstrap.checkpoint or 0-0 checkpoint. Raises CheckpointError: as find_bootstrap."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot read: {error.strerror or error}") from error
    try:
        image = decode_checkpoint(data, end_offset=0, epoch=0, newer=NewerKafka(strict=True))
    except DecodeError as error:
        raise CheckpointError(str(error.at(path=str(path)))) from error
    batches = [(position, header) for position, header in iter_batches(data) if not header.is_control]
    records = tuple(record for position, header in batches for record in decode_values(data, position, header))
    return BootstrapRecords(path=path, records=records, image=image)
