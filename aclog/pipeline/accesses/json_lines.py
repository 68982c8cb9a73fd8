"""JSON lines, parsed strictly by Spark: one object per line, no duplicate keys, nothing after the object."""

import secrets

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.authorizer.access_reject import Reason


def parse_lines(lines: DataFrame) -> DataFrame:
    """Return `file`, `line`, `object` (VARIANT, null if not one JSON object) and `reason` of each line."""
    # Spark's parser ignores whatever follows the first value. So each line is parsed as the first item of a list whose
    # second item is a random mark, which the line cannot contain: if the mark is there, nothing follows the object.
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
    """Return the value of a key of an object as VARIANT, null if there is none."""
    return F.expr(f"try_variant_get({variant}, '{_path(key)}', 'variant')")


def text(variant: str, key: str, *, under: str | None = None) -> Column:
    """Return the value of a key if it is a string, else null."""
    path = _path(key) if under is None else f"$.{under}.{key}"
    kind = f"schema_of_variant(try_variant_get({variant}, '{path}', 'variant'))"
    return F.when(F.expr(kind) == "STRING", F.expr(f"try_variant_get({variant}, '{path}', 'string')"))


def number(variant: str, key: str) -> Column:
    """Return the value of a key as LONG if it is an integer, else null."""
    path = _path(key)
    kind = f"schema_of_variant(try_variant_get({variant}, '{path}', 'variant'))"
    return F.when(F.expr(kind) == "BIGINT", F.expr(f"try_variant_get({variant}, '{path}', 'bigint')"))


def _path(key: str) -> str:
    r"""Return the JSON path of one key, escaped for a SQL string literal."""
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")
    return f'$["{quoted}"]'
