"""The addresses of running servers on a command line, and how to log in there."""

from collections.abc import Sequence
from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.login import connect
from aclog.nodes.config.addresses import servers
from aclog.nodes.config.client_config import load_client_security
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import ClientSecurity, HostPort


def parse_servers(flag: str, text: str | None) -> tuple[HostPort, ...]:
    """The addresses that a flag gives, none where it is not given. Raises ConfigError."""
    if text is None:
        return ()
    found = servers(Properties(values={flag: text}, where="command line"), flag)
    if not found:
        raise ConfigError(f"{flag}: empty: expected HOST:PORT")
    return found


def client_security(command_config: Path | None) -> ClientSecurity:
    """What the properties file says; plaintext and nobody where there is none. Raises ConfigError."""
    return ClientSecurity() if command_config is None else load_client_security(command_config)


async def connect_to_first(servers: Sequence[HostPort], security: ClientSecurity) -> Connection:
    """A connection to the first of the servers that answers. Raises as nodes.client.login.connect for the last one."""
    for server in servers[:-1]:
        try:
            return await connect(server, security)
        except UnreachableError:
            continue
    return await connect(servers[-1], security)
