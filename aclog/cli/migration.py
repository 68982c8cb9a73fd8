"""The migrations of `aclog migrate`: to a log or a cluster, and back to ZooKeeper."""

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import Factory, define, evolve, field, frozen

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    acl_text,
    code_name,
)
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.interface import InvalidRequestError
from aclog.cli.flags.commands import MetadataLogFlags, ModeFlags, ZooKeeperFlags
from aclog.cli.flags.common import Output, RemovalFlags, RemovalLimit
from aclog.cli.images import ACL_COLUMNS
from aclog.config.properties import read_properties
from aclog.metalog.errors import ConfigError, printable
from aclog.ops.migrate import CheckpointTarget, LogTarget, QuorumTarget, Target, TargetContents, TargetWriter
from aclog.sources.live import opened_zookeeper
from aclog.sources.server_flags import client_security, parse_servers
from aclog.terminal.columns import Column, OutputFormat, Row
from aclog.terminal.notices import progress
from aclog.terminal.output import confirms, note, say, value_formatter, warn
from aclog.zookeeper.client import ZkSettings, zk_settings
from aclog.zookeeper.connect import check_not_owned, kraft_controller
from aclog.zookeeper.migration import (
    AccessState,
    Comparison,
    Decide,
    LeftOut,
    Request,
    StateChange,
    StoreState,
    StoreWatch,
    compare,
    difference,
    execute_plan,
    storable,
    store_plan,
)

if TYPE_CHECKING:
    from aclog.zookeeper.session import ZkClient


# What a migration would do, and how both sides differ, as rows: each has a `kind`.


_KIND = Column(key="kind")
PLAN_COLUMNS = (
    _KIND,
    *ACL_COLUMNS,
    Column(key="aclsAdded", spare=True),
    Column(key="aclsRemoved", spare=True),
    Column(key="credentialsChanged", spare=True),
    Column(key="tokensChanged", spare=True),
    Column(key="path", cut=True, spare=True),
    Column(key="reason", flows=True),
)
"""Of `plan_rows`."""
COMPARISON_COLUMNS = (
    _KIND,
    *ACL_COLUMNS,
    Column(key="name", title="USER", cut=True, spare=True),
    Column(key="mechanism", spare=True),
    Column(key="tokenId", title="TOKEN", spare=True),
    Column(key="allowedByZooKeeper", title="ZOOKEEPER ALLOWS", spare=True),
    Column(key="known", spare=True),
    Column(key="contents", spare=True),
    Column(key="decisions", spare=True),
    Column(key="differing", spare=True),
)
"""Of `comparison_rows`."""


def plan_rows(left_out: Iterable[LeftOut], change: StateChange, obstacles: Sequence[str]) -> Iterator[Row]:
    """Yield the counts, what is left out, the ACLs that would be removed, and what blocks the migration."""
    yield {
        "kind": "plan",
        "aclsAdded": len(change.added_acls),
        "aclsRemoved": len(change.removed_acls),
        "credentialsChanged": len(change.credentials),
        "tokensChanged": len(change.tokens),
    }
    yield from ({"kind": "leftOut", "path": each.path, "reason": each.reason} for each in left_out)
    yield from ({"kind": "remove", **_acl(acl)} for acl in change.removed_acls)
    yield from ({"kind": "obstacle", "reason": text} for text in obstacles)


def comparison_rows(comparison: Comparison) -> Iterator[Row]:
    """Yield the counts, what only one side has, what differs, and the requests that are decided differently."""
    change, expected = comparison.difference, sum(each.is_known for each in comparison.disagreements)
    yield {
        "kind": "compared",
        "contents": len(change),
        "decisions": comparison.requests,
        "differing": len(comparison.disagreements) - expected,
        "known": expected,
    }
    yield from ({"kind": "onlyInZooKeeper", **_acl(acl)} for acl in change.added_acls)
    yield from ({"kind": "notInZooKeeper", **_acl(acl)} for acl in change.removed_acls)
    yield from ({"kind": "credential", "name": each.name, "mechanism": each.mechanism} for each in change.credentials)
    yield from ({"kind": "token", "tokenId": each.token_id} for each in change.tokens)
    for each in comparison.disagreements:
        request = each.request
        yield {
            "kind": "decision",
            "principal": request.principal,
            "host": request.host,
            "operation": code_name(AclOperation, request.operation),
            "resourceType": code_name(ResourceType, request.resource_type),
            "resourceName": request.name,
            "allowedByZooKeeper": each.store_allows,
            "known": each.is_known,
        }


def _acl(acl: StandardAcl) -> dict[str, object]:
    row: dict[str, object] = {**StandardAclWithId(id=None, acl=acl).to_dict()}
    del row["id"]
    return row


# Output of `aclog migrate`: results on stdout, warnings on stderr.


_MAX_LINES = 100
"""Differences that are listed per kind; all are counted."""


def report_left_out(left_out: Iterable[LeftOut]) -> None:
    """Warn about every entry that is not migrated."""
    for line in _left_out_lines(left_out):
        warn(line)


def _left_out_lines(left_out: Iterable[LeftOut]) -> Iterator[str]:
    return (f"left out: {each}" for each in left_out)


def report_plan(store: str, target: Target, store_state: StoreState, change: StateChange) -> None:
    """Print what a migration would do."""
    say(f"{store}: {store_state.state.counts()}")
    for line in _left_out_lines(store_state.left_out):
        say(printable(line))
    warn_of_limitation(target, store_state)
    say(f"{target.name}: {change.counts()}")
    report_removals(change)


def report_removals(change: StateChange) -> None:
    """Print the ACLs that a migration would remove, and that this is a dry run."""
    for acl in change.removed_acls:
        say(printable(f"would remove: {acl_text(acl)}"))
    say("dry run: nothing was written")


def warn_of_limitation(target: Target, store_state: StoreState) -> None:
    """Warn if the target cannot hold all of the state that was found."""
    omitted = len(store_state.state.credentials) + len(store_state.state.tokens)
    if target.limitation and omitted:
        warn(
            f"{len(store_state.state.credentials)} SCRAM credentials and {len(store_state.state.tokens)} "
            f"delegation tokens are not migrated: {target.limitation}"
        )


def warn_of_downgrade(acls: Iterable[StandardAcl]) -> None:
    """Warn of ACLs that ZooKeeper holds and brokers before Kafka 2.0 ignore (KIP-290)."""
    prefixed = [acl for acl in acls if acl.pattern_type == PatternType.PREFIXED]
    denied = sum(acl.permission_type == AclPermissionType.DENY for acl in prefixed)
    if prefixed:
        warn(
            f"{len(prefixed)} ACLs are prefixed, {denied} of them DENY: a Kafka before 2.0 ignores them, and allows "
            "what only such a DENY forbids. Do not downgrade that far while they are needed"
        )


def report_comparison(comparison: Comparison, output: Output) -> int:
    """Print how ZooKeeper and the target differ; return the exit code."""
    if output.is_rows:
        output.print_rows(COMPARISON_COLUMNS, comparison_rows(comparison))
    else:
        _print_comparison(comparison)
    return 0 if comparison.is_equal else 1


def _print_comparison(comparison: Comparison) -> None:
    change = comparison.difference
    for line in _difference_lines(change):
        say(printable(line))
    expected = [each for each in comparison.disagreements if each.is_known]
    for each in comparison.disagreements[:_MAX_LINES]:
        why = " (Kafka 4.3.1: LITERAL * does not match names that begin with *)" if each.is_known else ""
        say(printable(f"differs: {each}{why}"))
    unknown = len(comparison.disagreements) - len(expected)
    same = "the same" if not len(change) else f"{len(change)} differences"
    say(
        f"compared: contents {same}; {comparison.requests} decisions, {unknown} differ"
        + (f", and {len(expected)} by a known difference of Kafka 4.3.1" if expected else "")
    )


def _difference_lines(change: StateChange) -> Iterator[str]:
    """Yield what only one side has, and credentials and tokens that differ."""
    yield from _listed("only in ZooKeeper", map(acl_text, change.added_acls))
    yield from _listed("not in ZooKeeper", map(acl_text, change.removed_acls))
    names = (f"SCRAM credential of {each.name!r}, mechanism {each.mechanism}" for each in change.credentials)
    yield from _listed("differs", names)
    yield from _listed("differs", (f"delegation token {each.token_id}" for each in change.tokens))


def _listed(what: str, texts: Iterable[str]) -> Iterator[str]:
    count = 0
    for count, text in enumerate(texts, 1):
        if count <= _MAX_LINES:
            yield f"{what}: {text}"
    if count > _MAX_LINES:
        yield f"{what}: {count - _MAX_LINES} more"


# What `--replace` may remove: more than a share of what the target holds is confirmed first.


def suspicion(name: str, current: AccessState, goal: AccessState, limit: RemovalLimit) -> str | None:
    """Return why the changes to the wanted state are suspicious, and what to do; None if they are not, or accepted."""
    removed = difference(current, goal).removals
    if not limit.is_exceeded(removed, len(current)) or limit.is_accepted(removed):
        return None
    what = f"{removed} of {len(current)} entries would go"
    return f"{name}: {what}: if that is right, accept it with --accept-removal {removed}"


def confirmed(name: str, current: AccessState, goal: AccessState, limit: RemovalLimit) -> RemovalLimit:
    """Confirm a suspicious removal on a terminal; return the limit with what is now accepted.

    Raises:
        ConfigError: it is not accepted, or there is no terminal.

    """
    problem = suspicion(name, current, goal, limit)
    if problem is None:
        return limit
    if not sys.stdin.isatty():
        raise ConfigError(problem)
    removed = difference(current, goal).removals
    question = value_formatter()(f"{name}: {removed} of {len(current)} entries would go. Remove them? (y/n)")
    nothing = f"{name}: nothing was written"
    if not confirms(question, nothing):
        raise ConfigError(nothing)
    return evolve(limit, accepted=removed)


# The ZooKeeper of a migration: its settings, a connected client, and a watched copy of its contents.


_IN_FLIGHT = 256
"""Pipelined requests while everything is read; Kafka's default of 10 would take minutes for large stores."""


def store_settings(connect: str, tls_config: Path | None, *, is_written: bool) -> ZkSettings:
    """Return the settings of the client; only a store that is written gets a missing chroot. Raises ConfigError."""
    properties = {} if tls_config is None else read_properties(tls_config)[0]
    settings = zk_settings({**properties, "zookeeper.connect": connect})
    return evolve(settings, in_flight=max(settings.in_flight, _IN_FLIGHT), make_chroot=is_written)


@contextmanager
def connected(settings: ZkSettings) -> Iterator["ZkClient"]:
    """Connect for the duration of a migration; warn if a KRaft controller owns the ZooKeeper.

    Raises ConfigError, StoreError; DecodeError: as aclog.zookeeper.connect.kraft_controller.
    """
    with closing(opened_zookeeper(settings)) as client:
        owner = kraft_controller(client)
        if owner is not None:
            warn(owner.warning)
        yield client


def patience(settings: ZkSettings) -> float:
    """Return how many seconds to wait for a lost connection."""
    return settings.session_timeout + settings.connection_timeout


def read_store(client: "ZkClient", *, may_be_new: bool = False) -> StoreWatch:
    """Read everything in a store, and watch it from then on.

    Raises:
        ConfigError: it has none of Kafka's directories, and is not allowed to be new.
        StoreError: ZooKeeper is unavailable.

    """
    with progress("reading ZooKeeper", "znodes") as advance:
        watch = StoreWatch(client, lambda count: advance(count, None))
        watch.catch_up(patience(client.settings))
    if not watch.has_directories() and not may_be_new:
        raise ConfigError(
            f"{client.settings.where}: no /kafka-acl, /config/users or /delegation_token: is the chroot correct?"
        )
    return watch


def decide_by(acls: AclsImage) -> Decide:
    """Return the decisions of an image of ACLs, without super users."""

    def decide(request: Request) -> bool:
        """Decide one request."""
        arguments = (request.principal, request.host, request.operation, request.resource_type, request.name)
        try:
            return acls.verdict(*arguments) is Verdict.ALLOW
        except InvalidRequestError:  # Kafka throws for such a principal, and denies the request
            return False

    return decide


def store_decides(watch: StoreWatch) -> Decide:
    """Return the decisions of Kafka 3.9's AclAuthorizer with the ACLs of a store."""
    image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in watch.state().state.acls)
    return decide_by(image.with_options(documented=True, cidr=False))


# The operator's request to switch over, read from stdin.


WORD = "switch"


@define
class SwitchRequest:
    """Whether the word has been typed. A daemon thread reads stdin, since a blocking read cannot be interrupted."""

    _requested: threading.Event = Factory(threading.Event)
    _ended: bool = field(default=False, init=False)

    def wait(self, seconds: float) -> None:
        """Wait for the word, at most this long."""
        self._requested.wait(seconds)

    def is_set(self) -> bool:
        """Return whether the word has been typed.

        Raises:
            ConfigError: stdin ended without it.

        """
        if self._ended and not self._requested.is_set():
            raise ConfigError(
                f"stdin ended without the word {WORD!r}: not switched over; use --until-quiet to switch over without it"
            )
        return self._requested.is_set()

    def read(self) -> None:
        """Read stdin until the word, or its end."""
        for line in sys.stdin:
            if line.strip().lower() == WORD:
                self._requested.set()
                return
            note(f"{line.strip()!r}: not understood: type {WORD!r} to switch over, or Ctrl-C to cancel")
        self._ended = True


@contextmanager
def switch_request(*, from_stdin: bool) -> Iterator[SwitchRequest]:
    """Return a request, which stdin can make if `from_stdin`."""
    request = SwitchRequest()
    if from_stdin:
        note(
            f"following changes; stop all writers to ZooKeeper, then type {WORD!r} to switch over, or Ctrl-C to cancel"
        )
        threading.Thread(target=request.read, name="switch", daemon=True).start()
    yield request


# Migration from ZooKeeper to a log directory, a new Kafka or a running quorum: copy, follow changes, switch over.


_POLL_S = 0.2
"""Interval of the checks for changes and for the switchover."""
_MAX_LATE_CHANGES = 10
"""Rounds of changes after the switchover before the command fails."""


@frozen(kw_only=True)
class MigrationOptions:
    """Source, target and mode; `until_quiet` in seconds."""

    store: ZkSettings
    target: Target
    dry_run: bool
    compare_only: bool
    follow: bool
    until_quiet: float | None
    replace: bool
    skip_unreadable: bool
    limit: RemovalLimit = field(factory=RemovalLimit)
    output: Output = field(factory=lambda: Output(form=OutputFormat.TEXT))


def run_migration(options: MigrationOptions) -> int:
    """Migrate, show what that would do, or compare; return the exit code, 1 if sides differ or something blocks it.

    Raises:
        ConfigError: entries that cannot be read, a target with entries of its own, or too many of these to remove.
        StoreError: ZooKeeper is unavailable.
        MetadataError: the target cannot be read or written.

    """
    with connected(options.store) as client:
        watch = read_store(client)
        if options.compare_only:
            return _compare(options, watch)
        if options.dry_run:
            return _show(options, watch)
        _migrate(options, watch)
        # Read again, so that the comparison does not depend on the copy that was migrated.
        return _compare(options, read_store(client))


def _show(options: MigrationOptions, watch: StoreWatch) -> int:
    store_state, current = watch.state(), options.target.contents().state
    goal = options.target.supported(store_state.state)
    change = difference(current, goal)
    obstacles = [*_unreadable(options, store_state), *_own_entries(options, current, goal)]
    if options.replace and (suspicious := suspicion(options.target.name, current, goal, options.limit)):
        obstacles.append(suspicious)
    if options.output.is_rows:
        options.output.print_rows(PLAN_COLUMNS, plan_rows(store_state.left_out, change, obstacles))
        warn_of_limitation(options.target, store_state)
    else:
        report_plan(options.store.where, options.target, store_state, change)
    for obstacle in obstacles:
        warn(obstacle)
    return 1 if obstacles else 0


def _unreadable(options: MigrationOptions, store_state: StoreState) -> Iterator[str]:
    if store_state.unreadable and not options.skip_unreadable:
        yield (
            f"{len(store_state.unreadable)} entries in ZooKeeper cannot be read, and may be DENY ACLs (the first: "
            f"{store_state.unreadable[0]}): repair or delete them, or leave them out with --skip-unreadable"
        )


def _own_entries(options: MigrationOptions, current: AccessState, goal: AccessState) -> Iterator[str]:
    change = difference(current, goal)
    if change.removals and not options.replace:
        yield (
            f"{options.target.name}: {change.removals} entries are not in ZooKeeper: remove them first, or let "
            "--replace remove them"
        )


def _migrate(options: MigrationOptions, watch: StoreWatch) -> None:
    store_state = watch.state()
    report_left_out(store_state.left_out)
    _refuse(_unreadable(options, store_state))
    # Nothing is written before all obstacles are known to be absent.
    with options.target.open() as writer:
        goal = options.target.supported(store_state.state)
        _refuse(_own_entries(options, writer.state, goal))
        options = evolve(options, limit=confirmed(options.target.name, writer.state, goal, options.limit))
        run = _Run(options, watch, writer)
        run.follow()
        run.switch_over()


def _refuse(obstacles: Iterator[str]) -> None:
    for obstacle in obstacles:
        raise ConfigError(obstacle)


@define
class _Run:
    """A running migration, owned by one thread."""

    _options: MigrationOptions
    _watch: StoreWatch
    _writer: TargetWriter
    _reported: frozenset[LeftOut] = field(init=False)
    _begun: AccessState = field(init=False)
    """What the target held at the start."""
    _quiet_since: float = field(factory=time.monotonic, init=False)

    def __attrs_post_init__(self) -> None:
        self._begun = self._writer.state
        # Reported by _migrate already.
        self._reported = frozenset(self._watch.state().left_out)

    def follow(self) -> None:
        """Copy everything, then follow changes until it is time to switch over."""
        options = self._options
        copied = self._writer.write(options.target.supported(self._watch.state().state))
        note(f"copied into {options.target.name}, not switched over yet: {copied.counts()}")
        with switch_request(from_stdin=options.follow) as request:
            while not self._is_time(request):
                request.wait(_POLL_S)
                self.catch_up()

    def _is_time(self, request: SwitchRequest) -> bool:
        quiet, follow = self._options.until_quiet, self._options.follow
        if quiet is not None and time.monotonic() - self._quiet_since >= quiet:
            return True
        return request.is_set() or (not follow and quiet is None)

    def catch_up(self) -> int:
        """Write what has changed since the last call; return the number of changes.

        Raises:
            ConfigError: it would remove too much of what the target held at the start.
            StoreError: ZooKeeper is unavailable.

        """
        if not self._watch.catch_up(patience(self._options.store)):
            return 0
        store_state = self._watch.state()
        report_left_out(each for each in store_state.left_out if each not in self._reported)
        self._reported |= frozenset(store_state.left_out)
        goal = self._options.target.supported(store_state.state)
        suspicious = suspicion(self._options.target.name, self._begun, goal, self._options.limit)
        _refuse(iter([suspicious] if suspicious else []))
        change = self._writer.write(goal)
        if len(change):
            # Only migrated entries count: quotas, for example, may keep changing.
            self._quiet_since = time.monotonic()
            note(f"followed: {change.counts()}")
        return len(change)

    def switch_over(self) -> None:
        """Make everything visible, with the last changes, and copy changes that are made during the switchover."""
        self.catch_up()
        # Entries that have become unreadable since the copy.
        _refuse(_unreadable(self._options, self._watch.state()))
        self._writer.commit()
        note(f"switched over: {self._options.target.name} holds {self._writer.state.counts()}")
        # A writer that was not stopped may have changed ZooKeeper after the last catch-up and before the commit.
        for _ in range(_MAX_LATE_CHANGES):
            count = self.catch_up()
            if not count:
                return
            self._writer.commit()
            warn(f"ZooKeeper was modified during the switchover: {count} change(s) were copied too; stop all writers")
        raise ConfigError(
            "ZooKeeper is still being modified after the switchover; stop all writers, then run the command again"
        )


def _compare(options: MigrationOptions, watch: StoreWatch) -> int:
    contents, store_state = options.target.contents(), watch.state()
    comparison = compare(
        options.target.supported(store_state.state),
        contents.state,
        store_decides=store_decides(watch),
        target_decides=decide_by(contents.acls),
    )
    warn_of_limitation(options.target, store_state)
    return report_comparison(comparison, options.output)


# Migration back: the newest state of a log is written to ZooKeeper (`aclog migrate --to-zookeeper`).


@frozen(kw_only=True)
class ReverseOptions:
    """Log, ZooKeeper and mode."""

    store: ZkSettings
    log: Path
    dry_run: bool
    compare_only: bool
    replace: bool
    skip_unreadable: bool
    limit: RemovalLimit = field(factory=RemovalLimit)
    output: Output = field(factory=lambda: Output(form=OutputFormat.TEXT))


def run_reverse_migration(options: ReverseOptions) -> int:
    """Write a log's state to ZooKeeper, show what that would do, or compare; return the exit code.

    Raises:
        ConfigError: entries that ZooKeeper cannot hold, or that only ZooKeeper has, without the flags that allow them;
            or too many of these to remove.
        AclRequestError: a KRaft controller owns the ZooKeeper.
        StoreError: ZooKeeper is unavailable.
        MetadataError: the log cannot be read.

    """
    contents = LogTarget(directory=options.log, force=False).existing()
    goal, left_out = storable(contents.state)
    with connected(options.store) as client:
        watch = read_store(client, may_be_new=True)
        if not options.compare_only:
            check_not_owned(client)
            is_clear = _report(options, watch, goal, left_out)
            if options.dry_run:
                return 0 if is_clear else 1
            confirmed(options.store.where, watch.state().state, goal, options.limit)
            _write(client, watch, goal)
            # Read again, so that the comparison is with what was really written.
            watch = read_store(client, may_be_new=True)
        return _compare_zookeeper(options, watch, contents, goal)


def _report(options: ReverseOptions, watch: StoreWatch, goal: AccessState, left_out: tuple[LeftOut, ...]) -> bool:
    """Report the changes; return whether nothing blocks them. If something does, raise ConfigError unless a dry run."""
    store_state = watch.state()
    change = difference(store_state.state, goal)
    report_left_out((*left_out, *store_state.left_out))
    warn_of_downgrade(goal.acls)
    if options.dry_run and not options.output.is_rows:
        say(f"{options.log}: {goal.counts()}")
        say(f"{options.store.where}: {change.counts()}")
        report_removals(change)
    obstacles = []
    if (left_out or store_state.unreadable) and not options.skip_unreadable:
        obstacles.append(
            f"{len(left_out)} entries that ZooKeeper cannot hold, and {len(store_state.unreadable)} entries in it that "
            "cannot be read: repair or remove them, or leave them out with --skip-unreadable"
        )
    if change.removals and not options.replace:
        obstacles.append(
            f"{options.store.where}: {change.removals} entries are not in the log: remove them first, or let --replace "
            "remove them"
        )
    elif options.dry_run and (suspicious := suspicion(options.store.where, store_state.state, goal, options.limit)):
        obstacles.append(suspicious)
    if options.dry_run and options.output.is_rows:
        options.output.print_rows(PLAN_COLUMNS, plan_rows((*left_out, *store_state.left_out), change, obstacles))
    for obstacle in obstacles:
        if not options.dry_run:
            raise ConfigError(obstacle)
        warn(obstacle)
    return not obstacles


def _write(client: "ZkClient", watch: StoreWatch, goal: AccessState) -> None:
    change = difference(watch.state().state, goal)
    execute_plan(store_plan(goal, change), client)
    note(f"written into {client.settings.where}: {change.counts()}")


def _compare_zookeeper(options: ReverseOptions, watch: StoreWatch, contents: TargetContents, goal: AccessState) -> int:
    # Contents are compared with what ZooKeeper can hold, decisions with the whole log: an ACL that was left out shows
    # up if it makes a difference.
    comparison = compare(
        watch.state().state,
        goal,
        store_decides=store_decides(watch),
        target_decides=decide_by(contents.acls),
    )
    return report_comparison(comparison, options.output)


# Checks the flags of `aclog migrate` and runs the migration.


_MAX_QUIET_S = 86_400.0


def run_migrate(
    zookeeper: ZooKeeperFlags, target: MetadataLogFlags, mode: ModeFlags, removal: RemovalFlags, *, output: Output
) -> int:
    """Run the command; return its exit code. Raises as `run_migration` and `run_reverse_migration`."""
    if (zookeeper.zookeeper is None) is (zookeeper.to_zookeeper is None):
        raise ConfigError("exactly one ZooKeeper must be given: --zookeeper HOST:PORT or --to-zookeeper HOST:PORT")
    if mode.dry_run and mode.compare:
        raise ConfigError("--dry-run and --compare: expected only one of them")
    if target.command_config is not None and target.bootstrap_controller is None:
        raise ConfigError("--command-config: expected only with --bootstrap-controller")
    if zookeeper.zookeeper is not None:
        options = _migration(zookeeper.zookeeper, zookeeper, target, mode)
        return run_migration(evolve(options, limit=removal.limit(), output=output))
    back = _reverse_migration(zookeeper, target, mode)
    return run_reverse_migration(evolve(back, limit=removal.limit(), output=output))


def _migration(connect: str, zookeeper: ZooKeeperFlags, target: MetadataLogFlags, mode: ModeFlags) -> MigrationOptions:
    quiet = mode.until_quiet
    if quiet is not None and not 0 <= quiet <= _MAX_QUIET_S:
        raise ConfigError(f"--until-quiet {quiet:g}: expected seconds from 0 to {_MAX_QUIET_S:g}")
    if (mode.dry_run or mode.compare) and (mode.follow or quiet is not None):
        raise ConfigError("--dry-run and --compare do not follow changes: expected neither --follow nor --until-quiet")
    return MigrationOptions(
        store=store_settings(connect, zookeeper.zk_tls_config_file, is_written=False),
        target=_target(target, force=mode.force),
        dry_run=mode.dry_run,
        compare_only=mode.compare,
        follow=mode.follow,
        until_quiet=quiet,
        replace=mode.replace,
        skip_unreadable=mode.skip_unreadable,
    )


def _target(flags: MetadataLogFlags, *, force: bool) -> Target:
    targets = [flags.log, flags.bootstrap_checkpoint, flags.bootstrap_controller]
    if sum(each is not None for each in targets) != 1:
        raise ConfigError(
            "exactly one target must be given: --log DIR, --bootstrap-checkpoint FILE or --bootstrap-controller "
            "HOST:PORT"
        )
    if flags.log is not None:
        return LogTarget(directory=flags.log, force=force)
    if force:
        raise ConfigError("--force: expected only with --log")
    if flags.bootstrap_checkpoint is not None:
        return CheckpointTarget(path=flags.bootstrap_checkpoint)
    return QuorumTarget(
        controllers=parse_servers("--bootstrap-controller", flags.bootstrap_controller),
        security=client_security(flags.command_config),
    )


def _reverse_migration(zookeeper: ZooKeeperFlags, target: MetadataLogFlags, mode: ModeFlags) -> ReverseOptions:
    unsupported = {
        "--bootstrap-checkpoint": target.bootstrap_checkpoint is not None,
        "--bootstrap-controller": target.bootstrap_controller is not None,
        "--follow": mode.follow,
        "--until-quiet": mode.until_quiet is not None,
        "--force": mode.force,
    }
    if target.log is None or any(unsupported.values()):
        flags = ", ".join(name for name, is_given in unsupported.items() if is_given)
        raise ConfigError(f"--to-zookeeper: requires --log DIR{f' and excludes {flags}' if flags else ''}")
    is_written = not (mode.dry_run or mode.compare)
    return ReverseOptions(
        store=store_settings(zookeeper.to_zookeeper or "", zookeeper.zk_tls_config_file, is_written=is_written),
        log=target.log,
        dry_run=mode.dry_run,
        compare_only=mode.compare,
        replace=mode.replace,
        skip_unreadable=mode.skip_unreadable,
    )
