"""Registrations of brokers and controllers, and records of delegation tokens."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future

from attrs import evolve, field

from aclog.authorizer.settings import CIDR_CONFIG, CIDR_FEATURE
from aclog.config.node_config import BrokerSettings
from aclog.credentials.tokens import (
    MAX_SWEPT,
    Lifetime,
    TokenCreation,
    TokenIndex,
    TokenResult,
    TokenSettings,
    create_token,
    expire_token,
    refusal,
    renew_token,
    sweep,
)
from aclog.metalog.errors import MetadataError
from aclog.metalog.machine import clock, randomness
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from aclog.metalog.values import define, frozen
from aclog.protocol import error_codes
from aclog.protocol.headers import RequestError
from aclog.protocol.session import SecurityProtocol
from aclog.server.controller.quorum_controller import ControllerResult, QuorumController
from aclog.server.feature_levels import decides_by_ranges
from aclog.server.loops import MANY, committed
from aclog.snapshots.image import METADATA_VERSION, FeaturesImage, Image, register_broker_version

# Registrations of controllers: the changes of UnregisterController (KIP-1312). Pure.


UNREGISTRATION_SINCE = 33
"""The level of metadata.version 4.4-IV2, the first with UnregisterControllerRecord."""


def unregister_controller(image: Image, controller_id: int, *, active: int) -> UnregisterControllerRecord:
    """Return the record that removes the registration of a controller other than the active one.

    Raises:
        RequestError: 42 it is the active controller, 35 the metadata.version has no such record, 136 it is not
            registered.

    """
    if controller_id == active:
        raise RequestError(error_codes.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if image.features.level(METADATA_VERSION) < UNREGISTRATION_SINCE:
        what = "The current MetadataVersion is too old to support controller unregistration."
        raise RequestError(error_codes.UNSUPPORTED_VERSION, what)
    if not image.opaque.has_controller(controller_id):
        raise RequestError(
            error_codes.CONTROLLER_ID_NOT_REGISTERED, f"Controller ID {controller_id} is not currently registered."
        )
    return UnregisterControllerRecord(controller_id=controller_id)


# Valid registrations of brokers: the checks of Kafka's controllers, and of what a replay supports. Pure.


MAX_REGISTRATION_BYTES = 16 << 10
"""Larger requests are refused: a broker with 100 directories and 10 listeners needs 4 kB. Kafka has no such limit."""

_DIRECTORIES_VERSION = 3
"""The version of RegisterBrokerRecord from which on a broker must have log directories."""
_RESERVED_IDS = 100
"""Directory ids below are reserved (DirectoryId.reserved)."""


def check_registration(image: Image, registration: RegisterBrokerRecord) -> None:
    """Check a registration as ClusterControlManager.registerBroker does; `registration` has the version to be written.

    Raises:
        RequestError: 119 invalid log directories or listeners, or no range of metadata.version, 35 a level of a feature
            that the broker does not support.

    """
    if registration.version >= _DIRECTORIES_VERSION:
        _check_directories(image, registration)
    _check_listeners(registration)
    _check_features(image, registration)


def _check_directories(image: Image, registration: RegisterBrokerRecord) -> None:
    directories = set(registration.log_dirs)
    if not directories:
        raise RequestError(error_codes.INVALID_REGISTRATION, "No directories specified in request")
    if any(each.int < _RESERVED_IDS for each in directories):
        raise RequestError(error_codes.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(directories) < len(registration.log_dirs):
        raise RequestError(error_codes.INVALID_REGISTRATION, "Duplicate directory ID in request")
    for broker in image.cluster.brokers():
        # A Kafka that replays a directory of two brokers ends: they are those of a copied data directory.
        if broker.broker_id != registration.broker_id and (duplicates := directories.intersection(broker.log_dirs)):
            what = f"Broker {broker.broker_id} is already registered with directory {uuid_text(min(duplicates))}"
            raise RequestError(error_codes.INVALID_REGISTRATION, what)


def _check_listeners(registration: RegisterBrokerRecord) -> None:
    """Require listeners that a BrokerRegistration can hold: a Kafka that replays others ends."""
    names = [each.name for each in registration.end_points]
    if "" in names:
        raise RequestError(error_codes.INVALID_REGISTRATION, "Broker listeners must be named.")
    if len(set(names)) < len(names):
        raise RequestError(error_codes.INVALID_REGISTRATION, "Duplicate listener name in request")
    protocols = {each.id for each in SecurityProtocol}
    for each in registration.end_points:
        if each.security_protocol not in protocols:
            what = f"Unknown security protocol {each.security_protocol} of listener {each.name}"
            raise RequestError(error_codes.INVALID_REGISTRATION, what)


def _check_features(image: Image, registration: RegisterBrokerRecord) -> None:
    ranges = [(each.name, each.min_supported_version, each.max_supported_version) for each in registration.features]
    names = {name for name, _, _ in ranges}
    if METADATA_VERSION not in names:
        raise RequestError(error_codes.INVALID_REGISTRATION, f"Request features do not contain '{METADATA_VERSION}'")
    finalized = {record.name: record.feature_level for record in image.features.records()}
    for name, least, most in (*ranges, *((name, 0, 0) for name in finalized if name not in names)):
        level = finalized.get(name, 0)
        # A log without a metadata.version is not Kafka's, so it has no version to support; nor is CIDR_FEATURE Kafka's.
        ours = name == CIDR_FEATURE or (name == METADATA_VERSION and name not in finalized)
        if not ours and not least <= level <= most:
            raise RequestError(
                error_codes.UNSUPPORTED_VERSION,
                "Unable to register because the broker does not support finalized version "
                f"{level} of {name}. The broker wants a version between {least} and {most}, inclusive.",
            )


# Registration of brokers: from a request and the newest image to records. Pure.
#
# Mirrors org.apache.kafka.controller.ClusterControlManager, and ReplicationControlManager.processBrokerHeartbeat and
# BrokerHeartbeatManager.calculateNextBrokerState in a cluster without partitions: no broker leads any, so that a
# controlled shutdown is granted at once.


OLDEST_METADATA_VERSION = 7
"""3.3-IV3: Kafka 4.x supports no older one, and the records of earlier ones are not written here."""

_FENCE, _UNFENCE = 1, -1


@frozen(kw_only=True)
class Heartbeat:
    """The content of a broker's heartbeat; `metadata_offset` is the last offset that it has replayed."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool
    want_shut_down: bool


@frozen(kw_only=True)
class HeartbeatReply:
    """The reply to a heartbeat (BrokerHeartbeatReply)."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


def writes_registrations(features: FeaturesImage) -> bool:
    """Return whether the cluster's metadata.version has the records that are written here."""
    level = features.level(METADATA_VERSION)
    return level == 0 or level >= OLDEST_METADATA_VERSION


def register(image: Image, registration: RegisterBrokerRecord, *, has_session: bool) -> RegisterBrokerRecord:
    """Return the record that registers a broker; its epoch is that record's offset, the end of the image.

    The same incarnation keeps its epoch and state. `has_session`: the registration that stands is alive.

    Raises:
        RequestError: 101 another incarnation of the broker is alive, 119 invalid log directories or listeners, or no
            range of metadata.version, 35 a level of a feature that the broker does not support, 102 a broker that
            migrates from ZooKeeper.

    """
    existing = image.cluster.get(registration.broker_id)
    same = existing is not None and existing.incarnation_id == registration.incarnation_id
    if existing is not None and has_session and not same and not existing.in_controlled_shutdown:
        raise RequestError(
            error_codes.DUPLICATE_BROKER_REGISTRATION, "Another broker is registered with that broker id."
        )
    if registration.is_migrating_zk_broker:
        raise RequestError(error_codes.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")
    if not writes_registrations(image.features):
        raise RequestError(error_codes.UNSUPPORTED_VERSION, f"{METADATA_VERSION} is below {OLDEST_METADATA_VERSION}")
    version = register_broker_version(image.features.level(METADATA_VERSION))
    check_registration(image, evolve(registration, version=version))
    if existing is not None and same:
        return evolve(
            registration,
            version=version,
            broker_epoch=existing.broker_epoch,
            fenced=existing.fenced,
            in_controlled_shutdown=existing.in_controlled_shutdown,
        )
    return evolve(registration, version=version, broker_epoch=image.end_offset)


def heartbeat(image: Image, beat: Heartbeat) -> tuple[BrokerRegistrationChangeRecord | None, HeartbeatReply]:
    """Return the changes of a heartbeat, and the reply.

    A fenced broker is unfenced once it has replayed its own registration and wants to be; one that wants to be fenced
    or to shut down is fenced.

    Raises:
        RequestError: 77 the broker is not registered, or with another epoch.

    """
    broker = image.cluster.get(beat.broker_id)
    if broker is None:
        raise RequestError(
            error_codes.STALE_BROKER_EPOCH, f"Receive a heartbeat from broker {beat.broker_id} before registration"
        )
    if broker.broker_epoch != beat.broker_epoch:
        expected = f"Expected broker epoch {broker.broker_epoch}, but got broker epoch {beat.broker_epoch}"
        raise RequestError(error_codes.STALE_BROKER_EPOCH, expected)
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
        raise RequestError(error_codes.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered.")
    return UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch)


def _changed(broker: RegisterBrokerRecord, fenced: int) -> BrokerRegistrationChangeRecord:
    # Version 0 for any metadata.version, as Kafka's ReplicationControlManager: later ones only add fields.
    return BrokerRegistrationChangeRecord(
        version=0, broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, fenced=fenced
    )


# Writes to broker registrations, and the sessions of brokers (org.apache.kafka.controller.BrokerHeartbeatManager).
#
# Sessions are soft state: a controller that becomes active gives every unfenced broker a whole session.


_CHECKS_PER_SESSION = 8
"""How often within a session timeout expired sessions are searched, as in Kafka."""

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class BrokerWriter:
    """The only writer of registrations; created on the event loop when the controller becomes active."""

    settings: BrokerSettings
    controller: QuorumController
    clock: Callable[[], float] = clock.monotonic_seconds
    """Seconds."""
    _sessions: dict[int, tuple[int, float]] = field(factory=dict, init=False)
    """Broker epoch and time of the last contact, by broker id."""

    def __attrs_post_init__(self) -> None:
        for broker in self.controller.publisher.latest.cluster.brokers():
            if not broker.fenced:
                self._touch(broker.broker_id, broker.broker_epoch)

    def register(self, registration: RegisterBrokerRecord) -> "Future[int]":
        """Register a broker (broker_control.register); the future holds its epoch."""
        cidr = decides_by_ranges(registration)
        if cidr is not self.controller.cidr:
            _log.warning(
                "broker %d has %s %s, this controller %s: the same request is decided differently",
                *(registration.broker_id, CIDR_CONFIG, cidr, self.controller.cidr),
            )

        def operation(image: Image) -> ControllerResult[int]:
            """See Operation."""
            existing = image.cluster.get(registration.broker_id)
            alive = existing is not None and self._is_alive(existing.broker_id, existing.broker_epoch)
            record = register(image, registration, has_session=alive)
            # Before the commit: a second process with this id must not take the registration over at once.
            self._touch(record.broker_id, record.broker_epoch)
            return ControllerResult(records=(record,), response=record.broker_epoch)

        return self.controller.write(operation)

    def heartbeat(self, beat: Heartbeat) -> "Future[HeartbeatReply]":
        """Renew a broker's session, and fence or unfence it (broker_control.heartbeat)."""

        def operation(image: Image) -> ControllerResult[HeartbeatReply]:
            """See Operation."""
            record, reply = heartbeat(image, beat)
            self._touch(beat.broker_id, beat.broker_epoch)
            return ControllerResult(records=() if record is None else (record,), response=reply)

        # Nearly all heartbeats change nothing. They do not go through the write path, where on a shared log each would
        # cost a NoOpRecord: a reply contains no state that a deposed controller must not return.
        if self.controller.failure is None:
            unchanged: Future[HeartbeatReply] = Future()
            try:
                result = operation(self.controller.publisher.current)
            except RequestError as error:
                unchanged.set_exception(error)
                return unchanged
            if not result.records:
                unchanged.set_result(result.response)
                return unchanged
        return self.controller.write(operation)

    def unregister(self, broker_id: int) -> "Future[None]":
        """Remove a registration (broker_control.unregister)."""

        def operation(image: Image) -> ControllerResult[None]:
            """See Operation."""
            record = unregister(image, broker_id)
            self._sessions.pop(broker_id, None)
            return ControllerResult(records=(record,), response=None)

        return self.controller.write(operation)

    def fence_silent(self) -> "Future[list[int]]":
        """Fence every broker whose session has expired; the future holds their ids."""

        def operation(image: Image) -> ControllerResult[list[int]]:
            """See Operation."""
            for broker_id, (epoch, _) in list(self._sessions.items()):
                if not self._is_alive(broker_id, epoch):
                    del self._sessions[broker_id]
            if not writes_registrations(image.features):
                return ControllerResult(records=(), response=[])
            # Of the image's brokers, not of the sessions': a registration that failed may have left one with its epoch.
            brokers = ((each.broker_id, each.broker_epoch) for each in image.cluster.brokers())
            records = [
                fence(image, broker_id, epoch) for broker_id, epoch in brokers if not self._is_alive(broker_id, epoch)
            ]
            written = [record for record in records if record is not None]
            return ControllerResult(records=written, response=[record.broker_id for record in written])

        return self.controller.write(operation)

    async def run(self) -> None:
        """Fence silent brokers until cancelled or the controller fails."""
        session = self.settings.session_timeout_ms / 1000
        last = self.clock()
        while True:
            await asyncio.sleep(session / _CHECKS_PER_SESSION)
            last, before = self.clock(), last
            if last - before > session / 2:
                # This process was paused: the silence of brokers meanwhile is unknown.
                self._sessions = {broker_id: (epoch, last) for broker_id, (epoch, _) in self._sessions.items()}
            if all(self._is_alive(broker_id, epoch) for broker_id, (epoch, _) in self._sessions.items()):
                continue
            try:
                for broker_id in await committed(self.fence_silent()):
                    _log.warning("broker %d is fenced: it sent no heartbeat for %g s", broker_id, session)
            except MetadataError as error:
                _log.error("cannot fence silent brokers: %s", error)
                return

    def _touch(self, broker_id: int, broker_epoch: int) -> None:
        self._sessions[broker_id] = broker_epoch, self.clock()

    def _is_alive(self, broker_id: int, broker_epoch: int) -> bool:
        epoch, last = self._sessions.get(broker_id, (-1, 0.0))
        return epoch == broker_epoch and self.clock() - last < self.settings.session_timeout_ms / 1000


# Writes to delegation tokens (org.apache.kafka.controller.DelegationTokenControlManager).


TOKENS_SINCE = 14
"""The feature level of metadata.version 3.6-IV2, the first with delegation tokens."""


@define(eq=False, kw_only=True)
class TokenWriter:
    """The only writer of tokens; created on the event loop when the controller becomes active."""

    settings: TokenSettings
    controller: QuorumController
    _index: TokenIndex = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._index = TokenIndex(self.settings.secret or "", randomness.urandom(32))
        if self.settings.secret:
            self._index.add(token.token_id for token in self.controller.publisher.latest.tokens.records())

    def create(self, creation: TokenCreation) -> "Future[TokenResult]":
        """Create a token (aclog.credentials.tokens)."""

        def operation(image: Image) -> ControllerResult[TokenResult]:
            """See Operation."""
            if refused := self._refusal(image):
                return refused
            token_id, now = uuid_text(self.controller.new_id()), self.controller.clock()
            result = create_token(creation, token_id=token_id, now=now, settings=self.settings)
            if result.records:
                # Before the commit: a renewal that is queued behind this creation must find the token.
                self._index.add([token_id])
            return ControllerResult(records=result.records, response=result)

        return self.controller.write(operation, offload=len(creation.renewers) > MANY)

    def renew(self, token_hmac: bytes, requester: str, period: Lifetime) -> "Future[TokenResult]":
        """Extend a token's expiry by `period`."""

        def operation(image: Image) -> ControllerResult[TokenResult]:
            """See Operation."""
            if refused := self._refusal(image):
                return refused
            token, now = self._index.find(image.tokens, token_hmac), self.controller.clock()
            result = renew_token(token, requester, period, now=now, settings=self.settings)
            return ControllerResult(records=result.records, response=result)

        return self.controller.write(operation)

    def expire(self, token_hmac: bytes, requester: str, period: Lifetime) -> "Future[TokenResult]":
        """Set a token's expiry to the end of `period`; a negative period removes it at once."""

        def operation(image: Image) -> ControllerResult[TokenResult]:
            """See Operation."""
            if refused := self._refusal(image):
                return refused
            token = self._index.find(image.tokens, token_hmac)
            result = expire_token(token, requester, period, now=self.controller.clock())
            if token is not None and result.records and period < 0:
                self._index.remove([token.token_id])
            return ControllerResult(records=result.records, response=result)

        return self.controller.write(operation)

    def sweep(self) -> "Future[int]":
        """Remove at most MAX_SWEPT expired tokens; the future holds how many."""

        def operation(image: Image) -> ControllerResult[int]:
            """See Operation."""
            if self._refusal(image):
                return ControllerResult(records=(), response=0)
            records = sweep(image.tokens, self.controller.clock())
            self._index.remove(record.token_id for record in records)
            return ControllerResult(records=records, response=len(records))

        return self.controller.write(operation, offload=len(self.controller.publisher.latest.tokens) > MANY)

    async def run(self) -> None:
        """Remove expired tokens at each interval until cancelled or the controller fails; returns if tokens are off."""
        if not self.settings.secret:
            return
        while True:
            await asyncio.sleep(self.settings.expiry_check_interval_ms / 1000)
            try:
                await self._sweep_all()
            except MetadataError as error:
                _log.error("cannot remove expired delegation tokens: %s", error)
                return

    async def _sweep_all(self) -> None:
        removed = MAX_SWEPT
        while removed == MAX_SWEPT:
            removed = await committed(self.sweep())
            if removed:
                _log.info("removed %d expired delegation tokens", removed)

    def _refusal(self, image: Image) -> ControllerResult[TokenResult] | None:
        level = image.features.level(METADATA_VERSION)
        code = refusal(self.settings, supported=level == 0 or level >= TOKENS_SINCE)
        return ControllerResult(records=(), response=TokenResult(error_code=code)) if code else None
