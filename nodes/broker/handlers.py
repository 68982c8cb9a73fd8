"""What a broker answers to each API, and what it passes on to the controller (KafkaApis)."""

from collections.abc import Mapping

from attrs import define

from authorizer.acl import AclOperation
from nodes.acl_apis import AclApis
from nodes.authorization import AuthHelper
from nodes.broker.client_quotas import describe_client_quotas
from nodes.broker.cluster import ClusterView
from nodes.broker.forwarding import Forwarder
from nodes.broker.metadata import MetadataApis
from nodes.broker.scram_users import describe_scram_users
from nodes.request import Handler, Request, RequestError
from nodes.session import ANONYMOUS, SecurityProtocol
from nodes.wire import apis
from snapshots.publisher import Publisher

CLUSTER_AUTHORIZATION_FAILED = 31
DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 61, 64

FORWARDED = (apis.CREATE_ACLS, apis.DELETE_ACLS, apis.ALTER_USER_SCRAM_CREDENTIALS, apis.DESCRIBE_QUORUM)
"""What the active controller answers."""

_TOKENS = (
    apis.CREATE_DELEGATION_TOKEN,
    apis.RENEW_DELEGATION_TOKEN,
    apis.EXPIRE_DELEGATION_TOKEN,
    apis.DESCRIBE_DELEGATION_TOKEN,
)


@define(kw_only=True)
class BrokerApis:
    """Answers reads from the image that is published, and forwards writes."""

    publisher: Publisher
    auth: AuthHelper
    cluster: ClusterView
    forwarder: Forwarder

    def handlers(self) -> Mapping[int, Handler]:
        """A handler for every API of BROKER_APIS but those that a connection answers itself."""
        metadata = MetadataApis(self.cluster, self.auth)
        return {
            apis.METADATA: metadata.metadata,
            apis.DESCRIBE_CLUSTER: metadata.describe_cluster,
            apis.DESCRIBE_ACLS: AclApis(self.auth).describe_acls,
            apis.DESCRIBE_CLIENT_QUOTAS: self._describe_client_quotas,
            apis.DESCRIBE_USER_SCRAM_CREDENTIALS: self._describe_scram,
            **dict.fromkeys(FORWARDED, self.forwarder.forward),
            **dict.fromkeys(_TOKENS, _refuse_token),
        }

    async def _describe_client_quotas(self, request: Request) -> bytes:
        self._require(request, AclOperation.DESCRIBE_CONFIGS)
        return describe_client_quotas(self.publisher.current, request)

    async def _describe_scram(self, request: Request) -> bytes:
        self._require(request, AclOperation.DESCRIBE)
        return describe_scram_users(self.publisher.current.scram, request)

    def _require(self, request: Request, operation: int) -> None:
        if not self.auth.on_cluster(request, operation):
            raise RequestError(CLUSTER_AUTHORIZATION_FAILED)


async def _refuse_token(request: Request) -> bytes:
    """Refuse by what is wrong first: how the client is connected, then that this node has no secret for tokens."""
    session = request.session
    anonymous = session.security_protocol is SecurityProtocol.PLAINTEXT or session.principal == ANONYMOUS
    if anonymous or session.token_authenticated:
        raise RequestError(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    raise RequestError(DELEGATION_TOKEN_AUTH_DISABLED)
