"""Addresses in properties: `listeners`, `advertised.listeners`, bootstrap servers, voters (EndPoint, QuorumConfig)."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

from attrs import frozen

from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import HostPort

_HOST_PORT = r"(?:\[(?P<bracketed>[0-9a-zA-Z%._:-]*)\]|(?P<host>[0-9a-zA-Z%._:-]*)):(?P<port>[0-9]{1,5})"
_ENDPOINT = re.compile(rf"(?P<name>[A-Za-z0-9_.-]+)://{_HOST_PORT}")
_SERVER = re.compile(rf"(?:[0-9a-zA-Z%._-]*://)?{_HOST_PORT}")
_VOTER = re.compile(rf"(?P<id>[0-9]{{1,10}})@{_HOST_PORT}")
_MAX_PORT = 65_535
_MAX_ID = (1 << 31) - 1
_NOT_YET_KNOWN = HostPort(host="0.0.0.0", port=0)  # noqa: S104 - only compared with
"""The placeholder for a voter whose address is not known yet (QuorumConfig.UNKNOWN_ADDRESS)."""


@frozen(kw_only=True)
class ListenerAddress:
    """A listener's name, in upper case (ListenerName.normalised), and its address; the host may be empty."""

    name: str
    address: HostPort

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def listener_addresses(properties: Properties, key: str) -> tuple[ListenerAddress, ...] | None:
    """Return the listeners under a key, in order; None if the key is absent.

    Raises:
        ConfigError: an empty list, an entry that is not NAME://host:port, or a duplicate name.

    """
    parts = properties.items(key)
    if parts is None:
        return None
    if not parts:
        raise properties.error(key, "empty: expected NAME://host:port")
    found = []
    for part in parts:
        match = _ENDPOINT.fullmatch(part)
        if match is None:
            raise properties.error(key, f"{part!r}: expected NAME://host:port")
        found.append(ListenerAddress(name=match["name"].upper(), address=_host_port(properties, key, part, match)))
    names = [listener.name for listener in found]
    for name in names:
        if names.count(name) > 1:
            raise properties.error(key, f"duplicate listener {name}: expected unique names")
    return tuple(found)


def check_ports(properties: Properties, key: str, listeners: tuple[ListenerAddress, ...]) -> None:
    """Check that listeners have different ports, except for a pair of IPv4 and IPv6 hosts (KIP-797).

    Raises:
        ConfigError: two listeners conflict.

    """
    by_port: dict[int, ListenerAddress] = {}
    for listener in listeners:
        other = by_port.setdefault(listener.address.port, listener)
        if other is listener or not listener.address.port:
            continue
        if {_family(other.address.host), _family(listener.address.host)} != {IPv4Address, IPv6Address}:
            raise properties.error(
                key, f"{other} and {listener} have the same port: expected different ones, or one IPv4 and one IPv6"
            )


def _family(host: str) -> type[IPv4Address | IPv6Address] | None:
    try:
        return type(ip_address(host))
    except ValueError:
        return None


def servers(properties: Properties, key: str) -> tuple[HostPort, ...]:
    """Return the `host:port` list under a key; () if it is absent or empty.

    Raises:
        ConfigError: an entry that is not host:port.

    """
    found = []
    for part in properties.items(key) or ():
        match = _SERVER.fullmatch(part)
        if match is None or not (match["host"] or match["bracketed"]):
            raise properties.error(key, f"{part!r}: expected host:port")
        found.append(_host_port(properties, key, part, match))
    return tuple(found)


def voters(properties: Properties, key: str) -> dict[int, HostPort]:
    """Return the `id@host:port` list under a key; {} if it is absent or empty.

    Raises:
        ConfigError: an entry that is not id@host:port, or a duplicate id.

    """
    found: dict[int, HostPort] = {}
    for part in properties.items(key) or ():
        match = _VOTER.fullmatch(part)
        if match is None or int(match["id"]) > _MAX_ID or not (match["host"] or match["bracketed"]):
            raise properties.error(key, f"{part!r}: expected id@host:port")
        if int(match["id"]) in found:
            raise properties.error(key, f"duplicate voter {match['id']}: expected unique ids")
        found[int(match["id"])] = _host_port(properties, key, part, match)
    return found


def known_addresses(addresses: tuple[HostPort, ...]) -> tuple[HostPort, ...]:
    """Return the addresses without placeholders and duplicates."""
    return tuple(dict.fromkeys(address for address in addresses if address != _NOT_YET_KNOWN))


def _host_port(properties: Properties, key: str, part: str, match: re.Match[str]) -> HostPort:
    port = int(match["port"])
    if port > _MAX_PORT:
        raise properties.error(key, f"{part!r}: expected a port up to {_MAX_PORT}")
    return HostPort(host=match["bracketed"] or match["host"] or "", port=port)
