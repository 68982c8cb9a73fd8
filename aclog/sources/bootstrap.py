"""Bootstrap servers on a command line: their addresses, the login, and a connection to one of them."""

from collections.abc import Sequence
from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError, WrongRoleError
from aclog.nodes.client.login import connect
from aclog.nodes.client.peer import Role, role_of
from aclog.nodes.config.addresses import servers
from aclog.nodes.config.client_config import load_client_security
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import ClientSecurity, HostPort


def parse_servers(flag: str, text: str | None) -> tuple[HostPort, ...]:
    """Return the addresses in the value of a flag; empty if it is not given. Raises ConfigError: an invalid address."""
    if text is None:
        return ()
    found = servers(Properties(values={flag: text}, where="command line"), flag)
    if not found:
        raise ConfigError(f"{flag}: empty: expected HOST:PORT")
    return found


def client_security(command_config: Path | None) -> ClientSecurity:
    """Return the security settings of a properties file; PLAINTEXT without one. Raises ConfigError: a bad file."""
    return ClientSecurity() if command_config is None else load_client_security(command_config)


async def connect_to_first(servers: Sequence[HostPort], security: ClientSecurity, role: Role) -> Connection:
    """Connect to the first server that responds.

    Raises:
        WrongRoleError: it is a controller where a broker was expected, or the reverse.
        MetadataError: what nodes.client.login.connect raises for the last one.

    """
    for server in servers[:-1]:
        try:
            return await _connect(server, security, role)
        except UnreachableError:
            continue
    return await _connect(servers[-1], security, role)


async def _connect(server: HostPort, security: ClientSecurity, role: Role) -> Connection:
    connection = await connect(server, security)
    found = role_of(connection.apis)
    if found in (None, role):
        return connection
    await connection.close()
    raise WrongRoleError(
        f"{server}: a {found.name.lower()}'s listener: expected a {role.name.lower()}'s with {role.value}, or this "
        f"address with {found.value}"
    )
