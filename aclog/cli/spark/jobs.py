"""Spark for a command, and the ACLs and settings by which its jobs decide."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Self

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame, SparkSession

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import RuleChange, existing_rule, missing_rule
from aclog.authorizer.settings import Settings
from aclog.cli.flags.question import SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.spark.spark_session import check_log
from aclog.metalog.errors import ConfigError
from aclog.ops.policies import read_premises, refuse_unless_known
from aclog.ops.usage import unknown_kafka, warn_of_unknown_kafka
from aclog.pipeline.accesses import pinned_accesses
from aclog.pipeline.accesses.files import PinnedFiles
from aclog.pipeline.history.intervals import intervals, known_from
from aclog.snapshots.deciding_kafka import possible_kafka
from aclog.snapshots.image import Image
from aclog.sources.choice import ChosenSource
from aclog.terminal.output import warn
from aclog.usage.arrow import ACL_FIELDS
from aclog.usage.decisions.intervals import ALWAYS, RULE_COLUMNS, Rules
from aclog.usage.rules import deciding_rules_of_state, kafka_of_log

# The ACLs and settings that a job on Spark decides by, from the flags of a command.


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
    configs: AbstractSet[str],
    proves: str | None = None,
) -> tuple[Rules, Settings]:
    """Return the ACLs of one state, or with `own_time` all of a log with their intervals; and the settings that decide.

    Settings of a running cluster that are unknown, except for the properties in `configs`, are noted; with `proves`, a
    proof that needs them is refused. If the settings name no Kafka, that decides which the brokers run, with
    `own_time` at the time; a warning reports what is not decided, as that is not known.

    Raises:
        ConfigError: not exactly one source, or `own_time` without --log or with --as-of.
        MetadataError, OSError: the source is damaged, or does not reach the requested point.

    """
    source = flags.choose()
    if not own_time:
        image = source.image()
        _check_premises(source, configs, proves)
        rules, settings = deciding_rules_of_state(image, settings)
        warn_of_unknown_kafka(rules)
        return rules, settings
    if flags.log is None or flags.as_of is not None:
        raise ConfigError("--own-time decides each row by the ACLs of its own time: expected --log and no --as-of")
    log = flags.log.absolute()  # the path is resolved by workers, which run in directories of their own
    check_log(log)
    _check_premises(source, configs, proves)
    all_rules = Rules.of_table(intervals(spark, log).toArrow(), known_from=known_from(log))
    rules, settings = all_rules.by_kafka(settings, partial(kafka_of_log, log))
    warn_of_unknown_kafka(rules)
    return rules, settings


def _check_premises(source: ChosenSource, configs: AbstractSet[str], proves: str | None) -> None:
    premises = read_premises(source, configs)
    if proves is not None:
        refuse_unless_known(premises, proves)


@frozen(eq=False, kw_only=True)
class TwoPolicies:
    """What decides before a change of the ACLs and after it."""

    before: Policy
    after: Policy

    @classmethod
    def of(
        cls,
        first: SourceFlags,
        second: SecondStateFlags,
        settings: tuple[Settings, Settings],
        *,
        configs: tuple[AbstractSet[str], AbstractSet[str]],
        proves: str,
    ) -> Self:
        """Read a state and a second one (checked: SecondStateFlags.check): of a source, or the first one, changed.

        `settings`: of both; if they name no Kafka, that decides which the brokers of a state run, and for a state
        without it, that of the other one. `configs`, of both, and `proves` as for `rules_of`.

        Raises:
            ConfigError: as `changed_rules`, or a malformed file.
            MetadataError, OSError: a source is damaged, or does not reach the requested point.

        """
        choice, source = first.choose(), second.source(first)
        image = choice.image()
        _check_premises(choice, configs[0], proves)
        rules, other = Rules.of_image(image.acls), None
        if source is None:
            changed = changed_rules(rules, second.changes())
        else:
            choice = source.choose()
            other = choice.image()
            _check_premises(choice, configs[1], proves)
            changed = Rules.of_image(other.acls)
        old, new = _deciding(image, other)
        policies = _policy(rules, settings[0], old), _policy(changed, settings[1], new)
        for text in dict.fromkeys(filter(None, (unknown_kafka(each.rules) for each in policies))):
            warn(text)
        return cls(before=policies[0], after=policies[1])


def _deciding(first: Image, second: Image | None) -> tuple[Image, Image]:
    """Return the images whose nodes decide on two states; the second is None if it is the first one, changed."""
    other = first if second is None else second
    reference = next((image for image in (first, other) if _states_kafka(image)), first)
    return first if _states_kafka(first) else reference, other if _states_kafka(other) else reference


def _states_kafka(image: Image) -> bool:
    """Return whether a state records which Kafka decides: by its metadata.version, or of at least one broker."""
    return possible_kafka(image).has_brokers


def _policy(rules: Rules, settings: Settings, image: Image) -> Policy:
    rules, settings = rules.by_kafka(
        settings, lambda controllers: [(ALWAYS, possible_kafka(image, controllers=controllers))]
    )
    return Policy(rules=rules, settings=settings)


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
