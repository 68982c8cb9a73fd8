"""The differences between the supported versions of PySpark, 4.0 to 4.3.

| since | what aclog uses |
|---|---|
| 4.1 | filters that reach a Python data source; functions on Arrow arrays in SQL |
| 4.2 | streams of a Python data source with a limit; the Arrow schema's zone as an argument; times in a zone in ORC |

Before, filters stay with Spark and `pushFilters` is refused; functions get their arrays by way of pandas, which has no
null of a struct: a decision without an argument is a struct of nulls; and streams of the log are refused.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyspark
from pyspark.sql import functions as F
from pyspark.sql.pandas import types
from pyspark.sql.types import StructType

from aclog.metalog.errors import ConfigError

VERSION: Final = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

if TYPE_CHECKING or VERSION >= (4, 1):
    from pyspark.sql.datasource import (
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        LessThan,
        LessThanOrEqual,
    )
else:

    class Filter:
        """A filter, none of which reaches a data source."""

    class EqualTo(Filter):
        """None."""

    class GreaterThan(Filter):
        """None."""

    class GreaterThanOrEqual(Filter):
        """None."""

    class In(Filter):
        """None."""

    class IsNotNull(Filter):
        """None."""

    class LessThan(Filter):
        """None."""

    class LessThanOrEqual(Filter):
        """None."""


if TYPE_CHECKING or VERSION >= (4, 2):
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:

    class ReadLimit:
        """A limit, which no stream has."""

    class ReadAllAvailable(ReadLimit):
        """None."""

    class ReadMaxRows(ReadLimit):
        """None."""

    class SupportsTriggerAvailableNow:
        """None."""


def check_streams() -> None:
    """Raise ConfigError if this version has no streams of a Python data source with a limit."""
    if VERSION < (4, 2):
        raise ConfigError(
            f"a stream of format('aclog') on PySpark {pyspark.__version__}: expected 4.2 or later, whose streams have "
            "limits; batch queries run on this version"
        )


def check_filters() -> None:
    """Raise ConfigError if no filters reach a Python data source in this version."""
    if VERSION < (4, 1):
        raise ConfigError(
            f"option pushFilters on PySpark {pyspark.__version__}: expected 4.1 or later, or options fromOffset and "
            "untilOffset; without it, Spark applies all filters itself"
        )


def check_zones_of_orc(place: str, error: str) -> None:
    """Raise ConfigError if files of ORC have times in a zone, a type that Spark does not know before 4.2."""
    if VERSION < (4, 2) and "timestamp with local time zone" in error:
        raise ConfigError(
            f"{place}: times in a zone in ORC on PySpark {pyspark.__version__}: expected 4.2 or later, or Parquet, or "
            "times without a zone"
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of rows in UTC. Raises PySparkTypeError: Arrow cannot carry a type."""
    convert: Any = types.to_arrow_schema
    converted: pa.Schema = convert(schema, timezone="UTC") if VERSION >= (4, 2) else convert(schema)
    return converted


def arrow_udf(run: Callable[[Iterator[Any]], Iterator[Any]], kind: str) -> Any:
    """Return a function of SQL of what maps batches of columns (tuples of Arrow arrays) to arrays."""
    if VERSION >= (4, 1):
        functions: Any = F

        def over_arrow(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
            """Run on a worker: Spark takes the kind of a function from its annotations."""
            yield from run(batches)

        return functions.arrow_udf(over_arrow, kind)
    return _over_pandas(run, kind)


def _over_pandas(run: Callable[[Iterator[Any]], Iterator[Any]], kind: str) -> Any:
    import pandas as pd  # noqa: PLC0415 - PySpark 4.0 only

    def arrays(batches: Any) -> Iterator[tuple[Any, ...]]:
        for columns in batches:
            yield tuple(pa.Array.from_pandas(column) for column in columns)

    functions: Any = F
    if kind.startswith("struct"):

        def run_structs(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
            """Run on a worker."""
            for array in run(arrays(batches)):
                yield pa.Table.from_struct_array(array).to_pandas()

        return functions.pandas_udf(run_structs, kind)

    def run_values(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.Series]:
        """Run on a worker."""
        for array in run(arrays(batches)):
            yield array.to_pandas()

    return functions.pandas_udf(run_values, kind)


__all__ = [
    "VERSION",
    "EqualTo",
    "Filter",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNotNull",
    "LessThan",
    "LessThanOrEqual",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "arrow_udf",
    "check_filters",
    "check_streams",
    "check_zones_of_orc",
]
