"""Registration of brokers: from a request and the newest image to records. Pure.

Mirrors org.apache.kafka.controller.ClusterControlManager, and ReplicationControlManager.processBrokerHeartbeat and
BrokerHeartbeatManager.calculateNextBrokerState in a cluster without partitions: no broker leads any, so that a
controlled shutdown is granted at once.
"""

from attrs import evolve, frozen

from aclog.metalog.records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from aclog.nodes.apis.request import RequestError
from aclog.nodes.controller.write_path.registration_check import check_registration
from aclog.nodes.wire.error_codes import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    STALE_BROKER_EPOCH,
    UNSUPPORTED_VERSION,
)
from aclog.snapshots.cluster import register_broker_version
from aclog.snapshots.features import METADATA_VERSION, FeaturesImage
from aclog.snapshots.image import Image

OLDEST_METADATA_VERSION = 7
"""3.3-IV3: Kafka 4.x supports no older one, and the records of earlier ones are not written here."""

_FENCE, _UNFENCE = 1, -1


@frozen(kw_only=True)
class Heartbeat:
    """What a broker says of itself; `metadata_offset` is the last offset that it has replayed."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool
    want_shut_down: bool


@frozen(kw_only=True)
class HeartbeatReply:
    """What a broker is told (BrokerHeartbeatReply)."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


def writes_registrations(features: FeaturesImage) -> bool:
    """Return whether the cluster's metadata.version has the records that are written here."""
    level = features.level(METADATA_VERSION)
    return level == 0 or level >= OLDEST_METADATA_VERSION


def register(image: Image, wanted: RegisterBrokerRecord, *, has_session: bool) -> RegisterBrokerRecord:
    """Return the record that registers a broker; its epoch is that record's offset, the end of the image.

    The same incarnation keeps its epoch and state. `has_session`: the registration that stands is alive.

    Raises:
        RequestError: 101 another incarnation of the broker is alive, 119 invalid log directories or listeners, or no
            range of metadata.version, 35 a level of a feature that the broker does not support, 102 a broker that
            migrates from ZooKeeper.

    """
    existing = image.cluster.get(wanted.broker_id)
    same = existing is not None and existing.incarnation_id == wanted.incarnation_id
    if existing is not None and has_session and not same and not existing.in_controlled_shutdown:
        raise RequestError(DUPLICATE_BROKER_REGISTRATION, "Another broker is registered with that broker id.")
    if wanted.is_migrating_zk_broker:
        raise RequestError(BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")
    if not writes_registrations(image.features):
        raise RequestError(UNSUPPORTED_VERSION, f"{METADATA_VERSION} is below {OLDEST_METADATA_VERSION}")
    version = register_broker_version(image.features.level(METADATA_VERSION))
    check_registration(image, evolve(wanted, version=version))
    if existing is not None and same:
        return evolve(
            wanted,
            version=version,
            broker_epoch=existing.broker_epoch,
            fenced=existing.fenced,
            in_controlled_shutdown=existing.in_controlled_shutdown,
        )
    return evolve(wanted, version=version, broker_epoch=image.end_offset)


def heartbeat(image: Image, beat: Heartbeat) -> tuple[BrokerRegistrationChangeRecord | None, HeartbeatReply]:
    """Return what a heartbeat changes, and the reply.

    A fenced broker is unfenced once it has replayed its own registration and wants to be; one that wants to be fenced
    or to shut down is fenced.

    Raises:
        RequestError: 77 the broker is not registered, or with another epoch.

    """
    broker = image.cluster.get(beat.broker_id)
    if broker is None:
        raise RequestError(STALE_BROKER_EPOCH, f"Receive a heartbeat from broker {beat.broker_id} before registration")
    if broker.broker_epoch != beat.broker_epoch:
        expected = f"Expected broker epoch {broker.broker_epoch}, but got broker epoch {beat.broker_epoch}"
        raise RequestError(STALE_BROKER_EPOCH, expected)
    caught_up = beat.metadata_offset >= broker.broker_epoch
    fenced = beat.want_fence or beat.want_shut_down or (broker.fenced and not caught_up)
    reply = HeartbeatReply(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=beat.want_shut_down)
    return (None if fenced == broker.fenced else _changed(broker, _FENCE if fenced else _UNFENCE)), reply


def fence(image: Image, broker_id: int, broker_epoch: int) -> BrokerRegistrationChangeRecord | None:
    """Return the record that fences a broker; None if it is fenced, gone, or registered with another epoch."""
    broker = image.cluster.get(broker_id)
    if broker is None or broker.broker_epoch != broker_epoch or broker.fenced:
        return None
    return _changed(broker, _FENCE)


def unregister(image: Image, broker_id: int) -> UnregisterBrokerRecord:
    """Return the record that removes a registration.

    Raises:
        RequestError: 102 the broker is not registered.

    """
    broker = image.cluster.get(broker_id)
    if broker is None:
        raise RequestError(BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered.")
    return UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch)


def _changed(broker: RegisterBrokerRecord, fenced: int) -> BrokerRegistrationChangeRecord:
    # Version 0 whatever the metadata.version is, as Kafka's ReplicationControlManager: later ones only add fields.
    return BrokerRegistrationChangeRecord(
        version=0, broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, fenced=fenced
    )
