"""A controller and a broker in the test's process, behind their dispatchers, and users with chosen rights."""

from collections.abc import Iterable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from attrs import define, evolve, field

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.config.node_config import HostPort
from aclog.credentials.tokens import TokenSettings
from aclog.protocol import api_keys
from aclog.protocol.headers import decode_response_header
from aclog.protocol.messages import build
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS
from aclog.protocol.session import SecurityProtocol
from aclog.server.apis.acls import AuthHelper
from aclog.server.broker.apis import ClusterView, LocalForwarder
from aclog.server.broker.lifecycle import BrokerApis
from aclog.server.network.dispatch import Dispatcher
from aclog.server.telemetry import Metrics
from tests.support.nodes.api_requests import RequestValues, valid_request
from tests.support.nodes.controllers import controller_server, formatted, handlers_of
from tests.support.nodes.node_requests import answer, frame, session

NAMES = {
    ResourceType.TOPIC: "orders",
    ResourceType.GROUP: "a-group",
    ResourceType.CLUSTER: "kafka-cluster",
    ResourceType.TRANSACTIONAL_ID: "a-transaction",
    ResourceType.USER: "User:owner",
}
"""The resources that the requests are about; a token's id is drawn by the controller."""

OPERATIONS = frozenset(AclOperation) - {AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL}


@define(kw_only=True)
class Cluster:
    """A controller, and a broker beside it that forwards to it, behind their dispatchers."""

    dispatchers: dict[str, Dispatcher]
    token: Any = None
    """The answer to the creation of a token that `owner` owns."""
    _numbers: "count[int]" = field(factory=lambda: count(100), init=False)

    @classmethod
    @asynccontextmanager
    async def running(cls, directory):
        """Start both; the super user is `admin`."""
        server = controller_server(evolve(formatted(directory), tokens=TokenSettings(secret="hush")))
        await server.start()
        try:
            handlers = handlers_of(server)
            view = ClusterView(cluster_id="a-cluster", node_id=1, advertised={"BROKER": HostPort(host="b4", port=9092)})
            broker = BrokerApis(
                publisher=server.publisher, replayed=lambda: server.ready, auth=AuthHelper(server.authorizer),
                cluster=view, forwarder=LocalForwarder(handlers), tokens=TokenSettings(secret="hush"),
            )  # fmt: skip
            metrics = Metrics(process=False)
            cluster = cls(
                dispatchers={
                    "controller": Dispatcher(handlers=handlers, apis=CONTROLLER_APIS, metrics=metrics),
                    "broker": Dispatcher(handlers=broker.handlers(), apis=BROKER_APIS, metrics=metrics),
                }
            )
            cluster.token = await cluster.ask("controller", 38, 3, build(38, 3, "request"), "owner")
            yield cluster
        finally:
            await server.stop()

    async def ask(self, listener, api_key, version, message, user="admin"):
        """The decoded answer to a user who logged in by SASL."""
        client = evolve(session(user, listener.upper()), security_protocol=SecurityProtocol.SASL_PLAINTEXT)
        header, body = await self.dispatchers[listener].handle(frame(api_key, version, message), client)
        assert decode_response_header(api_key, version, header)[0] == 7
        return answer(api_key, version, body)

    async def user_with(self, rules: Iterable[tuple[AclOperation, ResourceType]]) -> str:
        """A new user with these rights, and no other."""
        user = f"u{next(self._numbers)}"
        creations = tuple(
            build(
                30, 3, "request", "AclCreation", resource_type=kind, resource_name=self.name(kind),
                resource_pattern_type=3, principal=f"User:{user}", host="*", operation=operation, permission_type=3,
            )
            for operation, kind in rules
        )  # fmt: skip
        assert codes(await self.ask("controller", 30, 3, build(30, 3, "request", creations=creations))) == set()
        return user

    def name(self, kind: ResourceType) -> str:
        """The name of the resource of a type."""
        return self.token.token_id if kind is ResourceType.DELEGATION_TOKEN else NAMES[kind]

    async def request(self, listener: str, api_key: int, version: int) -> Any:
        """A valid request."""
        values = RequestValues(number=next(self._numbers), hmac=self.token.hmac)
        if api_key in (api_keys.BROKER_HEARTBEAT, api_keys.UNREGISTER_BROKER):
            message = valid_request("controller", api_keys.BROKER_REGISTRATION, 4, values)
            registered = await self.ask("controller", api_keys.BROKER_REGISTRATION, 4, message)
            values = evolve(values, broker_id=values.number, broker_epoch=registered.broker_epoch)
        return valid_request(listener, api_key, version, values)


def codes(message: Any) -> set[int]:
    """Every error code in an answer, but for 0."""
    return _codes(message) - {0}


def _codes(message: Any) -> set[int]:
    if isinstance(message, tuple):
        return set().union(*map(_codes, message))
    names = getattr(type(message), "__dataclass_fields__", None) or getattr(type(message), "__attrs_attrs__", ())
    result = set()
    for name in (each if isinstance(each, str) else each.name for each in names):
        value = getattr(message, name)
        result |= {int(value)} if name == "error_code" else _codes(value)
    return result
