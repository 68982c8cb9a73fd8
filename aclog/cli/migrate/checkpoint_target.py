"""A bootstrap.checkpoint with what a ZooKeeper holds: a new Kafka's controller writes it into its log at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field, frozen

from aclog.cli.log_writer import batched
from aclog.cli.migrate.log_target import AclIds, Held, MigrationTarget, held_in
from aclog.metalog.batches import build_batch
from aclog.metalog.clock import current_time_ms
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import SnapshotFooter, SnapshotHeader, control_batch
from aclog.metalog.errors import CheckpointError, ConfigError, DecodeError, LogError
from aclog.metalog.filelog.filesystem import replace_durably
from aclog.nodes.storage.feature_levels import feature_levels
from aclog.snapshots.checkpoint_reader import decode_checkpoint
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference, record_values, state_of_image


@frozen(kw_only=True)
class CheckpointPlace:
    """The file: new, or what `kafka-storage format` wrote, whose features and users are kept."""

    path: Path

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    @property
    def limit(self) -> str:
        """It takes everything."""
        return ""

    def takes(self, state: AccessState) -> AccessState:
        """All of it, beside the users that the file begins with."""
        own = {(record.name, record.mechanism): record for record in self._image().scram.records()}
        return AccessState(acls=state.acls, credentials={**own, **state.credentials}, tokens=state.tokens)

    def held(self) -> Held:
        """What the file holds."""
        return held_in(self._image())

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
    def open(self) -> Iterator[MigrationTarget]:
        """The file is written at the switch, and not before. Raises ConfigError: it is of another kind."""
        image = self._image()
        if len(image.opaque):
            raise ConfigError(f"{self.path}: holds records of other kinds: expected a bootstrap.checkpoint")
        if not self.path.absolute().parent.is_dir():
            raise LogError(f"{self.path.parent}: no such directory: expected one to write {self.path.name} in")
        yield CheckpointTarget(path=self.path, standing=state_of_image(image), features=_features(image))


def _features(image: Image) -> list[bytes]:
    """Those of the file; of a new one, those that `aclog format` begins a log with."""
    levels = feature_levels(None, (), dynamic_quorum=False).records
    records = list(image.features.records()) if image.features.level(METADATA_VERSION) else levels
    return [encode_record(record) for record in records]


@define(kw_only=True)
class CheckpointTarget:
    """What the file will hold, in memory until the switch."""

    standing: AccessState
    _path: Path
    _features: list[bytes] = field(repr=False)

    def write(self, wanted: AccessState) -> StateChange:
        """See MigrationTarget."""
        change, self.standing = difference(self.standing, wanted), wanted
        return change

    def switch(self) -> None:
        """Write the file, whole or not at all. Raises LogError, EncodeError."""
        whole = difference(AccessState(), self.standing)
        values = [*self._features, *record_values(whole, AclIds({}).of(whole))]
        replace_durably(self._path, bootstrap_bytes(values, now_ms=current_time_ms()))

    def give_up(self) -> None:
        """Nothing has been written."""


def bootstrap_bytes(values: list[bytes], *, now_ms: int) -> bytes:
    """Record values as a bootstrap.checkpoint: as aclog.nodes.storage.format_files, in as many batches as they take."""
    pieces = [
        control_batch(SnapshotHeader(last_contained_log_timestamp=0), base_offset=0, leader_epoch=0, timestamp=now_ms)
    ]
    offset = 1
    for batch in batched(values):
        pieces.append(build_batch(batch, base_offset=offset, leader_epoch=0, timestamp=now_ms))
        offset += len(batch)
    pieces.append(control_batch(SnapshotFooter(), base_offset=offset, leader_epoch=0, timestamp=now_ms))
    return b"".join(pieces)
