"""Connections that nobody can hold for long: from one answer to the next there is a deadline."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedConnection(H11Protocol):
    """uvicorn's connection, which ends if a request and its answer take longer than `seconds`.

    Headers or a body that come a byte at a time, and an answer that nobody reads, would hold it for ever.
    """

    seconds = 30.0
    _deadline: asyncio.TimerHandle | None = None
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
        if self.scheme != "http" or self.conn.their_state not in {h11.DONE, h11.MUST_CLOSE}:
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
        self._deadline = self.loop.call_later(self.seconds, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
