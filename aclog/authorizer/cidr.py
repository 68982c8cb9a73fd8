"""CIDR ranges as hosts of ACLs (KIP-1276). Off unless enabled, since Kafka 4.3.1 compares hosts as texts.

The semantics are those of CidrUtils in Kafka's trunk: host bits may be set and are ignored; `/0` is every address of
its family; an IPv4 range contains no IPv6 address and vice versa; an IPv4-mapped base is rejected, since such clients
show up as IPv4. An IPv6 base is read as Java's InetAddress reads it, a prefix length as its Integer.parseInt. A base's
numeric scope is ignored. A named one is rejected: in Java it depends on the interfaces of the machine that decides.
"""

import re
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple
from unicodedata import decimal

from attrs import frozen

from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import ConfigError

_IPV4_RANGE = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})")
_IPV6_RANGE = re.compile(
    r"(?P<open>\[)?(?P<base>[0-9A-Fa-f:.]+)(%(?P<scope>[0-9]+))?(?(open)\])/(?P<sign>[+-]?)(?P<bits>\d+)"
)
_LIKE_A_RANGE = re.compile(r"(?=[^/]*[.:])\[?[0-9A-Fa-f.:]+(%[0-9A-Za-z]+)?\]?/[+-]?\d+")
_BMP = "\uffff"
_LONGEST_IPV4 = 15
_BITS = {4: 32, 6: 128}
_MAX_SCOPE = (1 << 31) - 1
_SHOWN = 80


@frozen(kw_only=True)
class CidrRange:
    """The addresses from `first` to `last` as integers, both included; `version` is 4 or 6."""

    version: int
    first: int
    last: int

    def contains(self, host: str) -> bool:
        """Return whether the range contains an address in any textual form; False for a text that is not an address."""
        return self.contains_number(address_number(host))

    def contains_number(self, address: "AddressNumber | None") -> bool:
        """Return whether the range contains an address (`address_number`); False for None."""
        if address is None:
            return False
        version, number = address
        # No IPv4 range contains 0.0.0.0 in the library that Kafka uses; no client has that address anyway.
        return version == self.version and self.first <= number <= self.last and (version == 6 or number != 0)


class AddressNumber(NamedTuple):
    """An address as an integer; `version` is 4 or 6."""

    version: int
    number: int


def address_number(host: str) -> AddressNumber | None:
    """Return an address in any textual form as a number, without its scope; None for a text that is not an address."""
    try:
        address = ip_address(host_address(host))
    except ConfigError:
        return None
    return AddressNumber(address.version, int(address))


def parse_cidr(text: str) -> CidrRange:
    """Parse a range such as `10.0.0.0/8` or `2001:db8::/32`.

    Raises:
        ConfigError: the text is not a range in CIDR notation.

    """
    base, bits = _parse_ipv6(text) if ":" in text else _parse_ipv4(text)
    version = 6 if ":" in text else 4
    if bits > _BITS[version]:
        raise ConfigError(f"{text[:_SHOWN]!r} is not a CIDR range: expected a prefix length of 0 to {_BITS[version]}")
    below = (1 << (_BITS[version] - bits)) - 1
    return CidrRange(version=version, first=base & ~below, last=base | below)


def cidr_range(text: str) -> CidrRange | None:
    """Return a range such as `10.0.0.0/8`; None for a text that is none."""
    if "/" not in text:  # most are not, and an error takes longer
        return None
    try:
        return parse_cidr(text)
    except ConfigError:
        return None


def is_cidr(text: str) -> bool:
    """Return whether a text is a CIDR range."""
    return cidr_range(text) is not None


def in_cidr(text: str, host: str) -> bool:
    """Return whether `text` is a CIDR range that contains the address `host`."""
    found = cidr_range(text)
    return found is not None and found.contains(host)


def _parse_ipv4(text: str) -> tuple[int, int]:
    found = _IPV4_RANGE.fullmatch(text)
    numbers = [int(n) for n in found.groups()] if found else [256]
    if max(numbers[:4]) > 255:
        raise _no_range(text)
    a, b, c, d, bits = numbers
    return a << 24 | b << 16 | c << 8 | d, bits


def _parse_ipv6(text: str) -> tuple[int, int]:
    found = _IPV6_RANGE.fullmatch(text)
    if not found or max(found["bits"]) > _BMP:  # parseInt reads UTF-16 units
        raise _no_range(text)
    bits, scope = _number(found["bits"]), _number(found["scope"] or "0")
    try:
        address = IPv6Address(_without_zeros(found["base"]))
    except ValueError as e:
        raise _no_range(text) from e
    if address.ipv4_mapped is not None or scope > _MAX_SCOPE or (found["sign"] == "-" and bits):
        raise _no_range(text)
    return int(address), bits


def _number(digits: str) -> int:
    """Return a number in any decimal digits, as Java's parseInt reads it; one too large for every use if it is long."""
    plain = "".join(str(decimal(digit)) for digit in digits).lstrip("0")
    return int(plain or "0") if len(plain) <= len(str(_MAX_SCOPE)) else _MAX_SCOPE + 1


def _without_zeros(base: str) -> str:
    """Return an IPv6 address without the leading zeros that Java allows and `ipaddress` does not."""
    *groups, last = base.split(":")
    if "." in last and len(last) <= _LONGEST_IPV4:
        last = ".".join(_strip(part) for part in last.split("."))
    return ":".join([*map(_strip, groups), last if "." in last else _strip(last)])


def _strip(digits: str) -> str:
    return digits.lstrip("0") or digits[:1]


def _no_range(text: str) -> ConfigError:
    return ConfigError(f"{text[:_SHOWN]!r} is not a CIDR range: expected one such as 10.0.0.0/8 or 2001:db8::/32")


def looks_like_cidr(text: str) -> bool:
    """Return whether a host was meant as a range, well-formed or not; Kafka 4.3.1 stores it and never matches it."""
    return _LIKE_A_RANGE.fullmatch(text) is not None
