"""`aclog spark history`: every rule with the interval it was in force, as Parquet."""

from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from aclog.pipeline.history.intervals import contradiction, history
from aclog.pipeline.output_directory import new_directory

_REFUSED = "[USER_RAISED_EXCEPTION]"
"""What Spark says where the history itself has made a job fail."""


def history_command(spark: SparkSession, log: Path, out: Path) -> None:
    """Write the history of a log directory to `out`, a directory of Parquet files, and print how many rules it has.

    `out` appears when it is whole. `aclog.cli.spark.log.check_log` says what is to be said of the log.

    Raises:
        ConfigError: `out` is there already.
        LogError: no log is there, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no whole checkpoint reaches its start.
        DecodeError: damage, a ReplayError if it is in what the records say.
        PySparkException, Py4JJavaError: a job failed; our own error is in its text if a segment could not be read.

    """
    try:
        with new_directory(out) as partial:
            counts = _write(spark, log, partial)
    except (PySparkException, Py4JJavaError) as error:
        refused = contradiction(spark, log) if _REFUSED in str(error) else None
        if refused is None:
            raise
        raise refused from error
    print(f"{out}: {counts['rules']:,} rules, {counts['in_force']:,} of them in force")


def _write(spark: SparkSession, log: Path, out: Path) -> dict[str, int]:
    counts = Observation()
    in_force = F.count_if(F.col("removed_offset").isNull()).alias("in_force")
    history(spark, log).observe(counts, F.count("*").alias("rules"), in_force).write.parquet(str(out))
    return counts.get
