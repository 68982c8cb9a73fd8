"""Times in access logs: local ones of a named zone, ISO 8601, and milliseconds."""

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegralType, StringType, TimestampNTZType, TimestampType

from aclog.metalog.errors import ConfigError

_YEAR_1, _YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999
"""What a TIMESTAMP may be, in ms since 1970: beyond, Spark's arithmetic and Parquet's readers give up."""

_LOCAL = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?\z"
_WITH_ZONE = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?([Zz]|[+-]\d{2}:?\d{2})\z"
_INTEGER = r"^-?\d{1,15}\z"


def check_timezone(spark: SparkSession, timezone: str) -> str:
    """The name of a zone that Spark knows (UTC, Europe/Berlin, +02:00).

    Raises:
        ConfigError: there is no such zone.

    """
    sample = F.lit(f"2026-01-01 00:00:00 {timezone}").try_cast("timestamp")
    known = bool(timezone.strip()) and spark.range(1).select(sample.isNotNull().alias("known")).first()
    if not known or not known[0]:
        raise ConfigError(f"timezone {timezone[:80]!r} is not known: expected UTC, an offset such as +02:00, or a "
                          "name such as Europe/Berlin")  # fmt: skip
    return timezone.strip()


def local_time(text: Column, timezone: str) -> Column:
    """A TIMESTAMP of `2026-11-21 10:00:00,123` in this zone; null for a day or hour that there is not.

    The text must hold no zone of its own, and the session's zone must be UTC, as `open_session` sets it.

    An hour that a clock goes through twice is the earlier one; one that it leaps over counts on from before the leap.
    """
    # A zone beside the text would be looked up for every row, which costs as much as all the rest.
    return F.to_utc_timestamp(F.translate(text, ",", ".").try_cast("timestamp"), timezone)


def any_time(value: Column, kind: DataType, timezone: str) -> Column:
    """A TIMESTAMP of a column of this type: TIMESTAMP, an integer (ms since 1970), or ISO 8601 text, or ms as text.

    A text without an offset, and a TIMESTAMP_NTZ, is local to `timezone`. Null for what is none of these.

    Raises:
        ConfigError: a column of this type holds no times.

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
    raise ConfigError(f"timestamp is of type {kind.simpleString()}: expected a timestamp, ms as an integer, or text")


def of_millis(value: Column) -> Column:
    """A TIMESTAMP of ms since 1970; null beyond the years 1 to 9999."""
    return F.when(value.between(_YEAR_1, _YEAR_9999), F.timestamp_millis(value.cast("long")))
