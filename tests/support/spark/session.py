"""The session of Spark in tests, and its streams."""

from collections.abc import Callable
from contextlib import contextmanager

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

_STARTS = 5


def finished(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Run a query to its end, and return it.

    Spark gives the Python process of a source 10 s to start, whatever its settings. On a slower machine the query fails
    before its first batch, and is started again from its checkpoint, as its users would.
    """
    for attempt in range(1, _STARTS + 1):
        query = start()
        try:
            assert query.awaitTermination(600)
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error) or attempt == _STARTS:
                raise
        else:
            return query
    raise AssertionError


@contextmanager
def settings(spark, values):
    """A session with other settings, for as long as this lasts."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
