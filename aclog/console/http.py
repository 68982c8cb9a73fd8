"""Checks before all requests: budgets of bodies, and names of hosts; and files that hold secrets."""

from collections.abc import AsyncIterable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

# How many bytes of bodies are held at once: of all senders, and of each.


class BusyError(Exception):
    """The budget of request bodies is used up; the client may retry later."""


class TooLargeError(Exception):
    """A body with more bytes than are taken of one request."""


@define(eq=False)
class BodyBudget:
    """The remaining budget of request bodies; owned by the event loop. One sender can take half."""

    whole: int = 64 << 20
    """Bytes of all senders' bodies."""
    remaining: int = field(init=False)
    _of: dict[Hashable, int] = field(factory=dict, init=False)
    """Bytes held by each sender."""

    def __attrs_post_init__(self) -> None:
        self.remaining = self.whole

    @contextmanager
    def share(self, sender: Hashable = None) -> Iterator["Share"]:
        """Return the share of one request of a sender, which it releases at the end of the `with`."""
        share = Share(self, sender)
        try:
            yield share
        finally:
            share.release()

    def take(self, sender: Hashable, size: int) -> None:
        """Take some bytes. Raises BusyError: so much is not left, or not for this sender."""
        total = self._of.get(sender, 0) + size
        if size > self.remaining or total > self.whole // 2:
            raise BusyError("too many requests in progress: retry later")
        self.remaining -= size
        self._of[sender] = total

    def give_back(self, sender: Hashable, size: int) -> None:
        """Give back some of the bytes that a sender has taken."""
        self.remaining += size
        self._of[sender] -= size
        if not self._of[sender]:
            del self._of[sender]


@define(eq=False)
class Share:
    """The part of a budget that one request holds."""

    _budget: BodyBudget
    sender: Hashable
    size: int = 0
    """Bytes held by this request."""

    def take(self, size: int) -> None:
        """Take some bytes. Raises BusyError: so much is not left."""
        self._budget.take(self.sender, size)
        self.size += size

    def release(self) -> None:
        """Give back all bytes of this request."""
        size, self.size = self.size, 0
        if size:
            self._budget.give_back(self.sender, size)


async def collected(pieces: AsyncIterable[bytes], most: int, share: Share | None = None) -> bytearray:
    """Return a body of its pieces, held in a share.

    Raises:
        TooLargeError: it has more bytes than `most`.
        BusyError: so much is not left.

    """
    body = bytearray()
    async for piece in pieces:
        if len(body) + len(piece) > most:
            raise TooLargeError(f"the body has more than {most:,} bytes")
        if share is not None:
            share.take(len(piece))
        body += piece
    return body


# Which names of this server a request may use: what stops DNS rebinding.


_OF_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "[::1]"})


@frozen
class Hosts:
    """The names in Host headers that are answered; None: all.

    DNS rebinding: the page of an attacker's host, whose address changes to this machine's, has the same origin as what
    it then reads. Its requests still name the attacker's host. Where a login is required, they also lack its cookie.
    """

    names: frozenset[str] | None

    @classmethod
    def of(cls, *, listen: str, is_local: bool, base_url: str | None) -> "Hosts":
        """Return the names of a server: all, unless access to its machine is the only check (`is_local`).

        Then this machine's, its own and the base URL's.
        """
        if not is_local:
            return cls(None)
        own = {f"[{listen}]" if ":" in listen else listen}
        if base_url is not None:
            own.add(host_of(base_url.partition("://")[2].partition("/")[0]))
        return cls(_OF_THIS_MACHINE | {name.lower() for name in own if name})

    def answer(self, headers: list[str]) -> bool:
        """Return whether a request with these Host headers is answered."""
        return self.names is None or (len(headers) == 1 and host_of(headers[0]) in self.names)


def host_of(authority: str) -> str:
    """Return the host of `host:port`, in lower case, an IPv6 address with its brackets; any other text whole."""
    host, colon, port = authority.lower().rpartition(":")
    return host if colon and port.isdigit() else authority.lower()


# Files that hold secrets.


def check_private(path: Path, harm: str) -> None:
    """Check that only its owner may read a file.

    `harm` ends a sentence that begins with "others may read it".

    Raises:
        ConfigError: others may. OSError: there is no such file.

    """
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"{path}: others may read it{harm}: chmod 600")
