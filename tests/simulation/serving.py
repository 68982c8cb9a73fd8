"""A modelled server of Kafka's protocol as a process on the simulated network."""

import asyncio
from collections.abc import Callable
from typing import Any

from aclog.metalog.errors import DecodeError
from aclog.protocol import api_keys
from aclog.protocol.headers import FrameBuffer, decode_header, frame, response_header
from aclog.protocol.messages import decode_request
from tests.simulation.network import Network, Socket

_MOST_BYTES = 1 << 20


class ServerProtocol(asyncio.Protocol):
    """A connection of a client; `respond` gets its requests, in order."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.loop = asyncio.get_running_loop()
        self._frames = FrameBuffer(max_bytes=_MOST_BYTES)

    def respond(self, header: Any, body: Any) -> None:
        """Respond to a request, now or later; `body` is None for ApiVersions."""
        raise NotImplementedError

    def send(self, header: Any, body: bytes) -> None:
        """Send a response, if the connection is still open."""
        if self.transport is not None:
            self.transport.write(
                frame(response_header(header.api_key, header.api_version, header.correlation_id) + body)
            )

    def connection_made(self, transport: Any) -> None:
        """See asyncio."""
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self.transport = None

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._frames.feed(data)
        try:
            while (request := self._frames.next()) is not None:
                header, position = decode_header(request)
                key, version = header.api_key, header.api_version
                body = None if key == api_keys.API_VERSIONS else decode_request(key, version, request, position)
                self.respond(header, body)
        except DecodeError:  # a probe for another service
            self.transport.abort()


async def listen(process: Any, network: Network, port: int, make: Callable[[], ServerProtocol]) -> None:
    """Accept connections until the process ends."""
    loop = asyncio.get_running_loop()
    listening = Socket(network, process)
    listening.bind(("", port))
    listening.listen(100)
    protocols: set[asyncio.Future[Any]] = set()

    def accept() -> None:
        while listening.accepted:
            connected, _ = listening.accept()
            task = asyncio.ensure_future(loop.connect_accepted_socket(make, connected))  # type: ignore[arg-type]
            protocols.add(task)
            task.add_done_callback(protocols.discard)

    loop.add_reader(listening, accept)  # type: ignore[arg-type]
    await asyncio.Event().wait()
