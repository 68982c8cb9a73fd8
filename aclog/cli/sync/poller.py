"""Asking a cluster for its rules again and again, always the same one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Self

from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.cli.sync.changes import check_rules
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.sources.admin import describe_cluster_id, describe_rules
from aclog.sources.bootstrap import connect_to_first


class WrongClusterError(ConfigError):
    """The servers belong to another cluster than the one that is recorded."""


@frozen(kw_only=True)
class Poll:
    """A whole answer: the rules that stood, which cluster said so, and when its answer had come (ms since 1970)."""

    cluster_id: str
    rules: tuple[StandardAcl, ...]
    timestamp: int


@define(eq=False, kw_only=True)
class ClusterPoller:
    """Owned by one event loop. It stays with one broker for as long as that answers: another may be behind it.

    `cluster_id` is the cluster that must answer; None until one has.
    """

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    cluster_id: str | None
    _clock: Callable[[], int] = field(default=current_time_ms)
    _connection: Connection | None = field(default=None, init=False)

    async def poll(self) -> Poll:
        """The rules that stand now.

        Raises:
            WrongClusterError: another cluster answers.
            MetadataError: nobody answers, or not whole, or with a refusal. The next poll asks another server first.

        """
        try:
            return await self._asked()
        except BaseException:
            await self._turn_away()
            raise

    async def _asked(self) -> Poll:
        kept = self._connection
        if kept is not None and kept.failure is None:
            with suppress(UnreachableError):  # cut while it was idle, or its session expired (KIP-368)
                return await self._answer(kept)
        await self.close()
        self._connection = await connect_to_first(self.servers, self.security)
        return await self._answer(self._connection)

    async def _turn_away(self) -> None:
        """The next poll asks another server first than the one that failed this one."""
        failed = self.servers[0] if self._connection is None else self._connection.address
        self.servers = (*self._but(failed), failed)
        await self.close()

    def _but(self, one: HostPort) -> tuple[HostPort, ...]:
        return tuple(server for server in self.servers if server != one)

    async def _answer(self, connection: Connection) -> Poll:
        cluster_id = await describe_cluster_id(connection)
        if self.cluster_id not in {None, cluster_id}:
            raise WrongClusterError(
                f"{connection.address}: belongs to cluster {cluster_id}: expected {self.cluster_id}, which is recorded"
            )
        rules = await describe_rules(connection)
        timestamp = self._clock()
        try:
            check_rules(rules)
        except DecodeError as error:
            raise error.at(path=str(connection.address)) from None
        self.cluster_id = cluster_id
        self.servers = (connection.address, *self._but(connection.address))
        return Poll(cluster_id=cluster_id, rules=tuple(rules), timestamp=timestamp)

    async def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
