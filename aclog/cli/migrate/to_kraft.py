"""Migration from ZooKeeper to a log directory, a new Kafka or a running quorum: copy, follow changes, switch over."""

import time
from collections.abc import Iterator

from attrs import define, evolve, field, frozen

from aclog.cli.flags.output import Output
from aclog.cli.migrate.removals import confirmed, suspicion
from aclog.cli.migrate.report import report_comparison, report_left_out, report_plan, warn_of_limitation
from aclog.cli.migrate.report_rows import PLAN_COLUMNS, plan_rows
from aclog.cli.migrate.store import connected, decide_by, patience, read_store, store_decides
from aclog.cli.migrate.switchover import SwitchRequest, switch_request
from aclog.cli.migrate.target import Target, TargetWriter
from aclog.cli.removal_limit import RemovalLimit
from aclog.metalog.errors import ConfigError
from aclog.terminal.notices import note, warn
from aclog.terminal.output_format import OutputFormat
from aclog.zkstore.client.settings import ZkSettings
from aclog.zkstore.migration.access_state import AccessState, difference
from aclog.zkstore.migration.comparison import compare
from aclog.zkstore.migration.node_content import LeftOut, StoreState
from aclog.zkstore.migration.store_watch import StoreWatch

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
    found, current = watch.state(), options.target.contents().state
    wanted = options.target.supported(found.state)
    change = difference(current, wanted)
    obstacles = [*_unreadable(options, found), *_own_entries(options, current, wanted)]
    if options.replace and (suspicious := suspicion(options.target.name, current, wanted, options.limit)):
        obstacles.append(suspicious)
    if options.output.is_rows:
        options.output.print_rows(PLAN_COLUMNS, plan_rows(found.left_out, change, obstacles))
        warn_of_limitation(options.target, found)
    else:
        report_plan(options.store.where, options.target, found, change)
    for obstacle in obstacles:
        warn(obstacle)
    return 1 if obstacles else 0


def _unreadable(options: MigrationOptions, found: StoreState) -> Iterator[str]:
    if found.unreadable and not options.skip_unreadable:
        yield (
            f"{len(found.unreadable)} entries in ZooKeeper cannot be read, and may be DENY ACLs (the first: "
            f"{found.unreadable[0]}): repair or delete them, or leave them out with --skip-unreadable"
        )


def _own_entries(options: MigrationOptions, current: AccessState, wanted: AccessState) -> Iterator[str]:
    change = difference(current, wanted)
    if change.removals and not options.replace:
        yield (
            f"{options.target.name}: {change.removals} entries are not in ZooKeeper: remove them first, or let "
            "--replace remove them"
        )


def _migrate(options: MigrationOptions, watch: StoreWatch) -> None:
    found = watch.state()
    report_left_out(found.left_out)
    _refuse(_unreadable(options, found))
    # Nothing is written before all obstacles are known to be absent.
    with options.target.open() as writer:
        wanted = options.target.supported(found.state)
        _refuse(_own_entries(options, writer.state, wanted))
        options = evolve(options, limit=confirmed(options.target.name, writer.state, wanted, options.limit))
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
        found = self._watch.state()
        report_left_out(each for each in found.left_out if each not in self._reported)
        self._reported |= frozenset(found.left_out)
        wanted = self._options.target.supported(found.state)
        suspicious = suspicion(self._options.target.name, self._begun, wanted, self._options.limit)
        _refuse(iter([suspicious] if suspicious else []))
        change = self._writer.write(wanted)
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
    contents, found = options.target.contents(), watch.state()
    comparison = compare(
        options.target.supported(found.state),
        contents.state,
        store_decides=store_decides(watch),
        target_decides=decide_by(contents.acls),
    )
    warn_of_limitation(options.target, found)
    return report_comparison(comparison, options.output)
