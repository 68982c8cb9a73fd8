"""The flags of `aclog migrate`, checked, and what they ask for."""

from pathlib import Path

from attrs import frozen

from aclog.cli.migrate.checkpoint_target import CheckpointPlace
from aclog.cli.migrate.log_target import LogPlace, Place
from aclog.cli.migrate.quorum_target import QuorumPlace
from aclog.cli.migrate.store import store_settings
from aclog.cli.migrate.to_kraft import MigrationOptions, run_migration
from aclog.cli.migrate.to_zookeeper import WayBack, run_way_back
from aclog.metalog.errors import ConfigError
from aclog.sources.bootstrap import client_security, parse_servers

_LONGEST_S = 86_400.0


@frozen(kw_only=True)
class MigrateFlags:
    """What stands on the command line."""

    zookeeper: str | None
    to_zookeeper: str | None
    tls_config: Path | None
    log: Path | None
    bootstrap_checkpoint: Path | None
    bootstrap_controller: str | None
    command_config: Path | None
    dry_run: bool
    compare: bool
    follow: bool
    until_quiet: float | None
    replace: bool
    skip_unreadable: bool
    force: bool


def run(flags: MigrateFlags) -> int:
    """Do what the flags ask for; the exit code. Raises as aclog.cli.migrate.to_kraft.run_migration."""
    if (flags.zookeeper is None) is (flags.to_zookeeper is None):
        raise ConfigError("exactly one ZooKeeper must be given: --zookeeper HOST:PORT or --to-zookeeper HOST:PORT")
    if flags.dry_run and flags.compare:
        raise ConfigError("--dry-run and --compare: expected one of them")
    if flags.command_config is not None and flags.bootstrap_controller is None:
        raise ConfigError("--command-config goes with --bootstrap-controller")
    return run_migration(_migration(flags)) if flags.zookeeper is not None else run_way_back(_way_back(flags))


def _migration(flags: MigrateFlags) -> MigrationOptions:
    quiet = flags.until_quiet
    if quiet is not None and not 0 <= quiet <= _LONGEST_S:
        raise ConfigError(f"--until-quiet {quiet:g}: expected seconds from 0 to {_LONGEST_S:g}")
    if (flags.dry_run or flags.compare) and (flags.follow or quiet is not None):
        raise ConfigError("--dry-run and --compare follow nothing: expected neither --follow nor --until-quiet")
    return MigrationOptions(
        store=store_settings(flags.zookeeper or "", flags.tls_config, is_written=False),
        place=_place(flags),
        dry_run=flags.dry_run,
        compare_only=flags.compare,
        follow=flags.follow,
        until_quiet=quiet,
        replace=flags.replace,
        skip_unreadable=flags.skip_unreadable,
    )


def _place(flags: MigrateFlags) -> Place:
    given = [flags.log, flags.bootstrap_checkpoint, flags.bootstrap_controller]
    if sum(each is not None for each in given) != 1:
        raise ConfigError(
            "exactly one target must be given: --log DIR, --bootstrap-checkpoint FILE or --bootstrap-controller "
            "HOST:PORT"
        )
    if flags.log is not None:
        return LogPlace(directory=flags.log, force=flags.force)
    if flags.force:
        raise ConfigError("--force goes with --log")
    if flags.bootstrap_checkpoint is not None:
        return CheckpointPlace(path=flags.bootstrap_checkpoint)
    return QuorumPlace(
        controllers=parse_servers("--bootstrap-controller", flags.bootstrap_controller),
        security=client_security(flags.command_config),
    )


def _way_back(flags: MigrateFlags) -> WayBack:
    others = {
        "--bootstrap-checkpoint": flags.bootstrap_checkpoint is not None,
        "--bootstrap-controller": flags.bootstrap_controller is not None,
        "--follow": flags.follow,
        "--until-quiet": flags.until_quiet is not None,
        "--force": flags.force,
    }
    if flags.log is None or any(others.values()):
        found = ", ".join(name for name, given in others.items() if given)
        raise ConfigError(f"--to-zookeeper goes with --log DIR{f', not with {found}' if found else ''}")
    return WayBack(
        store=store_settings(
            flags.to_zookeeper or "", flags.tls_config, is_written=not (flags.dry_run or flags.compare)
        ),
        log=flags.log,
        dry_run=flags.dry_run,
        compare_only=flags.compare,
        replace=flags.replace,
        skip_unreadable=flags.skip_unreadable,
    )
