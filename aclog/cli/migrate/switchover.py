"""When to switch: the operator says so on stdin."""

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
    """Whether the word has been said; told by a thread that reads stdin, which ends with the process."""

    _said: threading.Event = Factory(threading.Event)
    _ended: bool = field(default=False, init=False)

    def wait(self, seconds: float) -> None:
        """Wait so long, or until the word is said."""
        self._said.wait(seconds)

    def is_set(self) -> bool:
        """Whether it has been said.

        Raises:
            ConfigError: stdin ended without it, so that nobody could say it any more.

        """
        if self._ended and not self._said.is_set():
            raise ConfigError(
                f"stdin ended without the word {WORD!r}: nothing is switched; --until-quiet needs no word"
            )
        return self._said.is_set()

    def read(self) -> None:
        """Read stdin until the word or its end."""
        for line in sys.stdin:
            if line.strip().lower() == WORD:
                self._said.set()
                return
            note(f"{line.strip()!r}: not understood: expected {WORD!r}, or Ctrl-C to give up")
        self._ended = True


@contextmanager
def switch_request(*, asked_for: bool) -> Iterator[SwitchRequest]:
    """A request that stdin may make, where it is asked for."""
    request = SwitchRequest()
    if asked_for:
        note(f"changes are followed; type {WORD!r} when nobody changes the ZooKeeper any more, or Ctrl-C to give up")
        threading.Thread(target=request.read, name="switch", daemon=True).start()
    yield request
