"""The merger: folds the overlay of ACL changes into a new base, in the background, while others go on."""

import threading
import time
from collections.abc import Callable

from attrs import define, field, frozen

from aclog.snapshots.folding import MERGE_AT, Folder, FoldError, FoldInThread, Pauses, fold_at
from aclog.snapshots.image import Image
from aclog.snapshots.mapped_file import check_mapping
from aclog.snapshots.merge import Merge
from aclog.snapshots.provenance import Provenance
from aclog.snapshots.publisher import Publisher
from aclog.snapshots.retired_overlay import take_apart

IDLE_S = 1.0
"""Seconds without an update after which what is in the overlay is folded. A client that creates its ACLs one request
after the other never pauses that long, and whoever asks after a change waits hardly longer for the faster answer."""

_REST = 20
"""After a merge in a quiet moment, the next one comes after this many times as long as it took: one change now and then
costs a twentieth of a core at most, whatever the size of the base."""

_SLICE = 64
"""Journaled changes that the merger applies at once where no updates come to do it, holding the publisher's lock: under
a millisecond."""
_LULL_S = 0.002
"""Time without an update after which the merger does so."""


@frozen(kw_only=True)
class MergeReport:
    """How a merge ended. `rules` and `changes`: the size of the base and of the overlay that it began with."""

    rules: int
    changes: int
    seconds: float
    failure: str | None = None
    """Why nothing was merged, in a line; None if it was, or if the merge was overtaken (a checkpoint came)."""


@define(kw_only=True, eq=False)
class Merger:
    """Watches a publisher's images and folds their overlay, in a thread of its own, until it is closed.

    That happens once the overlay has `merge_at` changes, or a quarter of the base's; or when no update has come for a
    second. No change is lost, readers never wait, updates wait for less than a millisecond, and a merge ends under any
    load (see Merge). `folder` makes the new base. `report` is called in the merger's thread.
    """

    publisher: Publisher
    folder: Folder = field(factory=FoldInThread)
    merge_at: int = MERGE_AT
    idle_s: float = IDLE_S
    report: Callable[[MergeReport], None] = lambda _: None
    _not_below: int = field(default=0, init=False)
    """After a failed merge: the overlay size at which the next attempt is made."""
    _fold_here: bool = field(default=False, init=False)
    """Whether the next attempt is made in this process, since the folder has failed."""
    _rest_until: float = field(default=0.0, init=False)
    _wake: threading.Event = field(factory=threading.Event, init=False)
    _asleep: bool = field(default=False, init=False)
    """Whether the thread waits for a first change, without a limit."""
    _merging: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.publisher.subscribe(self.consider)

    def consider(self, image: Image) -> None:
        """Have this image merged if it needs it; called for every image, so nothing is done here."""
        index = image.acls.index
        changes = index.overlay.changes
        if not changes or self._merging or self._closed:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="acl-merge", daemon=True)
            self._thread.start()
        if self._asleep or changes >= self._due_at(len(index.base)):
            self._wake.set()

    def close(self) -> None:
        """Stop merging, and wait until nothing of it runs; idempotent."""
        self._closed = True
        self.folder.close()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.folder.tidy()

    def _due_at(self, rules: int) -> int:
        return max(fold_at(rules, self.merge_at), self._not_below)

    def _run(self) -> None:
        seen: Provenance | None = None
        quiet = False
        while not self._closed:
            acls, provenance = self.publisher.latest.acls, self.publisher.latest.provenance
            rules, changes = len(acls.index.base), acls.overlay_size
            del acls  # not kept alive while this thread waits
            if changes >= self._due_at(rules):
                self._merge()
            elif changes and quiet and provenance is seen and time.monotonic() >= self._rest_until:
                self._rest_until = time.monotonic() + _REST * self._merge()
            seen, quiet = provenance, self._wait()

    def _wait(self) -> bool:
        """Wait until a merge may be due; return whether a whole quiet moment has passed."""
        self._asleep = True
        # `consider` knows that this thread is asleep before it looks, so that the first change cannot be missed.
        changes = self.publisher.latest.acls.overlay_size
        self._asleep = not changes
        woken = self._wake.wait(self.idle_s if changes else None)
        self._asleep = False
        self._wake.clear()
        return not woken

    def _merge(self) -> float:
        """Fold the newest overlay; return how long it took, in seconds."""
        self._merging, begun = True, time.monotonic()
        merge = self.publisher.begin_merge()
        acls = self.publisher.latest.acls
        rules, changes = len(acls.index.base), acls.overlay_size
        del acls
        failure: Exception | None = None
        try:
            self._carry_out(merge)
            failure = merge.failure
        except Exception as error:  # noqa: BLE001 - out of memory, for example: the state is right, and stays so
            failure = error
        finally:
            self.publisher.abandon_merge(merge)
            self._merging = False
        seconds = time.monotonic() - begun
        self._fold_here = failure is not None and not self._fold_here and getattr(failure, "here", True)
        self._not_below = 0 if failure is None else changes + max(changes // 2, 1)
        if not self._closed:
            self.report(MergeReport(rules=rules, changes=changes, seconds=seconds, failure=_line(failure)))
        if merge.replaced is not None:
            retired, merge.replaced = [merge.replaced], None
            take_apart(retired, Pauses().pause)
        self.folder.tidy()
        return seconds

    def _carry_out(self, merge: Merge) -> None:
        folder = FoldInThread() if self._fold_here else self.folder
        if (begun := merge.begun) is not None:
            folded = folder.fold(begun)
            if begun.index.base.memo.ranges_read:
                folded.index.base.read_ranges()  # here, and not when the image is published
            # Else what was written over an image file would live on in a base that nobody can tell from a good one.
            check_mapping(begun)
            del begun
            self.publisher.offer_merged(merge, folded)
            del folded
        while not merge.ended and not self._closed:
            before = len(merge.journal)
            time.sleep(_LULL_S)
            if len(merge.journal) == before:
                self.publisher.catch_up(merge, _SLICE)


def _line(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    return str(failure) if isinstance(failure, FoldError) else f"{type(failure).__name__}: {failure}"
