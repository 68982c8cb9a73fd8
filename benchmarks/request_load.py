"""A process of many clients, each with one request in flight: `python -m benchmarks.request_load`.

Sockets and an epoll loop with prebuilt requests, so that a client costs a few microseconds a request and is not what is
measured. It connects, prints `ready`, waits for a line on stdin, and prints its figures as a line of JSON.
"""

import argparse
import json
import select
import socket
import sys
import time
from collections.abc import Callable
from functools import cache

from attrs import define, field

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import AclCreateResult
from aclog.protocol.acls import create_acls_body
from aclog.protocol.api_keys import API_VERSIONS, CREATE_ACLS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from aclog.protocol.headers import RequestHeader, encode_header, frame
from aclog.protocol.messages import build, encode_request

_NAME = b"#" * 16
"""Where the ACL's name goes in the prebuilt request."""
_PIECE = 1 << 16
_PATIENCE_S = 60.0


def _request(api_key: int, version: int, body: bytes) -> bytes:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=7, client_id="load")
    return frame(encode_header(header) + body)


def create_request() -> bytes:
    """Return a CreateAcls request of one ACL, with a placeholder for its name."""
    creation = build(
        CREATE_ACLS,
        3,
        "request",
        "AclCreation",
        resource_type=ResourceType.TOPIC,
        resource_name=_NAME.decode(),
        resource_pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )
    return _request(CREATE_ACLS, 3, encode_request(build(CREATE_ACLS, 3, "request", creations=(creation,))))


def created_response() -> bytes:
    """Return the response to it, with header and length."""
    return frame((7).to_bytes(4, "big") + b"\0" + create_acls_body(3, [AclCreateResult()]))


def tiny_request() -> bytes:
    """Return an ApiVersions request."""
    fields = {"client_software_name": "load", "client_software_version": "1"}
    return _request(API_VERSIONS, 3, encode_request(build(API_VERSIONS, 3, "request", **fields)))


def login(port: int, user: str = "admin") -> socket.socket:
    """Return a connection that is logged in by PLAIN."""
    secret = f"\0{user}\0{user}-secret".encode()
    connected = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    handshake = encode_request(build(SASL_HANDSHAKE, 1, "request", mechanism="PLAIN"))
    authenticate = encode_request(build(SASL_AUTHENTICATE, 2, "request", auth_bytes=secret))
    for key, version, body in ((SASL_HANDSHAKE, 1, handshake), (SASL_AUTHENTICATE, 2, authenticate)):
        connected.sendall(_request(key, version, body))
        response = _whole(connected)
        if (error := response[4 if key == SASL_HANDSHAKE else 5 :][:2]) != b"\0\0":
            raise ConnectionError(f"not logged in: {error!r}")
    return connected


def _whole(connected: socket.socket) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        if not (more := connected.recv(_PIECE)):
            raise ConnectionError("the server closed the connection")
        data += more
    return data[4:]


@define(eq=False)
class _Client:
    """One connection: what of its response is there, and when it sent its request."""

    connected: socket.socket
    data: bytes = b""
    sent: float = 0.0


@define(eq=False, kw_only=True)
class Load:
    """Clients that each send a request as soon as they have the response to the last one."""

    clients: list[_Client]
    make: Callable[[], bytes]
    expected: bytes | None
    """The response, if it is always the same."""
    took: list[float] = field(factory=list, init=False)
    """Seconds of each request."""

    def run(self, seconds: float) -> float:
        """Run for these seconds, and return the seconds until the last response."""
        poll = select.epoll()
        by_number = {each.connected.fileno(): each for each in self.clients}
        begun = now = time.monotonic()
        end, waiting = begun + seconds, len(self.clients)
        for number, client in by_number.items():
            client.connected.setblocking(False)
            poll.register(number, select.EPOLLIN)
            client.connected.send(self.make())
            client.sent = now
        while waiting and now < end + _PATIENCE_S:
            for number, _ in poll.poll(1.0):
                client = by_number[number]
                if self._complete(client):
                    now = time.monotonic()
                    self.took.append(now - client.sent)
                    if now < end:
                        client.connected.send(self.make())
                        client.sent = now
                    else:
                        waiting -= 1
            now = time.monotonic()
            if now > end and not self.took:
                break  # nobody was answered in all that time
        return now - begun

    def _complete(self, client: _Client) -> bool:
        data = client.data + client.connected.recv(_PIECE)
        if self.expected is not None and data == self.expected:
            return True
        if len(data) >= 4 and len(data) == 4 + int.from_bytes(data[:4], "big"):
            if self.expected is not None:
                raise AssertionError(f"not as expected: {data!r}")
            client.data = b""
            return True
        if not data:
            raise ConnectionError("the server closed the connection")
        client.data = data
        return False


def _creations(prefix: str) -> Callable[[], bytes]:
    number, (before, after) = 0, create_request().split(_NAME)
    head = prefix.encode().ljust(8, b"-")

    def make() -> bytes:
        nonlocal number
        number += 1
        return b"%b%b%08d%b" % (before, head, number, after)

    return make


def main() -> None:
    """Run the clients that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.request_load", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--prefix", default="load", help="of the names of the ACLs, at most 8 characters")
    parser.add_argument("--tiny", action="store_true", help="ApiVersions instead of CreateAcls")
    arguments = parser.parse_args()
    clients = [_Client(login(arguments.port)) for _ in range(arguments.clients)]
    make = cache(tiny_request) if arguments.tiny else _creations(arguments.prefix)
    load = Load(clients=clients, make=make, expected=None if arguments.tiny else created_response())
    print("ready", flush=True)
    sys.stdin.readline()
    seconds = load.run(arguments.seconds)
    took = sorted(1000 * each for each in load.took)
    shares = {name: took[min(len(took) - 1, int(len(took) * part))] if took else None for name, part in _SHARES}
    print(json.dumps({"count": len(took), "seconds": seconds, **shares, "cpu": time.process_time()}), flush=True)


_SHARES = (("p50", 0.5), ("p99", 0.99), ("longest", 1.0))

if __name__ == "__main__":
    main()
