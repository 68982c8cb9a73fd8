"""Client addresses in the text form that the hosts of ACLs are compared with (InetAddress.getHostAddress)."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

from aclog.metalog.errors import ConfigError

_SCOPE = re.compile(r"[0-9A-Za-z._@-]{1,32}")
_WITH_PORT = re.compile(r"(?:(\d{1,3}(?:\.\d{1,3}){3})|\[([^\[\]]+)\]):\d{1,5}", re.ASCII)
_SHOWN = 80
"""Errors quote no more of an invalid text than this."""


def host_address(text: str) -> str:
    """Return an address in the form of Java's getHostAddress, which the host of an ACL must equal.

    IPv4 is unchanged; IPv6 becomes eight lower-case groups without leading zeros and without `::`; an IPv4-mapped
    address becomes the IPv4 address; a scope (`%1`, `%eth0`) is kept; brackets around IPv6 are removed.

    Raises:
        ConfigError: the text is not an address but a name, a range, a wildcard, an IPv4 address with missing parts, ...

    """
    bracketed = text.startswith("[") and text.endswith("]")
    try:
        address = IPv6Address(text[1:-1]) if bracketed else ip_address(text)
    except ValueError as e:
        raise _no_address(text) from e
    if isinstance(address, IPv4Address):
        return str(address)
    mapped, scope = address.ipv4_mapped, address.scope_id
    if scope is not None and not _SCOPE.fullmatch(scope):
        raise _no_address(text)
    return _long_form(address) if mapped is None else str(mapped)


def logged_address(text: str) -> str:
    """Return the address in a client's host as logs write it: as Java prints addresses, with a name or a port.

    `/10.0.0.1`, `app/10.0.0.1`, `10.0.0.1:54321` and `app/[2001:db8::1]:54321` have one meaning. A text with none, such
    as a name or a range, is returned as it is.
    """
    if _is_address(text):
        return text
    name, slash, rest = text.rpartition("/")
    with_port = _WITH_PORT.fullmatch(rest)
    address = rest if with_port is None else with_port[1] or with_port[2]
    # what is between addresses is no name: 10.0.0.0/255.0.0.0 is a range
    is_named = not slash or name == address or not (_is_address(name) or "/" in name)
    return address if is_named and _is_address(address) else text


def _is_address(text: str) -> bool:
    try:
        host_address(text)
    except ConfigError:
        return False
    return True


def _no_address(text: str) -> ConfigError:
    return ConfigError(f"{text[:_SHOWN]!r} is not an IPv4 or IPv6 address, such as 10.0.0.1 or 2001:db8::1")


def _long_form(address: IPv6Address) -> str:
    packed = address.packed
    groups = ":".join(f"{packed[i] << 8 | packed[i + 1]:x}" for i in range(0, 16, 2))
    scope = address.scope_id
    if scope is None:
        return groups
    return f"{groups}%{int(scope) if scope.isdigit() and len(scope) < 10 else scope}"
