"""Connections that nobody can hold for long: there is a deadline until a request is whole, and one for its answer."""

import asyncio
import socket
import sys

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_SLOWEST = 1024
"""Bytes a second that who reads an answer takes at least."""
_ACKNOWLEDGED = slice(120, 128)
"""Where Linux's `struct tcp_info` holds tcpi_bytes_acked."""
_WHOLE = {h11.DONE, h11.MUST_CLOSE}
"""States of the other side when it has sent all of a request."""


class TimedConnection(H11Protocol):
    """uvicorn's connection, which ends if a request and its answer take longer than `seconds`.

    Headers or a body that come a byte at a time, and an answer that nobody reads, would hold it for ever.
    """

    seconds = 30.0
    _deadline: asyncio.TimerHandle | None = None
    _taken = 0
    """Bytes that the other side had taken when the deadline was set."""
    _has_ended = False
    """Whether the other side sends no more."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait."""
        self._stop()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether the connection stays: whole requests are answered to who sends no more, but not over TLS."""
        self._has_ended = True
        if self.scheme != "http" or self.conn.their_state not in _WHOLE:
            return False
        return not self.cycle.response_complete

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._wait()
        super().on_response_complete()
        if self._has_ended and self.cycle.response_complete:
            self.transport.close()

    def shutdown(self) -> None:
        """End with the server: at once amid a request, else when what is being answered is sent."""
        if self._is_half_sent():  # not `close`: over TLS that waits for the other side's farewell
            self.transport.abort()
        else:
            super().shutdown()

    def _is_half_sent(self) -> bool:
        if self.conn.their_state is h11.IDLE:
            earlier: object = self.cycle  # None before the first request
            return earlier is None or bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY

    def _wait(self) -> None:
        self._stop()
        self._taken = self._taken_bytes()
        self._deadline = self.loop.call_later(self.seconds, self._end)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _taken_bytes(self) -> int:
        """Return how many bytes the other side has taken so far.

        What the transport holds tells little: the kernel holds megabytes more, and TLS has a buffer of its own.
        """
        peer = self.transport.get_extra_info("socket")
        try:
            told = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.stop)[_ACKNOWLEDGED]
            return int.from_bytes(told, sys.byteorder)
        except (AttributeError, OSError):  # not Linux
            return -self.transport.get_write_buffer_size()

    def _end(self) -> None:
        self.transport.abort()


class PatientConnection(TimedConnection):
    """A connection whose requests have to be whole within `seconds`, and whose answers take as long as they take.

    It ends, too, if an answer that waits to be read is read slower than a kilobyte a second, within `seconds`.
    """

    def data_received(self, data: bytes) -> None:
        """Stop to wait once the request is whole."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, unless it is there already."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Begin to wait for the answer to be read."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Stop to wait for it."""
        super().resume_writing()
        self._look()

    def _look(self) -> None:
        """Stop to wait while the console works on an answer, and nobody else is waited for."""
        is_asked = self.conn.their_state in _WHOLE and not self.cycle.response_complete
        if is_asked and not self.flow.write_paused:
            self._stop()

    def _end(self) -> None:
        """End, unless enough of an answer was read meanwhile."""
        if self._taken_bytes() - self._taken >= self.seconds * _SLOWEST:
            self._wait()
        else:
            super()._end()
