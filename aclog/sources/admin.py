"""The state of a running cluster as its admin API tells it (aclog.snapshots.state_source)."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from attrs import define, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.credentials.scram import ScramImage, UserCredentials
from aclog.metalog.errors import ConfigError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, moment_text
from aclog.sources.admin_describe import describe_rules, describe_users
from aclog.sources.connect import connect_to_first
from aclog.sources.paths import Notify

_T = TypeVar("_T")


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
