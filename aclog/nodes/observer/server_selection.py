"""Which server to connect to next, and when all of them have refused."""

from attrs import define, field

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.nodes.client.errors import LoginError, UnreachableError
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.errors import OtherClusterError, QuorumRefusedError

_REFUSALS = (QuorumRefusedError, LoginError, ConfigError)


@define
class ServerRotation:
    """The configured servers in turn, interrupted by the leader that one of them names.

    A follower may name a leader that is dead: a named leader is tried once, then the rotation continues.
    """

    known: tuple[HostPort, ...]
    _leader: HostPort | None = field(default=None, init=False)
    _turn: int = field(default=-1, init=False)

    def name_leader(self, address: HostPort | None) -> None:
        """Try this address next."""
        self._leader = address

    def next(self) -> HostPort:
        """Return the address to connect to."""
        if self._leader is not None:
            leader, self._leader = self._leader, None
            return leader
        self._turn = (self._turn + 1) % len(self.known)
        return self.known[self._turn]


@define
class Refusals:
    """The errors of each server since the last successful fetch.

    A single server may be misconfigured: it belongs to another cluster, or does not have our password yet. So
    refusals count as permanent only once every one of the `known` servers has been tried without success, and
    another cluster is final only if every one of them belongs to one.
    """

    known: tuple[HostPort, ...]
    _tried: dict[HostPort, MetadataError] = field(factory=dict, init=False)

    def note(self, address: HostPort, error: MetadataError) -> MetadataError:
        """Record a server's error; return the error to report, which is not final by itself.

        The address may be that of a leader which is not among the `known` servers.
        """
        self._tried[address] = error
        return _not_final(error)

    def clear(self) -> None:
        """Forget all errors, after a successful fetch."""
        self._tried.clear()

    @property
    def permanent(self) -> MetadataError | None:
        """The refusal that only an operator can resolve, once all known servers have failed."""
        if not self._tried.keys() >= set(self.known):
            return None
        refusals = (error for error in self._tried.values() if isinstance(error, _REFUSALS))
        return next(map(_not_final, refusals), None)

    @property
    def unreachable(self) -> MetadataError | None:
        """The last error if not one of the known servers could be reached."""
        found = [self._tried.get(address) for address in self.known]
        return found[-1] if all(isinstance(error, UnreachableError) for error in found) else None

    @property
    def final(self) -> OtherClusterError | None:
        """The error that ends following, once all known servers belong to another cluster."""
        found = [self._tried.get(address) for address in self.known]
        others = [error for error in found if isinstance(error, OtherClusterError)]
        return others[0] if len(others) == len(self.known) else None


def _not_final(error: MetadataError) -> MetadataError:
    """One server of another cluster is a refusal like any other: OtherClusterError is a FollowingEndedError."""
    return QuorumRefusedError(str(error)) if isinstance(error, OtherClusterError) else error
