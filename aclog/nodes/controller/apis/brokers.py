"""BrokerRegistration, BrokerHeartbeat and UnregisterBroker (KIP-631)."""

from typing import Any

from attrs import define

from aclog.metalog.records import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from aclog.metalog.uuids import ZERO
from aclog.nodes.apis.request import Request, RequestError
from aclog.nodes.controller.write_path.broker_control import Heartbeat
from aclog.nodes.controller.write_path.broker_writer import BrokerWriter
from aclog.nodes.controller.write_path.registration_check import MAX_REGISTRATION_BYTES
from aclog.nodes.offload import committed
from aclog.nodes.wire.api_keys import BROKER_HEARTBEAT, BROKER_REGISTRATION, UNREGISTER_BROKER
from aclog.nodes.wire.error_codes import INCONSISTENT_CLUSTER_ID, INVALID_REGISTRATION
from aclog.nodes.wire.message_builder import build_response


@define
class BrokerRegistrationApis:
    """Registers brokers through the active controller; requests are authorized already."""

    cluster_id: str
    writer: BrokerWriter

    async def register(self, request: Request) -> bytes:
        """Register a broker; responds with its epoch once the record is committed."""
        body, version = request.body, request.header.api_version
        if body.cluster_id != self.cluster_id:
            wrong = f"Expected cluster ID {self.cluster_id}, but got cluster ID {body.cluster_id}"
            raise RequestError(INCONSISTENT_CLUSTER_ID, wrong)
        if len(request.frame) > MAX_REGISTRATION_BYTES:
            what = f"request of {len(request.frame)} bytes: expected at most {MAX_REGISTRATION_BYTES}"
            raise RequestError(INVALID_REGISTRATION, what)
        epoch = await committed(self.writer.register(_wanted(body)))
        return build_response(BROKER_REGISTRATION, version, broker_epoch=epoch)

    async def heartbeat(self, request: Request) -> bytes:
        """Renew a broker's session."""
        body = request.body
        beat = Heartbeat(
            broker_id=body.broker_id,
            broker_epoch=body.broker_epoch,
            metadata_offset=body.current_metadata_offset,
            want_fence=body.want_fence,
            want_shut_down=body.want_shut_down,
        )
        reply = await committed(self.writer.heartbeat(beat))
        return build_response(
            BROKER_HEARTBEAT,
            request.header.api_version,
            is_caught_up=reply.is_caught_up,
            is_fenced=reply.is_fenced,
            should_shut_down=reply.should_shut_down,
        )

    async def unregister(self, request: Request) -> bytes:
        """Remove a broker's registration."""
        await committed(self.writer.unregister(request.body.broker_id))
        return build_response(UNREGISTER_BROKER, request.header.api_version, error_message=None)


def _wanted(body: Any) -> RegisterBrokerRecord:
    """Return the record that a BrokerRegistrationRequest asks for, without an epoch."""
    return RegisterBrokerRecord(
        broker_id=body.broker_id,
        is_migrating_zk_broker=getattr(body, "is_migrating_zk_broker", False),
        incarnation_id=body.incarnation_id or ZERO,
        broker_epoch=-1,
        end_points=tuple(
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in body.listeners
        ),
        features=tuple(
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in body.features
        ),
        rack=body.rack,
        # kio reads a zero uuid as None.
        log_dirs=tuple(each or ZERO for each in getattr(body, "log_dirs", ())),
    )
