"""The way of a broker's own requests to the active controller (kafka.server.NodeToControllerChannelManager)."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.nodes.apis.request import Handler, Request, RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.session import SecurityProtocol, Session
from aclog.nodes.wire.api_keys import BROKER_HEARTBEAT, BROKER_REGISTRATION, ENVELOPE
from aclog.nodes.wire.api_versions import CONTROLLER_APIS
from aclog.nodes.wire.error_codes import NOT_CONTROLLER
from aclog.nodes.wire.headers import RequestHeader
from aclog.nodes.wire.message_builder import build
from aclog.nodes.wire.messages import decode_response

_NEWEST = {api.api_key: api.max_version for api in CONTROLLER_APIS}
_OURS = 1
"""The version of Envelope that only aclog's controllers have (docs/format.md)."""


_NOBODY = Session(
    listener_name="", security_protocol=SecurityProtocol.PLAINTEXT, host="127.0.0.1", address=bytes((127, 0, 0, 1))
)
"""The sender of requests that are not authorized."""


class ControllerChannel(Protocol):
    """Sends requests about this broker to the active controller, one at a time."""

    async def ask(self, api_key: int, **fields: Any) -> Any:
        """Return the response to a request with these fields.

        Raises:
            RequestError: The controller refuses.
            ConfigError: Requests of this kind must not be sent to this controller.
            MetadataError: There is no response.

        """
        ...

    async def close(self) -> None:
        """Close the connection; idempotent."""
        ...


@define
class LocalChannel:
    """To the controller in the same process (ControllerApis.own_broker)."""

    handlers: Mapping[int, Handler]

    async def ask(self, api_key: int, **fields: Any) -> Any:
        """See ControllerChannel."""
        version = _NEWEST[api_key]
        header = RequestHeader(api_key=api_key, api_version=version, correlation_id=0, client_id="")
        body = build(api_key, version, "request", **fields)
        request = Request(header=header, body=body, session=_NOBODY, frame=b"")
        return decode_response(api_key, version, await self.handlers[api_key](request), 0)

    async def close(self) -> None:
        """Do nothing."""


@define(eq=False, kw_only=True)
class RemoteChannel:
    """To a controller over the network; follows the leadership. Owned by one event loop."""

    leader: Callable[[], HostPort | None]
    """Returns the active controller's address, if known."""
    security: ClientSecurity
    client_id: str
    seconds: float
    """How long a controller may take to answer; another one may be active by then."""
    _connection: Connection | None = field(default=None, init=False)

    async def ask(self, api_key: int, **fields: Any) -> Any:
        """See ControllerChannel."""
        connection = await self._connected()
        _check_ours(connection)  # of every request: the connection is kept, so as not to log in again and again
        version = connection.version(api_key, 0, _NEWEST[api_key])
        response = await connection.ask(build(api_key, version, "request", **fields), self.seconds)
        if response.error_code == NOT_CONTROLLER:
            await self.close()
        if response.error_code:
            raise RequestError(int(response.error_code), getattr(response, "error_message", None))
        return response

    async def close(self) -> None:
        """Close the connection; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connected(self) -> Connection:
        address, connection = self.leader(), self._connection
        if connection is not None and connection.failure is None and address in (None, connection.address):
            return connection
        await self.close()
        if address is None:
            raise UnreachableError("no controller is known")
        self._connection = connection = await connect(
            address, self.security, client_id=self.client_id, timeout=self.seconds
        )
        return connection


def _check_ours(connection: Connection) -> None:
    """Require a controller of aclog that registers brokers: a real Kafka would place partitions on this broker.

    Raises:
        ConfigError: it is Kafka's, or an aclog of before.

    """
    envelope = connection.apis.get(ENVELOPE)
    if envelope is None or _OURS not in envelope:
        raise ConfigError(
            f"{connection.address}: not a controller of aclog: this broker does not register with it, and names no "
            "other broker to clients; set metadata.log.kind=quorum to follow a Kafka's controllers"
        )
    if not {BROKER_REGISTRATION, BROKER_HEARTBEAT} <= connection.apis.keys():
        raise ConfigError(f"{connection.address}: this controller's version of aclog does not register brokers yet")
