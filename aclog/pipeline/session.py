"""The Spark session of the commands, on this machine by default."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError
from aclog.pipeline.source import register

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Defaults of every session. Times are UTC everywhere, as in --as-of."""

_LAUNCHED = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
}
"""For a JVM that this process starts. Under spark-submit it runs already, with logging of its own."""

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "8",
}
"""For one machine: no port open to the network, and few shuffle partitions for few cores (Spark's default is 200)."""


def open_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the running session or a new one, with the data source `aclog` registered.

    `master` is a Spark master URL, by default that of spark-submit or else `local[*]`.

    Raises:
        ConfigError: a server of Spark Connect, by `master` or by SPARK_REMOTE.

    """
    if (master or os.environ.get("SPARK_REMOTE", "")).startswith("sc://"):
        raise ConfigError(
            "Spark Connect (sc://...) has no broadcast variables, by which ACLs reach the workers: "
            "expected --master local[*] or spark://HOST:7077 without SPARK_REMOTE, or spark-submit"
        )
    # Spark would start workers with the first `python3` on the path, which may lack PyArrow and aclog.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = "local[*]"
    wanted = _SETTINGS if submitted else {**_SETTINGS, **_LAUNCHED}
    builder = SparkSession.builder.appName("aclog")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            wanted = {**wanted, **_LOCAL}
    for name, value in {**wanted, **(settings or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register(session)
    return session
