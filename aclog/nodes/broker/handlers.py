"""The handler of each broker API: served from the image, or forwarded to the controller (kafka.server.KafkaApis)."""

from collections.abc import Callable, Mapping

from attrs import define, field

from aclog.authorizer.acl import AclOperation
from aclog.authorizer.errors import AuthorizerNotReadyError
from aclog.authorizer.generation import Generation
from aclog.credentials.token_control import TokenSettings
from aclog.nodes.apis.access_settings import AccessSettingsApi
from aclog.nodes.apis.acls import AclApis, creations_of, filters_of
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.request import Handler, Request, RequestError
from aclog.nodes.broker.client_quotas import describe_client_quotas
from aclog.nodes.broker.forwarder import Forwarder
from aclog.nodes.broker.metadata import ClusterView, MetadataApis
from aclog.nodes.broker.scram_users import describe_scram_users
from aclog.nodes.broker.token_apis import BrokerTokenApis
from aclog.nodes.offload import MANY, offload_if
from aclog.nodes.wire import api_keys
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from aclog.snapshots.publisher import Publisher

FORWARDED = (api_keys.ALTER_USER_SCRAM_CREDENTIALS, api_keys.DESCRIBE_QUORUM, api_keys.UNREGISTER_BROKER)
"""The APIs that are forwarded unchecked; the controller authorizes them."""

FORWARDED_SINCE_4_4 = (api_keys.UNREGISTER_CONTROLLER,)
"""More of them, by a broker of Kafka 4.4."""

UNSUPPORTED = {
    api_keys.ALTER_CLIENT_QUOTAS: "aclog enforces no client quotas, and shows only those that a Kafka wrote",
    api_keys.LIST_GROUPS: "aclog has no consumer groups",
}
"""The APIs that are served with an error alone: administration tools ask them and would take a closed connection for a
broken broker, and an empty answer for the state. DescribeConfigs is another one, but for what AccessSettingsApi has."""

BEFORE_REPLAY = frozenset(
    {
        *FORWARDED,
        *FORWARDED_SINCE_4_4,
        api_keys.CREATE_ACLS,
        api_keys.DELETE_ACLS,
        api_keys.CREATE_DELEGATION_TOKEN,
        api_keys.RENEW_DELEGATION_TOKEN,
        api_keys.EXPIRE_DELEGATION_TOKEN,
        api_keys.METADATA,
        api_keys.DESCRIBE_CLUSTER,
    }
)
"""The APIs that are served before the log is replayed, to super users: answered by the controller, or without a look at
rules, users, tokens and quotas. Every other API waits for the first complete image."""


@define(kw_only=True)
class BrokerApis:
    """Serves reads from the published image, and forwards writes."""

    publisher: Publisher
    replayed: Callable[[], bool]
    """Whether the image covers everything that was committed when this node started."""
    auth: AuthHelper
    cluster: ClusterView
    forwarder: Forwarder
    tokens: TokenSettings = field(factory=TokenSettings)
    auto_create_topics: bool = True
    """auto.create.topics.enable"""
    generation: Generation = Generation.V4_3
    """The Kafka whose APIs are served."""
    settings: Mapping[str, str] = field(factory=dict)
    """The properties of its authorizer that are told (access_settings)."""

    def handlers(self) -> Mapping[int, Handler]:
        """Return a handler for every API of BROKER_APIS except those that a connection handles itself."""
        return {
            api_key: handler if api_key in BEFORE_REPLAY else self._when_replayed(handler)
            for api_key, handler in self._handlers().items()
        }

    def _when_replayed(self, handler: Handler) -> Handler:
        """Return a handler that needs a complete image: an empty or partial one would be told as if it were the state.

        Early-start listeners admit super users before that (KIP-801).
        """

        async def gated(request: Request) -> bytes:
            """Require a complete image, then handle."""
            if not self.replayed():
                raise AuthorizerNotReadyError("this broker has not replayed the metadata log yet")
            return await handler(request)

        return gated

    def _handlers(self) -> Mapping[int, Handler]:
        metadata = MetadataApis(self.cluster, self.auth, auto_create_topics=self.auto_create_topics)
        tokens = BrokerTokenApis(
            publisher=self.publisher, auth=self.auth, forwarder=self.forwarder, settings=self.tokens
        )
        own = AccessSettingsApi(auth=self.auth, node_id=self.cluster.node_id, settings=self.settings)
        return {
            api_keys.METADATA: metadata.metadata,
            api_keys.DESCRIBE_CLUSTER: metadata.describe_cluster,
            api_keys.DESCRIBE_ACLS: AclApis(self.auth).describe_acls,
            api_keys.DESCRIBE_CLIENT_QUOTAS: self._describe_client_quotas,
            api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: self._describe_scram,
            **{api_key: _refused(why) for api_key, why in UNSUPPORTED.items()},
            api_keys.DESCRIBE_CONFIGS: own.describe_configs,
            **dict.fromkeys(FORWARDED, self.forwarder.forward),
            **(
                {} if self.generation is Generation.V4_3 else dict.fromkeys(FORWARDED_SINCE_4_4, self.forwarder.forward)
            ),
            api_keys.CREATE_ACLS: self._create_acls,
            api_keys.DELETE_ACLS: self._delete_acls,
            api_keys.CREATE_DELEGATION_TOKEN: tokens.create,
            api_keys.RENEW_DELEGATION_TOKEN: tokens.change,
            api_keys.EXPIRE_DELEGATION_TOKEN: tokens.change,
            api_keys.DESCRIBE_DELEGATION_TOKEN: tokens.describe,
        }

    async def _create_acls(self, request: Request) -> bytes:
        # Rejected here as malformed, which closes the connection; from an Envelope it would come back as an error.
        await creations_of(request)
        return await self.forwarder.forward(request)

    async def _delete_acls(self, request: Request) -> bytes:
        await filters_of(request)
        return await self.forwarder.forward(request)

    async def _describe_client_quotas(self, request: Request) -> bytes:
        self._require(request, AclOperation.DESCRIBE_CONFIGS)
        image = self.publisher.current
        return await offload_if(len(image.opaque) > MANY, describe_client_quotas, image, request)

    async def _describe_scram(self, request: Request) -> bytes:
        self._require(request, AclOperation.DESCRIBE)
        scram = self.publisher.current.scram
        many = len(scram) + len(request.body.users or ()) > MANY
        return await offload_if(many, describe_scram_users, scram, request)

    def _require(self, request: Request, operation: int) -> None:
        if not self.auth.on_cluster(request, operation):
            raise RequestError(CLUSTER_AUTHORIZATION_FAILED)


def _refused(why: str) -> Handler:
    async def refuse(_: Request) -> bytes:
        raise RequestError(UNSUPPORTED_VERSION, why)

    return refuse
