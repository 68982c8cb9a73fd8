"""The migrations of `aclog migrate`: to a log or a cluster, and back to ZooKeeper."""

import sys
import threading
from collections.abc import Iterable, Iterator

from attrs import Factory, evolve, field

from aclog.authorizer.acl import acl_text
from aclog.cli.flags.commands import MetadataLogFlags, ModeFlags, ZooKeeperFlags
from aclog.cli.flags.common import Output, RemovalFlags
from aclog.cli.images import ACL_COLUMNS
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.values import define
from aclog.ops.migrate import (
    LargeRemoval,
    Migration,
    NoRequest,
    Preview,
    ReverseMigration,
    comparison_objects,
    refuse_removal,
    store_settings,
    warn_of_limitation,
)
from aclog.ops.migration_targets import CheckpointTarget, LogTarget, QuorumTarget, Target
from aclog.sources.server_flags import client_security, parse_servers
from aclog.terminal.columns import Column
from aclog.terminal.output import confirms, note, say, value_formatter, warn
from aclog.zookeeper.migration import Comparison, StateChange

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


# Output of `aclog migrate`: results on stdout, warnings on stderr.


_MAX_LINES = 100
"""Differences that are listed per kind; all are counted."""


def report_plan(store: str, target: Target, preview: Preview) -> None:
    """Print what a migration would do."""
    say(f"{store}: {preview.store_state.state.counts()}")
    for each in preview.left_out:
        say(printable(f"left out: {each}"))
    warn_of_limitation(target, preview.store_state)
    say(f"{target.name}: {preview.change.counts()}")
    report_removals(preview.change)


def report_removals(change: StateChange) -> None:
    """Print the ACLs that a migration would remove, and that this is a dry run."""
    for acl in change.removed_acls:
        say(printable(f"would remove: {acl_text(acl)}"))
    say("dry run: nothing was written")


def report_comparison(comparison: Comparison, output: Output) -> int:
    """Print how ZooKeeper and the target differ; return the exit code."""
    if output.is_rows:
        output.print_rows(COMPARISON_COLUMNS, comparison_objects(comparison))
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


def confirm_removal(removal: LargeRemoval) -> None:
    """Have a large removal confirmed on a terminal. Raises ConfigError: it is not, or there is no terminal."""
    if not sys.stdin.isatty():
        refuse_removal(removal)
    question = value_formatter()(
        f"{removal.name}: {removal.removed} of {removal.total} entries would go. Remove them? (y/n)"
    )
    nothing = f"{removal.name}: nothing was written"
    if not confirms(question, nothing):
        raise ConfigError(nothing)


# The operator's request to switch over, read from stdin.


WORD = "switch"


@define
class TypedRequest:
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


def read_request() -> TypedRequest:
    """Return a request that stdin can make from now on."""
    request = TypedRequest()
    note(f"following changes; stop all writers to ZooKeeper, then type {WORD!r} to switch over, or Ctrl-C to cancel")
    threading.Thread(target=request.read, name="switch", daemon=True).start()
    return request


# Checks the flags of `aclog migrate` and runs the migration.


_MAX_QUIET_S = 86_400.0


def run_migrate(
    zookeeper: ZooKeeperFlags, target: MetadataLogFlags, mode: ModeFlags, removal: RemovalFlags, *, output: Output
) -> int:
    """Run the command; return its exit code. Raises as `Migration.run` and `ReverseMigration.run`."""
    if (zookeeper.zookeeper is None) is (zookeeper.to_zookeeper is None):
        raise ConfigError("exactly one ZooKeeper must be given: --zookeeper HOST:PORT or --to-zookeeper HOST:PORT")
    if mode.dry_run and mode.compare:
        raise ConfigError("--dry-run and --compare: expected only one of them")
    if target.command_config is not None and target.bootstrap_controller is None:
        raise ConfigError("--command-config: expected only with --bootstrap-controller")
    if zookeeper.zookeeper is not None:
        migration = evolve(_migration(zookeeper.zookeeper, zookeeper, target, mode), limit=removal.limit())
        if mode.dry_run:
            return _print_preview(migration, output)
        if mode.compare:
            return report_comparison(migration.compare(), output)
        begin_switch = read_request if mode.follow else NoRequest
        return report_comparison(migration.run(confirm_removal, begin_switch), output)
    back = evolve(_reverse_migration(zookeeper, target, mode), limit=removal.limit())
    if mode.dry_run:
        return _print_reverse_preview(back, output)
    return report_comparison(back.compare() if mode.compare else back.run(confirm_removal), output)


def _print_preview(migration: Migration, output: Output) -> int:
    preview = migration.preview()
    if output.is_rows:
        output.print_rows(PLAN_COLUMNS, preview.objects())
        warn_of_limitation(migration.target, preview.store_state)
    else:
        report_plan(migration.store.where, migration.target, preview)
    return _warn_of_obstacles(preview)


def _print_reverse_preview(back: ReverseMigration, output: Output) -> int:
    preview = back.preview()
    if output.is_rows:
        output.print_rows(PLAN_COLUMNS, preview.objects())
    else:
        say(f"{back.log}: {preview.goal.counts()}")
        say(f"{back.store.where}: {preview.change.counts()}")
        report_removals(preview.change)
    return _warn_of_obstacles(preview)


def _warn_of_obstacles(preview: Preview) -> int:
    for obstacle in preview.obstacles:
        warn(obstacle)
    return int(bool(preview.obstacles))


def _migration(connect: str, zookeeper: ZooKeeperFlags, target: MetadataLogFlags, mode: ModeFlags) -> Migration:
    quiet = mode.until_quiet
    if quiet is not None and not 0 <= quiet <= _MAX_QUIET_S:
        raise ConfigError(f"--until-quiet {quiet:g}: expected seconds from 0 to {_MAX_QUIET_S:g}")
    if (mode.dry_run or mode.compare) and (mode.follow or quiet is not None):
        raise ConfigError("--dry-run and --compare do not follow changes: expected neither --follow nor --until-quiet")
    return Migration(
        store=store_settings(connect, zookeeper.zk_tls_config_file, is_written=False),
        target=_target(target, force=mode.force),
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


def _reverse_migration(zookeeper: ZooKeeperFlags, target: MetadataLogFlags, mode: ModeFlags) -> ReverseMigration:
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
    return ReverseMigration(
        store=store_settings(zookeeper.to_zookeeper or "", zookeeper.zk_tls_config_file, is_written=is_written),
        log=target.log,
        replace=mode.replace,
        skip_unreadable=mode.skip_unreadable,
    )
