"""Accepts connections on a listening socket, so that a refused one costs neither a handshake nor a task."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from attrs import define, field

_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE = 0.5
"""Seconds without accepting when the process has run out of file descriptors."""

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class Acceptor:
    """Hands each connection of a listening, non-blocking socket to `take`, on the running event loop."""

    listening: socket.socket
    name: str
    """The name of the listener, for the log."""
    take: Callable[[socket.socket], None]
    """Owns the socket from then on."""
    at_end: Callable[[], None] = lambda: None
    """Called after each batch."""
    at_once: int = 64
    """The most connections accepted before existing ones get a turn on the event loop."""
    _is_open: bool = field(default=True, init=False)

    def start(self) -> None:
        """Begin to accept."""
        if self._is_open:
            asyncio.get_running_loop().add_reader(self.listening, self._accept)

    def stop(self) -> None:
        """Accept no more, and close the socket."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self.listening)
            self.listening.close()

    def _accept(self) -> None:
        try:
            self._accept_some()
        finally:
            self.at_end()

    def _accept_some(self) -> None:
        for _ in range(self.at_once):
            if not self._is_open:
                return
            try:
                connected, _address = self.listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self.take(connected)

    def _pause(self, error: OSError) -> None:
        """Pause accepting. The socket stays readable, so the event loop would otherwise spin on it."""
        _log.warning("listener %s: pausing accept: %s", self.name, error.strerror or error)
        loop = asyncio.get_running_loop()
        if error.errno in _OUT_OF_FILES:
            loop.remove_reader(self.listening)
            loop.call_later(_PAUSE, self.start)
