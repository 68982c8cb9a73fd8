"""A simulated network of TCP connections between hosts.

Bytes of one direction of a connection arrive in order, after a drawn delay; a direction that is cut keeps them, as TCP
retransmits, until it is healed. A process that is killed resets its connections; a host that lost its power is silent
until it is back, and then resets them.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.simulation.scheduler import Scheduler

BUFFER = 64 << 10
"""Bytes in flight in one direction above which a writer has to wait."""


class Side(asyncio.Transport):
    """One end of a connection: a transport for asyncio, and what the other end receives."""

    def __init__(self, network: "Network", process: Any, address: tuple[str, int]) -> None:
        super().__init__()
        self.network, self.process, self.address = network, process, address
        self.peer: Side = self
        self.loop: Any = None
        self.protocol: Any = None
        self.received: deque[bytes | None] = deque()
        """Bytes that the protocol has not taken; None for the end of the stream."""
        self.reading_paused = False
        self.writing_paused = False
        self.closing = False
        """Whether this end has closed; nothing is delivered to it any more."""
        self.lost = False
        self.eof_sent = False
        self.in_flight = 0
        self.last_arrival = 0.0
        self.stalled: deque[bytes | None] = deque()
        """What cannot pass a partition."""
        self._limit = BUFFER

    # asyncio.Transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio."""
        return {"peername": self.peer.address, "sockname": self.address}.get(name, default)

    def is_closing(self) -> bool:
        """See asyncio."""
        return self.closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See asyncio."""
        self._limit = BUFFER + (high or 0)

    def get_write_buffer_size(self) -> int:
        """See asyncio."""
        return max(self.in_flight - BUFFER, 0)

    def set_protocol(self, protocol: Any) -> None:
        """See asyncio."""
        self.protocol = protocol

    def get_protocol(self) -> Any:
        """See asyncio."""
        return self.protocol

    def pause_reading(self) -> None:
        """See asyncio."""
        self.reading_paused = True

    def resume_reading(self) -> None:
        """See asyncio."""
        if self.reading_paused:
            self.reading_paused = False
            self.loop.call_soon(self.feed)

    def is_reading(self) -> bool:
        """See asyncio."""
        return not self.reading_paused and not self.closing

    def write(self, data: Any) -> None:
        """See asyncio."""
        if self.closing or self.eof_sent or not len(data):
            return
        piece = bytes(data)
        self.in_flight += len(piece)
        self.network.send(self, piece)
        if self.in_flight > self._limit and not self.writing_paused:
            self.writing_paused = True
            self.protocol.pause_writing()

    def can_write_eof(self) -> bool:
        """See asyncio."""
        return True

    def write_eof(self) -> None:
        """See asyncio."""
        if not self.eof_sent and not self.closing:
            self.eof_sent = True
            self.network.send(self, None)

    def close(self) -> None:
        """See asyncio: what was written is still sent."""
        if not self.closing:
            self.write_eof()
            self.closing = True
            self.network.sides.pop(self, None)
            self.loop.call_soon(self._lose, None)

    def abort(self) -> None:
        """See asyncio."""
        if not self.closing:
            self.closing = True
            self.network.sides.pop(self, None)
            self.network.reset(self)
            self.loop.call_soon(self._lose, None)

    # The network's

    def attach(self, loop: Any, protocol: Any) -> None:
        """Connect a protocol; what has arrived already is fed to it."""
        self.loop, self.protocol = loop, protocol
        protocol.connection_made(self)
        if self.lost:
            loop.call_soon(self._end, ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
        elif self.received:
            loop.call_soon(self.feed)

    def feed(self) -> None:
        """Hand received bytes to the protocol; on its loop."""
        while self.received and not self.reading_paused and not self.closing:
            data = self.received.popleft()
            if data is None:
                if not self.protocol.eof_received():
                    self.close()
                continue
            if isinstance(self.protocol, asyncio.BufferedProtocol):
                while data and not self.closing:
                    buffer = self.protocol.get_buffer(-1)
                    count = min(len(buffer), len(data))
                    buffer[:count] = data[:count]
                    data = data[count:]
                    self.protocol.buffer_updated(count)
            else:
                self.protocol.data_received(data)

    def deliver(self, data: bytes | None) -> None:
        """Receive from the peer; called by the hub."""
        process = self.process
        if process.dead or self.closing:
            if data is not None and process.is_reachable:
                self.network.reset(self)
            return
        self.received.append(data)
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.feed)

    def sent(self, size: int) -> None:
        """Note that bytes have arrived at the peer; called by the hub."""
        self.in_flight -= size
        if self.writing_paused and self.in_flight <= BUFFER // 2 and not self.process.dead:
            self.writing_paused = False
            self.loop.call_soon_threadsafe(self.protocol.resume_writing)

    def receive_reset(self) -> None:
        """The peer has reset the connection; called by the hub."""
        if self.process.dead or self.closing or self.lost:
            return
        self.network.sides.pop(self, None)
        self.lost = True
        if self.loop is not None:
            error = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            self.loop.call_soon_threadsafe(self._end, error)

    def _end(self, error: Exception) -> None:
        if not self.closing:
            self.closing = True
            self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        if self.protocol is not None:
            protocol, self.protocol = self.protocol, None
            if self.writing_paused:
                protocol.resume_writing()
            protocol.connection_lost(error)


class Socket:
    """A listening socket, or an accepted one before it has a transport."""

    def __init__(self, network: "Network", process: Any) -> None:
        self._network, self._process = network, process
        self.address: tuple[str, int] = ("", 0)
        self.side: Side | None = None
        self.accepted: deque[Side] = deque()
        self.reader: tuple[Any, Callable[[], object]] | None = None

    def setblocking(self, _flag: bool) -> None:
        """See socket."""

    def setsockopt(self, *_: object) -> None:
        """See socket."""

    def bind(self, where: tuple[str, int]) -> None:
        """See socket."""
        host, port = where
        if host not in ("", "::", "0.0.0.0", self._process.address):
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        self.address = self._process.address, port or self._network.free_port()
        if self.address in self._network.listening:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))

    def listen(self, _backlog: int) -> None:
        """See socket."""
        self._network.listening[self.address] = self
        self._process.sockets[self] = None

    def getsockname(self) -> tuple[str, int]:
        """See socket."""
        return self.address if self.side is None else self.side.address

    def getpeername(self) -> tuple[str, int]:
        """See socket."""
        if self.side is None or self.side.lost:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self.side.peer.address

    def accept(self) -> tuple["Socket", tuple[str, int]]:
        """See socket."""
        if not self.accepted:
            raise BlockingIOError
        connected = Socket(self._network, self._process)
        connected.side = self.accepted.popleft()
        return connected, connected.side.peer.address

    def shutdown(self, _how: int) -> None:
        """See socket."""
        self.close()

    def close(self) -> None:
        """See socket."""
        if self.side is not None:
            if not self.side.closing:
                self.side.closing = True
                self._network.sides.pop(self.side, None)
                self._network.reset(self.side)
            return
        self._network.listening.pop(self.address, None)
        self._process.sockets.pop(self, None)
        for side in self.accepted:
            side.closing = True
            self._network.reset(side)
        self.accepted.clear()

    def ready(self) -> None:
        """Call the reader; by the hub."""
        if self.reader is not None and self.accepted and not self._process.dead:
            loop, call = self.reader
            loop.call_soon_threadsafe(call)


class Network:
    """All hosts by address, their connections, and what happens to these."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.listening: dict[tuple[str, int], Socket] = {}
        self.hosts: dict[str, Any] = {}
        """The newest process of each address."""
        self.cut: dict[tuple[str, str], None] = {}
        """Directions (from, to) in which nothing passes."""
        self.rate: dict[tuple[str, str], float] = {}
        """Bytes per second of slow directions."""
        self.latency = 0.001
        self.sides: dict[Side, None] = {}
        self._port = 40_000

    def free_port(self) -> int:
        """Return a port."""
        self._port += 1
        return self._port

    def _delay(self) -> float:
        random = self.scheduler.random
        return self.latency * (0.2 + random.random()) * (20 if random.random() < 0.01 else 1)

    def send(self, side: Side, data: bytes | None) -> None:
        """Send bytes, or the end of the stream, to a side's peer."""
        way = side.process.address, side.peer.process.address
        if way in self.cut or side.stalled:
            side.stalled.append(data)
            return
        arrival = max(side.last_arrival + 1e-6, self.scheduler.now + self._delay())
        if data is not None and way in self.rate:
            arrival += len(data) / self.rate[way]
        side.last_arrival = arrival
        self.scheduler.at(arrival, self._arrive, side, data)

    def _arrive(self, side: Side, data: bytes | None) -> None:
        way = side.process.address, side.peer.process.address
        if way in self.cut or side.stalled:
            side.stalled.append(data)
            return
        if data is not None:
            side.sent(len(data))
        side.peer.deliver(data)

    def reset(self, side: Side) -> None:
        """Reset the connection of a side towards its peer."""
        side.stalled.clear()
        way = side.process.address, side.peer.process.address
        if way not in self.cut:
            self.scheduler.after(self._delay(), side.peer.receive_reset)

    def heal(self) -> None:
        """Let everything pass again, in order."""
        self.cut.clear()
        self.rate.clear()
        for side in list(self.sides):
            stalled, side.stalled = side.stalled, deque()
            for data in stalled:
                self.send(side, data)

    def connect(self, process: Any, host: str, port: int, done: Callable[[Side | OSError], object]) -> None:
        """Connect; `done` gets the side of the caller, or the error, by the hub."""
        there = self.hosts.get(host)
        way_out, way_back = (process.address, host) in self.cut, (host, process.address) in self.cut
        if there is None or not there.is_reachable or way_out or way_back:
            # SYNs are sent again, less and less often: the caller gives up first, or succeeds once it can.
            self.scheduler.after(1.0, self._retry, process, host, port, done)
            return
        self.scheduler.after(self._delay(), self._arrived, process, host, port, done)

    def _retry(self, process: Any, host: str, port: int, done: Callable[[Side | OSError], object]) -> None:
        if not process.dead and not getattr(done, "cancelled", bool)():
            self.connect(process, host, port, done)

    def _arrived(self, process: Any, host: str, port: int, done: Callable[[Side | OSError], object]) -> None:
        socket = self.listening.get((host, port))
        if socket is None:
            error = ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
            self.scheduler.after(self._delay(), done, error)
            return
        here = Side(self, process, (process.address, self.free_port()))
        there = Side(self, socket._process, (host, port))
        here.peer, there.peer = there, here
        self.sides[here] = self.sides[there] = None
        socket.accepted.append(there)
        socket.ready()
        self.scheduler.after(self._delay(), done, here)

    def process_ended(self, process: Any, *, silent: bool) -> None:
        """Reset all connections of a process, or let them be silent (its host has no power)."""
        for socket in list(process.sockets):
            self.listening.pop(socket.address, None)
        process.sockets.clear()
        for side in list(self.sides):
            if side.process is process:
                del self.sides[side]
                if not silent:
                    self.reset(side)

    def drop(self, side: Side) -> None:
        """Break a connection in both directions, as a firewall does that forgets it and rejects its packets."""
        for each in (side, side.peer):
            self.scheduler.after(self._delay(), each.receive_reset)
