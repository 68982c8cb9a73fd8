"""What a ZooKeeper server sends, checked before kazoo reads it: lengths, order, sessions, times.

kazoo reads any length that is announced, waits for a frame as long as its bytes drip, and ends its thread with a
traceback at a response that it cannot match. So it gets sockets from here: each hands on whole frames of the protocol
(ZooKeeper's jute encoding, proto.ReplyHeader), and closes the connection at the first one that is malformed. kazoo then
reconnects as after any lost connection, and errors name what was malformed.
"""

import errno
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from attrs import field
from kazoo.exceptions import EXCEPTIONS
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.handlers.utils import selector_select
from kazoo.protocol.states import EVENT_TYPE_MAP

from aclog.metalog.errors import DecodeError
from aclog.metalog.values import define

MAX_FRAME = 64 << 20
"""Bytes of a response: those of 64 znodes of 1 MiB, which is ZooKeeper's default limit (jute.maxbuffer)."""
MAX_UNREAD = 512 << 20
"""Bytes that a server may send between two calls of the client."""
_MAX_SESSION_MS = 3_600_000
"""A server may grant more than was requested, its minSessionTimeout: by default it grants 40 s at most."""
_MIN_FRAME_S = 10.0

_LENGTH = struct.Struct("!i")
_CONNECTED = struct.Struct("!iiqi")
"""ConnectResponse: protocol version, session timeout in ms, session id, length of the password."""
_REPLY = struct.Struct("!iqi")
"""ReplyHeader: xid, zxid, error code."""
_EVENT = struct.Struct("!iii")
"""WatcherEvent: type, state, length of the path."""
_EVENT_XID, _PING_XID = -1, -2


@define(eq=False)
class ResponseChecks:
    """Checks of one connection's responses, in their order, against the requests that were sent. No I/O."""

    _sent: bytearray = field(factory=bytearray, init=False)
    _xids: deque[int] = field(factory=deque, init=False)
    """Of requests without a response."""
    _has_requested: bool = field(default=False, init=False)
    """Whether the first request, for a session, was sent; it has no xid."""
    _has_session: bool = field(default=False, init=False)

    def sent(self, data: bytes) -> None:
        """Note bytes that were sent, in pieces of any size."""
        self._sent += data
        while len(self._sent) >= 2 * _LENGTH.size:
            length, xid = _LENGTH.unpack_from(self._sent)[0], _LENGTH.unpack_from(self._sent, _LENGTH.size)[0]
            if len(self._sent) < _LENGTH.size + length:
                return
            if self._has_requested and xid != _PING_XID:
                self._xids.append(xid)
            self._has_requested = True
            del self._sent[: _LENGTH.size + length]

    def check_length(self, length: int) -> None:
        """Check an announced length of a response. Raises DecodeError."""
        least = _REPLY.size if self._has_session else _CONNECTED.size
        if not least <= length <= MAX_FRAME:
            raise DecodeError(f"a response of {length} bytes: expected {least} to {MAX_FRAME}")

    def check(self, frame: memoryview) -> bool:
        """Check a response without its length; return whether it grants the session. Raises DecodeError."""
        if not self._has_session:
            _check_session(frame)
            self._has_session = True
            return True
        xid, _, error = _REPLY.unpack_from(frame)
        if xid == _EVENT_XID:
            _check_event(frame)
        elif xid != _PING_XID:
            expected = self._xids.popleft() if self._xids else None
            if xid != expected:
                raise DecodeError(f"a response to request {xid}: expected {expected or 'none'}")
            if error not in EXCEPTIONS:  # a defaultdict, whose [] raises for others
                raise DecodeError(f"error code {error}: expected one of ZooKeeper's")
        return False


def _check_session(frame: memoryview) -> None:
    _, timeout, _, length = _CONNECTED.unpack_from(frame)
    if not 0 <= length <= len(frame) - _CONNECTED.size:
        raise DecodeError(f"a session password of {length} bytes in a response of {len(frame)}")
    if bytes(frame[_CONNECTED.size + length :][:1]) == b"\x01":
        raise DecodeError("a read-only session, which was not requested")
    if timeout > _MAX_SESSION_MS:
        raise DecodeError(f"a session timeout of {timeout} ms: expected at most {_MAX_SESSION_MS}")


def _check_event(frame: memoryview) -> None:
    if len(frame) < _REPLY.size + _EVENT.size:
        raise DecodeError(f"a watch event of {len(frame)} bytes")
    kind, _, length = _EVENT.unpack_from(frame, _REPLY.size)
    if kind not in EVENT_TYPE_MAP:
        raise DecodeError(f"a watch event of type {kind}: expected one of {', '.join(map(str, EVENT_TYPE_MAP))}")
    begin = _REPLY.size + _EVENT.size
    if not 0 <= length <= len(frame) - begin:
        raise DecodeError(f"a path of {length} bytes in a watch event of {len(frame)}")
    try:
        bytes(frame[begin : begin + length]).decode()
    except UnicodeDecodeError:
        raise DecodeError("the path of a watch event is not UTF-8") from None


@define(eq=False)
class CheckedSocket:
    """A non-blocking connection, as far as kazoo uses one: `recv` waits for a whole frame and checks it."""

    _socket: socket.socket
    _handler: "CheckedHandler"
    _checks: ResponseChecks = field(factory=ResponseChecks, init=False)
    _frame: memoryview = field(factory=lambda: memoryview(b""), init=False)
    """The rest of a checked frame."""

    def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Make the handshake. Raises OSError."""
        self._socket = context.wrap_socket(self._socket, server_hostname=host, do_handshake_on_connect=False)
        self._socket.do_handshake()

    def fileno(self) -> int:
        """Return the file descriptor, which kazoo waits on."""
        return self._socket.fileno()

    def setblocking(self, flag: bool) -> None:
        """Set as on socket.socket."""
        self._socket.setblocking(flag)

    def pending(self) -> int:
        """Return how many bytes `recv` returns without a wait, as ssl.SSLSocket does."""
        buffered = self._socket.pending() if isinstance(self._socket, ssl.SSLSocket) else 0
        return len(self._frame) + buffered

    def send(self, data: bytes) -> int:
        """Send as socket.socket does."""
        count = self._socket.send(data)
        self._checks.sent(data[:count])
        return count

    def recv(self, size: int) -> bytes:
        """Return bytes of a whole, checked frame; none after the end of the connection.

        Raises:
            OSError: a malformed frame, or the connection broke.

        """
        if not self._frame:
            self._frame = memoryview(self._next())
        some, self._frame = self._frame[:size], self._frame[size:]
        return bytes(some)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def abort(self) -> None:
        """End the connection while another thread uses it."""
        with suppress(OSError):  # not connected any more
            self._socket.shutdown(socket.SHUT_RDWR)

    def _next(self) -> bytearray:
        """Return the next frame with its length; nothing after the end of the connection."""
        data, end = bytearray(), time.monotonic() + self._handler.frame_seconds
        try:
            if not self._read(data, _LENGTH.size, end):
                return bytearray()
            (length,) = _LENGTH.unpack(data)
            self._checks.check_length(length)
            self._handler.count(length)
            if not self._read(data, _LENGTH.size + length, end):
                return bytearray()
            with memoryview(data) as whole:
                has_session = self._checks.check(whole[_LENGTH.size :])
        except DecodeError as error:
            self._handler.note(f"malformed response: {error}")
            raise OSError(errno.EPROTO, str(error)) from None
        if has_session:
            self._handler.problem = None
        return data

    def _read(self, data: bytearray, size: int, end: float) -> bool:
        """Read until `data` has this size; return whether the connection lasted."""
        while len(data) < size:
            remaining = end - time.monotonic()
            if remaining <= 0:
                raise DecodeError(f"{len(data)} of {size} bytes within {self._handler.frame_seconds:g} s")
            try:
                some = self._socket.recv(min(size - len(data), 1 << 20))
            except (BlockingIOError, ssl.SSLWantReadError):
                selector_select([self._socket], [], [], remaining)
                continue
            if not some:
                return False
            data += some
        return True


class CheckedHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads, with checked connections. kazoo uses one connection at a time.

    `problem` is what was malformed, or why TLS failed, until a connection has a session again; `problems` counts these.
    """

    def __init__(self, *, tls: ssl.SSLContext | None, frame_seconds: float) -> None:
        """`frame_seconds` is how long a response may take from its first byte to its last."""
        super().__init__()
        self.frame_seconds = max(frame_seconds, _MIN_FRAME_S)
        self.problem: str | None = None
        self.problems = 0
        self._tls = tls
        self._unread = 0
        self._connection: CheckedSocket | None = None
        self._is_aborted = False

    def start(self) -> None:
        """Start the threads."""
        self._is_aborted = False
        super().start()

    def create_connection(
        self, address: tuple[str, int], *, hostname: str = "", timeout: float | None = None, **_tls: Any
    ) -> CheckedSocket:
        """Connect, and make the handshake of TLS. Raises OSError."""
        family, kind, protocol, _, where = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        plain = socket.socket(family, kind, protocol)
        self._connection = connection = CheckedSocket(plain, self)
        if self._is_aborted:  # after the assignment: an abort from now on ends the connection
            connection.close()
            raise OSError(errno.ECANCELED, "the client is closed")
        try:
            plain.settimeout(timeout)
            plain.connect(where)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection.start_tls(self._tls, hostname)
        except OSError as error:
            if isinstance(error, ssl.SSLError):
                self.note(f"TLS: {getattr(error, 'verify_message', '') or error.reason or error}")
            connection.close()
            raise
        return connection

    def select(self, reads: Sequence[Any], writes: Sequence[Any], errors: Sequence[Any], timeout: float | None) -> Any:
        """Wait for sockets; bytes that TLS holds already are not in the kernel's buffer, and are ready."""
        buffered = [each for each in reads if isinstance(each, CheckedSocket) and each.pending()]
        readable, writable, failed = selector_select(reads, writes, errors, 0 if buffered else timeout)
        return buffered + [each for each in readable if each not in buffered], writable, failed

    def abort(self) -> None:
        """End the connection, and open no other: kazoo's `stop` would wait for a response."""
        self._is_aborted = True
        if self._connection is not None:
            self._connection.abort()

    def note(self, problem: str) -> None:
        """Note why a connection is given up."""
        self.problem = problem
        self.problems += 1

    def count(self, length: int) -> None:
        """Count a response. Raises DecodeError: too many since the last call of `reset_count`."""
        self._unread += length
        if self._unread > MAX_UNREAD:
            raise DecodeError(f"more than {MAX_UNREAD >> 20} MiB of responses, expected less")

    def reset_count(self) -> None:
        """Begin to count responses anew: the caller has a use for them."""
        self._unread = 0
