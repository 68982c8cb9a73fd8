"""Which server to ask next."""

from attrs import define, field

from aclog.nodes.config.node_config import HostPort


@define
class Servers:
    """The servers that were given, in turn, and the leader first where it has been named.

    A follower may name a leader that is dead: so a leader's address is tried once, and then the list goes on.
    """

    known: tuple[HostPort, ...]
    _leader: HostPort | None = field(default=None, init=False)
    _turn: int = field(default=-1, init=False)

    def name_leader(self, address: HostPort | None) -> None:
        """Try this address next."""
        self._leader = address

    def next(self) -> HostPort:
        """The address to connect to."""
        if self._leader is not None:
            leader, self._leader = self._leader, None
            return leader
        self._turn = (self._turn + 1) % len(self.known)
        return self.known[self._turn]
