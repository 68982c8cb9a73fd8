"""What servers have said since the last good answer: whether it is of any use to go on asking them."""

from attrs import define, field

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.nodes.client.errors import LoginError
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.errors import OtherClusterError, QuorumRefusedError

_REFUSALS = (QuorumRefusedError, LoginError, ConfigError)


@define
class Refusals:
    """One of several servers may be out of step: of another cluster, or without our password as yet.

    So a refusal lasts when each of the `known` servers has been tried and none has helped, and another cluster is the
    end when each of them belongs to one.
    """

    known: tuple[HostPort, ...]
    _tried: dict[HostPort, MetadataError] = field(factory=dict, init=False)

    def note(self, address: HostPort, trouble: MetadataError) -> MetadataError:
        """A server was no help; it may be one that others named. What to tell of it: it is not the end by itself."""
        self._tried[address] = trouble
        return _passing(trouble)

    def clear(self) -> None:
        """There was a good answer."""
        self._tried.clear()

    @property
    def lasting(self) -> MetadataError | None:
        """What will not pass by itself."""
        if not self._tried.keys() >= set(self.known):
            return None
        refusals = (trouble for trouble in self._tried.values() if isinstance(trouble, _REFUSALS))
        return next(map(_passing, refusals), None)

    @property
    def final(self) -> OtherClusterError | None:
        """What will not pass at all."""
        found = [self._tried.get(address) for address in self.known]
        others = [trouble for trouble in found if isinstance(trouble, OtherClusterError)]
        return others[0] if len(others) == len(self.known) else None


def _passing(trouble: MetadataError) -> MetadataError:
    """One server of another cluster is a refusal like others."""
    return QuorumRefusedError(str(trouble)) if isinstance(trouble, OtherClusterError) else trouble
