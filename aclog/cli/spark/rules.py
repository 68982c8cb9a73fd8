"""Rules for a job on Spark, from the state source that the flags of a command choose."""

from collections.abc import Iterator, Mapping
from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession

from aclog.authorizer.audit import rule_row
from aclog.authorizer.super_users import parse_super_users
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.spark.log import check_log
from aclog.metalog.errors import ConfigError
from aclog.pipeline.authorize import Rules
from aclog.pipeline.decisions.acl_intervals import RULE_COLUMNS
from aclog.pipeline.decisions.bulk_authorizer import Settings
from aclog.pipeline.history.intervals import intervals, known_from
from aclog.snapshots.moments import parse_moment
from aclog.sources.acl_lines import read_acls
from aclog.sources.text_lines import STDIN


def rules_of(spark: SparkSession, flags: SourceFlags, *, own_time: bool) -> Rules:
    """The rules of one state, or with `own_time` all rules of a log and when each was in force.

    Raises:
        ConfigError: not exactly one source, or `own_time` without --log or with --as-of.
        MetadataError, OSError: the source is damaged, or does not reach to the moment.

    """
    source = flags.choose()
    if not own_time:
        return Rules.of_image(source.image().acls)
    if flags.log is None or flags.as_of is not None:
        raise ConfigError("--own-time judges each row by the rules of its own time: it wants --log, and no --as-of")
    log = flags.log.absolute()  # the workers' directories are others
    check_log(log)
    return Rules.of_table(intervals(spark, log).toArrow(), known_from=known_from(log))


def settings_of(flags: AuthorizerFlags) -> Settings:
    """What decides beside the rules. Raises ConfigError: a super user without colon."""
    return Settings(
        super_users=parse_super_users(flags.super_users),
        allow_everyone=flags.allow_everyone,
        documented=flags.documented,
    )


def rules_after(
    spark: SparkSession, before: Rules, target: SourceFlags, *, add: str | None, remove: str | None
) -> Rules:
    """The rules that are to be, from another source, or those before with a change.

    Raises:
        ConfigError: neither or both; as `rules_of` and `changed_rules`.

    """
    changes = add is not None or remove is not None
    if changes == target.given():
        raise ConfigError(
            "the rules after must be given once: by --add and --remove, or by --to-log, --to-snapshot or --to-acls"
        )
    return changed_rules(before, add, remove) if changes else rules_of(spark, target, own_time=False)


def changed_rules(rules: Rules, add: str | None, remove: str | None) -> Rules:
    """The rules after a change: those of two files of JSON lines added and removed; an id in them counts for nothing.

    Raises:
        ConfigError: a line that is no rule, a rule to be added that stands, or one to be removed that does not.
        OSError: a file cannot be read.

    """
    if add is not None and add == remove == STDIN:
        raise ConfigError("--add - and --remove -: only one of them can be stdin")
    rows = {_said(row): row for row in rules.table.to_pylist()}
    for row in _rows(remove):
        if rows.pop(_said(row), None) is None:
            raise ConfigError(f"--remove {remove}: not a rule that stands: {_shown(row)}")
    for row in _rows(add):
        if _said(row) in rows:
            raise ConfigError(f"--add {add}: stands already: {_shown(row)}")
        rows[_said(row)] = {**row, "id": None}
    texts = {name: pa.array([row[name] for row in rows.values()], pa.string()) for name in RULE_COLUMNS}
    return Rules.of_table(pa.table(texts))


def _rows(path: str | None) -> Iterator[dict[str, str | None]]:
    return (rule_row(rule) for rule in read_acls(path)) if path is not None else iter(())


def _said(row: Mapping[str, str | None]) -> tuple[str | None, ...]:
    return tuple(row[name] for name in RULE_COLUMNS if name != "id")


def _shown(row: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={row[name]}" for name in RULE_COLUMNS if name != "id")


def window_end(text: str | None) -> datetime | None:
    """The time in `--until`. Raises ConfigError: it is none."""
    if text is None:
        return None
    moment = parse_moment(text)
    if isinstance(moment, int):
        raise ConfigError(f"--until {text}: expected a time, such as 2026-11-20T10:00:00Z")
    return moment
