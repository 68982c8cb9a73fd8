"""The CIDR ranges (KIP-1276) that are hosts of one principal's ACLs, and those that contain an address."""

from collections.abc import Iterable, Iterator
from itertools import islice

from attrs import Factory, define

from aclog.authorizer.cidr import AddressNumber, cidr_range


@define(eq=False)
class RangeHosts:
    """Ranges by size, and those of a size by their first address: an address is looked up once per size.

    Ranges may be added at any time, and none is ever removed: one that no ACL has any more matches no cell. Threads
    need no lock: they add the same ranges, and `_overlay` is set when all of its ranges are there.
    """

    _sizes: dict[tuple[int, int], dict[int, list[str]]] = Factory(dict)
    """By version and size - 1."""
    _known: set[str] = Factory(set)
    _overlay: tuple[str, ...] = ()
    """The hosts of an overlay that were added last."""

    def add(self, hosts: Iterable[str]) -> None:
        """Add the hosts that are ranges, as written in ACLs."""
        for host in hosts:
            if host not in self._known:
                found = cidr_range(host)
                if found is not None:
                    firsts = self._sizes.setdefault((found.version, found.last - found.first), {})
                    firsts.setdefault(found.first, []).append(host)
                self._known.add(host)

    def add_overlay(self, hosts: tuple[str, ...]) -> None:
        """Add the hosts of an overlay (Overlay.ranges), which usually has the same as the last time, or one more."""
        last = self._overlay
        if hosts is not last:
            self.add(islice(hosts, len(last), None) if hosts[: len(last)] == last else hosts)
            self._overlay = hosts

    def containing(self, address: AddressNumber) -> Iterator[str]:
        """Yield the hosts that contain an address."""
        version, number = address
        # No IPv4 range contains 0.0.0.0 (CidrRange.contains_number).
        if version == 6 or number:
            for (family, below), firsts in list(self._sizes.items()):  # a copy: another thread may add a size
                if family == version:
                    yield from firsts.get(number & ~below, ())
