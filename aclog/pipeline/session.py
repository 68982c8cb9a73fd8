"""The Spark session that the commands work in, on this machine unless told otherwise."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from aclog.pipeline.source import register

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What a session gets that says nothing else. Times are UTC everywhere, as `--as-of` reads them."""

_LAUNCHED = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
}
"""Where this process starts the JVM: under spark-submit it runs already, and logs as it was told."""

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "8",
}
"""On one machine nothing is to be seen from outside of it, and a few cores want few partitions."""


def open_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session that runs already, or a new one; it knows the data source `aclog`.

    `master` is Spark's: `local[*]` where neither it nor spark-submit names one. The workers run this interpreter unless
    PYSPARK_PYTHON names another: Spark would take the first `python3` on the path, which may lack what we need.
    """
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
