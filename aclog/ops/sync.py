"""What `aclog sync` does: polls the ACLs of a cluster, and records the changes of each trusted poll in a log."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self
from uuid import UUID

from attrs import evolve, field

from aclog.authorizer.acl import StandardAclWithId, rule_fields
from aclog.authorizer.acls_image import acl_of_content, content_of, ids_by_content
from aclog.client.connection import Connection, Role, connect
from aclog.client.errors import UnreachableError
from aclog.client.requests import AclResponse, check_contents, describe_cluster, describe_quorum
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.codec import encode_acl, encode_record
from aclog.metalog.errors import ConfigError, DecodeError, MetadataError
from aclog.metalog.filelog import FileLog, open_log
from aclog.metalog.filelog.files import leave_notice, log_error, withdraw_notice
from aclog.metalog.primitives import RandomIds, current_time_ms
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.metalog.values import define, frozen
from aclog.ops.first_poll import FirstPoll, ListedAcls, new_ids
from aclog.ops.removal_limit import RemovalLimit
from aclog.ops.sync_response import (
    LEAST_ACLS,
    RecordedResponse,
    acls_digest,
    log_digest,
    read_response,
    write_response,
)
from aclog.protocol import error_codes
from aclog.protocol.headers import RequestError
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.image import Image
from aclog.sources.live import connect_to_first, describe_all, describe_cluster_id
from aclog.sources.logs import SYNC_FILE, SyncProperties, read_sync_properties, write_sync_properties
from aclog.targets.log import LogWriter, check_parent, open_or_create, recovered_writer
from aclog.terminal.output import note, utc_text

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


def acl_changes(recorded: Mapping[bytes, bytes], polled: AbstractSet[bytes], new_id: Callable[[], UUID]) -> AclChanges:
    """Return the changes from the recorded to the polled ACLs; an unchanged ACL keeps its id.

    Both by content (aclog.authorizer.acls_image.content_of), with the recorded ids as bytes: of a million ACLs, only
    those that changed become objects. Changes are in listing order (aclog.authorizer.acl.rule_fields), regardless of
    the order of the poll.
    """
    removed = (
        StandardAclWithId(id=UUID(bytes=id_), acl=acl_of_content(content))
        for content, id_ in recorded.items()
        if content not in polled
    )
    new = (StandardAclWithId(id=None, acl=acl_of_content(each)) for each in polled if each not in recorded)
    return AclChanges(
        removed=tuple(sorted(removed, key=rule_fields)),
        added=tuple(StandardAclWithId(id=new_id(), acl=each.acl) for each in sorted(new, key=rule_fields)),
    )


# Polls the ACLs of one cluster over the admin API.


_SETTLE_SECONDS = 2.0
"""Within this time a broker that reaches its controller applies what was committed before: fetches wait 0.5 s at most,
and are retried after 0.5 s at most.
"""

_OUT_OF_REACH = {
    error_codes.UNKNOWN_SERVER_ERROR,
    error_codes.NOT_LEADER_OR_FOLLOWER,
    error_codes.REQUEST_TIMED_OUT,
    error_codes.BROKER_NOT_AVAILABLE,
    error_codes.NETWORK_EXCEPTION,
    error_codes.NOT_CONTROLLER,
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
    contents: AbstractSet[bytes] | None
    """None if the response has the same bytes as `known` of the poller, and so the same ACLs."""
    response: str | None
    """The digest of the response (aclog.client.requests.AclResponse)."""
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
    known: str | None = None
    """The digest of a response whose ACLs the caller has: the same response is not decoded again."""
    _clock: Callable[[], int] = field(default=current_time_ms)
    _last: AclResponse | None = field(default=None, init=False)
    """The newest response that was decoded and checked, until `forget`: a settled broker mostly repeats it."""
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
        last: tuple[HostPort, ...] = ()
        named: tuple[HostPort, ...] = ()
        if self._connection is not None:
            last = (self._connection.address,)
            with suppress(MetadataError):  # too old for it, or not allowed
                named = tuple(node.address for node in (await describe_cluster(self._connection)).nodes)
        return tuple(dict.fromkeys((*last, *self.servers, *named)))[:_MOST_BROKERS]

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
        if failed in self.servers:
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
        last = self._last
        decoded = (self.known, None if last is None else last.digest)
        response = await describe_all(connection, [each for each in decoded if each is not None])
        # After the response: at this time, the cluster was known to have these ACLs.
        timestamp = self._clock()
        if response.contents is not None:
            try:
                check_contents(response.contents)
            except DecodeError as error:
                raise error.at(path=str(connection.address)) from None
            self._last = response
        elif last is not None and response.digest != self.known:
            response = last
        self.cluster_id = cluster_id
        # A broker that only the cluster has named is no server: later its address may be another cluster's.
        if connection.address in self.servers:
            self.servers = (connection.address, *self._others(connection.address))
        return Poll(cluster_id=cluster_id, contents=response.contents, response=response.digest, timestamp=timestamp)

    def forget(self) -> None:
        """Free the newest response."""
        self._last = None

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
    """The open log of a cluster."""

    directory: Path
    cluster_id: str
    response: str | None
    """The digest of a response with exactly the ACLs of the newest state; None if no such response is known."""
    _log: FileLog
    _kept: RecordedResponse | None
    """What the file beside the log has, if it is of the log as it was opened."""
    _recorded: dict[bytes, bytes] | None
    """None until it is needed, if the response is known."""
    _stack: ExitStack = field(factory=ExitStack)

    @classmethod
    def open(cls, directory: Path, written: FirstPoll | None = None) -> Self:
        """Open an existing log; it is recovered if its last writer was interrupted.

        `written` is what this process has just created it with: those ACLs are not read again. Nor are those of a log
        whose response is known (aclog.ops.sync_response), before they differ from a poll.

        Raises:
            ConfigError: the directory is not a log of `aclog sync`.
            LockedError, LogError, DecodeError: as aclog.metalog.filelog.open_log, and aclog.targets.log.open_writer.

        """
        properties = read_sync_properties(directory)
        if properties is None:
            raise ConfigError(
                f"{directory}: no {SYNC_FILE} in it: expected a log of `aclog sync`, or an empty or missing directory"
            )
        with ExitStack() as stack:
            log = stack.enter_context(open_log(directory))
            for text in log.notes:
                note(text)
            kept, response, recorded = None, None, None
            if written is not None and log.end_offset() == written.end_offset:
                response, recorded = written.response, written.recorded()
            elif (kept := read_response(log, properties.cluster_id)) is not None:
                response = kept.response
            else:
                recorded = _state_of(log)
            return cls(
                directory=directory,
                cluster_id=properties.cluster_id,
                response=response,
                log=log,
                kept=kept,
                recorded=recorded,
                stack=stack.pop_all(),
            )

    @property
    def recorded(self) -> dict[bytes, bytes]:
        """The ids of the ACLs of the newest state, by content. Raises as `open`."""
        if self._recorded is None:
            self._recorded = _state_of(self._log)
        return self._recorded

    @property
    def count(self) -> int:
        """How many ACLs the newest state has."""
        return self._kept.count if self._recorded is None and self._kept is not None else len(self.recorded)

    def end_offset(self) -> int:
        """Return the offset of the next record."""
        return self._log.end_offset()

    def differs_from(self, poll: Poll) -> bool:
        """Return whether a poll has other ACLs than are recorded."""
        return not self._is_same(poll)

    def _is_same(self, poll: Poll) -> bool:
        if poll.response is not None and poll.response == self.response:
            return True
        contents = _contents_of(poll)
        kept = self._kept
        if self._recorded is None and kept is not None:
            is_same = len(contents) == kept.count and acls_digest(contents) == kept.acls
        else:
            is_same = self.recorded.keys() == contents
        if is_same and poll.response is not None:
            self.response = poll.response
        return is_same

    def removed_by(self, poll: Poll) -> int:
        """Return how many of the recorded ACLs are not in a poll."""
        return 0 if self._is_same(poll) else len(self.recorded.keys() - _contents_of(poll))

    def leave_notice(self, text: str) -> None:
        """Write a notice for every reader of the log, until `withdraw_notice`, durably. Raises LogError."""
        leave_notice(self.directory, text)

    def withdraw_notice(self) -> None:
        """End what `leave_notice` began, durably. Raises LogError."""
        withdraw_notice(self.directory)

    def record(self, poll: Poll) -> list[Change]:
        """Append the changes to a poll, if there are any.

        Raises:
            LogError: as `append`; also if a file of the log was removed or replaced, even without changes.
            EncodeError: as `append`.

        """
        # A poll without changes writes nothing, so that nothing else would notice that its log is gone.
        self._log.check_files()
        if self._is_same(poll):
            return []
        done = self.append(acl_changes(self.recorded, _contents_of(poll), RandomIds()), poll.timestamp)
        self.response = poll.response
        return done

    def append(self, changes: AclChanges, timestamp: int) -> list[Change]:
        """Append changes atomically and durably, with a timestamp in ms since 1970.

        Raises:
            EncodeError: an ACL that is too long for a record; nothing was written.
            LogError: the log cannot be written; it accepts no further appends.

        """
        recorded, self.response = self.recorded, None
        # Without a state: a log of `aclog sync` has no features.
        done = append_changes(LogWriter(self._log, Image.EMPTY), changes, timestamp)
        for each in changes.removed:
            del recorded[content_of(each.acl)]
        recorded |= {content_of(each.acl): each.id.bytes for each in changes.added if each.id is not None}
        return done

    def keep_response(self, least: int = LEAST_ACLS) -> None:
        """Write which response has the ACLs of the log, so that the next command need not replay it.

        Nothing is written of fewer ACLs than `least`. A failure is no error: the next command then replays the log.
        """
        end, kept = self.end_offset(), self._kept
        if self.response is None or self.count < least:
            return
        is_current = kept is not None and kept.end_offset == end
        if kept is not None and is_current and kept.response == self.response:
            return
        with suppress(MetadataError):
            digest = kept.log if kept is not None and is_current else log_digest(self._log)
            if digest is None:
                return
            self._kept = RecordedResponse(
                cluster_id=self.cluster_id,
                end_offset=end,
                log=digest,
                count=self.count,
                acls=kept.acls if kept is not None and is_current else acls_digest(self.recorded),
                response=self.response,
            )
            write_response(self.directory, self._kept)

    def close(self) -> None:
        """Close the log. Idempotent."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _state_of(log: FileLog) -> dict[bytes, bytes]:
    """Replay a log; return the ids of its ACLs by content. Raises as SyncLog.open."""
    return ids_by_content(recovered_writer(log).image.acls)


def _contents_of(poll: Poll) -> AbstractSet[bytes]:
    if poll.contents is None:
        raise ValueError("a poll without contents has the response that the log has")
    return poll.contents


def open_sync_log(directory: Path, written: FirstPoll | None = None) -> SyncLog | None:
    """Open an existing log; None for a missing or empty directory, which the first poll creates.

    `written` and errors: as SyncLog.open.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        return SyncLog.open(directory, written)
    check_parent(directory)
    return None


def create_sync_log(directory: Path, poll: Poll) -> FirstPoll:
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
            acls = ListedAcls.of(_contents_of(poll))
            first = FirstPoll(acls=acls, ids=new_ids(len(acls)), timestamp=poll.timestamp, response=poll.response)
            offsets = writer.submit(first.values(), atomic=True, timestamp=poll.timestamp, transaction=_TRANSACTION)
            writer.flush()
            return evolve(first, offset=offsets.start, end_offset=writer.log.end_offset())
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error


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
        try:
            return await self._trusted_poll(poller, log)
        finally:
            poller.forget()

    async def _trusted_poll(self, poller: ClusterPoller, log: SyncLog | None) -> Poll:
        if log is None:
            # Nothing is recorded that could be removed; but what an old state has in excess would be later.
            return await poller.poll_settled()
        poller.known = log.response
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
        return not self.limit.is_exceeded(log.removed_by(poll), log.count)

    def _accepted(self, poll: Poll, log: SyncLog) -> Poll:
        removed, total = log.removed_by(poll), log.count
        if not self.limit.is_accepted(removed):
            self.refused, refusal = removed, RefusedPollError(poll, removed, total)
            log.leave_notice(refusal.notice)
            raise refusal
        note(f"the removal of {removed} of {total} rules is accepted: --accept-removal {self.limit.accepted} is spent")
        self.limit = evolve(self.limit, accepted=None)
        return poll


# One poll from beginning to end, as `aclog sync --once` does it.


def sync_once(
    servers: tuple[HostPort, ...], security: ClientSecurity, directory: Path, limit: RemovalLimit
) -> Sequence[Change]:
    """Poll a cluster once; return the changes of its ACLs, recorded in a log, which is created if missing or empty.

    Raises:
        ConfigError: a directory that is not a log of `aclog sync`, or servers of another cluster.
        RefusedPollError: the poll would remove too much.
        MetadataError: the cluster cannot be polled, or the log cannot be written.

    """
    with ExitStack() as stack:
        log = open_sync_log(directory)
        if log is not None:
            stack.callback(log.close)
        poll = asyncio.run(_trusted_poll(servers, security, log, limit))
        if log is not None:
            changes = log.record(poll)
            log.keep_response()
            return changes
        first = create_sync_log(directory, poll)
        with SyncLog.open(directory, first) as created:
            created.keep_response()
        return first


async def _trusted_poll(
    servers: tuple[HostPort, ...], security: ClientSecurity, log: SyncLog | None, limit: RemovalLimit
) -> Poll:
    cluster_id = None if log is None else log.cluster_id
    async with ClusterPoller(servers=servers, security=security, cluster_id=cluster_id) as poller:
        return await RemovalTrust(limit=limit).trusted_poll(poller, log)
