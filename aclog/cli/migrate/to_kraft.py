"""`aclog migrate`: what a ZooKeeper holds into the metadata log of a log, a new Kafka or a running quorum."""

import time
from collections.abc import Iterator

from attrs import define, field, frozen

from aclog.cli.migrate.log_target import MigrationTarget, Place
from aclog.cli.migrate.report import report_comparison, report_left_out, report_plan, say_limit
from aclog.cli.migrate.store import connected, patience, read_store, rules_decide, store_decides
from aclog.cli.migrate.switchover import SwitchRequest, switch_request
from aclog.metalog.errors import ConfigError
from aclog.terminal.notices import note, warn
from aclog.zkstore.client.settings import ZkSettings
from aclog.zkstore.migration.access_state import AccessState, difference
from aclog.zkstore.migration.comparison import compare
from aclog.zkstore.migration.node_content import LeftOut, StoreState
from aclog.zkstore.migration.store_watch import StoreWatch

_LOOK_S = 0.2
"""How often changes are looked for, and whether to switch."""
_MOST_AFTER = 10


@frozen(kw_only=True)
class MigrationOptions:
    """From where, to where, and how; `until_quiet` in seconds."""

    store: ZkSettings
    place: Place
    dry_run: bool
    compare_only: bool
    follow: bool
    until_quiet: float | None
    replace: bool
    skip_unreadable: bool


def run_migration(options: MigrationOptions) -> int:
    """Migrate, or show what that would do, or compare; the exit code: 1 where something differs or stands in the way.

    Raises:
        ConfigError: flags that contradict each other, entries that cannot be read, or a target with more in it.
        StoreError: the ZooKeeper does not answer.
        MetadataError: the target cannot be written.

    """
    with connected(options.store) as client:
        watch = read_store(client)
        if options.compare_only:
            return _compare(options, watch)
        if options.dry_run:
            return _show(options, watch)
        _migrate(options, watch)
        return _compare(options, read_store(client))


def _show(options: MigrationOptions, watch: StoreWatch) -> int:
    found, standing = watch.state(), options.place.held().state
    wanted = options.place.takes(found.state)
    change = difference(standing, wanted)
    report_plan(options.store.where, options.place, found, change)
    obstacles = [*_unreadable(options, found), *_unasked_removals(options, standing, wanted)]
    for obstacle in obstacles:
        warn(obstacle)
    return 1 if obstacles else 0


def _unreadable(options: MigrationOptions, found: StoreState) -> Iterator[str]:
    if found.unreadable and not options.skip_unreadable:
        yield (
            f"{len(found.unreadable)} entries cannot be read, and what they say may be a DENY (the first: "
            f"{found.unreadable[0]}): expected them repaired or removed, or --skip-unreadable"
        )


def _unasked_removals(options: MigrationOptions, standing: AccessState, wanted: AccessState) -> Iterator[str]:
    change = difference(standing, wanted)
    if change.removals and not options.replace:
        yield (
            f"{options.place.name}: holds {change.removals} entries that the ZooKeeper does not: expected none, or "
            "--replace, which removes them"
        )


def _migrate(options: MigrationOptions, watch: StoreWatch) -> None:
    found = watch.state()
    report_left_out(found.left_out)
    _refuse(_unreadable(options, found))
    with options.place.open() as target:
        wanted = options.place.takes(found.state)
        _refuse(_unasked_removals(options, target.standing, wanted))
        run = _Run(options, watch, target)
        run.follow()
        run.switch()


def _refuse(obstacles: Iterator[str]) -> None:
    for obstacle in obstacles:
        raise ConfigError(obstacle)


@define
class _Run:
    """A migration under way; owned by the thread that runs it."""

    _options: MigrationOptions
    _watch: StoreWatch
    _target: MigrationTarget
    _reported: frozenset[LeftOut] = field(init=False)
    _quiet_since: float = field(factory=time.monotonic, init=False)

    def __attrs_post_init__(self) -> None:
        self._reported = frozenset(self._watch.state().left_out)

    def follow(self) -> None:
        """Copy, and carry over what changes, until it is time to switch."""
        options = self._options
        copied = self._target.write(options.place.takes(self._watch.state().state))
        note(f"copied into {options.place.name}, not switched yet: {copied.counts()}")
        with switch_request(asked_for=options.follow) as request:
            while not self._is_time(request):
                request.wait(_LOOK_S)
                self.catch_up()

    def _is_time(self, request: SwitchRequest) -> bool:
        quiet, follow = self._options.until_quiet, self._options.follow
        if quiet is not None and time.monotonic() - self._quiet_since >= quiet:
            return True
        return request.is_set() or (not follow and quiet is None)

    def catch_up(self) -> int:
        """Carry over what has changed since the last time; how much that is. Raises StoreError."""
        if not self._watch.catch_up(patience(self._options.store)):
            return 0
        found = self._watch.state()
        report_left_out(each for each in found.left_out if each not in self._reported)
        self._reported |= frozenset(found.left_out)
        change = self._target.write(self._options.place.takes(found.state))
        if len(change):
            self._quiet_since = time.monotonic()
            note(f"followed: {change.counts()}")
        return len(change)

    def switch(self) -> None:
        """Make it visible with the last changes; and what came while that was done, which nobody should have made."""
        self.catch_up()
        _refuse(_unreadable(self._options, self._watch.state()))
        self._target.switch()
        note(f"switched: {self._options.place.name} holds {self._target.standing.counts()}")
        for _ in range(_MOST_AFTER):
            count = self.catch_up()
            if not count:
                return
            self._target.switch()
            warn(
                f"{count} change(s) came after the switch, and are carried over too: nobody should change the store now"
            )
        raise ConfigError("the store goes on to change after the switch: stop who changes it, and compare (--compare)")


def _compare(options: MigrationOptions, watch: StoreWatch) -> int:
    held, found = options.place.held(), watch.state()
    comparison = compare(
        options.place.takes(found.state),
        held.state,
        store_decides=store_decides(watch),
        target_decides=rules_decide(held.acls),
    )
    say_limit(options.place, found)
    return report_comparison(comparison)
