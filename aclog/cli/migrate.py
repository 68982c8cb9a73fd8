"""`aclog migrate`: migration from ZooKeeper, and back."""

from aclog.cli.app import writes_to_source
from aclog.cli.flags.commands import MetadataLogFlags, ModeFlags, ZooKeeperFlags
from aclog.cli.flags.common import RemovalFlags
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.options import Group

app = Group()


@app.command()
@writes_to_source(unless=("--dry-run", "--compare", "--to-zookeeper"))
def migrate(
    zookeeper: ZooKeeperFlags, target: MetadataLogFlags, mode: ModeFlags, removal: RemovalFlags, output: AnswerFlags
) -> int:
    """Migrate ACLs, SCRAM credentials and delegation tokens from ZooKeeper to a metadata log, or back.

    In a log, the switchover is atomic. Afterwards the contents and decisions of
    both sides are compared. Entries that cannot be migrated are listed. Tokens
    keep their HMACs only if delegation.token.secret.key stays the same.

    [bold]Examples[/]

      aclog migrate --zookeeper HOST:2181/kafka --log DIR --dry-run
      aclog migrate --zookeeper HOST:2181/kafka --log DIR --follow
      aclog migrate --zookeeper HOST:2181 --bootstrap-checkpoint FILE
      aclog migrate --log DIR --to-zookeeper HOST:2181/kafka
    """
    from aclog.cli.migration import run_migrate

    how = output.choose(is_live=not (mode.dry_run or mode.compare))
    return run_migrate(zookeeper, target, mode, removal, output=how)
