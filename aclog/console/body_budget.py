"""How many bytes of bodies are held at once, whoever sends them."""

from collections.abc import AsyncIterable, Iterator
from contextlib import contextmanager

from attrs import define, field


class BusyError(Exception):
    """So much is held already that no more is taken: who asked may ask again later."""


class TooLargeError(Exception):
    """A body with more bytes than are taken of one request."""


@define(eq=False)
class BodyBudget:
    """What is left for bodies; owned by the event loop."""

    left: int = field(default=64 << 20)
    """In bytes."""

    @contextmanager
    def share(self) -> Iterator["Share"]:
        """Return what one request holds, which it gives back at the end of the `with`."""
        share = Share(self)
        try:
            yield share
        finally:
            self.left += share.size


@define(eq=False)
class Share:
    """What one request holds of a budget."""

    _budget: BodyBudget
    size: int = 0
    """In bytes."""

    def take(self, size: int) -> None:
        """Take some bytes. Raises BusyError: so much is not left."""
        if size > self._budget.left:
            raise BusyError("too much is being asked at once: ask again later")
        self._budget.left -= size
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
