"""A connection to one of some bootstrap servers."""

from collections.abc import Sequence

from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError, WrongRoleError
from aclog.nodes.client.login import connect
from aclog.nodes.client.peer import Role, role_of
from aclog.nodes.config.node_config import ClientSecurity, HostPort


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
