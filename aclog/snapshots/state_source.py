"""The StateSource protocol: the sources from which commands and the shell read states."""

from typing import Protocol

from attrs import define, field

from aclog.authorizer.acl import ChangePlace
from aclog.metalog.codec import is_known_to_kafka
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import NewerKafkaError
from aclog.metalog.records import FeatureLevelRecord, OpaqueRecord, RecordType
from aclog.snapshots.freshness import Freshness
from aclog.snapshots.image import METADATA_VERSION, NEWEST_METADATA_VERSION, Image
from aclog.snapshots.moments import Moment

# The StateSource protocol: the sources from which commands and the shell read states.


class StateSource(Protocol):
    """An open source of states: a log directory, a checkpoint, a file of ACLs, a live log."""

    @property
    def name(self) -> str:
        """The name of the source, for `/local/source` and messages."""
        ...

    @property
    def log(self) -> LogReader | None:
        """The log that can be followed, or None."""
        ...

    @property
    def change_place(self) -> ChangePlace:
        """The target for changes of its ACLs: a log that `aclog acls` may write, or the cluster that was read."""
        ...

    def image(self) -> Image:
        """Return the newest committed state.

        Raises:
            MetadataError: the source is damaged or missing.

        """
        ...

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment in the past. A thread may call it while another one calls `image`.

        Raises:
            MetadataError: the moment is out of reach, or the source has a single state.

        """
        ...

    def freshness(self) -> Freshness | None:
        """Return the age of the newest state; None without a running cluster, or if none has responded yet."""
        ...

    def close(self) -> None:
        """Close files and connections, if any; closing twice is allowed."""
        ...


# The policy for a log that a newer Kafka wrote: a node stops, a read-only command warns and continues.


KAFKA_VERSION_CONFIG = "aclog.kafka.version"
"""The property of a node that selects the Kafka by whose rules it decides, and so the levels that it supports."""

_NEWEST_API_KEY = max(RecordType)


@define(kw_only=True)
class NewerKafka:
    """The policy, and its warnings so far: one for each unknown apiKey and each unknown metadata.version.

    An interpreted record type in an unknown version is refused under either policy, by its decoder.
    """

    strict: bool = True
    newest: int = NEWEST_METADATA_VERSION
    """The newest level of metadata.version that is accepted: a node's follows from aclog.kafka.version."""
    _warnings: dict[str, int] = field(factory=dict, init=False)

    def warnings(self) -> tuple[str, ...]:
        """Return the warnings, each with the first offset that it applies to."""
        return tuple(f"offset {offset}: {what}" for what, offset in self._warnings.items())

    def copy(self) -> "NewerKafka":
        """Return a copy for a replay that may be discarded."""
        copy = NewerKafka(strict=self.strict, newest=self.newest)
        copy.adopt(self)
        return copy

    def adopt(self, other: "NewerKafka") -> None:
        """Adopt the warnings of a copy."""
        self._warnings = dict(other._warnings)

    def check_opaque(self, record: OpaqueRecord, offset: int) -> None:
        """Check an uninterpreted record.

        Raises:
            NewerKafkaError: strict, and its apiKey is above those of Kafka 4.4.0.

        """
        # An unknown number below the newest is one that Kafka has abandoned, not one of the future.
        if record.api_key > _NEWEST_API_KEY and not is_known_to_kafka(record.api_key):
            self._warn_or_raise(
                f"a record of apiKey {record.api_key}, written by a newer Kafka: expected at most {_NEWEST_API_KEY}",
                offset,
            )

    def check_feature(self, record: FeatureLevelRecord, offset: int) -> None:
        """Check a feature level.

        Raises:
            NewerKafkaError: strict, and it is a metadata.version above `newest`.

        """
        if record.name == METADATA_VERSION and record.feature_level > self.newest:
            supported = record.feature_level <= NEWEST_METADATA_VERSION
            remedy = f", or {KAFKA_VERSION_CONFIG}=4.4 in the node's configuration" if supported else ""
            self._warn_or_raise(
                f"metadata.version {record.feature_level} of a newer Kafka: expected at most {self.newest}{remedy}",
                offset,
            )

    def _warn_or_raise(self, what: str, offset: int) -> None:
        if self.strict:
            raise NewerKafkaError(what, offset=offset)
        self._warnings.setdefault(what, offset)
