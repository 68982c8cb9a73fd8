"""Connections that nobody can hold for long: there is a deadline until a request is whole, and one for its answer."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_WHOLE = {h11.DONE, h11.MUST_CLOSE}
"""States of the other side when it has sent all of a request."""


class TimedConnection(H11Protocol):
    """uvicorn's connection, which ends if a request and its answer take longer than `seconds`.

    Headers or a body that come a byte at a time, and an answer that nobody reads, would hold it for ever.
    """

    seconds = 30.0
    _deadline: asyncio.TimerHandle | None = None
    _unsent = 0
    """Bytes that waited to be read by the other side when the deadline was set."""
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

    def _wait(self) -> None:
        self._stop()
        self._unsent = self.transport.get_write_buffer_size()
        self._deadline = self.loop.call_later(self.seconds, self._end)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        self.transport.abort()


class PatientConnection(TimedConnection):
    """A connection whose requests have to be whole within `seconds`, and whose answers take as long as they take.

    It ends, too, if of an answer that waits to be read nothing was read for `seconds`.
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
        """End, unless some of what waits to be read was read meanwhile."""
        if 0 < self.transport.get_write_buffer_size() < self._unsent:
            self._wait()
        else:
            super()._end()
