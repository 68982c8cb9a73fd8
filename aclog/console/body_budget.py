"""How many bytes of bodies are held at once: of all senders, and of each."""

from collections.abc import AsyncIterable, Hashable, Iterator
from contextlib import contextmanager

from attrs import define, field


class BusyError(Exception):
    """So much is held already that no more is taken: who asked may ask again later."""


class TooLargeError(Exception):
    """A body with more bytes than are taken of one request."""


@define(eq=False)
class BodyBudget:
    """What is left for bodies; owned by the event loop. One sender can take half of it."""

    whole: int = 64 << 20
    """In bytes."""
    left: int = field(init=False)
    _of: dict[Hashable, int] = field(factory=dict, init=False)
    """What each sender holds."""

    def __attrs_post_init__(self) -> None:
        self.left = self.whole

    @contextmanager
    def share(self, sender: Hashable = None) -> Iterator["Share"]:
        """Return what one request of a sender holds, which it gives back at the end of the `with`."""
        share = Share(self, sender)
        try:
            yield share
        finally:
            self._give(share)

    def take(self, sender: Hashable, size: int) -> None:
        """Take some bytes. Raises BusyError: so much is not left, or not for this sender."""
        held = self._of.get(sender, 0) + size
        if size > self.left or held > self.whole // 2:
            raise BusyError("too much is being asked at once: ask again later")
        self.left -= size
        self._of[sender] = held

    def _give(self, share: "Share") -> None:
        if share.size:
            self.left += share.size
            self._of[share.sender] -= share.size
            if not self._of[share.sender]:
                del self._of[share.sender]


@define(eq=False)
class Share:
    """What one request holds of a budget."""

    _budget: BodyBudget
    sender: Hashable
    size: int = 0
    """In bytes."""

    def take(self, size: int) -> None:
        """Take some bytes. Raises BusyError: so much is not left."""
        self._budget.take(self.sender, size)
        self.size += size


async def collected(pieces: AsyncIterable[bytes], most: int, share: Share | None = None) -> bytearray:
    """Return a body of its pieces, held in a share.

    Raises:
        TooLargeError: it has more bytes than `most`.
        BusyError: so much is not left.

    """
    found = bytearray()
    async for piece in pieces:
        if len(found) + len(piece) > most:
            raise TooLargeError(f"the body has more than {most:,} bytes")
        if share is not None:
            share.take(len(piece))
        found += piece
    return found
