"""A ZooKeeper server in a thread: its znodes are a dict, and a test may send anything in place of each response."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Self, TypeAlias

from attrs import define, field, frozen

CONNECT, CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, SYNC, PING, CHILDREN, MULTI, MULTI_READ, CLOSE = (
    0, 1, 2, 3, 4, 5, 9, 11, 12, 14, 22, -11,
)  # fmt: skip
NO_NODE, NODE_EXISTS, BAD_VERSION, UNIMPLEMENTED = -101, -110, -103, -6
EVENT_XID = -1

_INT = struct.Struct("!i")
_REPLY = struct.Struct("!iqi")
_STAT = struct.Struct("!qqqqiiiqiiq")
_MULTI = struct.Struct("!iBi")
_SESSION = struct.Struct("!iiqi")
_CONNECT_SIZES = 44, 45


class SilenceError(Exception):
    """Raised by what answers: no response, and the connection stays open."""


@frozen
class Request:
    """What was requested; `number` counts the requests of a server, `connection` those of the same client, from 0."""

    operation: int
    xid: int
    path: str
    number: int
    connection: int


Answer: TypeAlias = Callable[[Request, bytes, socket.socket], bytes]
"""From a request and the honest response, with its length, to what is sent; raises SilenceError."""


def honest(_request: Request, response: bytes, _client: socket.socket) -> bytes:
    """Return the response."""
    return response


def framed(body: bytes) -> bytes:
    """Return a body after its length."""
    return _INT.pack(len(body)) + body


def text(value: str) -> bytes:
    """Return a string of jute."""
    return framed(value.encode())


def reply(xid: int, body: bytes = b"", *, error: int = 0) -> bytes:
    """Return a response with its length."""
    return framed(_REPLY.pack(xid, 1, error) + body)


def event(path: str, kind: int = 4) -> bytes:
    """Return a watch event with its length."""
    return reply(EVENT_XID, _INT.pack(kind) + _INT.pack(3) + text(path))


def stat(*, size: int = 0, children: int = 0, version: int = 0, changes: int | None = None) -> bytes:
    """Return the stat of a znode; `changes` of its children, by default as many as there are."""
    ms, count = 1_700_000_000_000, children if changes is None else changes
    return _STAT.pack(1, 1, ms, ms, version, count, 0, 0, size, children, 1)


@define(eq=False)
class FakeZooKeeper:
    """`nodes` are the data by path, whose parents exist; sessions of `session_ms`. It fires no watches by itself."""

    nodes: dict[str, bytes] = field(converter=dict, factory=dict)
    answer: Answer = honest
    session_ms: int = 10_000
    commits: bool = True
    """Whether transactions have an effect."""
    tls: ssl.SSLContext | None = None
    written: list[str] = field(factory=list, init=False)
    """The paths of znodes that were written, in order."""
    _versions: dict[str, int] = field(factory=dict, init=False)
    _requests: int = field(default=0, init=False)
    _connections: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _listener: socket.socket = field(init=False)
    _clients: list[socket.socket] = field(factory=list, init=False)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._clients):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @property
    def connect(self) -> str:
        """What `zookeeper.connect` takes."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def connections(self) -> int:
        """How many connections were made."""
        return self._connections

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                number, self._connections = self._connections, self._connections + 1
                threading.Thread(target=self._serve, args=(client, number), daemon=True).start()

    def _serve(self, accepted: socket.socket, number: int) -> None:
        secured = accepted
        if self.tls is not None:
            secured = self.tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        with suppress(OSError, struct.error, ValueError), secured as client:
            first = True
            while header := _read(client, 4):
                (length,) = _INT.unpack(header)
                if first and length not in _CONNECT_SIZES:  # another protocol
                    return
                data = _read(client, length)
                request, response = self._honest(data, number, is_first=first)
                first = False
                with suppress(SilenceError):
                    client.sendall(self.answer(request, response, client))
                if request.operation == CLOSE:
                    return

    def _honest(self, data: bytes, connection: int, *, is_first: bool) -> tuple[Request, bytes]:
        with self._lock:
            number, self._requests = self._requests, self._requests + 1
            if is_first:
                session = _SESSION.pack(0, self.session_ms, 7, 16) + bytes(17)
                return Request(CONNECT, 0, "", number, connection), framed(session)
            xid, operation = struct.unpack_from("!ii", data)
            body = data[8:]
            path = "" if operation in {PING, CLOSE, MULTI, MULTI_READ} else _text(body, 0)[0]
            request = Request(operation, xid, path, number, connection)
            error, content = self._result(operation, path, body)
            return request, reply(xid, content, error=error)

    def _result(self, operation: int, path: str, body: bytes) -> tuple[int, bytes]:
        """Return the error code and the rest of the response."""
        others: dict[int, Callable[[], tuple[int, bytes]]] = {
            PING: lambda: (0, b""),
            CLOSE: lambda: (0, b""),
            SYNC: lambda: (0, text(path)),
            MULTI: lambda: self._transaction(body) if self.commits else (0, b""),
            MULTI_READ: lambda: (0, b"".join(map(self._read_one, _paths(body))) + _MULTI.pack(-1, 1, -1)),
            CREATE: lambda: self._create(path, *_buffer(body, len(text(path)))),
        }
        reads: dict[int, Callable[[], bytes]] = {
            EXISTS: lambda: self._stat(path),
            GET_DATA: lambda: framed(self.nodes.get(path, b"")) + self._stat(path),
            CHILDREN: lambda: self._names(path) + self._stat(path),
        }
        if operation in others:
            return others[operation]()
        if operation not in reads:
            return UNIMPLEMENTED, b""
        return (0, reads[operation]()) if self._exists(path) else (NO_NODE, b"")

    def _names(self, path: str) -> bytes:
        names = self._children(path)
        return _INT.pack(len(names)) + b"".join(map(text, names))

    def _exists(self, path: str) -> bool:
        return path == "/" or path in self.nodes or any(each.startswith(f"{path}/") for each in self.nodes)

    def _children(self, path: str) -> list[str]:
        base = f"{path.rstrip('/')}/"
        return sorted({each.removeprefix(base).partition("/")[0] for each in self.nodes if each.startswith(base)})

    def _stat(self, path: str) -> bytes:
        version = self._versions.get(path, 0)
        return stat(size=len(self.nodes.get(path, b"")), children=len(self._children(path)), version=version)

    def _read_one(self, path: str) -> bytes:
        if not self._exists(path):
            return _MULTI.pack(-1, 0, NO_NODE) + _INT.pack(NO_NODE)
        return _MULTI.pack(GET_DATA, 0, 0) + framed(self.nodes.get(path, b"")) + self._stat(path)

    def _create(self, path: str, data: bytes, _at: int) -> tuple[int, bytes]:
        if self._exists(path):
            return NODE_EXISTS, b""
        self.nodes[path] = data
        self.written.append(path)
        return 0, text(path)

    def _transaction(self, body: bytes) -> tuple[int, bytes]:
        """Carry out a transaction, each operation for itself: no test of this fake makes one fail midway."""
        results, at = b"", 0
        while True:
            operation, done, _ = _MULTI.unpack_from(body, at)
            at += _MULTI.size
            if done:
                return 0, results + _MULTI.pack(-1, 1, -1)
            path, at = _text(body, at)
            data = b""
            if operation in {CREATE, SET_DATA}:
                data, at = _buffer(body, at)
            if operation == CREATE:
                (count,) = _INT.unpack_from(body, at)
                at += 4
                for _ in range(count):
                    at = _text(body, _text(body, at + 4)[1])[1]
                flags = _INT.unpack_from(body, at)[0]
                path += f"{len(self.written):010}" if flags & 2 else ""
            at += 4  # flags, or the version
            results += _MULTI.pack(operation, 0, 0) + self._write(operation, path, data)
            self.written.append(path)

    def _write(self, operation: int, path: str, data: bytes) -> bytes:
        if operation == DELETE:
            self.nodes.pop(path, None)
            return b""
        self.nodes[path] = data
        self._versions[path] = self._versions.get(path, -1) + 1
        return text(path) if operation == CREATE else self._stat(path)


def estate(rules: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the znodes of a Kafka with ACLs on topics, by their names."""
    directories = "Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"
    trees = {f"/kafka-acl/{each}": b"" for each in directories}
    trees |= {f"/kafka-acl-extended/prefixed/{each}": b"" for each in directories}
    others = {"/kafka-acl-changes": b"", "/kafka-acl-extended-changes": b"", "/config/users": b""}
    return trees | others | {f"/kafka-acl/Topic/{name}": data for name, data in rules.items()}


def _read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (some := client.recv(size - len(data))):
            return b""
        data += some
    return data


def _text(body: bytes, at: int) -> tuple[str, int]:
    data, at = _buffer(body, at)
    return data.decode(), at


def _buffer(body: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _INT.unpack_from(body, at)
    at += 4
    return (b"", at) if length < 0 else (body[at : at + length], at + length)


def _paths(body: bytes) -> list[str]:
    paths, at = [], 0
    while not _MULTI.unpack_from(body, at)[1]:
        path, at = _text(body, at + _MULTI.size)
        paths.append(path)
        at += 1
    return paths
