"""The handler of each controller API and its authorization (kafka.server.ControllerApis)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from attrs import define, field

from aclog.authorizer.acl import AclOperation
from aclog.authorizer.errors import AuthorizerNotReadyError
from aclog.authorizer.generation import Generation
from aclog.metalog.clock import current_time_ms
from aclog.nodes.apis.access_settings import AccessSettingsApi
from aclog.nodes.apis.acls import AclApis
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.describe_cluster import CONTROLLER_ENDPOINTS, DescribedNode, describe_cluster
from aclog.nodes.apis.request import Handler, Request, RequestError
from aclog.nodes.controller.apis.brokers import BrokerRegistrationApis
from aclog.nodes.controller.apis.describe_quorum import QuorumDescription, names_metadata_partition, unknown_partitions
from aclog.nodes.controller.apis.envelope import EnvelopeHandler
from aclog.nodes.controller.apis.scram import ScramApis
from aclog.nodes.controller.apis.serving_state import ServingState
from aclog.nodes.controller.apis.tokens import TokenApis
from aclog.nodes.controller.write_path.controller_registration import unregister_controller
from aclog.nodes.controller.write_path.write_event import ControllerResult
from aclog.nodes.offload import MANY_ENTRIES_BYTES, committed, offload_if
from aclog.nodes.wire import api_keys
from aclog.nodes.wire.api_versions import CONTROLLER_APIS, served_by
from aclog.nodes.wire.error_codes import NOT_CONTROLLER
from aclog.nodes.wire.message_builder import build_response
from aclog.snapshots.image import Image

FORWARDABLE = (
    api_keys.CREATE_ACLS,
    api_keys.DELETE_ACLS,
    api_keys.ALTER_USER_SCRAM_CREDENTIALS,
    api_keys.CREATE_DELEGATION_TOKEN,
    api_keys.RENEW_DELEGATION_TOKEN,
    api_keys.EXPIRE_DELEGATION_TOKEN,
    api_keys.DESCRIBE_QUORUM,
    api_keys.UNREGISTER_BROKER,
)
"""The APIs that an Envelope may carry."""

_Serve: TypeAlias = Callable[[ServingState, Request], Awaitable[bytes]]


@define(kw_only=True)
class ControllerApis:
    """Handles requests with the controller's current serving state; `serving` returns None until the log is open.

    Before the log is replayed, only requests that need no image are served, and only to super users: for everybody
    else the authorizer raises AuthorizerNotReadyError. Early-start listeners exist for this (KIP-801).
    """

    auth: AuthHelper
    node_id: int
    serving: Callable[[], ServingState | None]
    contested: bool = False
    """Whether other controllers share the log: until this one is active, changes are sent to them."""
    generation: Generation = Generation.V4_3
    """The Kafka whose APIs are served."""
    settings: Mapping[str, str] = field(factory=dict)
    """The properties of its authorizer that are told (access_settings)."""

    def handlers(self) -> dict[int, Handler]:
        """Return a handler for every API of CONTROLLER_APIS except those that a connection handles itself."""
        acls = AclApis(self.auth)
        own = AccessSettingsApi(auth=self.auth, node_id=self.node_id, settings=self.settings)
        handlers: dict[int, Handler] = {
            api_keys.FETCH: self._for(
                AclOperation.CLUSTER_ACTION, lambda serving, request: serving.fetching.fetch(request)
            ),
            api_keys.FETCH_SNAPSHOT: self._for(
                AclOperation.CLUSTER_ACTION, lambda serving, request: serving.snapshots.fetch(request)
            ),
            api_keys.DESCRIBE_QUORUM: self._for(AclOperation.DESCRIBE, _describe_quorum),
            api_keys.DESCRIBE_CLUSTER: self._for(AclOperation.ALTER, self._describe_cluster),
            api_keys.DESCRIBE_ACLS: self._when_replayed(acls.describe_acls),
            api_keys.DESCRIBE_CONFIGS: self._when_replayed(own.describe_configs),
            api_keys.CREATE_ACLS: self._when_active(acls.create_acls),
            api_keys.DELETE_ACLS: self._when_active(acls.delete_acls),
            api_keys.ALTER_USER_SCRAM_CREDENTIALS: self._when_active(self._alter_scram),
            api_keys.CREATE_DELEGATION_TOKEN: self._when_active(lambda request: self._tokens().create(request)),
            api_keys.RENEW_DELEGATION_TOKEN: self._when_active(lambda request: self._tokens().renew(request)),
            api_keys.EXPIRE_DELEGATION_TOKEN: self._when_active(lambda request: self._tokens().expire(request)),
            api_keys.UNREGISTER_BROKER: self._authorized(
                AclOperation.ALTER, self._of_brokers(BrokerRegistrationApis.unregister)
            ),
            **{
                key: self._authorized(AclOperation.CLUSTER_ACTION, handler)
                for key, handler in self.own_broker().items()
            },
        }
        forwardable = {key: handlers[key] for key in FORWARDABLE}
        if self.generation is not Generation.V4_3:
            handlers[api_keys.UNREGISTER_CONTROLLER] = forwardable[api_keys.UNREGISTER_CONTROLLER] = self._authorized(
                AclOperation.ALTER, self._when_active(self._unregister_controller)
            )
        versions = [api for api in served_by(CONTROLLER_APIS, self.generation) if api.api_key in forwardable]
        envelopes = EnvelopeHandler(handlers=forwardable, apis=versions)
        handlers[api_keys.ENVELOPE] = self._authorized(AclOperation.CLUSTER_ACTION, envelopes.handle)
        return handlers

    def _authorized(self, operation: int, handler: Handler) -> Handler:
        async def authorized(request: Request) -> bytes:
            """Authorize, then handle."""
            self.auth.authorize_cluster_operation(request, operation)
            return await handler(request)

        return authorized

    def _for(self, operation: int, serve: _Serve) -> Handler:
        """Return a handler that is served as soon as the log is open."""

        async def handler(request: Request) -> bytes:
            return await serve(self._serving(), request)

        return self._authorized(operation, handler)

    def _when_replayed(self, handler: Handler) -> Handler:
        """Return a handler that needs a complete image; it authorizes the request itself."""

        async def gated(request: Request) -> bytes:
            """Require a complete image, then handle."""
            self._serving().check_replayed()
            return await handler(request)

        return gated

    def _when_active(self, handler: Handler) -> Handler:
        """Return a handler that only the active controller serves; it authorizes the request itself."""

        async def gated(request: Request) -> bytes:
            """Require the active controller, then handle."""
            self._check_active()
            return await handler(request)

        return gated

    def own_broker(self) -> dict[int, Handler]:
        """Return the handlers for the broker in the same process, which needs no permission to register."""
        return {
            api_keys.BROKER_REGISTRATION: self._of_brokers(BrokerRegistrationApis.register),
            api_keys.BROKER_HEARTBEAT: self._of_brokers(BrokerRegistrationApis.heartbeat),
        }

    def _of_brokers(self, serve: Callable[[BrokerRegistrationApis, Request], Awaitable[bytes]]) -> Handler:
        """Return a handler of the active controller for an API of broker registrations."""

        async def handler(request: Request) -> bytes:
            """Handle with the registrations' writer."""
            serving = self._serving()
            assert serving.brokers is not None  # noqa: S101 - see _when_active
            return await serve(BrokerRegistrationApis(serving.quorum.cluster_id, serving.brokers), request)

        return self._when_active(handler)

    def _check_active(self) -> None:
        serving = self.serving()
        # Kafka's clients go on to the active controller with NOT_CONTROLLER, and give up with an error of KIP-801.
        if self.contested and (serving is None or serving.controller is None):
            raise RequestError(NOT_CONTROLLER, "This node is not the active controller.")
        self._serving().active()

    def _serving(self) -> ServingState:
        serving = self.serving()
        if serving is None:
            raise AuthorizerNotReadyError("the controller has not opened its log yet")
        return serving

    async def _alter_scram(self, request: Request) -> bytes:
        return await ScramApis(self.auth, self._serving().active()).alter(request)

    async def _unregister_controller(self, request: Request) -> bytes:
        serving, controller_id = self._serving(), request.body.controller_id

        def operation(image: Image) -> ControllerResult[None]:
            """See Operation."""
            record = unregister_controller(image, controller_id, active=serving.quorum.node_id)
            return ControllerResult(records=(record,), response=None)

        await committed(serving.active().write(operation))
        return build_response(api_keys.UNREGISTER_CONTROLLER, request.header.api_version, error_message=None)

    def _tokens(self) -> TokenApis:
        writer = self._serving().tokens
        assert writer is not None  # noqa: S101 - see _when_active
        return TokenApis(self.auth, writer)

    async def _describe_cluster(self, serving: ServingState, request: Request) -> bytes:
        """Describe the controllers; with no known leader, this node names itself and rejects writes.

        Kafka's Admin 4.3.1 never retries if the response names no controller, but does on NOT_CONTROLLER.
        """
        quorum, leader_id = serving.quorum, serving.quorum.leader().leader_id
        return describe_cluster(
            request,
            self.auth,
            endpoint_type=CONTROLLER_ENDPOINTS,
            cluster_id=quorum.cluster_id,
            controller_id=quorum.node_id if leader_id < 0 else leader_id,
            nodes=(
                DescribedNode(node_id=node_id, address=address)
                for node_id, address in quorum.addresses(request.session.listener_name).items()
            ),
        )


async def _describe_quorum(serving: ServingState, request: Request) -> bytes:
    if not names_metadata_partition(request):
        return await offload_if(len(request.frame) > MANY_ENTRIES_BYTES, unknown_partitions, request)
    log, now = serving.log, current_time_ms()
    mark = log.high_watermark()
    end = mark if serving.controller is None else serving.controller.log.end_offset()
    return QuorumDescription(quorum=serving.quorum, high_watermark=mark, end_offset=end, now=now).encoded(request)
