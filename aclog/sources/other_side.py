"""Who is at an address that a client of another library does not get through to."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from aclog.metalog.errors import ConfigError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import broker_cluster_id
from aclog.nodes.client.peer import Peer, Role, Service
from aclog.nodes.client.probe import probe
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.sources.bootstrap import connect_to_first
from aclog.sources.server_flags import parse_servers
from aclog.zkstore.client.connect import open_client
from aclog.zkstore.client.settings import ZkSettings
from aclog.zkstore.errors import StoreError

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


def opened_zookeeper(settings: ZkSettings) -> "ZkClient":
    """Open a client, as aclog.zkstore.client.connect.open_client; if something else is there, the error says what."""
    try:
        return open_client(settings)
    except StoreError as error:
        if told := _stranger(settings):
            raise StoreError(f"{settings.where}: {told}") from error
        raise


def check_brokers(servers: Sequence[HostPort], security: ClientSecurity) -> None:
    """Log in to the first broker that responds: librdkafka tries for half a minute, and does not say what is wrong.

    Raises:
        MetadataError: as aclog.sources.bootstrap.connect_to_first.

    """

    async def check() -> None:
        async with await connect_to_first(servers, security, Role.BROKER) as connection:
            with suppress(RequestError):  # whatever it answers: a listener that wants a login closes the connection
                await broker_cluster_id(connection)

    asyncio.run(check())


def _stranger(settings: ZkSettings) -> str | None:
    try:
        address, *_ = parse_servers("zookeeper.connect", settings.connect.partition("/")[0])
    except (ConfigError, ValueError):
        return None
    with ThreadPoolExecutor(1) as pool:  # this thread may run a loop already, as a notebook's does
        peer: Peer = pool.submit(asyncio.run, probe(address)).result()
    if peer.service is Service.KAFKA:
        return "a Kafka listener is there: expected ZooKeeper's address; a cluster is read with --bootstrap-server"
    if peer.service is Service.HTTP:
        return "an HTTP server is there: expected ZooKeeper's client port"
    return None
