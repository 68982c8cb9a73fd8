"""`aclog migrate --to-zookeeper`: the way back, what a log holds into a ZooKeeper."""

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from aclog.authorizer.explanation_text import acl_text
from aclog.cli.migrate.log_target import Held, LogPlace
from aclog.cli.migrate.report import report_comparison, report_left_out
from aclog.cli.migrate.store import connected, read_store, rules_decide, store_decides
from aclog.metalog.errors import ConfigError
from aclog.terminal.notices import note, one_line, warn
from aclog.zkstore.client.settings import ZkSettings
from aclog.zkstore.migration.access_state import AccessState, difference
from aclog.zkstore.migration.comparison import compare
from aclog.zkstore.migration.node_content import LeftOut
from aclog.zkstore.migration.store_plan import storable, store_plan
from aclog.zkstore.migration.store_watch import StoreWatch
from aclog.zkstore.migration.store_writer import execute_plan

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


@frozen(kw_only=True)
class WayBack:
    """From which log, to which store, and how."""

    store: ZkSettings
    log: Path
    dry_run: bool
    compare_only: bool
    replace: bool
    skip_unreadable: bool


def run_way_back(options: WayBack) -> int:
    """Write a log's state into a store, or show what that would do, or compare; the exit code.

    Raises:
        ConfigError: entries that a ZooKeeper cannot hold, or that only the store has; flags say whether to go on.
        StoreError: the ZooKeeper does not answer.
        MetadataError: the log cannot be read.

    """
    held = LogPlace(directory=options.log, force=False).existing()
    wanted, left_out = storable(held.state)
    with connected(options.store) as client:
        watch = read_store(client, may_be_new=True)
        if not options.compare_only:
            go_on = _report(options, watch, wanted, left_out)
            if options.dry_run:
                return 0 if go_on else 1
            _write(client, watch, wanted)
            watch = read_store(client, may_be_new=True)
        return _compare(watch, held, wanted)


def _report(options: WayBack, watch: StoreWatch, wanted: AccessState, left_out: tuple[LeftOut, ...]) -> bool:
    """Say what is to be done; whether nothing stands in the way. Raises ConfigError, unless it is a dry run."""
    found = watch.state()
    change = difference(found.state, wanted)
    report_left_out((*left_out, *found.left_out))
    if options.dry_run:
        print(f"{options.log}: {wanted.counts()}")
        print(f"{options.store.where}: {change.counts()}")
        for acl in change.removed_acls:
            print(one_line(f"would remove: {acl_text(acl)}"))
        print("dry run: nothing is written")
    obstacles = []
    if (left_out or found.unreadable) and not options.skip_unreadable:
        obstacles.append(
            f"{len(left_out)} entries that a ZooKeeper cannot hold, {len(found.unreadable)} nodes in it that cannot be "
            "read: expected none, or --skip-unreadable"
        )
    if change.removals and not options.replace:
        obstacles.append(
            f"{options.store.where}: holds {change.removals} entries that the log does not: expected none, or "
            "--replace, which removes them"
        )
    for obstacle in obstacles:
        if not options.dry_run:
            raise ConfigError(obstacle)
        warn(obstacle)
    return not obstacles


def _write(client: "ZkClient", watch: StoreWatch, wanted: AccessState) -> None:
    change = difference(watch.state().state, wanted)
    execute_plan(store_plan(wanted, change), client)
    note(f"written into {client.settings.where}: {change.counts()}")


def _compare(watch: StoreWatch, held: Held, wanted: AccessState) -> int:
    comparison = compare(
        watch.state().state,
        wanted,
        store_decides=store_decides(watch),
        target_decides=rules_decide(held.acls),
    )
    return report_comparison(comparison)
