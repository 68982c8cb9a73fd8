"""What is sent to every worker once: the ACLs that decide."""

from typing import TypeVar

from pyspark import Broadcast
from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError

_Value = TypeVar("_Value")


def broadcast(spark: SparkSession, value: _Value) -> "Broadcast[_Value]":
    """Send a value to all workers of a session.

    Raises:
        ConfigError: a session of Spark Connect, which has no broadcast variables.

    """
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise ConfigError(
            "decisions do not run on Spark Connect, which has no broadcast variables to send ACLs by: expected a "
            "classic session (--master spark://HOST:7077, or spark-submit); format('aclog'), history and ingest do run "
            "on it"
        )
    return spark.sparkContext.broadcast(value)
