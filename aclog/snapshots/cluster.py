"""The registered brokers of an image (org.apache.kafka.image.ClusterImage, ClusterDelta)."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Self

from attrs import evolve, field, frozen

from aclog.metalog.errors import ReplayError
from aclog.metalog.persistent_map import Map, MapMutation
from aclog.metalog.records import (
    BrokerRecord,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

_FENCED = {1: True, -1: False}
"""BrokerRegistrationFencingChange: what a registration becomes; 0 changes nothing."""

_DIRECTORIES_SINCE, _CORDONED_SINCE, _MIGRATION_SINCE = 17, 30, 8
"""The metadata.version since which RegisterBrokerRecord has version 3, 4 and 2; those before are not supported."""


def register_broker_version(metadata_version: int) -> int:
    """Return the version in which Kafka 4.3.1 writes a RegisterBrokerRecord (MetadataVersion); the newest for 0."""
    if metadata_version == 0 or metadata_version >= _CORDONED_SINCE:
        return 4
    if metadata_version >= _DIRECTORIES_SINCE:
        return 3
    return 2 if metadata_version >= _MIGRATION_SINCE else 1


@frozen(kw_only=True)
class ClusterImage:
    """The registration of every broker at one offset: its newest RegisterBrokerRecord with all changes since."""

    EMPTY: ClassVar["ClusterImage"]

    _brokers: Map[int, RegisterBrokerRecord] = field(factory=Map, alias="brokers")

    def __len__(self) -> int:
        return len(self._brokers)

    def get(self, broker_id: int) -> RegisterBrokerRecord | None:
        """Return the registration of a broker; None if it is not registered."""
        return self._brokers.get(broker_id)

    def brokers(self) -> Iterator[RegisterBrokerRecord]:
        """Return all registrations by ascending id."""
        return (self._brokers[broker_id] for broker_id in sorted(self._brokers))

    def records(self, metadata_version: int) -> Iterator[RegisterBrokerRecord]:
        """Return the records of this image, as a cluster with this metadata.version contains them.

        What an older version cannot hold is left out (BrokerRegistration.toRecord).
        """
        version = register_broker_version(metadata_version)
        return (evolve(each, version=version) for each in self.brokers())

    def newest_levels(self, feature: str) -> Iterator[tuple[int, int]]:
        """Yield the id of each broker and the newest level of a feature that it supports; 0 if it registered none."""
        for broker in self.brokers():
            levels = (each.max_supported_version for each in broker.features if each.name == feature)
            yield broker.broker_id, next(levels, 0)

    def apply(self, changes: Iterable[tuple[int, BrokerRecord]]) -> Self:
        """Return the image after these (offset, record) pairs, in order.

        Raises:
            ReplayError: a record other than a registration is for a broker that is not registered, or registered with
                another epoch (ClusterControlManager.replay).

        """
        brokers = self._brokers.mutate()
        for offset, change in changes:
            _replay(brokers, change, offset)
        return type(self)(brokers=brokers.finish())


ClusterImage.EMPTY = ClusterImage()


def _replay(brokers: MapMutation[int, RegisterBrokerRecord], change: BrokerRecord, offset: int) -> None:
    match change:
        case RegisterBrokerRecord():
            brokers[change.broker_id] = change
        case UnregisterBrokerRecord():
            _registered(brokers, change, change.broker_id, change.broker_epoch, offset)
            del brokers[change.broker_id]
        case FenceBrokerRecord() | UnfenceBrokerRecord():
            broker = _registered(brokers, change, change.id, change.epoch, offset)
            brokers[change.id] = evolve(broker, fenced=isinstance(change, FenceBrokerRecord))
        case BrokerRegistrationChangeRecord():
            broker = _registered(brokers, change, change.broker_id, change.broker_epoch, offset)
            brokers[change.broker_id] = _changed(broker, change, offset)


def _registered(
    brokers: MapMutation[int, RegisterBrokerRecord], change: BrokerRecord, broker_id: int, epoch: int, offset: int
) -> RegisterBrokerRecord:
    broker = brokers.get(broker_id)
    if broker is None:
        raise ReplayError(f"{change.api_key.name} for broker {broker_id}, which is not registered", offset=offset)
    if broker.broker_epoch != epoch:
        raise ReplayError(
            f"{change.api_key.name} for broker {broker_id} with epoch {epoch}: expected {broker.broker_epoch}, that of "
            "its registration",
            offset=offset,
        )
    return broker


def _changed(broker: RegisterBrokerRecord, change: BrokerRegistrationChangeRecord, offset: int) -> RegisterBrokerRecord:
    if change.fenced not in {-1, 0, 1}:
        raise ReplayError(f"{change.api_key.name}: fenced is {change.fenced}: expected -1, 0 or 1", offset=offset)
    if change.in_controlled_shutdown not in {0, 1}:
        what = f"inControlledShutdown is {change.in_controlled_shutdown}: expected 0 or 1"
        raise ReplayError(f"{change.api_key.name}: {what}", offset=offset)
    cordoned = change.cordoned_log_dirs
    return evolve(
        broker,
        fenced=_FENCED.get(change.fenced, broker.fenced),
        in_controlled_shutdown=broker.in_controlled_shutdown or change.in_controlled_shutdown == 1,
        log_dirs=change.log_dirs or broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else cordoned,
    )
