"""The publisher: readers see one reference, which is swapped after each whole batch (MetadataPublisher, KIP-801)."""

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from attrs import define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image
from aclog.snapshots.merge import Merge

Subscriber: TypeAlias = Callable[[Image], None]
"""Called with each new image, in order, by the thread that publishes or merges; must be quick and must not publish."""

UNKNOWN_MARK = -1
"""A high-water mark that is not known yet (LogReader.high_watermark)."""


@define(kw_only=True, eq=False)
class Publisher:
    """Owns the applier and the image that readers see.

    Readers take `current` once per call and keep it; they never wait. One thread at a time calls `advance`, `stage`,
    `commit` or `replace`; a lock excludes a merge in another thread (see Merger), also between the swap and the
    notification of subscribers: they see every image, merged ones too, in order. It is held for one update at most.

    Followers of a log use `advance`. A writer decides on what it has already appended and shows it only once committed:
    `stage`, then `commit`.
    """

    applier: Applier = field(factory=Applier)
    current: Image = field(init=False)
    _ready_mark: int = field(default=UNKNOWN_MARK, init=False)
    _notified: int = field(default=0, init=False)
    """The end offset of the newest image that all subscribers have."""
    _ready: threading.Event = field(factory=threading.Event, init=False)
    _subscribers: list[Subscriber] = field(factory=list, init=False)
    _swap_lock: threading.Lock = field(factory=threading.Lock, init=False)
    _staged: deque[Image] = field(factory=deque, init=False)
    """Images that are not published yet, oldest first; the newest is the applier's."""
    _merge: Merge | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.current = self.applier.image

    def advance(self, chunk: bytes) -> Image:
        """Replay a chunk of whole committed batches and publish the result. Raises what Applier.apply raises.

        All batches of the chunk become visible together, with whatever was staged. After an error readers keep the
        image from before the chunk.
        """
        with self._swap_lock:
            self._staged.clear()
            image = self.applier.apply(chunk)
            if self._merge is not None:
                image = self._after_update(self._merge)
            self.current = image
            self._notify(image)
        return image

    @property
    def latest(self) -> Image:
        """The newest image, staged or published: the one on which the next change is decided."""
        return self.applier.image

    def stage(self, chunk: bytes) -> Image:
        """Replay a chunk of whole appended batches without publishing the result. Raises what Applier.apply raises."""
        with self._swap_lock:
            image = self.applier.apply(chunk)
            if self._merge is not None:
                image = self._after_update(self._merge)
            self._staged.append(image)
        return image

    def commit(self, high_watermark: int) -> Image:
        """Publish the newest staged image that is entirely below the high-water mark; return the published image."""
        with self._swap_lock:
            newest = None
            while self._staged and self._staged[0].end_offset <= high_watermark:
                newest = self._staged.popleft()
            if newest is not None:
                self.current = newest
                self._notify(newest)
            return self.current

    def replace(self, image: Image) -> None:
        """Publish another image, such as a checkpoint's, in one swap; replay continues from it, without staged ones."""
        with self._swap_lock:
            self.applier.load(image)
            self._staged.clear()
            self.current = image
            self._notify(image)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with every image from now on."""
        self._subscribers.append(subscriber)

    def observe_high_watermark(self, high_watermark: int) -> None:
        """Note the high-water mark; the first known one must be replayed before this node is ready (KIP-801)."""
        if self._ready_mark == UNKNOWN_MARK and high_watermark >= 0:
            self._ready_mark = high_watermark
            self._check_ready()

    @property
    def ready(self) -> bool:
        """Whether the image is not empty and readers and subscribers see all below the first known high-water mark."""
        return self._ready.is_set()

    def wait_ready(self, timeout: float | None = None) -> bool:
        """Wait for up to `timeout` seconds until this node is ready; return whether it is."""
        return self._ready.wait(timeout)

    def _notify(self, image: Image) -> None:
        failure: Exception | None = None
        for subscriber in self._subscribers:
            try:
                subscriber(image)
            except Exception as error:  # noqa: BLE001 - the other subscribers must still see the image
                failure = failure or error
        if failure is not None:
            raise failure
        # Last: whoever sees `ready` may ask a subscriber, such as the authorizer, and must not get an older image.
        self._notified = image.end_offset
        if not self._ready.is_set():
            self._check_ready()

    def _check_ready(self) -> None:
        if self._ready_mark != UNKNOWN_MARK and 0 < self._notified >= self._ready_mark:
            self._ready.set()

    def begin_merge(self) -> Merge:
        """Begin to fold the newest ACLs; from here on ACL changes are journaled.

        Raises:
            RuntimeError: a merge is already running, whose journal would be lost.

        """
        with self._swap_lock:
            if self._merge is not None:
                raise RuntimeError("a merge is already running")
            self._merge = merge = Merge(self.applier.image.acls)
            self.applier.journal = merge.journal
            return merge

    def offer_merged(self, merge: Merge, folded: AclsImage) -> None:
        """Let updates bring the folded ACLs up to date, and put them in the place of the others as soon as they are.

        If a checkpoint has replaced the image in the meantime, or replay has failed, the merge is void. If images are
        staged, the folded ACLs go into the newest one, and are published with it.
        """
        with self._swap_lock:
            if not merge.ended:
                merge.offer(folded)

    def catch_up(self, merge: Merge, most: int) -> None:
        """Do a part of what updates would do, for a merge that waits for updates: apply up to `most` changes."""
        with self._swap_lock:
            if merge.ended or not self._step(merge, most):
                return
            if self._staged:
                self._staged[-1] = self.applier.image
            else:
                self.current = self.applier.image
                self._notify(self.current)

    def abandon_merge(self, merge: Merge) -> None:
        """End a merge that failed, unless it has ended; nothing was replaced."""
        with self._swap_lock:
            if not merge.ended:
                self._end(merge)

    def _after_update(self, merge: Merge) -> Image:
        """Apply a few journaled changes after those of an update; return the newest image."""
        if merge.folded is not None:
            self._step(merge, merge.share)
        return self.applier.image

    def _step(self, merge: Merge, most: int) -> bool:
        """Apply journaled changes to the folded ACLs; return whether they have taken the place of the applier's."""
        if self.applier.journal is not merge.journal or self.applier.failed:
            self._end(merge)
            return False
        try:
            current = merge.step(most)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with them, the update itself was applied
            self._end(merge, failure=error)
            return False
        if current is None:
            return False
        replaced = self.applier.image.acls
        self.applier.put_acls(current)
        self._end(merge, replaced=replaced)
        return True

    def _end(self, merge: Merge, *, replaced: AclsImage | None = None, failure: Exception | None = None) -> None:
        if self.applier.journal is merge.journal:
            self.applier.journal = None
        self._merge = None
        merge.end(replaced, failure)
