"""The ACLs and settings that a job on Spark decides by, from the flags of a command."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame, SparkSession

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.rule_change import RuleChange, existing_rule, missing_rule
from aclog.authorizer.settings import Settings
from aclog.cli.flags.second_state import SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.premises import read_premises, refuse_unless_known
from aclog.cli.spark.jobs import check_log
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import pinned_accesses
from aclog.pipeline.accesses.pinned_files import PinnedFiles
from aclog.pipeline.history.intervals import intervals, known_from
from aclog.snapshots.deciding_kafka import settled
from aclog.sources.choice import ChosenSource
from aclog.usage.arrow.acl_structs import ACL_FIELDS
from aclog.usage.decisions.acl_intervals import RULE_COLUMNS
from aclog.usage.decisions.rules import Rules


@frozen(eq=False, kw_only=True)
class Policy:
    """What decides accesses; with `own_time`, each access is decided by the ACLs in force at its own time."""

    rules: Rules
    settings: Settings
    own_time: bool = False

    def accesses(self, spark: SparkSession, path: str) -> tuple[DataFrame, PinnedFiles]:
        """Return the accesses to decide, unreadable lines included (pipeline.accesses.read_accesses), and their files.

        Raises:
            ConfigError: the file cannot be read, or has no timestamps although `own_time` needs them.

        """
        accesses, files = pinned_accesses(spark, path)
        if self.own_time and "timestamp" not in accesses.columns:
            raise ConfigError(f"{path}: no column 'timestamp': --own-time decides each row as of its timestamp")
        return accesses, files


def rules_of(
    spark: SparkSession,
    flags: SourceFlags,
    settings: Settings,
    *,
    own_time: bool,
    given: AbstractSet[str] = frozenset(),
    proves: str | None = None,
) -> tuple[Rules, Settings]:
    """Return the ACLs of one state, or with `own_time` all of a log with their intervals; and the settings that decide.

    What decides in a running cluster, and is unknown but for the properties in `given`, is noted; with `proves`, what
    cannot be proved without it, refused.

    Raises:
        ConfigError: not exactly one source, `own_time` without --log or with --as-of, or which generation of Kafka
            decides is not stated, and matters.
        MetadataError, OSError: the source is damaged, or does not reach the requested point.

    """
    source = flags.choose()
    if not own_time:
        image = source.image()
        _check_premises(source, given, proves)
        return Rules.of_image(image.acls), settled(settings, image)
    if flags.log is None or flags.as_of is not None:
        raise ConfigError("--own-time decides each row by the ACLs of its own time: expected --log and no --as-of")
    log = flags.log.absolute()  # the path is resolved by workers, which run in directories of their own
    check_log(log)
    if not settings.is_kafka_stated:
        settings = settled(settings, source.image())
    _check_premises(source, given, proves)
    return Rules.of_table(intervals(spark, log).toArrow(), known_from=known_from(log)), settings


def _check_premises(source: ChosenSource, given: AbstractSet[str], proves: str | None) -> None:
    premises = read_premises(source, given)
    if proves is not None:
        refuse_unless_known(premises, proves)


def rules_after(
    spark: SparkSession,
    before: Rules,
    flags: SecondStateFlags,
    first: SourceFlags,
    settings: Settings,
    *,
    given: AbstractSet[str] = frozenset(),
    proves: str | None = None,
) -> tuple[Rules, Settings]:
    """Return the ACLs of a second state (checked: SecondStateFlags.check): of a source, or those before, changed.

    `settings`: those of the second state; returned are those that decide on it. `given` and `proves` as `rules_of`.

    Raises:
        ConfigError: as `rules_of` and `changed_rules`; or an added ACL has a range, and no flag names a Kafka.

    """
    source = flags.source(first)
    if source is None:
        changes = flags.changes()
        ranges = [change.acl.host for change in changes if change.added and is_cidr(change.acl.host)]
        if ranges and not settings.is_kafka_stated:
            raise ConfigError(
                f"the host {ranges[0]} of an added ACL is a range, which Kafka 4.4 matches and Kafka 4.3 does not: "
                "--kafka-version V settles it"
            )
        return changed_rules(before, changes), settings
    return rules_of(spark, source, settings, own_time=False, given=given, proves=proves)


def changed_rules(rules: Rules, changes: Iterable[RuleChange]) -> Rules:
    """Return the ACLs after these changes, in order; a new one has no id.

    Raises:
        ConfigError: an ACL to add that already exists, or one to remove that does not exist.

    """
    rows = {_content(row): row for row in rules.table.to_pylist()}
    for change in changes:
        row = StandardAclWithId(id=None, acl=change.acl).to_dict()
        content = _content(row)
        if change.added is (content in rows):
            raise existing_rule(change) if change.added else missing_rule(change)
        if change.added:
            rows[content] = row
        else:
            del rows[content]
    texts = {name: pa.array([row[name] for row in rows.values()], pa.string()) for name in RULE_COLUMNS}
    return Rules.of_table(pa.table(texts))


def _content(row: Mapping[str, str | None]) -> tuple[str | None, ...]:
    return tuple(row[name] for name in ACL_FIELDS)
