"""The state source of a running cluster, read through its admin API (aclog.snapshots.state_source)."""

from attrs import define, evolve, field

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.cluster_settings import ClusterSettings
from aclog.authorizer.rule_content import image_of
from aclog.credentials.scram import ScramImage, UserCredentials
from aclog.metalog.clock import current_time_ms, elapsed_seconds
from aclog.metalog.errors import ConfigError, LogError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.acl_requests import acl_contents, describe_acls
from aclog.nodes.client.cluster_requests import broker_cluster_id, topic_names
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.peer import Role
from aclog.nodes.client.scram_requests import describe_scram
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from aclog.snapshots.deciding_kafka import range_hosts, ranges_concern_controllers
from aclog.snapshots.freshness import Freshness
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, moment_text
from aclog.sources.bootstrap import connect_to_first
from aclog.sources.event_loop import run
from aclog.sources.live_kafka import live_levels
from aclog.sources.live_settings import broker_settings
from aclog.sources.max_age import check_age
from aclog.sources.notify import Notify

_RESPONSE_SECONDS = 120.0
"""How long a response with all ACLs may take: a broker needs a second or two for a hundred thousand."""

_HINTS = {
    CLUSTER_AUTHORIZATION_FAILED: "the user of --command-config needs DESCRIBE on the cluster",
    SECURITY_DISABLED: "a cluster without authorizer.class.name has no ACLs",
}


@define(eq=False)
class AdminSource:
    """ACLs without ids and SCRAM users without keys, of any cluster that speaks Kafka's protocol; no history."""

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    notify: Notify
    command_config: str | None = None
    """The file that `security` comes from."""
    max_age: float | None = None
    """In seconds: a state that took longer to read is not returned."""
    _notified: set[str] = field(factory=set, init=False)
    _read: tuple[str, float] | None = field(default=None, init=False)
    """The broker that told the newest state, and when it was asked (aclog.metalog.clock.elapsed_seconds)."""
    _closed: bool = field(default=False, init=False)

    log: None = field(default=None, init=False)
    """None: there is no log to follow."""

    @property
    def name(self) -> str:
        """The servers that were given."""
        return ",".join(map(str, self.servers))

    @property
    def change_place(self) -> ChangePlace:
        """These servers."""
        return ChangePlace(bootstrap_server=self.name, command_config=self.command_config)

    def image(self) -> Image:
        """Return the current state, requested on each call.

        Raises:
            StaleError: the response took longer than `max_age`.
            MetadataError: no server responds, or one refuses; the text says what is missing. Or the source is closed.

        """
        if self._closed:
            raise LogError(f"{self.name}: closed")
        rules, users = run(self._request())
        if self.max_age is not None:
            check_age(self.freshness(), self.max_age)
        found = Image(acls=image_of(rules), scram=ScramImage(keyless=users))
        if next(range_hosts(found.acls), None) is None:
            return found  # every Kafka decides alike
        controllers = ranges_concern_controllers(found.acls)
        levels = run(live_levels(self.servers, self.security, controllers=controllers))
        return evolve(found, live_levels=levels.brokers, live_controllers=levels.controllers)

    def topic_names(self) -> list[str]:
        """Return the topics that the login may describe, requested on each call. Raises as `image`."""

        async def ask() -> list[str]:
            async with await connect_to_first(self.servers, self.security, Role.BROKER) as connection:
                return await topic_names(connection)

        return run(ask())

    def cluster_settings(self) -> ClusterSettings:
        """Return what the brokers answer of the settings of their authorizer, asked on each call. Raises as `image`."""
        return run(broker_settings(self.servers, self.security))

    def image_at(self, moment: Moment) -> Image:
        """Raise ConfigError: an admin API has no history."""
        raise ConfigError(
            f"{self.name}: as of {moment_text(moment)}: an admin API has the newest state only; "
            "`aclog sync` records its changes from now on, `aclog mirror` copies a quorum's log"
        )

    def freshness(self) -> Freshness | None:
        """Return when the newest state was requested; None before the first."""
        if self._read is None:
            return None
        server, asked = self._read
        seconds = max(elapsed_seconds() - asked, 0.0)
        time = current_time_ms() - round(1000 * seconds)
        return Freshness(seconds=seconds, time=time, server=server, followed=False)

    def close(self) -> None:
        """Refuse further requests; no connection is kept."""
        self._closed = True

    async def _request(self) -> tuple[set[bytes], tuple[UserCredentials, ...]]:
        async with await connect_to_first(self.servers, self.security, Role.BROKER) as connection:
            asked = elapsed_seconds()
            found = await _all_contents(connection), await self._users(connection)
            self._read = str(connection.address), asked
            return found

    async def _users(self, connection: Connection) -> tuple[UserCredentials, ...]:
        try:
            return await describe_scram_users(connection)
        except (RequestError, ConfigError) as error:
            # The ACLs are useful without the users, which brokers before 2.7 cannot describe.
            self._notify_once(f"SCRAM users are left out: {error}")
            return ()

    def _notify_once(self, text: str) -> None:
        if text not in self._notified:
            self._notified.add(text)
            self.notify(text)


async def describe_cluster_id(connection: Connection) -> str:
    """Return the id of the broker's cluster. Raises as aclog.nodes.client.cluster_requests.broker_cluster_id."""
    try:
        return await broker_cluster_id(connection)
    except RequestError as error:
        raise _explained(connection, "DescribeCluster", error) from None


async def describe_all_acls(connection: Connection) -> list[StandardAcl]:
    """Return all ACLs of the cluster (DescribeAcls), each once, in the order of the response.

    Raises:
        RequestError: the broker has no authorizer or denies the request; with its code and what is missing.
        UnreachableError: no response, or one of more than 256 MiB; DecodeError: a malformed response.
        ConfigError: the server is too old.

    """
    try:
        rules = await describe_acls(connection, AclBindingFilter(), _RESPONSE_SECONDS)
    except RequestError as error:
        raise _explained(connection, "DescribeAcls", error) from None
    return list(dict.fromkeys(rules))


async def _all_contents(connection: Connection) -> set[bytes]:
    """Return all ACLs of the cluster, as image_of takes them. Raises as describe_all_acls."""
    try:
        return await acl_contents(connection, AclBindingFilter(), _RESPONSE_SECONDS)
    except RequestError as error:
        raise _explained(connection, "DescribeAcls", error) from None


async def describe_scram_users(connection: Connection) -> tuple[UserCredentials, ...]:
    """Return all SCRAM users, without keys (DescribeUserScramCredentials). Raises as describe_all_acls."""
    try:
        users = await describe_scram(connection)
    except RequestError as error:
        raise _explained(connection, "DescribeUserScramCredentials", error) from None
    return tuple(sorted(users, key=lambda each: each.user))


def _explained(connection: Connection, request: str, error: RequestError) -> RequestError:
    hint = _HINTS.get(error.code)
    return RequestError(error.code, f"{connection.address}: {request}: {error}{f' ({hint})' if hint else ''}")
