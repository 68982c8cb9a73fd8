"""The state of a running cluster as its admin API tells it (aclog.snapshots.state_source)."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from attrs import define, field

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.credentials.scram import ScramImage, UserCredentials
from aclog.metalog.errors import ConfigError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.acl_requests import describe_acls
from aclog.nodes.client.cluster_requests import broker_cluster_id
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.scram_requests import describe_scram
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, moment_text
from aclog.sources.bootstrap import connect_to_first
from aclog.sources.paths import Notify

_T = TypeVar("_T")

ANSWER_SECONDS = 120.0
"""How long an answer with all rules may take: a hundred thousand take a broker a second or two."""

_HINTS = {
    CLUSTER_AUTHORIZATION_FAILED: "whoever --command-config logs in needs DESCRIBE on the cluster",
    SECURITY_DISABLED: "without authorizer.class.name a cluster has no rules to tell",
}


@define(eq=False)
class AdminSource:
    """Rules without ids, and SCRAM users without keys, of any cluster that speaks Kafka's protocol; without a past."""

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    notify: Notify
    _told: set[str] = field(factory=set, init=False)

    log: None = field(default=None, init=False)
    """Nothing to follow."""
    writable_log: None = field(default=None, init=False)
    """Nothing that is changed as a directory."""

    @property
    def name(self) -> str:
        """The servers that were given."""
        return ",".join(map(str, self.servers))

    def image(self) -> Image:
        """What the cluster answers now, to a question of its own each time.

        Raises:
            MetadataError: no server answers, or one refuses; the text says what is missing.

        """
        rules, users = _run(self._ask())
        acls = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in rules)
        return Image(acls=acls, scram=ScramImage(keyless=users))

    def image_at(self, moment: Moment) -> Image:
        """Raises ConfigError: an admin API knows no past."""
        raise ConfigError(
            f"{self.name}: as of {moment_text(moment)}: an admin API tells the newest state only; "
            "`aclog sync` records its changes from now on, `aclog mirror` keeps a quorum's log"
        )

    def close(self) -> None:
        """Nothing is held."""

    async def _ask(self) -> tuple[list[StandardAcl], tuple[UserCredentials, ...]]:
        async with await connect_to_first(self.servers, self.security) as connection:
            return await describe_rules(connection), await self._users(connection)

    async def _users(self, connection: Connection) -> tuple[UserCredentials, ...]:
        try:
            return await describe_users(connection)
        except (RequestError, ConfigError) as error:
            self._tell(f"SCRAM users are not told: {error}")
            return ()

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.notify(text)


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    """The outcome of the work; in a thread of its own where a loop runs in this one already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def describe_cluster_id(connection: Connection) -> str:
    """The id of the broker's cluster. Raises as aclog.nodes.client.cluster_requests.broker_cluster_id."""
    try:
        return await broker_cluster_id(connection)
    except RequestError as error:
        raise _explained(connection, "DescribeCluster", error) from None


async def describe_rules(connection: Connection) -> list[StandardAcl]:
    """All rules of the cluster (DescribeAcls), each once, in the order of the answer.

    Raises:
        RequestError: the broker refuses: it has no authorizer, or the caller may not; its code, and what is missing.
        UnreachableError: no answer, or one of more than 256 MiB; DecodeError: an answer that is none.
        ConfigError: a server that is too old.

    """
    try:
        rules = await describe_acls(connection, AclBindingFilter(), ANSWER_SECONDS)
    except RequestError as error:
        raise _explained(connection, "DescribeAcls", error) from None
    return list(dict.fromkeys(rules))


async def describe_users(connection: Connection) -> tuple[UserCredentials, ...]:
    """Everybody's SCRAM credentials without their keys (DescribeUserScramCredentials), by user. Raises as above."""
    try:
        users = await describe_scram(connection)
    except RequestError as error:
        raise _explained(connection, "DescribeUserScramCredentials", error) from None
    return tuple(sorted(users, key=lambda each: each.user))


def _explained(connection: Connection, request: str, error: RequestError) -> RequestError:
    hint = _HINTS.get(error.code)
    return RequestError(error.code, f"{connection.address}: {request}: {error}{f' ({hint})' if hint else ''}")
