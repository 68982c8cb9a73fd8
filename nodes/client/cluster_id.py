"""Which cluster a controller belongs to."""

from collections.abc import Sequence

from metalog.errors import MetadataError
from nodes.client.errors import UnreachableError
from nodes.client.login import connect
from nodes.config.node_config import ClientSecurity, HostPort
from nodes.wire.apis import DESCRIBE_CLUSTER
from nodes.wire.building import build

_CONTROLLERS = 2


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
        version = connection.version(DESCRIBE_CLUSTER, 1, 2)
        answer = await connection.ask(build(DESCRIBE_CLUSTER, version, "request", endpoint_type=_CONTROLLERS))
        if answer.error_code:
            why = answer.error_message or f"error {int(answer.error_code)}"
            raise UnreachableError(f"{address}: DescribeCluster: {why}")
        return str(answer.cluster_id)
