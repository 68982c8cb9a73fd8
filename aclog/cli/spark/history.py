"""`aclog spark history`: every ACL with the interval in which it was in force, as Parquet."""

from pathlib import Path

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from aclog.pipeline.history.intervals import contradictions_raised, history
from aclog.pipeline.output_directory import new_directory
from aclog.terminal.output import say


def history_command(spark: SparkSession, log: Path, out: Path) -> None:
    """Write the history of a log directory to `out`, a directory of Parquet files, and print its counts.

    `out` appears only once it is complete. Notes on the log come from `aclog.cli.spark.jobs.check_log`.

    Raises:
        ConfigError: `out` exists.
        LogError: there is no log, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage; a ReplayError if records contradict each other.
        PySparkException, Py4JJavaError: a job failed; its text holds the error of a segment that cannot be read.

    """
    with contradictions_raised(spark, log), new_directory(out) as partial:
        counts = _write(spark, log, partial)
    say(f"{out}: {counts['rules']:,} rules, {counts['in_force']:,} of them in force")


def _write(spark: SparkSession, log: Path, out: Path) -> dict[str, int]:
    counts = Observation()  # counts while writing, in the same job
    in_force = F.count_if(F.col("removed_offset").isNull()).alias("in_force")
    history(spark, log).observe(counts, F.count("*").alias("rules"), in_force).write.parquet(str(out))
    return counts.get
