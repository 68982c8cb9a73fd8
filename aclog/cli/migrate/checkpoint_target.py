"""A bootstrap.checkpoint as the target of a migration: a new Kafka writes its records into its log when it starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field, frozen

from aclog.cli.migrate.target import AclIds, TargetContents, TargetWriter, contents_of, default_features
from aclog.metalog.batches import build_batch
from aclog.metalog.clock import current_time_ms
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import SnapshotFooter, SnapshotHeader, control_batch
from aclog.metalog.errors import CheckpointError, ConfigError, DecodeError
from aclog.metalog.filelog.filesystem import replace_durably
from aclog.places.log_writer import batched, check_parent
from aclog.snapshots.checkpoint_reader import decode_checkpoint
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference, record_values, state_of_image


@frozen(kw_only=True)
class CheckpointTarget:
    """A checkpoint file, new or written by `kafka-storage format`, whose features and users are kept."""

    path: Path

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    @property
    def limitation(self) -> str:
        """None."""
        return ""

    def supported(self, state: AccessState) -> AccessState:
        """Return the state and the users of the file; a user in both has the credentials of the state."""
        own = {(record.name, record.mechanism): record for record in self._image().scram.records()}
        return AccessState(acls=state.acls, credentials={**own, **state.credentials}, tokens=state.tokens)

    def contents(self) -> TargetContents:
        """Read the file; a missing one is empty."""
        return contents_of(self._image())

    def _image(self) -> Image:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return Image.EMPTY
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot read: {error.strerror or error}") from error
        try:
            return decode_checkpoint(data, end_offset=0, epoch=0, newer=NewerKafka(strict=True))
        except DecodeError as error:
            raise CheckpointError(str(error.at(path=str(self.path)))) from error

    @contextmanager
    def open(self) -> Iterator[TargetWriter]:
        """Collect the new contents; the file is written by `commit`. Raises ConfigError, LogError."""
        image = self._image()
        # Records of other types would be lost, since the file is written anew.
        if len(image.opaque) or len(image.cluster):
            raise ConfigError(f"{self.path}: contains records of other types: expected a bootstrap.checkpoint")
        check_parent(self.path)
        yield CheckpointTargetWriter(path=self.path, state=state_of_image(image), features=_features(image))


def _features(image: Image) -> list[bytes]:
    if image.features.level(METADATA_VERSION):
        return [encode_record(record) for record in image.features.records()]
    return default_features()


@define(kw_only=True)
class CheckpointTargetWriter:
    """The future contents of the file, in memory until `commit`."""

    state: AccessState
    _path: Path
    _features: list[bytes] = field(repr=False)

    def write(self, wanted: AccessState) -> StateChange:
        """See TargetWriter."""
        change, self.state = difference(self.state, wanted), wanted
        return change

    def commit(self) -> None:
        """Write the file atomically. Raises LogError, EncodeError."""
        everything = difference(AccessState(), self.state)
        values = [*self._features, *record_values(everything, AclIds({}).of(everything))]
        replace_durably(self._path, bootstrap_bytes(values, now_ms=current_time_ms()))

    def abort(self) -> None:
        """Do nothing: nothing was written."""


def bootstrap_bytes(values: list[bytes], *, now_ms: int) -> bytes:
    """Encode record values as a bootstrap.checkpoint in as many batches as needed (BootstrapDirectory)."""
    pieces = [
        control_batch(SnapshotHeader(last_contained_log_timestamp=0), base_offset=0, leader_epoch=0, timestamp=now_ms)
    ]
    offset = 1
    for batch in batched(values):
        pieces.append(build_batch(batch, base_offset=offset, leader_epoch=0, timestamp=now_ms))
        offset += len(batch)
    pieces.append(control_batch(SnapshotFooter(), base_offset=offset, leader_epoch=0, timestamp=now_ms))
    return b"".join(pieces)
