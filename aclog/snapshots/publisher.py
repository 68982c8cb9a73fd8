"""The publisher: what readers see is one reference, swapped after each whole batch (MetadataPublisher, KIP-801)."""

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from attrs import define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.snapshots.applier import Applier
from aclog.snapshots.delta import AclChange
from aclog.snapshots.image import Image

Subscriber: TypeAlias = Callable[[Image], None]
"""Told each new image, in order, by the thread that publishes or merges; it must be quick and must not publish."""

UNKNOWN_MARK = -1
"""A high-water mark that is not known yet (LogReader.high_watermark)."""

_FEW_CHANGES = 64
"""How many changes are applied to a merged base while the applier waits: less than a millisecond's worth."""


@define(kw_only=True, eq=False)
class Publisher:
    """Owns the applier and the image that readers see.

    Readers take `current` once per call and keep what they took; they never wait. One thread at a time calls `advance`,
    `stage`, `commit` or `replace`; a lock keeps a merge in another thread (see Merger) from slipping in between, also
    between the swap and those who are told of it: they see every image, the merged ones too, in order.

    Whoever follows a log uses `advance`. Whoever writes it decides on what is appended already and shows it only when
    it is committed: `stage`, then `commit`.
    """

    applier: Applier = field(factory=Applier)
    current: Image = field(init=False)
    _mark: int = field(default=UNKNOWN_MARK, init=False)
    _ready: threading.Event = field(factory=threading.Event, init=False)
    _subscribers: list[Subscriber] = field(factory=list, init=False)
    _swapping: threading.Lock = field(factory=threading.Lock, init=False)
    _staged: deque[Image] = field(factory=deque, init=False)
    """Images that are not shown yet, oldest first; the newest is the applier's."""

    def __attrs_post_init__(self) -> None:
        self.current = self.applier.image

    def advance(self, chunk: bytes) -> Image:
        """Replay a chunk of whole committed batches and show what came of it. Raises as Applier.apply.

        All batches of the chunk become visible together, with whatever was staged. After an error readers keep what
        they saw before the chunk.
        """
        with self._swapping:
            self._staged.clear()
            self.current = image = self.applier.apply(chunk)
            self._tell(image)
        return image

    @property
    def latest(self) -> Image:
        """The newest image, staged or shown: what the next change is decided on."""
        return self.applier.image

    def stage(self, chunk: bytes) -> Image:
        """Replay a chunk of whole appended batches without showing what came of it. Raises as Applier.apply."""
        with self._swapping:
            image = self.applier.apply(chunk)
            self._staged.append(image)
        return image

    def commit(self, high_watermark: int) -> Image:
        """Show the newest staged image that holds nothing at or past the high-water mark; returns what is shown."""
        with self._swapping:
            newest = None
            while self._staged and self._staged[0].end_offset <= high_watermark:
                newest = self._staged.popleft()
            if newest is not None:
                self.current = newest
                self._tell(newest)
            return self.current

    def replace(self, image: Image) -> None:
        """Show another image, such as that of a checkpoint, in one swap; replay goes on after it, nothing is staged."""
        with self._swapping:
            self.applier.load(image)
            self._staged.clear()
            self.current = image
            self._tell(image)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell `subscriber` of every image from now on."""
        self._subscribers.append(subscriber)

    def observe_high_watermark(self, high_watermark: int) -> None:
        """Take in a high-water mark; the first that is known is what must be replayed before this node is ready."""
        if self._mark == UNKNOWN_MARK and high_watermark >= 0:
            self._mark = high_watermark
            self._see_ready()

    @property
    def ready(self) -> bool:
        """Whether all below the high-water mark first learned is visible, and anything at all; it never goes back."""
        return self._ready.is_set()

    def wait_ready(self, timeout: float | None = None) -> bool:
        """Wait, at most `timeout` seconds, until this node is ready; tell whether it is."""
        return self._ready.wait(timeout)

    def _tell(self, image: Image) -> None:
        if not self._ready.is_set():
            self._see_ready()
        failure: Exception | None = None
        for subscriber in self._subscribers:
            try:
                subscriber(image)
            except Exception as error:  # noqa: BLE001 - the others must see the image all the same
                failure = failure or error
        if failure is not None:
            raise failure

    def _see_ready(self) -> None:
        reached = self.current.end_offset
        if self._mark != UNKNOWN_MARK and 0 < reached >= self._mark:
            self._ready.set()

    def begin_merge(self) -> AclsImage:
        """The ACLs to merge; from here on the changes to later ones are noted for `finish_merge`.

        Raises:
            RuntimeError: a merge is under way already: its notes would be lost.

        """
        with self._swapping:
            if self.applier.journal is not None:
                raise RuntimeError("a merge is under way already")
            self.applier.journal = []
            return self.applier.image.acls

    def finish_merge(self, merged: AclsImage) -> list[AclChange]:
        """Put merged ACLs in the place of those they were made of, with what has changed since.

        Where much has changed, nothing is put: apply what is returned to `merged` and try again with the outcome, so
        that the lock is never held for long. Where a checkpoint has replaced the image meanwhile, or replay has failed,
        the merge is void. Where images are staged, the merged ACLs go into the newest, and are shown with it.
        """
        with self._swapping:
            changes = self.applier.journal
            if changes is None or self.applier.failed:
                self.applier.journal = None
                return []
            if len(changes) > _FEW_CHANGES:
                self.applier.journal = []
                return changes
            self.applier.journal = None
            self._put(self.applier.put_acls(merged.apply(changes) if changes else merged))
            return []

    def _put(self, image: Image) -> None:
        """Put the newest image in another form in its own place: among the staged, or before the readers."""
        if self._staged:
            self._staged[-1] = image
        else:
            self.current = image
            self._tell(image)

    def abandon_merge(self) -> None:
        """Stop noting changes: the merge failed."""
        with self._swapping:
            self.applier.journal = None
