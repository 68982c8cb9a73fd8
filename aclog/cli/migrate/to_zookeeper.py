"""Migration back: the newest state of a log is written to ZooKeeper (`aclog migrate --to-zookeeper`)."""

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from aclog.cli.flags.output import Output
from aclog.cli.migrate.log_target import LogTarget
from aclog.cli.migrate.removals import confirmed, suspicion
from aclog.cli.migrate.report import report_comparison, report_left_out, report_removals, warn_of_downgrade
from aclog.cli.migrate.report_rows import PLAN_COLUMNS, plan_rows
from aclog.cli.migrate.store import connected, decide_by, read_store, store_decides
from aclog.cli.migrate.target import TargetContents
from aclog.cli.removal_limit import RemovalLimit
from aclog.metalog.errors import ConfigError
from aclog.terminal.notices import note, warn
from aclog.terminal.output import say
from aclog.terminal.output_format import OutputFormat
from aclog.zkstore.client.settings import ZkSettings
from aclog.zkstore.kraft_controller import check_not_owned
from aclog.zkstore.migration.access_state import AccessState, difference
from aclog.zkstore.migration.comparison import compare
from aclog.zkstore.migration.node_content import LeftOut
from aclog.zkstore.migration.store_plan import storable, store_plan
from aclog.zkstore.migration.store_watch import StoreWatch
from aclog.zkstore.migration.store_writer import execute_plan

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


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
    wanted, left_out = storable(contents.state)
    with connected(options.store) as client:
        watch = read_store(client, may_be_new=True)
        if not options.compare_only:
            check_not_owned(client)
            is_clear = _report(options, watch, wanted, left_out)
            if options.dry_run:
                return 0 if is_clear else 1
            confirmed(options.store.where, watch.state().state, wanted, options.limit)
            _write(client, watch, wanted)
            # Read again, so that the comparison is with what was really written.
            watch = read_store(client, may_be_new=True)
        return _compare(options, watch, contents, wanted)


def _report(options: ReverseOptions, watch: StoreWatch, wanted: AccessState, left_out: tuple[LeftOut, ...]) -> bool:
    """Report the changes; return whether nothing blocks them. If something does, raise ConfigError unless a dry run."""
    found = watch.state()
    change = difference(found.state, wanted)
    report_left_out((*left_out, *found.left_out))
    warn_of_downgrade(wanted.acls)
    if options.dry_run and not options.output.is_rows:
        say(f"{options.log}: {wanted.counts()}")
        say(f"{options.store.where}: {change.counts()}")
        report_removals(change)
    obstacles = []
    if (left_out or found.unreadable) and not options.skip_unreadable:
        obstacles.append(
            f"{len(left_out)} entries that ZooKeeper cannot hold, and {len(found.unreadable)} entries in it that "
            "cannot be read: repair or remove them, or leave them out with --skip-unreadable"
        )
    if change.removals and not options.replace:
        obstacles.append(
            f"{options.store.where}: {change.removals} entries are not in the log: remove them first, or let --replace "
            "remove them"
        )
    elif options.dry_run and (suspicious := suspicion(options.store.where, found.state, wanted, options.limit)):
        obstacles.append(suspicious)
    if options.dry_run and options.output.is_rows:
        options.output.print_rows(PLAN_COLUMNS, plan_rows((*left_out, *found.left_out), change, obstacles))
    for obstacle in obstacles:
        if not options.dry_run:
            raise ConfigError(obstacle)
        warn(obstacle)
    return not obstacles


def _write(client: "ZkClient", watch: StoreWatch, wanted: AccessState) -> None:
    change = difference(watch.state().state, wanted)
    execute_plan(store_plan(wanted, change), client)
    note(f"written into {client.settings.where}: {change.counts()}")


def _compare(options: ReverseOptions, watch: StoreWatch, contents: TargetContents, wanted: AccessState) -> int:
    # Contents are compared with what ZooKeeper can hold, decisions with the whole log: an ACL that was left out shows
    # up if it makes a difference.
    comparison = compare(
        watch.state().state,
        wanted,
        store_decides=store_decides(watch),
        target_decides=decide_by(contents.acls),
    )
    return report_comparison(comparison, options.output)
