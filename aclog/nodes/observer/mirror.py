"""The loop of `aclog mirror`: appends what a quorum commits to a mirror log, unchanged."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from attrs import define, field

from aclog.metalog.batches import end_offset
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.filelog.file_names import checkpoint_name
from aclog.metalog.filelog.mirror_log import MirrorLog
from aclog.nodes.client.errors import LoginError
from aclog.nodes.observer.errors import QuorumRefusedError, TransientReadError, retriable
from aclog.nodes.observer.quorum_log import QuorumLog

Notify: TypeAlias = Callable[[str], None]
"""Called once for each error, each recovery from one, and each gap in the mirrored records."""

Advance: TypeAlias = Callable[[int, int | None], None]
"""Called with (offset mirrored, high-water mark)."""

_READ_BYTES = 8 << 20
"""How much one fsync makes durable."""
_WAIT_SECONDS = 0.5


@define(kw_only=True, eq=False)
class QuorumMirror:
    """Runs in the thread that calls `run`. Errors of the network are retried; those of the mirror end it.

    Both logs belong to the caller, who closes the quorum's to stop quickly. `patience` is how many seconds without
    progress are tolerated before an error is raised; None means forever.
    """

    quorum: QuorumLog
    mirror: MirrorLog
    stop: threading.Event
    notify: Notify = field(default=lambda _: None)
    advance: Advance = field(default=lambda _done, _total: None)
    patience: float | None = None
    succeeded: Callable[[], None] = field(default=lambda: None)
    """Called whenever the quorum is known to be followed, at least once a second then."""
    checkpointed: Callable[[Path], None] = field(default=lambda _: None)
    """Called with the checkpoint of a snapshot with which the mirror's log begins."""
    failed: Callable[[str], None] = field(default=lambda _: None)
    """Called with the error whenever it is known not to be."""
    batches: int = field(default=0, init=False)
    """Number of batches appended."""
    size: int = field(default=0, init=False)
    """Bytes appended."""
    _known: bool = field(default=False, init=False)
    """Whether the quorum's high-water mark is known."""
    _notified: set[str] = field(factory=set, init=False)
    """The errors since the last success."""
    _suspect: MetadataError | None = field(default=None, init=False)
    """The log's error when a wait last timed out."""
    _last_success: float = field(factory=time.monotonic, init=False)

    @property
    def lag(self) -> int:
        """How many records are known to be committed and not mirrored yet."""
        return max(self.quorum.high_watermark() - max(self._mirrored_to(), 0), 0)

    def run(self, *, once: bool) -> None:
        """Mirror until `stop` is set; `once`: up to the first high-water mark.

        Raises:
            FollowingEndedError: the quorum's history differs from the mirror's, or it is another quorum.
            MetadataError: the quorum refuses from the start, or cannot be followed for longer than `patience`.
            LogError: the mirror cannot be written; it is left as it is.

        """
        limit: int | None = None
        while not self.stop.is_set() and (limit is None or self._mirrored_to() < limit):
            try:
                self._step()
            except TransientReadError as transient:
                if not self.stop.is_set():  # a caller that stops the mirror may have closed the log: not an error
                    self._back_off(transient.cause)
            if once and limit is None and self._known:
                limit = self.quorum.high_watermark()

    def _mirrored_to(self) -> int:
        return -1 if self.mirror.end is None else self.mirror.end.end_offset

    def _step(self) -> None:
        """Append the next batches, if any arrive in time."""
        if not self._known:
            self._wait_known()
        elif self.mirror.end is None or self._mirrored_to() < self.quorum.start_offset():
            self._begin()
        elif retriable(lambda: self.quorum.wait(self._mirrored_to(), _WAIT_SECONDS)):
            self._append(retriable(lambda: self.quorum.read(self._mirrored_to(), _READ_BYTES)))
        else:
            self._check_error()

    def _wait_known(self) -> None:
        if retriable(lambda: self.quorum.wait(-1, _WAIT_SECONDS)):
            self._bind()
            self._known = True
            self._note_success()
        else:
            self._check_error()

    def _bind(self) -> None:
        found = self.quorum.known_cluster_id
        if found is None:
            raise LogError(f"{self.quorum.name}: no cluster id: a new mirror needs ALTER on the cluster once")
        self.mirror.bind(found)

    def _append(self, batches: bytes) -> None:
        self.batches += self.mirror.append(batches)
        self.size += len(batches)
        self._note_success()
        self.advance(end_offset(batches), self.quorum.high_watermark())

    def _begin(self) -> None:
        """Begin the mirror's log: at 0, or after a snapshot if the quorum's log does not reach back."""
        before = self.mirror.end
        snapshot = retriable(self.quorum.latest_snapshot)
        if before is not None and (snapshot is None or snapshot.end_offset <= before.end_offset):
            return  # another leader, whose log reaches further back: the next batches can be read after all
        archive = self.mirror.begin(snapshot)
        if snapshot is not None:
            self.checkpointed(self.mirror.directory / checkpoint_name(snapshot.end_offset, snapshot.epoch))
        after = f"after the snapshot of offset {self._mirrored_to()}"
        if before is not None and archive is not None:
            self.notify(
                f"{self.mirror.name}: the quorum's log begins at offset {self._mirrored_to()} now: the mirror up to "
                f"{before.end_offset} is kept in {archive}, and a new one begins {after}"
            )
        elif snapshot is not None:
            self.notify(f"{self.mirror.name}: begins {after}: the quorum no longer has the records before it")

    def _check_error(self) -> None:
        """After a wait without records: report an error of the log that has lasted since the previous one."""
        suspect, self._suspect = self._suspect, self.quorum.error
        if self._suspect is None:
            if self._known:  # before that, nobody has answered yet
                self._note_success()
        elif suspect is not None:
            self._back_off(self._suspect)

    def _back_off(self, error: MetadataError) -> None:
        refused = not self._known and isinstance(error, QuorumRefusedError | LoginError | ConfigError)
        self.failed(str(error))
        if refused:
            raise error.with_traceback(None)
        if self.patience is not None and time.monotonic() - self._last_success >= self.patience:
            raise LogError(f"given up after {self.patience:g} s without a usable leader: {error}")
        if str(error) not in self._notified:
            self._notified.add(str(error))
            self.notify(f"{error}; trying again")
        self.stop.wait(_WAIT_SECONDS)

    def _note_success(self) -> None:
        self._last_success = time.monotonic()
        self.succeeded()
        self._suspect = None
        if self._notified:
            self._notified.clear()
            self.notify(f"{self.quorum.name}: following again from offset {max(self._mirrored_to(), 0)}")
