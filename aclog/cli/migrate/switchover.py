"""The operator's request to switch over, read from stdin."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import Factory, define, field

from aclog.metalog.errors import ConfigError
from aclog.terminal.notices import note

WORD = "switch"


@define
class SwitchRequest:
    """Whether the word has been typed. A daemon thread reads stdin, since a blocking read cannot be interrupted."""

    _requested: threading.Event = Factory(threading.Event)
    _ended: bool = field(default=False, init=False)

    def wait(self, seconds: float) -> None:
        """Wait for the word, at most this long."""
        self._requested.wait(seconds)

    def is_set(self) -> bool:
        """Return whether the word has been typed.

        Raises:
            ConfigError: stdin ended without it.

        """
        if self._ended and not self._requested.is_set():
            raise ConfigError(
                f"stdin ended without the word {WORD!r}: not switched over; use --until-quiet to switch over without it"
            )
        return self._requested.is_set()

    def read(self) -> None:
        """Read stdin until the word, or its end."""
        for line in sys.stdin:
            if line.strip().lower() == WORD:
                self._requested.set()
                return
            note(f"{line.strip()!r}: not understood: type {WORD!r} to switch over, or Ctrl-C to cancel")
        self._ended = True


@contextmanager
def switch_request(*, from_stdin: bool) -> Iterator[SwitchRequest]:
    """Return a request, which stdin can make if `from_stdin`."""
    request = SwitchRequest()
    if from_stdin:
        note(
            f"following changes; stop all writers to ZooKeeper, then type {WORD!r} to switch over, or Ctrl-C to cancel"
        )
        threading.Thread(target=request.read, name="switch", daemon=True).start()
    yield request
