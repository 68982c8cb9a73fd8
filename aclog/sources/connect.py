"""A connection to one of several servers."""

from collections.abc import Sequence

from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort


async def connect_to_first(servers: Sequence[HostPort], security: ClientSecurity) -> Connection:
    """A connection to the first of the servers that answers. Raises as nodes.client.login.connect for the last one."""
    for server in servers[:-1]:
        try:
            return await connect(server, security)
        except UnreachableError:
            continue
    return await connect(servers[-1], security)
