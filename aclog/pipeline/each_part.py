"""Pieces of work done by Spark's workers, as aclog.usage.judging.processes does them in processes of one machine."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

from pyspark import Broadcast
from pyspark.sql import SparkSession

from aclog.pipeline.broadcasts import broadcast

P = TypeVar("P")
R = TypeVar("R")

_TASKS_OF_A_CORE = 4
"""Tasks that are done before their results are taken: the driver holds so many of them."""


def each_on_spark(spark: SparkSession, parts: Sequence[P], make: Callable[[], Callable[[P], R]]) -> Iterator[R]:
    """Yield what is made of each part, one task each, in their order.

    Each worker process calls `make`, which is pickled, once, and its result for each part. Files that a part names must
    be there under the same path.

    Raises:
        ConfigError: a session of Spark Connect. What the work raises fails the job (aclog.pipeline.spark_errors).

    """
    sent = broadcast(spark, make)
    context = spark.sparkContext
    together = context.defaultParallelism * _TASKS_OF_A_CORE
    for start in range(0, len(parts), together):
        some = parts[start : start + together]
        yield from context.parallelize(some, len(some)).map(partial(_work, sent)).collect()


def _work(sent: "Broadcast[Callable[[], Callable[[Any], Any]]]", part: Any) -> Any:
    return _made(sent)(part)


@lru_cache(1)
def _made(sent: "Broadcast[Callable[[], Callable[[Any], Any]]]") -> Callable[[Any], Any]:
    """Return what a worker process has made, kept from task to task: the broadcast is the same object in all."""
    return sent.value()
