"""Checks the flags of `aclog migrate` and runs the migration that they ask for."""

from attrs import evolve

from aclog.cli.flags.output import Output
from aclog.cli.flags.removal import RemovalFlags
from aclog.cli.migrate.checkpoint_target import CheckpointTarget
from aclog.cli.migrate.flags import MetadataLogFlags, ModeFlags, ZooKeeperFlags
from aclog.cli.migrate.log_target import LogTarget
from aclog.cli.migrate.quorum_target import QuorumTarget
from aclog.cli.migrate.store import store_settings
from aclog.cli.migrate.target import Target
from aclog.cli.migrate.to_kraft import MigrationOptions, run_migration
from aclog.cli.migrate.to_zookeeper import ReverseOptions, run_reverse_migration
from aclog.metalog.errors import ConfigError
from aclog.sources.server_flags import client_security, parse_servers

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
    given = [flags.log, flags.bootstrap_checkpoint, flags.bootstrap_controller]
    if sum(each is not None for each in given) != 1:
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
        found = ", ".join(name for name, given in unsupported.items() if given)
        raise ConfigError(f"--to-zookeeper: requires --log DIR{f' and excludes {found}' if found else ''}")
    is_written = not (mode.dry_run or mode.compare)
    return ReverseOptions(
        store=store_settings(zookeeper.to_zookeeper or "", zookeeper.zk_tls_config_file, is_written=is_written),
        log=target.log,
        dry_run=mode.dry_run,
        compare_only=mode.compare,
        replace=mode.replace,
        skip_unreadable=mode.skip_unreadable,
    )
