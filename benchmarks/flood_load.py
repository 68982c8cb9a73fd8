"""A flood of connections from one address, until stdin ends: `python -m benchmarks.flood_load --port N --kind idle`.

So many are opened at once; what the server closes is opened again, 1,000 a second. Prints `ready` once as many were
opened, and at the end how many were opened in all.
"""

import argparse
import contextlib
import resource
import selectors
import socket
import ssl
import sys
import time

KINDS = {
    "idle": b"",
    "begun": b"POST /access/v1/evaluation HTTP/1.1\r\nHost: x\r\nX-A: ",
    "asking": b"GET /rules HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n",
    "hello": b"",
}
"""What each of them sends: nothing, half a header, requests without a token or a login, or half a TLS handshake."""
_AT_ONCE, _AGAIN_PER_S = 200, 1_000
_PAUSE_S = 0.002


def client_hello() -> bytes:
    """Return the first message of a TLS handshake, after which a server has done its part of the work."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


class Flood:
    """The open connections."""

    def __init__(self, port: int, kind: str, source: str) -> None:
        self._port, self._source = port, source
        self._sent = client_hello() if kind == "hello" else KINDS[kind]
        self._asks = kind == "asking"
        self._selector = selectors.DefaultSelector()
        self.opened, self.open = 0, 0

    def fill(self, connections: int, seconds: float) -> None:
        """Open what is lacking, a part at a time; `seconds` after the first `connections` were opened."""
        may_open = connections + int(seconds * _AGAIN_PER_S) - self.opened
        for _ in range(max(min(connections - self.open, _AT_ONCE, may_open), 0)):
            made = socket.socket()
            made.setblocking(False)
            made.bind((self._source, 0))
            made.connect_ex(("127.0.0.1", self._port))
            self._selector.register(made, selectors.EVENT_READ | selectors.EVENT_WRITE)
            self.open += 1
            self.opened += 1

    def look(self) -> None:
        """Send on what is connected, and forget what was closed."""
        for key, events in self._selector.select(0):
            found = key.fileobj
            assert isinstance(found, socket.socket)
            try:
                if events & selectors.EVENT_WRITE:
                    found.send(self._sent) if self._sent else None
                    self._selector.modify(found, selectors.EVENT_READ)
                elif not found.recv(1 << 16):
                    raise ConnectionResetError
                elif self._asks:
                    found.send(self._sent)
            except BlockingIOError:
                pass
            except OSError:
                self._selector.unregister(found)
                found.close()
                self.open -= 1

    def has_ended(self) -> bool:
        """Return whether nobody wants it any more."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(sys.stdin, selectors.EVENT_READ)
            return bool(waiting.select(0))


def main() -> None:
    """Hold connections open."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--kind", choices=sorted(KINDS), required=True)
    parser.add_argument("--connections", type=int, default=5_000)
    parser.add_argument("--source", default="127.0.0.1")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(arguments.connections + 100, hard), hard))
    flood, is_ready, begun = Flood(arguments.port, arguments.kind, arguments.source), False, 0.0
    while not flood.has_ended():
        flood.fill(arguments.connections, time.monotonic() - begun if is_ready else 0.0)
        flood.look()
        if not is_ready and flood.opened >= arguments.connections:
            is_ready, begun = True, time.monotonic()
            print("ready", flush=True)
        time.sleep(_PAUSE_S)
    print(flood.opened, flush=True)


if __name__ == "__main__":
    main()
