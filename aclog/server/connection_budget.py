"""Budgets of open connections, by network and by identity (kafka.network.ConnectionQuotas has one by address).

An unauthenticated peer costs its server a connection. It can change its port, and the second half of an IPv6 address,
so all peers of a network count together.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Literal, TypeAlias

from attrs import field

from aclog.metalog.values import define, frozen

Reason: TypeAlias = Literal["network", "unauthenticated", "identity"]
"""Which budget was full when a connection was closed or refused: that of its network, that of all unauthenticated
connections, or that of its identity."""


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return the network of a peer: an IPv4 address, or the /64 of an IPv6 one; other text is returned unchanged."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(ip, IPv6Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{IPv6Address(int(ip) >> 64 << 64)}/64"


@frozen(kw_only=True)
class Shares:
    """How many connections may be open."""

    connections: int
    """The most connections in all."""
    reserve: int = 0
    """The part of them for authenticated clients only."""
    of_network: int
    """Unauthenticated ones of one network."""
    of_identity: int
    """Authenticated ones of one identity."""

    @staticmethod
    def equal(connections: int) -> "Shares":
        """Return shares without a reserve: one network or identity may hold all, while no other connects."""
        return Shares(connections=connections, of_network=connections, of_identity=connections)


@define(eq=False, kw_only=True)
class Slot:
    """The slot of one connection in a budget."""

    network: str
    end: Callable[[Reason], object]
    """Closes the connection at once."""
    identity: Hashable | None = None
    """The identity of the authenticated client; None before it has authenticated."""
    is_busy: bool = False
    """Whether a request is being answered."""


@define(eq=False, kw_only=True)
class ConnectionBudget:
    """The open connections of a server, which owns it. Used from one thread.

    A new connection that finds its budget full replaces the oldest idle one of its own network if that holds its share,
    else of the network that holds most; a busy one only if none is idle. So idle connections keep no client out, but a
    request that comes after its connection was replaced is lost.
    """

    shares: Shares
    keeps_evenly: bool = False
    """Whether open connections take precedence over new ones: a network then loses only idle ones, and only to one that
    holds clearly fewer."""
    authenticated: int = field(default=0, init=False)
    """Open connections of authenticated clients."""
    strangers: int = field(default=0, init=False)
    """Open connections that have not authenticated."""
    _strangers: dict[str, dict[Slot, None]] = field(factory=dict, init=False)
    """By network, the oldest first."""
    _by_size: list[dict[str, None]] = field(factory=lambda: [{}], init=False)
    """The networks that hold so many unauthenticated connections, by number; the last one is not empty, or alone."""
    _authenticated: dict[Hashable, dict[Slot, None]] = field(factory=dict, init=False)
    """By identity, the oldest first."""

    def __len__(self) -> int:
        return self.strangers + self.authenticated

    def open(self, network: str, end: Callable[[Reason], object]) -> Slot | None:
        """Count a new connection, and close another one for it if need be; None: the new one must be closed."""
        own = self._strangers.get(network, {})
        if len(own) >= self.shares.of_network:
            if self.keeps_evenly or not self._end_one(own, "network"):
                return None
        elif self._is_full and not self._make_room(len(own)):
            return None
        slot = Slot(network=network, end=end)
        slots = self._strangers.setdefault(network, {})
        slots[slot] = None
        self.strangers += 1
        self._resize(network, len(slots) - 1, len(slots))
        return slot

    def needs_place(self, network: str) -> bool:
        """Return whether a new connection of a network would have to replace another one."""
        return self._is_full or len(self._strangers.get(network, ())) >= self.shares.of_network

    def authenticate(self, slot: Slot, identity: Hashable) -> bool:
        """Count a connection as one of an identity; False: it holds as many as it may, and all of them are busy."""
        if slot.identity == identity:
            return True
        if slot not in self._beside(slot):  # it was closed meanwhile: no other one has to be
            return True
        own = self._authenticated.get(identity, {})
        if len(own) >= self.shares.of_identity and not self._end_one(own, "identity", also_busy=False):
            return False
        self._remove(slot)
        slot.identity = identity
        self._authenticated.setdefault(identity, {})[slot] = None
        self.authenticated += 1
        return True

    def close(self, slot: Slot) -> None:
        """Count a connection as closed; closing twice is allowed."""
        self._remove(slot)

    @property
    def _is_full(self) -> bool:
        shares = self.shares
        return self.strangers >= shares.connections - shares.reserve or len(self) >= shares.connections

    def _make_room(self, own: int) -> bool:
        """Close a connection in favour of a network that holds `own` ones; return success."""
        crowd = self._strangers.get(next(iter(self._by_size[-1]), ""), {})
        if crowd and (not self.keeps_evenly or len(crowd) > own + 1):
            return self._end_one(crowd, "unauthenticated")
        if self.keeps_evenly:
            return False
        most = max(self._authenticated.values(), key=len, default={})
        return self._end_one(most, "identity", also_busy=False)

    def _end_one(self, slots: Iterable[Slot], reason: Reason, *, also_busy: bool = True) -> bool:
        """Close the oldest idle connection of these; if all are busy, the oldest one or none."""
        ended = next((slot for slot in slots if not slot.is_busy), None)
        if ended is None and also_busy and not self.keeps_evenly:
            ended = next(iter(slots), None)
        if ended is None:
            return False
        self._remove(ended)
        ended.end(reason)
        return True

    def _remove(self, slot: Slot) -> bool:
        """Remove a slot; return whether it was there."""
        slots = self._beside(slot)
        if slot not in slots:
            return False
        del slots[slot]
        if slot.identity is None:
            self.strangers -= 1
            self._resize(slot.network, len(slots) + 1, len(slots))
            if not slots:
                del self._strangers[slot.network]
        else:
            self.authenticated -= 1
            if not slots:
                del self._authenticated[slot.identity]
        return True

    def _beside(self, slot: Slot) -> dict[Slot, None]:
        """Return the open connections of the slot's identity, or else of its network."""
        if slot.identity is None:
            return self._strangers.get(slot.network, {})
        return self._authenticated.get(slot.identity, {})

    def _resize(self, network: str, before: int, after: int) -> None:
        """Note how many unauthenticated connections a network holds."""
        sizes = self._by_size
        if before:
            del sizes[before][network]
        if after:
            if after == len(sizes):
                sizes.append({})
            sizes[after][network] = None
        while len(sizes) > 1 and not sizes[-1]:
            sizes.pop()
