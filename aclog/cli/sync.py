"""`aclog sync`: the history of ACLs of a cluster whose log is not read."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self
from uuid import UUID

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import (
    StandardAcl,
    StandardAclWithId,
    acl_text,
    rule_fields,
)
from aclog.cli.flags.common import FollowerFlags, RemovalFlags, RemovalLimit
from aclog.cli.follow import FollowerStatus, serving
from aclog.cli.options import Group, Option
from aclog.cli.signals import pause, stop_on_signals, unless
from aclog.cli.transfer.rows import row_line
from aclog.cli.transfer.transfer import change_row
from aclog.client.connection import Connection, Role, connect
from aclog.client.errors import LoginError, UnreachableError
from aclog.client.requests import check_acls, describe_cluster, describe_quorum
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.codec import encode_acl, encode_record
from aclog.metalog.errors import ConfigError, DecodeError, LogError, MetadataError, printable
from aclog.metalog.filelog.files import leave_notice, log_error, withdraw_notice
from aclog.metalog.primitives import RandomIds, current_time_ms, uuid_text
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.protocol.error_codes import (
    BROKER_NOT_AVAILABLE,
    CLUSTER_AUTHORIZATION_FAILED,
    NETWORK_EXCEPTION,
    NOT_CONTROLLER,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    SECURITY_DISABLED,
    UNKNOWN_SERVER_ERROR,
)
from aclog.protocol.headers import RequestError
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.image import Image
from aclog.sources.live import connect_to_first, describe_all_acls, describe_cluster_id
from aclog.sources.logs import SYNC_FILE, SyncProperties, read_sync_properties, write_sync_properties
from aclog.targets.log import LogWriter, check_parent, open_or_create, open_writer
from aclog.terminal.output import emit, note, time_text, utc_text, warn

# Changes between the recorded ACLs of a cluster and those of a poll, as records.


@frozen(kw_only=True)
class AclChanges:
    """Removed ACLs with their recorded ids, and added ACLs with new ids."""

    removed: tuple[StandardAclWithId, ...] = ()
    added: tuple[StandardAclWithId, ...] = ()

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)

    def values(self) -> list[bytes]:
        """Encode the changes as record values, removals first.

        Raises:
            EncodeError: a string that is too long for a record.

        """
        return list(self._values())

    def _values(self) -> Iterator[bytes]:
        for each in self.removed:
            if each.id is not None:
                yield encode_record(RemoveAccessControlEntryRecord(id=each.id))
        for each in self.added:
            if each.id is not None:
                yield encode_acl(each.acl, each.id)


def acl_changes(
    recorded: Mapping[StandardAcl, UUID], polled: Iterable[StandardAcl], new_id: Callable[[], UUID]
) -> AclChanges:
    """Return the changes from the recorded to the polled ACLs; an unchanged ACL keeps its id.

    Changes are in listing order (aclog.authorizer.acl.rule_fields), regardless of the order of the poll.
    """
    # A response may repeat an ACL.
    now = dict.fromkeys(polled)
    removed = (StandardAclWithId(id=id_, acl=acl) for acl, id_ in recorded.items() if acl not in now)
    added = sorted((StandardAclWithId(id=None, acl=acl) for acl in now if acl not in recorded), key=rule_fields)
    return AclChanges(
        removed=tuple(sorted(removed, key=rule_fields)),
        added=tuple(StandardAclWithId(id=new_id(), acl=each.acl) for each in added),
    )


# Output formats of `aclog sync`.


class SyncFormat(StrEnum):
    """How recorded changes are printed."""

    TABLE = "table"
    JSONL = "jsonl"


# `aclog sync`: ACL history of a cluster whose metadata log is not accessible.


app = Group()


@frozen(kw_only=True)
class RecordFlags:
    """The cluster that is recorded, and the log."""

    bootstrap_server: Annotated[
        str,
        Option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            help="The brokers, comma-separated, of a running cluster (aclog or Kafka).",
            show_default=False,
        ),
    ]
    to: Annotated[
        Path,
        Option(
            "--to",
            metavar="DIR",
            help="The log to record in; created by the first poll if missing.",
            show_default=False,
        ),
    ]
    command_config: Annotated[
        Path | None,
        Option(
            "--command-config",
            metavar="FILE",
            help="Client properties, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
            show_default="no authentication",
        ),
    ] = None


@frozen(kw_only=True)
class PollFlags:
    """When to poll."""

    interval: Annotated[float, Option("--interval", metavar="SECONDS", help="Time between two polls.")] = 30.0
    once: Annotated[bool, Option("--once", metavar="", help="Poll once, then exit.")] = False


@app.command()
def sync(
    record: RecordFlags,
    polls: PollFlags,
    removal: RemovalFlags,
    follower: FollowerFlags,
    format_: Annotated[
        SyncFormat,
        Option("--format", help="A readable line for each change, or the JSON object of [cyan]export --history[/]."),
    ] = SyncFormat.TABLE,
) -> None:
    """Poll the ACLs of a cluster, and record the changes of each poll atomically in a log.

    DIR can be used like any other --log, with --as-of, shell and history. A
    failed poll records nothing and is retried. A poll that would remove too many
    ACLs is repeated, with other brokers as well, and then refused: every reader of
    DIR prints a warning until a later poll is accepted. SIGTERM or Ctrl-C stops
    it. Requires DESCRIBE on the cluster.

    [bold]Examples[/]

      aclog sync --bootstrap-server HOST:9092 --command-config FILE --to DIR
      aclog sync --bootstrap-server HOST:9092 --to DIR --once --format jsonl
    """
    from aclog.sources.server_flags import client_security, parse_servers

    run_sync(
        SyncOptions(
            servers=parse_servers("--bootstrap-server", record.bootstrap_server),
            security=client_security(record.command_config),
            directory=record.to,
            interval=polls.interval,
            once=polls.once,
            format=format_,
            limit=removal.limit(),
            http=follower.address(),
            give_up_after=follower.patience(),
        )
    )


# Polls the ACLs of one cluster over the admin API.


_SETTLE_SECONDS = 2.0
"""Within this time a broker that reaches its controller applies what was committed before: fetches wait 0.5 s at most,
and are retried after 0.5 s at most.
"""

_OUT_OF_REACH = {
    UNKNOWN_SERVER_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    BROKER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NOT_CONTROLLER,
}
"""The errors of a broker without an answer from a controller. Other errors have other causes."""

_MOST_BROKERS = 6
"""How many are queried again; each response has all ACLs."""


class WrongClusterError(ConfigError):
    """The servers belong to a different cluster than the recorded one."""


@frozen(kw_only=True)
class Poll:
    """All ACLs of a cluster, its id, and when the response had arrived (ms since 1970).

    `is_settled`: the state is no older than that of the poll before. Each broker applies changes in order, but one that
    has just been connected to may be behind the one that was queried before, or behind itself before it was restarted.
    """

    cluster_id: str
    acls: tuple[StandardAcl, ...]
    timestamp: int
    is_settled: bool = False


@define(eq=False, kw_only=True)
class ClusterPoller:
    """A client of one cluster, owned by one event loop.

    It stays with the same broker as long as polls succeed: another broker may lag behind, and an older state would be
    recorded as a change. `cluster_id` is the expected cluster; None accepts any, and expects it from then on.
    """

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    cluster_id: str | None
    _clock: Callable[[], int] = field(default=current_time_ms)
    _connection: Connection | None = field(default=None, init=False)

    async def poll(self) -> Poll:
        """Return the current ACLs.

        Raises:
            WrongClusterError: the server belongs to a different cluster.
            MetadataError: no server is reachable, or the response is malformed or an error. The next poll tries another
                server first.

        """
        try:
            return await self._try()
        except BaseException:  # also cancelled: a response may be in flight
            await self._move_to_end()
            raise

    async def poll_settled(self) -> Poll:
        """Poll the broker that was queried last, once it must have applied what its controller has committed.

        The first that answers, if none was queried. A broker that does not reach its controller has an old state, for
        any time.

        Raises:
            MetadataError: as `poll`; also if the broker does not reach its controller.

        """
        try:
            connection = self._connection
            if connection is None or connection.failure is not None:
                await self.close()
                self._connection = connection = await connect_to_first(self.servers, self.security, Role.BROKER)
                await self._check_cluster(connection)  # before a pause: it may be a wrong address
            await _check_reaches_controller(connection)
            await asyncio.sleep(_SETTLE_SECONDS)
            return evolve(await self._describe(connection), is_settled=True)
        except BaseException:
            await self._move_to_end()
            raise

    async def poll_again(self, is_plausible: Callable[[Poll], bool]) -> Poll | None:
        """Query the same broker again, then others; return the first plausible response, None without one.

        A broker that cannot be queried is skipped, and so is one of another cluster that was not given: brokers name
        themselves for their clients, and such a name may be another server's here. The poller stays with the broker
        whose response it returns, if any.

        Raises:
            WrongClusterError: as `poll`.

        """
        servers = self.servers
        for address in await self._brokers():
            try:
                await self.close()
                self._connection = await connect(address, self.security)
                poll = await self._describe(self._connection)
            except MetadataError as error:
                if isinstance(error, WrongClusterError) and address in servers:
                    raise
                continue
            if is_plausible(poll):
                return poll
        await self.close()  # its next answer is that of a new broker: not settled
        return None

    async def _brokers(self) -> tuple[HostPort, ...]:
        """Return the broker that was queried last, the other given ones, and those that the cluster names, a few."""
        named: tuple[HostPort, ...] = ()
        if self._connection is not None:
            with suppress(MetadataError):  # too old for it, or not allowed
                named = tuple(node.address for node in (await describe_cluster(self._connection)).nodes)
        return tuple(dict.fromkeys((*self.servers, *named)))[:_MOST_BROKERS]

    async def _try(self) -> Poll:
        connection = self._connection
        if connection is not None and connection.failure is None:
            with suppress(UnreachableError):  # closed while idle, or its session expired (KIP-368): reconnect
                return evolve(await self._describe(connection), is_settled=True)
        await self.close()
        self._connection = await connect_to_first(self.servers, self.security, Role.BROKER)
        return await self._describe(self._connection)

    async def _move_to_end(self) -> None:
        """Close the connection, and make its server the last one to try."""
        failed = self.servers[0] if self._connection is None else self._connection.address
        self.servers = (*self._others(failed), failed)
        await self.close()

    def _others(self, one: HostPort) -> tuple[HostPort, ...]:
        return tuple(server for server in self.servers if server != one)

    async def _check_cluster(self, connection: Connection) -> str:
        cluster_id = await describe_cluster_id(connection)
        if self.cluster_id not in {None, cluster_id}:
            raise WrongClusterError(
                f"{connection.address}: belongs to cluster {cluster_id}: expected {self.cluster_id}, the recorded one"
            )
        return cluster_id

    async def _describe(self, connection: Connection) -> Poll:
        cluster_id = await self._check_cluster(connection)
        acls = await describe_all_acls(connection)
        # After the response: at this time, the cluster was known to have these ACLs.
        timestamp = self._clock()
        try:
            check_acls(acls)
        except DecodeError as error:
            raise error.at(path=str(connection.address)) from None
        self.cluster_id = cluster_id
        self.servers = (connection.address, *self._others(connection.address))
        return Poll(cluster_id=cluster_id, acls=tuple(acls), timestamp=timestamp)

    async def close(self) -> None:
        """Close the connection, if any."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _check_reaches_controller(connection: Connection) -> None:
    """See that the broker forwards a request to its controller, and gets an answer.

    Nothing is known of a broker that is too old for DescribeQuorum, or does not allow it.

    Raises:
        MetadataError: it does not, or does not respond.

    """
    try:
        await describe_quorum(connection)
    except ConfigError:
        return
    except RequestError as error:
        if error.code in _OUT_OF_REACH:
            raise RequestError(
                error.code, f"{connection.address}: DescribeQuorum: {error}: its rules may be old, and are not recorded"
            ) from None


# The log of `aclog sync`: one atomic batch or transaction for each poll that found changes.


_TRANSACTION = "aclog sync"


@define(eq=False)
class SyncLog:
    """The open log of a cluster; `recorded` are the ACLs of its newest state, with their ids."""

    directory: Path
    cluster_id: str
    recorded: dict[StandardAcl, UUID]
    _writer: LogWriter
    _stack: ExitStack = field(factory=ExitStack)

    @classmethod
    def open(cls, directory: Path, written: Sequence[Change] = ()) -> Self:
        """Open an existing log; it is recovered if its last writer was interrupted.

        `written` is what this process has just created it with: those ACLs are not read again.

        Raises:
            ConfigError: the directory is not a log of `aclog sync`.
            LockedError, LogError, DecodeError: as aclog.targets.log.open_writer.

        """
        properties = read_sync_properties(directory)
        if properties is None:
            raise ConfigError(
                f"{directory}: no {SYNC_FILE} in it: expected a log of `aclog sync`, or an empty or missing directory"
            )
        with ExitStack() as stack:
            writer = stack.enter_context(open_writer(directory, for_sync=True))
            rules: Iterator[StandardAclWithId] = (each.rule for each in written)
            if not written or writer.log.end_offset() != written[-1].end_offset:
                rules = iter(writer.image.acls)
            recorded = {each.acl: each.id for each in rules if each.id is not None}
            writer.image = Image.EMPTY  # it is not updated from here on: free the memory
            return cls(
                directory=directory,
                cluster_id=properties.cluster_id,
                recorded=recorded,
                writer=writer,
                stack=stack.pop_all(),
            )

    def end_offset(self) -> int:
        """Return the offset of the next record."""
        return self._writer.log.end_offset()

    def changes(self, poll: Poll) -> AclChanges:
        """Return the changes from the newest state to a poll, with new ids for added ACLs."""
        return _changes(self.recorded, poll)

    def differs_from(self, poll: Poll) -> bool:
        """Return whether a poll has other ACLs than are recorded."""
        return self.recorded.keys() != set(poll.acls)

    def removed_by(self, poll: Poll) -> int:
        """Return how many of the recorded ACLs are not in a poll."""
        return len(self.recorded.keys() - set(poll.acls))

    def leave_notice(self, text: str) -> None:
        """Write a notice for every reader of the log, until `withdraw_notice`, durably. Raises LogError."""
        leave_notice(self.directory, text)

    def withdraw_notice(self) -> None:
        """End what `leave_notice` began, durably. Raises LogError."""
        withdraw_notice(self.directory)

    def append(self, changes: AclChanges, timestamp: int) -> list[Change]:
        """Append changes atomically and durably, with a timestamp in ms since 1970.

        Raises:
            EncodeError: an ACL that is too long for a record; nothing was written.
            LogError: the log cannot be written; it accepts no further appends.

        """
        done = append_changes(self._writer, changes, timestamp)
        for each in changes.removed:
            del self.recorded[each.acl]
        self.recorded |= {each.acl: each.id for each in changes.added if each.id is not None}
        return done

    def close(self) -> None:
        """Close the log. Idempotent."""
        self._stack.close()


def create_sync_log(directory: Path, poll: Poll) -> list[Change]:
    """Create the log of a cluster with its first poll, atomically: the directory appears when it is complete.

    Raises:
        ConfigError: the directory is not empty.
        LogError: it cannot be written.
        EncodeError: an ACL that is too long for a record.

    """
    try:
        with open_or_create(directory, force=False, timestamp=poll.timestamp) as (writer, is_new):
            if not is_new:
                raise ConfigError(f"{directory}: no longer empty: expected no other process to write to it")
            properties = SyncProperties(cluster_id=poll.cluster_id, first_poll=poll.timestamp)
            write_sync_properties(writer.log.directory, properties)
            changes = append_changes(writer, _changes({}, poll), poll.timestamp)
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error
    return changes


def _changes(recorded: dict[StandardAcl, UUID], poll: Poll) -> AclChanges:
    return acl_changes(recorded, poll.acls, RandomIds())


def append_changes(writer: LogWriter, changes: AclChanges, timestamp: int) -> list[Change]:
    """Append changes as one batch, or as a transaction if they do not fit into one, and wait for each batch.

    Raises:
        EncodeError, LogError: as SyncLog.append.

    """
    # All are encoded before the first is appended: one that is too long must not leave half a transaction.
    offsets = writer.submit(changes.values(), atomic=True, timestamp=timestamp, transaction=_TRANSACTION)
    writer.flush()
    # In the order of AclChanges.values.
    kinds = [(ChangeKind.REMOVED, each) for each in changes.removed] + [
        (ChangeKind.ADDED, each) for each in changes.added
    ]
    end = writer.log.end_offset()
    return [_change(offset, end, timestamp, *each) for offset, each in zip(offsets, kinds, strict=True)]


def _change(offset: int, end_offset: int, timestamp: int, kind: ChangeKind, rule: StandardAclWithId) -> Change:
    return Change(offset=offset, end_offset=end_offset, timestamp=timestamp, kind=kind, rule=rule)


# Whether a poll is trusted: one that would remove too much is repeated, then refused.


class RefusedPollError(MetadataError):
    """A poll would remove more than is plausible; `removed` of `total` ACLs."""

    def __init__(self, poll: Poll, removed: int, total: int) -> None:
        super().__init__(
            f"the poll of {utc_text(poll.timestamp)} is refused: {removed} of {total} rules would go, and no broker "
            "shows them; is a broker without its metadata answering? If they were really removed, run the command "
            f"with --accept-removal {removed}"
        )
        self.removed = removed
        self.notice = f"newest poll refused at {utc_text(poll.timestamp)}: {removed} of {total} rules would go"


@define(eq=False, kw_only=True)
class RemovalTrust:
    """The limit of a run; the one larger removal that its operator has accepted is spent by the poll that needs it."""

    limit: RemovalLimit
    refused: int = field(default=0, init=False)
    """How many rules the newest poll would have removed, if it was refused."""

    async def trusted_poll(self, poller: ClusterPoller, log: SyncLog | None) -> Poll:
        """Poll; return a response that may be recorded.

        Raises:
            RefusedPollError: it would remove too much, also when repeated; the log has a notice of that.
            MetadataError: as ClusterPoller.poll.

        """
        if log is None:
            # Nothing is recorded that could be removed; but what an old state has in excess would be later.
            return await poller.poll_settled()
        poll = await poller.poll()
        if not poll.is_settled and log.differs_from(poll):
            poll = await poller.poll_settled()
        if not self._is_plausible(poll, log):
            again = await poller.poll_again(lambda other: self._is_plausible(other, log))
            if again is not None and log.differs_from(again):
                again = await poller.poll_settled()
            poll = again if again is not None and self._is_plausible(again, log) else self._accepted(poll, log)
        self.refused = 0
        log.withdraw_notice()
        return poll

    def _is_plausible(self, poll: Poll, log: SyncLog) -> bool:
        return not self.limit.is_exceeded(log.removed_by(poll), len(log.recorded))

    def _accepted(self, poll: Poll, log: SyncLog) -> Poll:
        removed, total = log.removed_by(poll), len(log.recorded)
        if not self.limit.is_accepted(removed):
            self.refused, refusal = removed, RefusedPollError(poll, removed, total)
            log.leave_notice(refusal.notice)
            raise refusal
        note(f"the removal of {removed} of {total} rules is accepted: --accept-removal {self.limit.accepted} is spent")
        self.limit = evolve(self.limit, accepted=None)
        return poll


# The loop of `aclog sync`: polls a cluster and records changes of its ACLs in a log.


MAX_INTERVAL_S = 86_400.0
_FIRST_RETRY_S = 1.0
_MAX_RETRY_S = 60.0
_LINES_AT_ONCE = 1000
_PERMANENT_ERRORS = {CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED}


@frozen(kw_only=True)
class SyncOptions:
    """Cluster, log, seconds between the end of a poll and the next one, output format, and the limit of a trusted poll.

    `give_up_after` is in seconds without a successful poll; None is never.
    """

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    directory: Path
    interval: float
    once: bool
    format: SyncFormat
    limit: RemovalLimit
    http: HostPort | None
    give_up_after: float | None


def run_sync(options: SyncOptions) -> None:
    """Poll until SIGTERM or SIGINT, or once. Changes go to stdout, failures and a summary to stderr.

    Raises:
        ConfigError: an invalid interval, a directory that is not a log of `aclog sync`, or servers of another cluster.
        MetadataError: the log cannot be written, the only poll failed or was refused, no poll succeeded for too long,
            or all polls so far failed and the last one with an error that retries cannot resolve.

    """
    if not 0 < options.interval <= MAX_INTERVAL_S:
        raise ConfigError(f"--interval {options.interval:g}: expected seconds above 0, and at most {MAX_INTERVAL_S:g}")
    with ExitStack() as stack:
        sync = _Sync(options, stack)
        sync.open()
        with serving(options.http, sync.status):
            asyncio.run(sync.run())


def retry_seconds(failures: int, interval: float) -> float:
    """Return the delay after consecutive failed polls: exponential from 1 s, up to a minute or `interval`."""
    longest = max(interval, _MAX_RETRY_S)
    return float(min(longest, min(interval, _FIRST_RETRY_S) * 2 ** min(failures - 1, 30)))


@define(eq=False)
class _Sync:
    """One run of the command, owned by its event loop."""

    options: SyncOptions
    _stack: ExitStack
    status: FollowerStatus = field(factory=FollowerStatus, init=False)
    _trust: RemovalTrust = field(init=False)
    _log: SyncLog | None = field(default=None, init=False)
    _polls: int = field(default=0, init=False)
    _failed: int = field(default=0, init=False)
    _consecutive_failures: int = field(default=0, init=False)
    _added: int = field(default=0, init=False)
    _removed: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._trust = RemovalTrust(limit=self.options.limit)
        numbers = {
            "aclog_polls": ("Polls so far.", lambda: self._polls),
            "aclog_failed_polls": ("Polls that failed or were refused.", lambda: self._failed),
            "aclog_refused_removals": (
                "Rules that the newest poll would have removed, if it was refused.",
                lambda: self._trust.refused,
            ),
            "aclog_acls": ("ACLs in the log.", lambda: 0 if self._log is None else len(self._log.recorded)),
        }
        for name, (text, value) in numbers.items():
            self.status.gauge(name, text).set_function(value)

    def open(self, written: Sequence[Change] = ()) -> None:
        """Open an existing log; a missing or empty directory is left to the first poll. Raises as SyncLog.open."""
        directory = self.options.directory
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            self._log = SyncLog.open(directory, written)
            self._stack.callback(self._log.close)
        else:
            check_parent(directory)

    async def run(self) -> None:
        """Poll until stopped, then print the summary."""
        options = self.options
        # A single poll is simply interrupted.
        stop = asyncio.Event() if options.once else stop_on_signals()
        cluster_id = None if self._log is None else self._log.cluster_id
        poller = ClusterPoller(servers=options.servers, security=options.security, cluster_id=cluster_id)
        async with poller:
            while not stop.is_set():
                seconds = await self._poll_once(poller, stop)
                if options.once:
                    break
                await pause(stop, seconds)
        note(self._summary())

    async def _poll_once(self, poller: ClusterPoller, stop: asyncio.Event) -> float:
        """Poll, and record and print changes; return the seconds until the next poll."""
        try:
            poll = await unless(stop, self._trust.trusted_poll(poller, self._log))
        except WrongClusterError:
            raise
        except MetadataError as error:
            # Before the first success a permanent error is most likely a wrong flag; later the cluster may be restored.
            if self.options.once or (self._polls == self._failed and _is_permanent(error)):
                raise
            return self._failure(error)
        if poll is not None:
            self._polls, self._consecutive_failures = self._polls + 1, 0
            self._print(self._record(poll))
            self.status.succeeded()
        return self.options.interval

    def _failure(self, error: MetadataError) -> float:
        self._polls, self._failed, self._consecutive_failures = (
            self._polls + 1,
            self._failed + 1,
            self._consecutive_failures + 1,
        )
        self.status.failed(str(error))
        seconds, most = retry_seconds(self._consecutive_failures, self.options.interval), self.options.give_up_after
        if most is not None and self.status.age >= most:
            raise LogError(f"given up after {most:g} s without a successful poll: {error}")
        seconds = seconds if most is None else min(seconds, most - self.status.age)
        warn(f"poll failed, nothing recorded: {error}; retrying in {max(round(seconds, 3), 0):g} s")
        return seconds

    def _record(self, poll: Poll) -> list[Change]:
        if self._log is not None:
            changes = self._log.changes(poll)
            return self._log.append(changes, poll.timestamp) if changes else []
        # The log is created under a temporary name and renamed: open it under its own.
        done = create_sync_log(self.options.directory, poll)
        self.open(done)
        return done

    def _print(self, changes: list[Change]) -> None:
        # Changes are durable here: nothing is printed that a crash could undo.
        self._added += sum(change.kind is ChangeKind.ADDED for change in changes)
        self._removed += sum(change.kind is ChangeKind.REMOVED for change in changes)
        line = _json_line if self.options.format is SyncFormat.JSONL else _text_line
        for first in range(0, len(changes), _LINES_AT_ONCE):
            emit("\n".join(map(line, changes[first : first + _LINES_AT_ONCE])))
        sys.stdout.flush()

    def _summary(self) -> str:
        end = "nothing recorded" if self._log is None else f"ends at offset {self._log.end_offset()}"
        return (
            f"{self._polls} poll(s), {self._failed} failed; {self._added} ACL(s) added, {self._removed} removed; "
            f"{self.options.directory}: {end}"
        )


def _is_permanent(error: MetadataError) -> bool:
    """Return whether only a configuration change, here or on the cluster, can resolve the error."""
    return isinstance(error, LoginError | ConfigError) or (
        isinstance(error, RequestError) and error.code in _PERMANENT_ERRORS
    )


def _json_line(change: Change) -> str:
    return row_line(change_row(change))


def _text_line(change: Change) -> str:
    rule_id = "" if change.rule.id is None else uuid_text(change.rule.id)
    where = f"{time_text(change.timestamp)}  {change.offset:>9}  {change.kind.value:7}  {rule_id:22}"
    return printable(f"{where}  {acl_text(change.rule.acl)}")
