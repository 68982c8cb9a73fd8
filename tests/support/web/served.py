"""What listens on a socket, in a thread of the test's process: a decision point, or another application."""

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aclog.cli.serving import Endpoint, Server, server_config
from aclog.config.node_config import HostPort
from aclog.console.connections import Refusals
from aclog.console.pdp.app import DecisionPoint
from aclog.console.pdp.direct import Answering
from aclog.server.connection_budget import ConnectionBudget
from tests.support.processes.waiting import SECONDS


class ServedApp:
    """An application, served until the end of the `with`: as `aclog console` serves it, or `aclog pdp` if timed.

    With `pem`, a certificate and its key, over TLS: `connect` and `say` do not speak it.
    """

    def __init__(
        self,
        app: Any,
        *,
        is_timed: bool,
        pem: Path | None = None,
        proxy: str | None = None,
        refusals: Refusals | None = None,
        answering: Answering | None = None,
    ) -> None:
        self._bound = socket.create_server(("127.0.0.1", 0))
        self.port = self._bound.getsockname()[1]
        endpoint = Endpoint(address=HostPort(host="127.0.0.1", port=self.port), tls_cert=pem, tls_key=pem)
        config = server_config(app, endpoint, is_timed=is_timed, answering=answering)
        self._server = Server(config, endpoint.url, None, proxy=proxy, refusals=refusals, answering=answering)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._bound]})

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + SECONDS
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.end()
        self._bound.close()

    def wait_without_limit(self) -> None:
        """Let the end wait for every connection, however long that is."""
        self._server.config.timeout_graceful_shutdown = None

    def end(self) -> None:
        """End it, as SIGTERM does."""
        self._server.should_exit = True
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    @property
    def connections(self) -> int:
        """How many are open, on this side."""
        return len(self._server.server_state.connections)

    @property
    def budget(self) -> ConnectionBudget:
        """What its connections share."""
        return self._server.budget

    def connect(self) -> socket.socket:
        """A connection, whose reads end after a while."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def say(self, data: bytes) -> bytes:
        """Send bytes and no more, and return all that is answered until the other side closes."""
        with self.connect() as connection:
            with suppress(ConnectionError):  # it may be refused before all of it was sent
                connection.sendall(data)
            with suppress(OSError):  # and closed by then
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)


class ServedPoint(ServedApp):
    """A decision point, served as `aclog pdp` serves it."""

    def __init__(self, point: DecisionPoint) -> None:
        super().__init__(point.app(), is_timed=True, refusals=point.refusals, answering=point)


def read_all(connection: socket.socket) -> bytes:
    """All that the other side sends until it closes, or resets."""
    data = bytearray()
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            data += piece
    return bytes(data)


def post_bytes(path: str, body: object, *headers: str) -> bytes:
    """A request as it goes over the wire."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(data)}", *headers,
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data
