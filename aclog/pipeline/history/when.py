"""When something was allowed, from a log of any size."""

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from aclog.analysis.regions import Query, Root
from aclog.analysis.timeline import Interval, Question, concerns_controllers
from aclog.analysis.timeline import intervals as intervals_of
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.settings import Settings
from aclog.metalog.filelog import open_reader
from aclog.metalog.primitives import parse_uuid
from aclog.pipeline.history.intervals import (
    RULE,
    FirstPass,
    contradictions_raised,
    first_contradiction,
    first_pass,
    millis,
    placed_events,
    rules_of,
)
from aclog.snapshots.deciding_kafka import KafkaChange, kafka_history
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.history import history as replayed

# Which ACLs of a table concern a question: a condition that Spark evaluates.


def concerned(queries: Iterable[Query], settings: Settings) -> Column:
    """Return whether an ACL (columns of `aclog acls list`) concerns a query: true where `questions.concerns` is."""
    each = (_principal(query, settings) & _any(map(_covers, query.roots)) for query in queries)
    return _any(each)


def _principal(query: Query, settings: Settings) -> Column:
    if settings.allow_everyone:
        return F.lit(True)
    principal, named = F.col("principal"), query.principals.named
    is_named = principal.isin(*named)
    everyone = (principal == WILDCARD_PRINCIPAL) | ~principal.contains(":")
    return everyone | (~is_named if query.principals.complement else is_named)


def _covers(root: Root) -> Column:
    """Return whether an ACL's pattern covers some of the names of a root."""
    name = F.col("resourceName")
    literal = (name == root.name) if root.literal else name.startswith(root.name)
    prefix = F.lit(root.name).startswith(name)
    covered = F.when(F.col("patternType") == PatternType.LITERAL.name, literal | (name == WILDCARD)).otherwise(
        prefix if root.literal else prefix | literal
    )
    return (F.col("resourceType") == ResourceType(root.kind).name) & covered


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))


# When access was allowed, from a log of any size: Spark selects the relevant ACLs, the driver evaluates them.
#
# Spark reads the log as for its history (aclog.pipeline.history.intervals), pairs each removal with its addition, and
# checks all pairs. Only the ACLs that concern the question are collected on the driver.


def when(spark: SparkSession, directory: Path | str, question: Question, settings: Settings) -> list[Interval]:
    """Return the intervals of a log directory in which the answer was yes, as `analysis.timeline.intervals` does.

    A log in which some ACLs have codes without a name is replayed on the driver.

    Raises:
        LogError: there is no log, it cannot be read, or retention has removed its start.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage that was set aside; a ReplayError if records contradict each other.
        PySparkException, Py4JJavaError: a job failed; its text holds the error of a segment that cannot be read.

    """
    return begin_and_intervals(spark, directory, question, settings)[1]


def begin_and_intervals(
    spark: SparkSession, directory: Path | str, question: Question, settings: Settings
) -> tuple[int, list[Interval]]:
    """Return the offset with which the history begins (before it nothing is known), and what `when` returns."""
    log_pass = first_pass(spark, Path(directory))
    if log_pass.unknown_codes:
        changes = replayed(directory)
    else:
        with contradictions_raised(spark, directory):
            changes = iter(_changes(log_pass, question, settings))
    begin = log_pass.start.image

    def kafka() -> Iterator[KafkaChange]:
        """Read on the driver what the nodes ran: registrations are few."""
        with open_reader(directory) as reader:
            yield from kafka_history(begin, reader, controllers=concerns_controllers(question))

    deciding = None if settings.is_kafka_stated else kafka
    return begin.end_offset, list(intervals_of(begin, changes, question, settings, deciding))


def _changes(log_pass: FirstPass, question: Question, settings: Settings) -> list[Change]:
    """Return the changes of the ACLs that concern a question, in order; without those of the beginning."""
    events = placed_events(log_pass)
    if log_pass.failure is not None:
        raise first_contradiction(events, log_pass.name, F.lit(True)) or log_pass.failure
    rules = rules_of(events, log_pass.name, F.lit(True), concerned(question.queries, settings))
    rows = rules.select(*RULE, _end("added", "visible_from"), _end("removed", "visible_to")).collect()
    return sorted((change for row in rows for change in _ends(row)), key=lambda change: change.offset)


def _end(what: str, visible: str) -> Column:
    """Return one end of the interval in which an ACL was in force, with the fields of a Change."""
    return F.struct(
        F.col(f"{what}_offset").alias("offset"),
        millis(F.col(f"{what}_at")).alias("timestamp"),
        F.col(visible).alias("end_offset"),
    ).alias(what)


def _ends(row: Row) -> Iterator[Change]:
    """Yield the addition and the removal of an ACL, as far as the log has them."""
    rule = StandardAclWithId(
        id=parse_uuid(row.id),
        acl=StandardAcl(
            resource_type=ResourceType[row.resourceType],
            resource_name=row.resourceName,
            pattern_type=PatternType[row.patternType],
            principal=row.principal,
            host=row.host,
            operation=AclOperation[row.operation],
            permission_type=AclPermissionType[row.permissionType],
        ),
    )
    for kind, end in (ChangeKind.ADDED, row.added), (ChangeKind.REMOVED, row.removed):
        if end.offset is not None:
            yield Change(kind=kind, rule=rule, **end.asDict())
