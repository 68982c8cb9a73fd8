"""A checkpoint of bootstrap records as the target of a migration: a new Kafka writes them into its log at its start."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field, frozen

from aclog.authorizer.generation import RANGES_LEVEL
from aclog.cli.migrate.first_start import first_start_file
from aclog.cli.migrate.target import AclIds, TargetContents, TargetWriter, contents_of, default_features
from aclog.metalog.batches import build_batch, read_header
from aclog.metalog.clock import current_time_ms
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import SnapshotFooter, SnapshotHeader, control_batch
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.filesystem import replace_durably
from aclog.nodes.storage.feature_levels import METADATA_VERSIONS
from aclog.nodes.storage.format_files import READ_ONLY
from aclog.places.log_writer import batched, check_parent
from aclog.snapshots.bootstrap_records import BootstrapRecords, read_bootstrap
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference, record_values, state_of_image


@frozen(kw_only=True)
class CheckpointTarget:
    """A checkpoint file, new or written by `kafka-storage format`, whose features, voters and users are kept.

    `path` may be the formatted directory. Each access checks that the first start there will read the file.
    """

    path: Path

    @property
    def name(self) -> str:
        """The file, or the directory that has it."""
        return str(self.path)

    @property
    def limitation(self) -> str:
        """None."""
        return ""

    def supported(self, state: AccessState) -> AccessState:
        """Return the state and the users of the file; a user in both has the credentials of the state."""
        own = {(record.name, record.mechanism): record for record in _read(self.path).image.scram.records()}
        return AccessState(acls=state.acls, credentials={**own, **state.credentials}, tokens=state.tokens)

    def contents(self) -> TargetContents:
        """Read the file; a missing one is empty. Its ACLs decide as in the Kafka that formatted the directory."""
        found = _read(self.path)
        ranges = found.in_first_checkpoint or found.image.features.level(METADATA_VERSION) >= RANGES_LEVEL
        return contents_of(found.image.with_acls(found.image.acls.with_options(documented=False, cidr=ranges)))

    @contextmanager
    def open(self) -> Iterator[TargetWriter]:
        """Collect the new contents; the file is written by `commit`. Raises ConfigError, LogError."""
        found = _read(self.path)
        # Records of other types would be lost, since the file is written anew.
        if len(found.image.opaque) or len(found.image.cluster):
            raise ConfigError(f"{found.path}: contains records of other types: expected a bootstrap.checkpoint")
        check_parent(found.path)
        yield CheckpointTargetWriter(found=found, state=state_of_image(found.image))


def _read(path: Path) -> BootstrapRecords:
    """Return what the first start will read. Raises as first_start_file."""
    path = first_start_file(path)
    if not path.exists():
        return BootstrapRecords(path=path, records=(), image=Image.EMPTY)
    return read_bootstrap(path)


def _features(image: Image) -> list[bytes]:
    if image.features.level(METADATA_VERSION):
        return [encode_record(record) for record in image.features.records()]
    return default_features()


@define(kw_only=True)
class CheckpointTargetWriter:
    """The future contents of the file, in memory until `commit`."""

    state: AccessState
    _found: BootstrapRecords = field(repr=False)

    def write(self, wanted: AccessState) -> StateChange:
        """See TargetWriter. Raises ConfigError: the metadata.version of the file is too old for what is written."""
        _check_level(self._found, wanted)
        change, self.state = difference(self.state, wanted), wanted
        return change

    def commit(self) -> None:
        """Write the file atomically. Raises LogError, EncodeError; ConfigError: as first_start_file."""
        everything, path = difference(AccessState(), self.state), self._found.path
        values = [*_features(self._found.image), *record_values(everything, AclIds({}).of(everything))]
        if _read(path).records != self._found.records:
            raise ConfigError(f"{path}: another program has changed it meanwhile: run the command again")
        opening = _opening(path) if self._found.in_first_checkpoint else None
        replace_durably(path, bootstrap_bytes(values, opening=opening, now_ms=current_time_ms()))
        if opening is not None:
            path.chmod(READ_ONLY)  # as formatting leaves it
        self._found = _read(path)  # a change during the switchover is committed after it

    def abort(self) -> None:
        """Do nothing: nothing was written."""


def _check_level(found: BootstrapRecords, wanted: AccessState) -> None:
    level = found.image.features.level(METADATA_VERSION)
    for what, present, since in (
        ("SCRAM credentials", wanted.credentials, "3.5-IV2"),
        ("delegation tokens", wanted.tokens, "3.6-IV2"),
    ):
        if present and 0 < level < METADATA_VERSIONS[since]:
            raise ConfigError(
                f"{found.path}: metadata.version {level} has no {what}: expected a directory that was formatted with "
                f"--release-version {since} or later"
            )


def _opening(path: Path) -> bytes:
    """Return the first batch of a 0-0 checkpoint: without its KRaftVersion and KRaftVoters no leader is elected."""
    data = path.read_bytes()
    return data[: read_header(data).size]


def bootstrap_bytes(values: list[bytes], *, opening: bytes | None = None, now_ms: int) -> bytes:
    """Encode record values as a checkpoint in as many batches as needed (BootstrapDirectory, Formatter).

    `opening` is its batch of control records, by default the header of a bootstrap.checkpoint.
    """
    if opening is None:
        header = SnapshotHeader(last_contained_log_timestamp=0)
        opening = control_batch(header, base_offset=0, leader_epoch=0, timestamp=now_ms)
    pieces, offset = [opening], read_header(opening).end_offset
    for batch in batched(values):
        pieces.append(build_batch(batch, base_offset=offset, leader_epoch=0, timestamp=now_ms))
        offset += len(batch)
    pieces.append(control_batch(SnapshotFooter(), base_offset=offset, leader_epoch=0, timestamp=now_ms))
    return b"".join(pieces)
