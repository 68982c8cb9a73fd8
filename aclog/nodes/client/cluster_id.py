"""Which cluster a server belongs to."""

from collections.abc import Sequence

from aclog.metalog.errors import DecodeError, MetadataError
from aclog.nodes.client.cluster_requests import CONTROLLERS, describe_cluster
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.api_keys import DESCRIBE_CLUSTER, METADATA
from aclog.nodes.wire.message_builder import build

_FIRST_WITH_CLUSTER_ID, _NEWEST_METADATA = 2, 13


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


async def broker_cluster_id(connection: Connection) -> str:
    """The id of the cluster of a broker (DescribeCluster; Metadata where the broker does not serve that).

    Raises:
        RequestError: the broker refuses; its code and message.
        UnreachableError, DecodeError: as Connection.ask; also where the broker's cluster has no id.
        ConfigError: it serves neither.

    """
    if DESCRIBE_CLUSTER in connection.apis:
        found = (await describe_cluster(connection)).cluster_id
    else:
        version = connection.version(METADATA, _FIRST_WITH_CLUSTER_ID, _NEWEST_METADATA)
        found = (await connection.ask(build(METADATA, version, "request", topics=()))).cluster_id
    if not found:
        raise DecodeError("no cluster id: expected one, as every Kafka has since 0.10.1", path=str(connection.address))
    return str(found)


async def _ask(address: HostPort, security: ClientSecurity) -> str:
    async with await connect(address, security) as connection:
        return (await describe_cluster(connection, CONTROLLERS)).cluster_id
