"""A socket as a stream of frames with deadlines and back-pressure."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Callable
from typing import Literal, TypeAlias, cast

from aclog.nodes.server.admission import Admission
from aclog.nodes.server.memory_pool import UNCHARGED_BYTES
from aclog.nodes.wire.frames import MIN_REQUEST, frame_length

Reason: TypeAlias = Literal[
    "client",
    "authentication",
    "crowded",
    "idle",
    "slow_writer",
    "slow_reader",
    "malformed",
    "unanswered",
    "error",
    "expired",
    "stopped",
]
"""Why a connection ended. `client`: the client closed it; `crowded`: its network held more than others, who came when
there was no place; `unanswered`: the outcome of a request is unknown."""

_READ_BYTES = 64 << 10
_AHEAD_BYTES = 16 << 10
"""Buffered bytes of pipelined requests while one is handled; the rest waits in the socket."""
_WRITE_BYTES = 256 << 10
"""Responses are written in chunks of this size, which bounds the copy in the transport's buffer."""


class FrameStream(asyncio.BufferedProtocol):
    """The server's end of a connection. One task reads and writes; the event loop feeds it on the same thread.

    All connections read into one scratch buffer, so an idle connection holds no buffer of its own. At `deadline`, on
    the event loop's clock, the listener aborts the connection with the reason `waiting_for`; it polls the deadlines,
    which is cheaper than a timer per request.
    """

    def __init__(self, admission: Admission, scratch: memoryview) -> None:
        """`scratch` is shared by all connections of an event loop; see `scratch_buffer`."""
        self.max_bytes = admission.limits.unauthenticated_frame_bytes
        self.min_bytes = MIN_REQUEST
        self.pool = admission.unauthenticated_memory
        self.latest_deadline = math.inf
        """The upper bound of all deadlines: the end of the time to authenticate."""
        self.deadline = math.inf
        self.waiting_for: Reason = "idle"
        self.ended: Reason | None = None
        self.at_end = False
        """Whether nothing more is read: the client disconnected or closed its side, or this node stops."""
        self.on_end: Callable[[], object] | None = None
        """Called when reading ends; cancels a long poll whose client is gone."""
        self._admission, self._scratch = admission, scratch
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        self._charged = 0
        self._wanted = 0
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._readable: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._writable = True
        self._paused = False

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        transport.set_write_buffer_limits(high=UNCHARGED_BYTES)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """See asyncio."""
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Append the bytes read; pause reading once enough is buffered."""
        self._data += self._scratch[:nbytes]
        size = len(self._data)
        if self._readable is not None and size >= self._wanted:
            self._wake_reader()
        # Back-pressure: what is left in the socket closes the client's TCP window.
        if size > max(self._wanted, _AHEAD_BYTES) and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """End reading; requests received before are still answered."""
        self._finish()
        return self.ssl_object is None  # TLS in asyncio cannot be half-closed

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """End reading and writing."""
        self.ended = self.ended or "client"
        self._data.clear()
        self._finish()
        self.resume_writing()
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """See asyncio."""
        self._writable = False

    def resume_writing(self) -> None:
        """See asyncio."""
        self._writable = True
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # Called by the connection's task

    async def next(self) -> bytes | None:
        """Return the next frame without its length; None at the end of the stream.

        The memory charged for a frame is returned when the next one is requested.

        Raises:
            FrameError: An invalid length; the stream is unusable afterwards.

        """
        self._release_memory()
        self._set_deadline("idle", self._admission.limits.idle_seconds)
        if not await self._read(4):
            return None
        length = frame_length(self._data[:4], self.max_bytes, self.min_bytes)
        if len(self._data) < 4 + length:
            # Charged before reading: the announced length alone must not make this node allocate memory.
            if length > UNCHARGED_BYTES:
                self.deadline = self.latest_deadline  # the node makes the client wait for memory, so no timeout runs
                await self.pool.take(length)
                self._charged = length
            self._set_deadline("slow_writer", self._admission.limits.request_seconds)
            if not await self._read(4 + length):
                return None
        with memoryview(self._data) as data:  # slicing the bytearray itself would copy the frame twice
            frame = bytes(data[4 : 4 + length])
        del self._data[: 4 + length]
        self.deadline = self.latest_deadline
        return frame

    async def send(self, head: bytes, body: bytes) -> None:
        """Write length, head and body, and wait until the client has read nearly all of it.

        Raises:
            ConnectionResetError: The connection is closed.

        """
        size = len(head) + len(body)
        # Length, header and the start of the body in one write: small responses take one packet.
        await self._write(size.to_bytes(4, "big") + head + body[:_WRITE_BYTES], size)
        for start in range(_WRITE_BYTES, len(body), _WRITE_BYTES):
            with memoryview(body) as rest:
                await self._write(rest[start : start + _WRITE_BYTES], size)

    def finish(self) -> None:
        """Stop reading because the node stops; frames received before are still returned."""
        self.ended = self.ended or "stopped"
        self._finish()

    def abort(self, reason: Reason) -> None:
        """Close at once, dropping unsent data."""
        self.ended = self.ended or reason
        if self._transport is not None:
            self._transport.abort()

    def give_up(self, connected: socket.socket) -> None:
        """Close at once in favour of another network's connection, also during the TLS handshake on `connected`."""
        self.abort("crowded")
        if self._transport is None:
            with contextlib.suppress(OSError):  # closed already
                connected.shutdown(socket.SHUT_RDWR)

    def close(self, reason: Reason) -> None:
        """Close once everything written is sent, within the time limit for slow readers."""
        self.ended = self.ended or reason
        self._release_memory()
        if self._transport is not None:
            self._set_deadline("slow_reader", self._admission.limits.request_seconds)
            self._transport.close()

    async def closed(self) -> None:
        """Wait until everything written is sent or dropped."""
        if self._transport is not None:
            await self._closed

    def abort_waiting(self) -> None:
        """Close at once because the deadline has passed."""
        self.abort("authentication" if self.deadline == self.latest_deadline else self.waiting_for)

    @property
    def ssl_object(self) -> object:
        """The connection's ssl.SSLObject; None without TLS."""
        return None if self._transport is None else self._transport.get_extra_info("ssl_object")

    async def _read(self, wanted: int) -> bool:
        """Wait until `wanted` bytes are buffered; return False at the end of the stream."""
        while len(self._data) < wanted:
            if self.at_end or self._transport is None:
                return False
            self._wanted = wanted
            self._readable = self._loop.create_future()
            if self._paused:
                self._paused = False
                self._transport.resume_reading()
            try:
                await self._readable
            finally:
                self._readable, self._wanted = None, 0
        return True

    async def _write(self, data: bytes | memoryview, size: int) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError
        self._transport.write(data)
        if self._writable:
            return
        self._set_deadline("slow_reader", self._admission.limits.request_seconds)
        # The whole response counts, not just this chunk: its bytes are held until the last chunk is written.
        with self._admission.unsent(size, self._cut_off):
            self._drained = self._loop.create_future()
            await self._drained
        self.deadline = self.latest_deadline
        if self._transport.is_closing():
            raise ConnectionResetError

    def _cut_off(self) -> None:
        self.abort("slow_reader")

    def _set_deadline(self, what: Reason, seconds: float) -> None:
        self.waiting_for = what
        self.deadline = min(self._loop.time() + seconds, self.latest_deadline)

    def _finish(self) -> None:
        self.at_end = True
        self._wake_reader()
        if self.on_end is not None:
            self.on_end()

    def _wake_reader(self) -> None:
        if self._readable is not None and not self._readable.done():
            self._readable.set_result(None)

    def _release_memory(self) -> None:
        if self._charged:
            self.pool.give(self._charged)
            self._charged = 0


def scratch_buffer() -> memoryview:
    """Return the buffer that the sockets of one event loop are read into."""
    return memoryview(bytearray(_READ_BYTES))
