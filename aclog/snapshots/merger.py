"""The merger: folds the overlay of ACL changes into a new base, in a background thread, while readers continue."""

import threading
import time

from attrs import define, field

from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher

_PAUSE_S = 1e-4
"""Long enough for a waiting thread to wake up: merely yielding the GIL does not give it a turn in time."""

MERGE_AT = 16_384
"""Overlay size that triggers a merge: beyond it, garbage collection of the overlay costs more than the merge."""


def _pause() -> None:
    time.sleep(_PAUSE_S)


@define(kw_only=True, eq=False)
class Merger:
    """Watches a publisher's images and merges once their overlay has grown to `merge_at` changes.

    No change is lost: what arrives during a merge is journaled and applied to the new base. Readers never wait, and the
    publisher waits for less than a millisecond.
    """

    publisher: Publisher
    merge_at: int = MERGE_AT
    _not_below: int = field(default=0, init=False)
    """After a failed merge (out of memory, for example): the overlay size at which the next attempt is made."""
    _thread: threading.Thread | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.publisher.subscribe(self.consider)

    def consider(self, image: Image) -> None:
        """Start a merge if this image needs one and none is running."""
        if image.acls.overlay_size < max(self.merge_at, self._not_below):
            return
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(target=self._merge, name="acl-merge", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the running merge, if any."""
        if self._thread is not None:
            self._thread.join()

    def _merge(self) -> None:
        acls = self.publisher.begin_merge()
        if acls.overlay_size < self.merge_at:
            # The published image predates the last merge, whose result is still staged.
            self.publisher.abandon_merge()
            return
        try:
            merged = acls.merged(_pause)
            # Changes that arrive during the merge are applied outside of the publisher's lock, until few enough remain.
            while changes := self.publisher.finish_merge(merged):
                merged = merged.apply(changes)
        except BaseException:
            self._not_below = 2 * acls.overlay_size
            self.publisher.abandon_merge()
            raise
        self._not_below = 0
