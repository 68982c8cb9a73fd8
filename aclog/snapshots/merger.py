"""The merger: folds what has changed since into a new base of ACLs, in a thread, while readers go on."""

import threading
import time

from attrs import define, field

from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher

_PAUSE_S = 1e-4
"""Long enough for a waiting thread to wake: one that is only offered the interpreter comes too late to take it."""

MERGE_AT = 16_384
"""Changes beside the base: beyond it the garbage collector's walks through them cost more than the merge."""


def _pause() -> None:
    time.sleep(_PAUSE_S)


@define(kw_only=True, eq=False)
class Merger:
    """Watches a publisher's images and merges when their overlay has grown to `merge_at` changes.

    No change is lost: what comes in during a merge is noted and applied again on the new base. Readers never wait,
    and the publisher does for less than a millisecond.
    """

    publisher: Publisher
    merge_at: int = MERGE_AT
    _not_below: int = field(default=0, init=False)
    """After a merge that failed, for want of memory say: the size from which another one is tried."""
    _thread: threading.Thread | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.publisher.subscribe(self.consider)

    def consider(self, image: Image) -> None:
        """Begin a merge if this image needs one and none is under way."""
        if image.acls.overlay_size < max(self.merge_at, self._not_below):
            return
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(target=self._merge, name="acl-merge", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the merge that is under way, if one is, has ended."""
        if self._thread is not None:
            self._thread.join()

    def _merge(self) -> None:
        acls = self.publisher.begin_merge()
        if acls.overlay_size < self.merge_at:
            # The image that was shown is older than the last merge, whose outcome is staged.
            self.publisher.abandon_merge()
            return
        try:
            merged = acls.merged(_pause)
            while changes := self.publisher.finish_merge(merged):
                merged = merged.apply(changes)
        except BaseException:
            self._not_below = 2 * acls.overlay_size
            self.publisher.abandon_merge()
            raise
        self._not_below = 0
