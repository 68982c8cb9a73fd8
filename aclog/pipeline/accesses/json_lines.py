"""JSON lines, taken apart in the JVM and strictly: one object a line, no key twice, nothing after it."""

import secrets

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.pipeline.accesses.access_table import Reason


def parse_lines(lines: DataFrame) -> DataFrame:
    """`file`, `line`, `object` (VARIANT, null if the line is not one JSON object) and `reason` of each line."""
    # Spark's parser stops after the first value and ignores what follows. In a list that must end with a mark that
    # nobody can guess, whatever follows the object is seen.
    mark = secrets.token_hex(16)
    wrapped = F.concat(F.lit("["), F.col("value"), F.lit(f',"{mark}"]'))
    valid = F.is_valid_utf8("value")
    listed = lines.select("file", F.col("value").alias("line"), F.when(valid, F.try_parse_json(wrapped)).alias("list"))
    whole = (F.expr("try_variant_get(list, '$[1]', 'string')") == mark) & F.col("line").rlike(r"^\s*\{")
    return listed.select(
        "file",
        "line",
        F.when(whole, F.expr("try_variant_get(list, '$[0]', 'variant')")).alias("object"),
        F.when(F.col("line").rlike(r"^\s*\z"), Reason.BLANK)
        .when(~F.is_valid_utf8("line"), Reason.NOT_UTF8)
        .when(~F.coalesce(whole, F.lit(False)), Reason.MALFORMED)
        .alias("reason"),
    )


def within(variant: str, key: str) -> Column:
    """The value of a key of an object, as VARIANT; null if there is none."""
    return F.expr(f"try_variant_get({variant}, '{_path(key)}', 'variant')")


def text(variant: str, key: str, *, under: str | None = None) -> Column:
    """The value of a key if it is a string, else null."""
    path = _path(key) if under is None else f"$.{under}.{key}"
    kind = f"schema_of_variant(try_variant_get({variant}, '{path}', 'variant'))"
    return F.when(F.expr(kind) == "STRING", F.expr(f"try_variant_get({variant}, '{path}', 'string')"))


def number(variant: str, key: str) -> Column:
    """The value of a key if it is an integer, as LONG, else null."""
    path = _path(key)
    kind = f"schema_of_variant(try_variant_get({variant}, '{path}', 'variant'))"
    return F.when(F.expr(kind) == "BIGINT", F.expr(f"try_variant_get({variant}, '{path}', 'bigint')"))


def _path(key: str) -> str:
    r"""A JSON path of one key, inside a literal of SQL."""
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")
    return f'$["{quoted}"]'
