"""What a quorum commits, carried over into a mirror as it comes: the loop of `aclog mirror`."""

import threading
import time
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from attrs import define, field

from aclog.metalog.batches import end_offset
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.filelog.mirror_log import MirrorLog
from aclog.nodes.client.errors import LoginError
from aclog.nodes.observer.errors import CommittedRecordsLostError, FollowingEndedError, QuorumRefusedError
from aclog.nodes.observer.quorum_log import QuorumLog

_T = TypeVar("_T")

Notify: TypeAlias = Callable[[str], None]
"""Told, once each, of what goes wrong, of what is right again, and of a gap."""

Advance: TypeAlias = Callable[[int, int | None], None]
"""Told (offset mirrored, the high-water mark)."""

_READ_BYTES = 8 << 20
"""What is made durable at once."""
_WAIT_SECONDS = 0.5


@define(kw_only=True, eq=False)
class Mirroring:
    """Runs in the thread that calls `run`. Troubles of the network are overcome; those of the mirror end it.

    The two logs belong to whoever made them; to close the quorum's makes a stop quick. `patience` is for how many
    seconds nothing may come before a trouble is raised; None is for ever.
    """

    quorum: QuorumLog
    mirror: MirrorLog
    stop: threading.Event
    notify: Notify = field(default=lambda _: None)
    advance: Advance = field(default=lambda _done, _total: None)
    patience: float | None = None
    batches: int = field(default=0, init=False)
    """Written so far."""
    size: int = field(default=0, init=False)
    """Of these batches, in bytes."""
    _known: bool = field(default=False, init=False)
    _compared: bool = field(default=False, init=False)
    """Whether the leader is known to have what is mirrored."""
    _told: set[str] = field(factory=set, init=False)
    """The troubles since it was last at ease."""
    _suspect: MetadataError | None = field(default=None, init=False)
    _last_good: float = field(factory=time.monotonic, init=False)

    def run(self, *, once: bool) -> None:
        """Mirror until `stop` is set; `once`: up to the high-water mark that is met first.

        Raises:
            FollowingEndedError: the quorum has another history than the mirror, or is another one.
            MetadataError: the quorum refuses from the start, or cannot be followed for longer than there is patience.
            LogError: the mirror cannot be written; it stays as it is.

        """
        limit: int | None = None
        while not self.stop.is_set() and (limit is None or not self._compared or self._reached() < limit):
            try:
                self._step()
            except _UnreadableError as unreadable:
                if not self.stop.is_set():  # whoever stops it may have closed the log
                    self._overcome(unreadable.cause)
            if once and limit is None and self._known:
                limit = self.quorum.high_watermark()

    def _reached(self) -> int:
        return -1 if self.mirror.end is None else self.mirror.end.end_offset

    def _step(self) -> None:
        """Take over what comes next, if it comes in time."""
        if not self._known:
            self._wait_known()
        elif not self._compared:
            self._compare()
        elif self.mirror.end is None or self._reached() < self.quorum.start_offset():
            self._begin()
        elif _readable(lambda: self.quorum.wait(self._reached(), _WAIT_SECONDS)):
            self._append(_readable(lambda: self.quorum.read(self._reached(), _READ_BYTES)))
        else:
            self._look_for_trouble()

    def _wait_known(self) -> None:
        if _readable(lambda: self.quorum.wait(-1, _WAIT_SECONDS)):
            self._bind()
            self._known = True
            self._recovered()
        else:
            self._look_for_trouble()

    def _bind(self) -> None:
        found = self.quorum.known_cluster_id
        if found is None:
            raise LogError(f"{self.quorum.name}: tells no cluster id: a new mirror needs ALTER on the cluster, once")
        self.mirror.bind(found)

    def _compare(self) -> None:
        """Look whether the leader has the last batch that is mirrored, byte for byte, as far as its log reaches back.

        Epochs do not tell of a quorum that was restored from a backup, and came to the same epochs another time.
        """
        ours = self.mirror.last_batch()
        theirs = _readable(lambda: self.quorum.look_back(self._reached() - 1)) if ours else None
        if theirs is not None and theirs != ours:
            raise CommittedRecordsLostError(
                f"{self.quorum.name}: the leader of epoch {self.quorum.leader_epoch} has another batch than was "
                f"committed before offset {self._reached()}; expected nothing committed to be lost"
            )
        self._compared = True

    def _append(self, batches: bytes) -> None:
        self.batches += self.mirror.append(batches)
        self.size += len(batches)
        self._recovered()
        self.advance(end_offset(batches), self.quorum.high_watermark())

    def _begin(self) -> None:
        """Begin the mirror's log: at 0, or after a snapshot where the quorum's log does not reach back."""
        before = self.mirror.end
        snapshot = _readable(self.quorum.latest_snapshot)
        if before is not None and (snapshot is None or snapshot.end_offset <= before.end_offset):
            return  # another leader, whose log reaches further back: what comes next can be read after all
        archive = self.mirror.begin(snapshot)
        after = f"after the snapshot of offset {self._reached()}"
        if before is not None and archive is not None:
            self.notify(
                f"{self.mirror.name}: the quorum's log begins at offset {self._reached()} by now: what was mirrored up "
                f"to {before.end_offset} is kept in {archive}, and the mirror goes on {after}"
            )
        elif snapshot is not None:
            self.notify(f"{self.mirror.name}: begins {after}: of what was before it the quorum gives no records")

    def _look_for_trouble(self) -> None:
        """Nothing has come for a while: a trouble that has lasted for all of it is told."""
        suspect, self._suspect = self._suspect, self.quorum.trouble
        if self._suspect is None:
            self._recovered()
        elif suspect is not None:
            self._overcome(self._suspect)

    def _overcome(self, trouble: MetadataError) -> None:
        refused = not self._known and isinstance(trouble, QuorumRefusedError | LoginError | ConfigError)
        lasting = time.monotonic() - self._last_good
        if refused or (self.patience is not None and lasting >= self.patience):
            raise trouble.with_traceback(None)
        if str(trouble) not in self._told:
            self._told.add(str(trouble))
            self.notify(f"{trouble}; trying again")
        self._compared = False
        self.stop.wait(_WAIT_SECONDS)

    def _recovered(self) -> None:
        self._last_good = time.monotonic()
        self._suspect = None
        if self._told:
            self._told.clear()
            self.notify(f"{self.quorum.name}: followed again, from offset {max(self._reached(), 0)}")


class _UnreadableError(Exception):
    """The quorum's log could not be read, for a reason that may pass."""

    def __init__(self, cause: MetadataError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _readable(what: Callable[[], _T]) -> _T:
    """What the quorum's log answers; FollowingEndedError passes through, any other trouble is an _UnreadableError."""
    try:
        return what()
    except FollowingEndedError:
        raise
    except MetadataError as error:
        raise _UnreadableError(error) from error
