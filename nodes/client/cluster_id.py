"""Which cluster a controller belongs to."""

from collections.abc import Sequence

from metalog.errors import MetadataError
from nodes.client.cluster import CONTROLLERS, describe_cluster
from nodes.client.errors import UnreachableError
from nodes.client.login import connect
from nodes.config.node_config import ClientSecurity, HostPort


async def cluster_id_of(controllers: Sequence[HostPort], security: ClientSecurity) -> str:
    """The id that the first controller tells who can be asked.

    Raises:
        MetadataError: none can; what the last one said.

    """
    last: MetadataError = UnreachableError("no controller is known")
    for address in controllers:
        try:
            return await _ask(address, security)
        except MetadataError as error:
            last = error
    raise last


async def _ask(address: HostPort, security: ClientSecurity) -> str:
    async with await connect(address, security) as connection:
        return (await describe_cluster(connection, CONTROLLERS)).cluster_id
