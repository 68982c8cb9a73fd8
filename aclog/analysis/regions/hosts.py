"""A set of client addresses: some addresses and ranges, or all but some."""

from attrs import frozen

from aclog.authorizer.cidr import in_cidr


@frozen(kw_only=True)
class Hosts:
    """Addresses in the form of `host_address`, and CIDR ranges; or, if `complement`, every address but those."""

    entries: tuple[str, ...] = ()
    """Sorted, distinct. An entry with a `/` is a range."""
    complement: bool = False
    except_addresses: tuple[str, ...] = ()
    """IPv6 addresses that a range of `entries` contains and this set does not; never with `complement`.

    A range contains an address with whatever scope (`fe80:...%1`), a rule on an address is compared as a text: so
    these cannot be cut out of a range.
    """

    def __contains__(self, host: str) -> bool:
        return self.lists(host) is not self.complement and host not in self.except_addresses

    def lists(self, host: str) -> bool:
        """Return whether an entry is this address, or a range that contains it."""
        return any(in_cidr(entry, host) if "/" in entry else entry == host for entry in self.entries)


EVERYWHERE = Hosts(complement=True)
