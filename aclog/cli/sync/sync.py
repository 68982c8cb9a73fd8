"""`aclog sync`: what changes in a cluster's rules, poll by poll, into a log."""

import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path

from attrs import define, field, frozen

from aclog.authorizer.explanation_text import acl_text
from aclog.cli.signals import pause, stop_on_signals, unless
from aclog.cli.sync.format import SyncFormat
from aclog.cli.sync.log import SyncLog, create_sync_log
from aclog.cli.sync.poller import ClusterPoller, Poll, WrongClusterError
from aclog.cli.transfer.history import change_row
from aclog.cli.transfer.json_rows import row_line
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.uuids import uuid_text
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.errors import LoginError
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from aclog.snapshots.rule_history import Change, ChangeKind
from aclog.terminal.notices import note, one_line, warn
from aclog.terminal.timestamps import utc_text

LONGEST_INTERVAL_S = 86_400.0
_FIRST_RETRY_S = 1.0
_LONGEST_RETRY_S = 60.0
_REFUSALS = {CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED}


@frozen(kw_only=True)
class SyncOptions:
    """What is asked, where it is recorded, how often (seconds from one poll's end to the next), and how it is told."""

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    directory: Path
    interval: float
    once: bool
    format: SyncFormat


def run_sync(options: SyncOptions) -> None:
    """Poll until SIGTERM or an interrupt, or once; changes go to stdout, what fails and a summary to stderr.

    Raises:
        ConfigError: an interval that is none, a directory of something else, servers of another cluster.
        MetadataError: the log cannot be written; or the first poll, or the only one, failed for good.

    """
    if not 0 < options.interval <= LONGEST_INTERVAL_S:
        raise ConfigError(
            f"--interval {options.interval:g}: expected seconds above 0, and at most {LONGEST_INTERVAL_S:g}"
        )
    with ExitStack() as stack:
        sync = _Sync(options, stack)
        sync.open()
        asyncio.run(sync.run())


def retry_seconds(failures: int, interval: float) -> float:
    """How long to wait after so many failed polls in a row: a second, doubled each time, to a minute or `interval`."""
    longest = max(interval, _LONGEST_RETRY_S)
    return float(min(longest, min(interval, _FIRST_RETRY_S) * 2 ** min(failures - 1, 30)))


@define(eq=False)
class _Sync:
    """One run; owned by the event loop that it runs in."""

    options: SyncOptions
    _stack: ExitStack
    _log: SyncLog | None = field(default=None, init=False)
    _polls: int = field(default=0, init=False)
    _failed: int = field(default=0, init=False)
    _in_a_row: int = field(default=0, init=False)
    _added: int = field(default=0, init=False)
    _removed: int = field(default=0, init=False)

    def open(self) -> None:
        """Open what is there; nothing, or an empty directory, is left to the first poll. Raises as SyncLog.open."""
        directory = self.options.directory
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            self._log = SyncLog.open(directory)
            self._stack.callback(self._log.close)
        elif not directory.absolute().parent.is_dir():
            raise LogError(f"{directory.parent}: no such directory: expected one to make {directory.name} in")

    async def run(self) -> None:
        """Poll until told to stop, and sum up."""
        options = self.options
        stop = asyncio.Event() if options.once else stop_on_signals()
        cluster_id = None if self._log is None else self._log.cluster_id
        poller = ClusterPoller(servers=options.servers, security=options.security, cluster_id=cluster_id)
        async with poller:
            while not stop.is_set():
                seconds = await self._turn(poller, stop)
                if options.once:
                    break
                await pause(stop, seconds)
        note(self._summary())

    async def _turn(self, poller: ClusterPoller, stop: asyncio.Event) -> float:
        """One poll, and what is to be recorded of it; how many seconds to wait until the next."""
        try:
            poll = await unless(stop, poller.poll())
        except WrongClusterError:
            raise
        except MetadataError as error:
            if self.options.once or (self._polls == self._failed and _is_for_good(error)):
                raise
            return self._failure(error)
        if poll is not None:
            self._polls, self._in_a_row = self._polls + 1, 0
            self._tell(self._record(poll))
        return self.options.interval

    def _failure(self, error: MetadataError) -> float:
        self._polls, self._failed, self._in_a_row = self._polls + 1, self._failed + 1, self._in_a_row + 1
        seconds = retry_seconds(self._in_a_row, self.options.interval)
        warn(f"nothing is recorded of this poll: {error}; the next is in {seconds:g} s")
        return seconds

    def _record(self, poll: Poll) -> list[Change]:
        if self._log is not None:
            changes = self._log.changes(poll)
            return self._log.append(changes, poll.timestamp) if changes else []
        done = create_sync_log(self.options.directory, poll)
        self.open()
        return done

    def _tell(self, changes: list[Change]) -> None:
        self._added += sum(change.kind is ChangeKind.ADDED for change in changes)
        self._removed += sum(change.kind is ChangeKind.REMOVED for change in changes)
        line = _json_line if self.options.format is SyncFormat.JSONL else _text_line
        for change in changes:
            print(line(change))
        sys.stdout.flush()

    def _summary(self) -> str:
        end = "nothing is recorded" if self._log is None else f"ends at offset {self._log.end_offset()}"
        return (
            f"{self._polls} poll(s), {self._failed} failed; {self._added} rule(s) added, {self._removed} removed; "
            f"{self.options.directory}: {end}"
        )


def _is_for_good(error: MetadataError) -> bool:
    """Whether only a change of the configuration, here or there, can help."""
    return isinstance(error, LoginError | ConfigError) or (isinstance(error, RequestError) and error.code in _REFUSALS)


def _json_line(change: Change) -> str:
    return row_line(change_row(change))


def _text_line(change: Change) -> str:
    rule_id = "" if change.rule.id is None else uuid_text(change.rule.id)
    where = f"{utc_text(change.timestamp)}  {change.offset:>9}  {change.kind.value:7}  {rule_id:22}"
    return one_line(f"{where}  {acl_text(change.rule.acl)}")
