"""Connections that nobody can hold for long: there is a deadline until a request is whole, and one for its answer."""

import asyncio
import hashlib
import socket
import sys

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from aclog.console.gate import HEADER_S, Arrival, keep_arrival

_SLOWEST = 1024
"""Bytes a second that who reads an answer takes at least."""
_ACKNOWLEDGED = slice(120, 128)
"""Where Linux's `struct tcp_info` holds tcpi_bytes_acked."""
_WHOLE = {h11.DONE, h11.MUST_CLOSE}
"""States of the other side when it has sent all of a request."""


class TimedConnection(H11Protocol):
    """uvicorn's connection, which ends if a request and its answer take longer than `seconds`.

    Headers or a body that come a byte at a time, and an answer that nobody reads, would hold it for ever. While the
    client has not authenticated, the header of its first request must be whole within `header_seconds` of the accept,
    and that of a later one within as many of its first byte.
    """

    seconds = 30.0
    header_seconds = HEADER_S
    arrival: Arrival | None = None
    """Its place in the budget of connections, if a gate has admitted it."""
    _since = 0.0
    """When the deadline was set, on the event loop's clock."""
    _is_short = False
    """Whether the deadline is that of a header."""
    _deadline: asyncio.TimerHandle | None = None
    _taken = 0
    """Bytes that the other side had taken when the deadline was set."""
    _has_ended = False
    """Whether the other side sends no more."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        if self.arrival is not None:
            self.app_state = dict(self.app_state)
            keep_arrival(self.app_state, self.arrival)
            self.arrival.connected(transport)
            certificate = _certificate_of(transport)
            if certificate is not None and not self.arrival.authenticate(certificate):
                transport.abort()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait."""
        self._stop()
        if self.arrival is not None:
            self.arrival.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take note of a header that is whole, and of one that begins after an answer."""
        super().data_received(data)
        self._note()
        if self._is_of_stranger and not self._is_asked and not self._is_short:
            self._is_short = True
            self._set_deadline(self.loop.time() + self.header_seconds)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether the connection stays: whole requests are answered to who sends no more, but not over TLS."""
        self._has_ended = True
        if self.scheme != "http" or self.conn.their_state not in _WHOLE:
            return False
        return not self.cycle.response_complete

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._wait()
        if self.arrival is not None and not self.arrival.answered():  # before the next one of a pipeline begins
            self.transport.close()
        super().on_response_complete()
        self._note()
        if self._has_ended and self.cycle.response_complete:
            self.transport.close()

    @property
    def _is_asked(self) -> bool:
        """Whether a header is there whose request was not answered yet."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    @property
    def _is_of_stranger(self) -> bool:
        return self.arrival is not None and self.arrival.is_stranger

    def _note(self) -> None:
        """Note whether a request is in progress; with its header whole, its body may take longer."""
        if self.arrival is not None:
            self.arrival.busy(self._is_asked)
        if self._is_short and self._is_asked:
            self._is_short = False
            self._set_deadline(self._since + self.seconds)

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
        self._taken, self._since = self._taken_bytes(), self.loop.time()
        end = self._since + self.seconds
        # Between two requests uvicorn waits less for whoever sends nothing.
        cycle: RequestResponseCycle | None = self.cycle
        self._is_short = cycle is None and self._is_of_stranger
        if self._is_short and self.arrival is not None:  # since it was accepted, which was before a TLS handshake
            end = min(self._since + self.header_seconds, max(self.arrival.deadline, self._since))
        self._set_deadline(end)

    def _set_deadline(self, end: float) -> None:
        self._stop()
        self._deadline = self.loop.call_at(end, self._end)

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
        if self._is_short and self.arrival is not None:
            self.arrival.refusals.connection("header")
        self.transport.abort()


def _certificate_of(transport: asyncio.Transport) -> tuple[str, str] | None:
    """Return what identifies the client by its certificate, which the handshake has verified; None: it sent none."""
    found = transport.get_extra_info("ssl_object")
    certificate = None if found is None else found.getpeercert(binary_form=True)
    return None if certificate is None else ("certificate", hashlib.sha256(certificate).hexdigest())


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
        if not self._is_short and self._taken_bytes() - self._taken >= self.seconds * _SLOWEST:
            self._wait()
        else:
            super()._end()
