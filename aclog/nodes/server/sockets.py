"""Sockets that listen, and where a client's socket comes from."""

import socket
from ipaddress import IPv6Address, ip_address

from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import HostPort

_BACKLOG = 512


def listen(address: HostPort, what: str) -> socket.socket:
    """A non-blocking socket that listens there; an empty host is every address of this machine, IPv6 and IPv4.

    A name is the first address that it has, IPv4 before IPv6, as in Java. `what` says in an error what it is for.

    Raises:
        ConfigError: there is no such address, or it is taken.

    """
    try:
        family, where = _resolve(address)
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise _failed(address, what, error) from error
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bool(address.host)))
        listening.bind(where)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _failed(address, what, error) from error
    return listening


def _resolve(address: HostPort) -> tuple[int, tuple[str, int]]:
    if not address.host:
        both = socket.has_dualstack_ipv6()
        return (socket.AF_INET6, ("::", address.port)) if both else (socket.AF_INET, ("0.0.0.0", address.port))  # noqa: S104 - asked for
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, _, _, _, where = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, where  # type: ignore[return-value]


def _failed(address: HostPort, what: str, error: OSError) -> ConfigError:
    return ConfigError(f"{what}: cannot listen on {address}: {error.strerror or error}")


def peer(connected: socket.socket) -> tuple[str, bytes]:
    """The client's address, as Java's getHostAddress prints it and as 4 or 16 bytes.

    Raises:
        OSError: it is gone already.

    """
    text: str = connected.getpeername()[0]
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return host_address(text), (mapped or address).packed
