"""A state source, read again and again in a thread of its own; what answers reads the newest state without waiting."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from attrs import define, field, frozen

from aclog.metalog.clock import current_time_ms, elapsed_seconds
from aclog.metalog.errors import MetadataError
from aclog.snapshots.image import Image
from aclog.snapshots.moment_texts import read_moment
from aclog.snapshots.moments import Moment
from aclog.snapshots.state_source import StateSource

_MOMENTS = 8
"""States of the past that are kept."""
_SETTLED = timedelta(minutes=1)
"""What was true at a later moment than this long ago may still change: a log's clock may be behind ours."""


@frozen(eq=False, kw_only=True)
class Seen:
    """A state, and when it was read (aclog.metalog.clock.elapsed_seconds)."""

    image: Image
    at: float


@define(eq=False, kw_only=True)
class LiveState:
    """The newest state of a source; owned by the server that starts and stops it."""

    source: StateSource
    seconds: float
    """Between two reads."""
    tell: Callable[[str], None]
    """Called with why the newest read failed, once for each reason, and with None when one succeeds again."""
    prepare: Callable[[Image], None] = field(default=lambda _: None)
    """Called with each state before it is the newest one: what is made of it costs no request anything.

    Raises MetadataError: nothing can be answered from it.
    """
    _newest: Seen | None = field(default=None, init=False)
    _trouble: str | None = field(default="no state was read yet", init=False)
    _stopping: threading.Event = field(factory=threading.Event, init=False)
    _reading: threading.Lock = field(factory=threading.Lock, init=False)
    """Held by who reads the newest state, which nobody who asks for the past waits for."""
    _reading_past: threading.Lock = field(factory=threading.Lock, init=False)
    """Held by who reads a state of the past: one at a time, for each takes the memory of a state."""
    _past: "OrderedDict[Moment, Image]" = field(factory=OrderedDict, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin to read."""
        self._thread = threading.Thread(target=self._run, name="live-state", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and close the source."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)
        self.source.close()

    def replace(self, source: StateSource) -> None:
        """Read another source from now on, which is of the same rules, at once; the one before is closed."""
        with self._reading_past, self._reading:
            before, self.source = self.source, source
            self._past.clear()
        before.close()
        self._look()

    @property
    def newest(self) -> Seen | None:
        """The newest state; None before the first."""
        return self._newest

    @property
    def trouble(self) -> str | None:
        """Why the newest read failed; None after a good one."""
        return self._trouble

    def age(self) -> float | None:
        """Return for how many seconds nothing has confirmed the newest state; None before the first."""
        seen = self._newest
        if seen is None:
            return None
        told = self.source.freshness()
        read = max(elapsed_seconds() - seen.at, 0.0)
        return read if told is None else max(read, told.seconds)

    def past(self, text: str) -> Image | None:
        """Return the state at a moment in the past; None if the text names the newest one.

        Raises:
            ConfigError: neither an offset nor a time. MetadataError: nobody knows that state.

        """
        now = datetime.fromtimestamp(current_time_ms() / 1000, UTC)
        moment = read_moment(text, now=now).moment
        if moment is None:
            return None
        with self._reading_past:
            known = self._past.get(moment)
            if known is None:
                known = self.source.image_at(moment)
                if isinstance(moment, datetime) and now - moment < _SETTLED:
                    return known
                self._past[moment] = known
                if len(self._past) > _MOMENTS:
                    self._past.popitem(last=False)
            self._past.move_to_end(moment)
            return known

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment, read anew. Raises MetadataError: nobody knows that state."""
        with self._reading_past:
            return self.source.image_at(moment)

    def _run(self) -> None:
        while True:
            self._look()
            if self._stopping.wait(self.seconds):
                return

    def _look(self) -> None:
        with self._reading:  # until the state is put in place: another source may be put in this one's place meanwhile
            try:
                seen = Seen(image=self.source.image(), at=elapsed_seconds())
                self.prepare(seen.image)
            except (MetadataError, OSError) as error:
                if str(error) != self._trouble:
                    self.tell(str(error))
                self._trouble = str(error)
            else:
                self._newest, self._trouble = seen, None
