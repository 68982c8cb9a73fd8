"""The table of accesses and the table of rejects: columns, validation of rows, reasons for rejection."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.authorizer.access_reject import SHOWN, WANTED, Reason, known_names
from aclog.authorizer.acl import AclOperation, PatternType, ResourceType
from aclog.usage.decisions.accesses import REQUEST_COLUMNS

TIMESTAMP: Final = "timestamp"
KNOWN: Final = ("patternType", "loggedDecision", "loggedRule", "request", "resourceReferenceCount", "logLevel")
"""Columns that only some sources have, null for others. STRING, but resourceReferenceCount INT.

The logged decision and rule are those of the authorizer that logged the access; jobs add a `decision` and `rule`.
"""

ACCESS_COLUMNS: Final = (*REQUEST_COLUMNS, TIMESTAMP, *KNOWN)
REJECT_COLUMNS: Final = ("file", "line", "reason", "detail")
"""The file of a reject, its text (up to LINE_LIMIT characters), a Reason, and a sentence."""

_INTEGER = "resourceReferenceCount"
_TYPES: Final = {TIMESTAMP: pa.timestamp("us", tz="UTC"), _INTEGER: pa.int32()}

ACCESS_SCHEMA: Final = pa.schema([(name, _TYPES.get(name, pa.string())) for name in ACCESS_COLUMNS])
REJECT_SCHEMA: Final = pa.schema([(name, pa.string()) for name in REJECT_COLUMNS])

LINE_LIMIT: Final = 2000


DETAILS: Final = {
    Reason.NOT_UTF8: "not UTF-8",
    Reason.NO_HEAD: "does not begin with `[time] LEVEL `: a stack trace, the rest of a torn line, or another layout",
    Reason.TORN: "truncated: does not end with the logger's name in parentheses",
    Reason.OTHER_LOGGER: "not from kafka.authorizer.logger",
    Reason.OTHER_MESSAGE: "from kafka.authorizer.logger, but not about an access",
    Reason.AMBIGUOUS: "can be read in more than one way: a part of the layout occurs in it twice",
    Reason.UNREADABLE: "not in a format that an authorizer of Kafka writes",
    Reason.BAD_TIMESTAMP: "not a time: expected ISO 8601, or ms since 1970",
    Reason.MALFORMED: "malformed, or with a different number of columns",
}


def quoted(name: str) -> str:
    """Return a column's name for Spark's SQL: it may have dots and backticks."""
    return f"`{name.replace('`', '``')}`"


def enum_name(text: Column, names: Iterable[str]) -> Column:
    """Return AlterConfigs, alter_configs and ALTER_CONFIGS as ALTER_CONFIGS, null for an unknown name."""
    known = list(names)
    pairs = [F.lit(word) for name in known for word in (name.replace("_", ""), name)]
    other = F.try_element_at(F.create_map(*pairs), F.upper(F.translate(text, "_", "")))
    return F.when(text.isin(known), text).otherwise(other)  # the common case first: Spark searches maps linearly


def validate_rows(raw: DataFrame, *, files: bool = False) -> DataFrame:
    """Return rows with ACCESS_COLUMNS and REJECT_COLUMNS; `reason` is null if the row is an access.

    With `files`, `file` is also set for accesses.

    `raw` has ACCESS_COLUMNS as in the source (strings, a TIMESTAMP and an INT; enum names in any form), `file`, `line`,
    and `reason` and `detail`, which are null unless the source's reader has rejected the row.
    """
    named = raw.select(
        "*",
        enum_name(F.col("operation"), known_names(AclOperation)).alias("_operation"),
        enum_name(F.col("resourceType"), known_names(ResourceType)).alias("_type"),
        enum_name(F.col("patternType"), [PatternType.LITERAL.name]).alias("_pattern"),
        enum_name(F.col("loggedDecision"), ["ALLOWED", "DENIED"]).alias("_decision"),
    )
    checked = named.select("*", F.coalesce(F.col("reason"), _fault()).alias("_reason"))
    rejected = F.col("_reason").isNotNull() & (F.col("_reason") != Reason.BLANK.value)
    return checked.select(
        *(F.col(name).cast("string") for name in ("principal", "host")),
        F.col("_operation").alias("operation"),
        F.col("_type").alias("resourceType"),
        F.col("resourceName").cast("string"),
        F.col(TIMESTAMP).cast("timestamp"),
        F.col("_pattern").alias("patternType"),
        F.col("_decision").alias("loggedDecision"),
        *(F.col(name).cast("string") for name in ("loggedRule", "request")),
        F.col("resourceReferenceCount").cast("int"),
        F.col("logLevel").cast("string"),
        F.col("file") if files else F.when(rejected, F.col("file")).alias("file"),
        F.when(rejected, F.substring(F.make_valid_utf8("line"), 1, LINE_LIMIT)).alias("line"),
        F.col("_reason").alias("reason"),
        F.when(rejected, F.coalesce(F.col("detail"), _detail())).alias("detail"),
    )


@frozen(kw_only=True)
class Split:
    """The rows of a batch, split; the three parts add up to all of them."""

    accesses: pa.RecordBatch
    """Rows of ACCESS_SCHEMA."""
    rejects: pa.RecordBatch
    """Rows of REJECT_SCHEMA."""
    files: "pa.Array[Any]"
    """The file of each access; null if the source's reader was not asked for it."""
    blanks: int


Splitter = Callable[[pa.RecordBatch], Split]
"""A function that splits the rows of a source; it is pickled to workers."""


def split_validated(batch: pa.RecordBatch) -> Split:
    """Split rows from `validate_rows` by their reason."""
    reasons = batch.column("reason")
    accesses = batch.filter(pc.is_null(reasons)).select(list(ACCESS_COLUMNS)).cast(ACCESS_SCHEMA)
    rejects = (
        batch.filter(pc.not_equal(reasons, pa.scalar(Reason.BLANK.value)))
        .select(list(REJECT_COLUMNS))
        .cast(REJECT_SCHEMA)
    )
    blanks = batch.num_rows - accesses.num_rows - rejects.num_rows
    files = batch.column("file").filter(pc.is_null(reasons))
    return Split(accesses=accesses, rejects=rejects, files=files, blanks=blanks)


def _fault() -> Column:
    """Return the reason to reject the values of a row, or null."""
    missing = _empty("principal") | _empty("host") | _empty("operation") | _empty("resourceType")
    return (
        F.when(missing | F.col("resourceName").isNull(), Reason.MISSING_VALUE)
        .when(F.col("_operation").isNull(), Reason.BAD_OPERATION)
        .when(F.col("_type").isNull(), Reason.BAD_RESOURCE_TYPE)
        .when(F.col("patternType").isNotNull() & F.col("_pattern").isNull(), Reason.BAD_PATTERN_TYPE)
        .when(F.col("loggedDecision").isNotNull() & F.col("_decision").isNull(), Reason.BAD_DECISION)
    )


def _empty(name: str) -> Column:
    return F.col(name).isNull() | (F.col(name) == "")


def _detail() -> Column:
    """Return the detail for a reason."""
    reason = F.col("_reason")
    detail = F.when(reason == Reason.MISSING_VALUE, F.concat(F.lit("no "), _missing_names()))
    for bad, (name, wanted) in WANTED.items():
        shown = F.concat(F.lit(f"{name} `"), F.substring(name, 1, SHOWN), F.lit(f"`: expected {wanted}"))
        detail = detail.when(reason == bad, shown)
    for other, text in DETAILS.items():
        detail = detail.when(reason == other, F.lit(text))
    return detail


def _missing_names() -> Column:
    absent = [F.when(_empty(name), F.lit(name)) for name in REQUEST_COLUMNS if name != "resourceName"]
    absent.append(F.when(F.col("resourceName").isNull(), F.lit("resourceName")))
    return F.concat_ws(", ", *absent)
