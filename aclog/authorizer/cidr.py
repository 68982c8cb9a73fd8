"""Ranges of addresses as a rule's host (KIP-1276): off unless enabled, for Kafka 4.3.1 compares hosts as texts.

The rules are those of upstream's CidrUtils: bits below the prefix may be set and do not count; `/0` is every
address of its family; an IPv4 range holds no IPv6 address and the other way round; an IPv4-mapped base is no range,
since clients that come so arrive as IPv4; the scope of a link-local address does not count.
"""

import re
from ipaddress import ip_address

from attrs import frozen

from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import ConfigError

_IPV4_RANGE = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})")
_IPV6_RANGE = re.compile(r"([^/]{2,80})/\+?([0-9]{1,10})")
_LIKE_A_RANGE = re.compile(r"(?=[^/]*[.:])\[?[0-9A-Fa-f.:]+(%[0-9A-Za-z]+)?\]?/\+?[0-9]+")
_BITS = {4: 32, 6: 128}
_SHOWN = 80


@frozen(kw_only=True)
class CidrRange:
    """The addresses from `first` to `last`, as numbers, both included; `version` is 4 or 6."""

    version: int
    first: int
    last: int

    def contains(self, host: str) -> bool:
        """Whether an address (in any textual form) lies in the range; False for what is no address."""
        try:
            address = ip_address(host_address(host))
        except ConfigError:
            return False
        # 0.0.0.0 lies in no IPv4 range: upstream's library has it so, and no client has that address.
        return (
            address.version == self.version
            and self.first <= int(address) <= self.last
            and (self.version == 6 or int(address) != 0)
        )


def parse_cidr(text: str) -> CidrRange:
    """The range of `10.0.0.0/8` or `2001:db8::/32`.

    Raises:
        ConfigError: not a range of addresses in CIDR notation.

    """
    base, bits = _parse_ipv6(text) if ":" in text else _parse_ipv4(text)
    version = 6 if ":" in text else 4
    if bits > _BITS[version]:
        raise ConfigError(f"{text[:_SHOWN]!r} is not a CIDR range: a prefix of 0 to {_BITS[version]} bits was expected")
    below = (1 << (_BITS[version] - bits)) - 1
    return CidrRange(version=version, first=base & ~below, last=base | below)


def _parse_ipv4(text: str) -> tuple[int, int]:
    found = _IPV4_RANGE.fullmatch(text)
    numbers = [int(n) for n in found.groups()] if found else [256]
    if max(numbers[:4]) > 255:
        raise _no_range(text)
    a, b, c, d, bits = numbers
    return a << 24 | b << 16 | c << 8 | d, bits


def _parse_ipv6(text: str) -> tuple[int, int]:
    found = _IPV6_RANGE.fullmatch(text)
    if not found:
        raise _no_range(text)
    try:
        address = ip_address(host_address(found[1]))
    except ConfigError as e:
        raise _no_range(text) from e
    if address.version != 6:
        raise _no_range(text)
    return int(address), int(found[2])


def _no_range(text: str) -> ConfigError:
    return ConfigError(f"{text[:_SHOWN]!r} is not a CIDR range, such as 10.0.0.0/8 or 2001:db8::/32")


def looks_like_cidr(text: str) -> bool:
    """Whether a rule's host was meant as a range, well-formed or not: what 4.3.1 stores and never matches."""
    return _LIKE_A_RANGE.fullmatch(text) is not None
