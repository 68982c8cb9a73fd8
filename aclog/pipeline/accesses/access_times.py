"""Times in access logs: local times of a named zone, ISO 8601, and milliseconds."""

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegralType, StringType, TimestampNTZType, TimestampType

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_times import FIRST_SECOND, LAST_SECOND

_YEAR_1, _YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999
"""The range of a TIMESTAMP, in ms since 1970: Spark's arithmetic and Parquet readers fail beyond it."""

_LOCAL = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?\z"
_WITH_ZONE = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?([Zz]|[+-]\d{2}:?\d{2})\z"
_INTEGER = r"^-?\d{1,15}\z"


def check_timezone(spark: SparkSession, timezone: str) -> str:
    """Return the name of a zone that Spark knows (UTC, Europe/Berlin, +02:00).

    Raises:
        ConfigError: unknown zone.

    """
    sample = F.lit(f"2026-01-01 00:00:00 {timezone}").try_cast("timestamp")
    known = bool(timezone.strip()) and spark.range(1).select(sample.isNotNull().alias("known")).first()
    if not known or not known[0]:
        raise ConfigError(f"unknown timezone {timezone[:80]!r}: expected UTC, an offset such as +02:00, or a name "
                          "such as Europe/Berlin")  # fmt: skip
    return timezone.strip()


def local_time(text: Column, timezone: str) -> Column:
    """Return the TIMESTAMP of `2026-11-21 10:00:00,123` in this zone, null for an invalid date or time.

    The text must have no zone, and the session's zone must be UTC, as set by `open_session`.

    When clocks are set back, a repeated local time is the earlier one; when they are set forward, a skipped local time
    is read with the offset from before the change.
    """
    # Appending the zone to the text would make Spark look it up in every row, which doubles the cost.
    return F.to_utc_timestamp(F.translate(text, ",", ".").try_cast("timestamp"), timezone)


def any_time(value: Column, kind: DataType, timezone: str) -> Column:
    """Return the TIMESTAMP of a column of this type: TIMESTAMP, integer (ms since 1970), or text (ISO 8601 or ms).

    A text without an offset and a TIMESTAMP_NTZ are local to `timezone`. Null for any other text.

    Raises:
        ConfigError: the column has another type.

    """
    if isinstance(kind, TimestampType):
        return value
    if isinstance(kind, TimestampNTZType):
        return local_time(value.cast("string"), timezone)
    if isinstance(kind, IntegralType):
        return of_millis(value)
    if isinstance(kind, StringType):
        return (
            F.when(value.rlike(_LOCAL), local_time(value, timezone))
            .when(value.rlike(_WITH_ZONE), F.translate(value, ",", ".").try_cast("timestamp"))
            .when(value.rlike(_INTEGER), of_millis(value.try_cast("long")))
        )
    raise ConfigError(
        f"column timestamp is of type {kind.simpleString()}: expected a timestamp, ms as an integer, or text"
    )


def of_millis(value: Column) -> Column:
    """Return the TIMESTAMP of ms since 1970, null beyond the years 1 to 9999; some numbers count seconds."""
    millis = value.cast("long")
    seconds = value.between(FIRST_SECOND, LAST_SECOND)
    return F.when(seconds, F.timestamp_millis(millis * 1000)).when(
        value.between(_YEAR_1, _YEAR_9999), F.timestamp_millis(millis)
    )
