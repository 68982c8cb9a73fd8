"""`aclog sync`: the history of ACLs of a cluster whose log is not read."""

import asyncio
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated

from attrs import field

from aclog.authorizer.acl import acl_text
from aclog.cli.flags.common import FollowerFlags, RemovalFlags
from aclog.cli.follow import FollowerStatus, serving
from aclog.cli.options import Group, Option
from aclog.cli.signals import pause, stop_on_signals, unless
from aclog.client.errors import LoginError
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.errors import ConfigError, LogError, MetadataError, plural, printable
from aclog.metalog.primitives import uuid_text
from aclog.metalog.values import define, frozen
from aclog.ops.export_rows import change_row, row_line
from aclog.ops.first_poll import FirstPoll
from aclog.ops.removal_limit import RemovalLimit
from aclog.ops.sync import ClusterPoller, Poll, RemovalTrust, SyncLog, WrongClusterError, create_sync_log, open_sync_log
from aclog.protocol import error_codes
from aclog.protocol.headers import RequestError
from aclog.snapshots.history import Change, ChangeKind
from aclog.terminal.output import emit, note, time_text, warn

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
        Option(
            "--format",
            help="table: one line of text per change; jsonl: one JSON object per change, as [cyan]export --history[/] "
            "prints it.",
        ),
    ] = SyncFormat.TABLE,
) -> None:
    """Poll the ACLs of a cluster, and record the changes of each poll atomically in a log.

    Commands read DIR like any other log: pass it as --log DIR, also with --as-of,
    and to shell and history. A failed poll records nothing and is retried. If more
    recorded ACLs are missing in a poll than --max-removal allows, the command
    repeats the poll, first on the same broker and then on others. If every response
    exceeds the limit, the poll is refused: nothing is recorded, and every command
    that reads DIR prints a warning until a later poll is accepted. SIGTERM or
    Ctrl-C stops the command. Requires DESCRIBE on the cluster.

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


# The loop of `aclog sync`: polls a cluster and records changes of its ACLs in a log.


MAX_INTERVAL_S = 86_400.0
_FIRST_RETRY_S = 1.0
_MAX_RETRY_S = 60.0
_LINES_AT_ONCE = 1000
_PERMANENT_ERRORS = {error_codes.CLUSTER_AUTHORIZATION_FAILED, error_codes.SECURITY_DISABLED}


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
            "aclog_acls": ("ACLs in the log.", lambda: 0 if self._log is None else self._log.count),
        }
        for name, (text, value) in numbers.items():
            self.status.gauge(name, text).set_function(value)

    def open(self, written: FirstPoll | None = None) -> None:
        """Open an existing log; a missing or empty directory is left to the first poll. Raises as SyncLog.open."""
        self._log = open_sync_log(self.options.directory, written)
        if self._log is not None:
            self._stack.callback(self._log.close)

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
        if self._log is not None:
            self._log.keep_response()
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

    def _record(self, poll: Poll) -> Sequence[Change]:
        if self._log is not None:
            return self._log.record(poll)
        # The log is created under a temporary name and renamed: open it under its own.
        done = create_sync_log(self.options.directory, poll)
        self.open(done)
        return done

    def _print(self, changes: Sequence[Change]) -> None:
        # Changes are durable here: nothing is printed that a crash could undo.
        removed = 0 if isinstance(changes, FirstPoll) else sum(each.kind is ChangeKind.REMOVED for each in changes)
        self._added, self._removed = self._added + len(changes) - removed, self._removed + removed
        lines: Iterator[str]
        if self.options.format is SyncFormat.JSONL:
            lines = map(_json_line, changes)
        else:
            lines = _first_lines(changes) if isinstance(changes, FirstPoll) else map(_text_line, changes)
        while some := list(islice(lines, _LINES_AT_ONCE)):
            emit("\n".join(some))
        sys.stdout.flush()

    def _summary(self) -> str:
        end = "nothing recorded" if self._log is None else f"ends at offset {self._log.end_offset()}"
        return (
            f"{plural(self._polls, 'poll')}, {self._failed:,} failed; {plural(self._added, 'ACL')} added, "
            f"{self._removed:,} removed; {self.options.directory}: {end}"
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


def _first_lines(changes: FirstPoll) -> Iterator[str]:
    """Yield the same line for each change of a first poll, without an object for each."""
    time, kind = time_text(changes.timestamp), f"{ChangeKind.ADDED.value:7}"
    ids, texts = changes.id_list(), changes.acls.lines()
    for offset, (id_, text) in enumerate(zip(ids, texts, strict=True), changes.offset):
        yield f"{time}  {offset:>9}  {kind}  {urlsafe_b64encode(id_).decode('ascii')[:22]}  {text}"
