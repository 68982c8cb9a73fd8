"""Audit events of aclog's authorizer (aclog/authorizer/audit_event.avsc): Avro files, and JSON lines."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.authorizer.access_reject import Reason
from aclog.pipeline.accesses.access_times import of_millis
from aclog.pipeline.accesses.json_lines import number, parse_lines, text, within
from aclog.pipeline.accesses.line_files import check_found, readable_errors
from aclog.usage.arrow.acl_structs import ACL_FIELDS
from aclog.usage.decisions.accesses import REQUEST_COLUMNS

_AVRO: Final = "org.apache.spark.sql.avro.AvroFileFormat"
"""Spark includes the class, but only knows the short name `avro` if the Avro connector's jar is present."""


def event_schema() -> str:
    """Return the Avro schema of an event, as JSON."""
    return files("aclog.authorizer").joinpath("audit_event.avsc").read_text(encoding="utf-8")


def events_of_avro(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Rows for `validate_rows` from Avro files written with this version of the schema, or another compatible one.

    Raises:
        ConfigError: no file is found. A file that is not Avro fails the job.

    """
    with readable_errors(paths):
        reader = spark.read.format(_AVRO).option("avroSchema", event_schema()).option("recursiveFileLookup", value=True)
        events = reader.load(list(paths))
        check_found(events, paths)
    rule = {name: F.col(f"rule.{name}") for name in ACL_FIELDS}
    return events.select(
        *REQUEST_COLUMNS,
        "timestamp",
        "patternType",
        F.col("result").alias("loggedDecision"),
        _rule_text(F.col("basis"), F.col("rule").isNotNull(), rule).alias("loggedRule"),
        F.nullif(F.col("request"), F.lit("")).alias("request"),
        F.col("resourceReferenceCount"),
        _level(F.col("logged"), F.col("result")).alias("logLevel"),
        F.col("_metadata.file_path").alias("file"),
        F.to_json(F.struct(*events.columns)).alias("line"),
        F.lit(None).cast("string").alias("reason"),
        F.lit(None).cast("string").alias("detail"),
    )


def events_of_json(lines: DataFrame) -> DataFrame:
    """Rows for `validate_rows` from JSON lines: bare, or under the key `audit` as in a node's JSON log."""
    whole = parse_lines(lines)
    own = F.coalesce(within("object", "audit"), F.when(within("object", "logger").isNull(), F.col("object")))
    found = whole.select("*", own.alias("event"))
    stated = found.select(
        "*",
        text("event", "result").alias("loggedDecision"),
        of_millis(number("event", "timestamp")).alias("timestamp"),
        F.coalesce(F.expr("try_variant_get(event, '$.logged', 'boolean')"), F.lit(True)).alias("logged"),
    )
    rule = {name: text("event", name, under="rule") for name in ACL_FIELDS}
    return stated.select(
        *(text("event", name).alias(name) for name in REQUEST_COLUMNS),
        "timestamp",
        text("event", "patternType").alias("patternType"),
        "loggedDecision",
        _rule_text(text("event", "basis"), rule["resourceType"].isNotNull(), rule).alias("loggedRule"),
        F.nullif(text("event", "request"), F.lit("")).alias("request"),
        number("event", "resourceReferenceCount").try_cast("int").alias("resourceReferenceCount"),
        _level(F.col("logged"), F.col("loggedDecision")).alias("logLevel"),
        "file",
        "line",
        F.coalesce(
            F.col("reason"),
            F.when(F.col("event").isNull(), Reason.OTHER_LOGGER),
            F.when(F.col("loggedDecision").isNull(), Reason.BAD_DECISION),
            F.when(F.col("timestamp").isNull(), Reason.BAD_TIMESTAMP),
        ).alias("reason"),
        F.when(F.col("event").isNotNull() & F.col("timestamp").isNull(), "no timestamp in ms since 1970").alias(
            "detail"
        ),
    )


def _rule_text(basis: Column, has_rule: Column, rule: dict[str, Column]) -> Column:
    """Return the rule as in the audit line."""
    inside: list[Column] = []
    for place, name in enumerate(ACL_FIELDS):
        inside += [F.lit(f"{', ' if place else ''}{name}="), rule[name]]
    return F.when(has_rule, F.concat(F.lit("MatchingAcl(acl=StandardAcl["), *inside, F.lit("])"))).otherwise(basis)


def _level(logged: Column, decision: Column) -> Column:
    """Return the level of the audit line (aclog.authorizer.audit.audit_level)."""
    return F.when(~logged, "TRACE").when(decision == "ALLOWED", "DEBUG").otherwise("INFO")
