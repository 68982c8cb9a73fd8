"""`aclog spark ingest`: access logs into a table of accesses and a table of rejects."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from aclog.cli.decisions import ALLOWED, DENIED
from aclog.cli.spark.flags import IngestFlags, ReportFlags
from aclog.cli.spark.ingest_options import column_pairs
from aclog.cli.spark.ingest_summary import STDOUT, say_counts, write_summary
from aclog.pipeline.accesses import RejectRateError, ingest, write
from aclog.pipeline.output_directory import check_new
from aclog.terminal.notices import complain


def ingest_command(
    spark: SparkSession, paths: Sequence[str], out: Path, flags: IngestFlags, report: ReportFlags | None = None
) -> int:
    """Write `out`/accesses and `out`/rejects, print the counts, and warn of rejects; return the exit code.

    Raises:
        ConfigError: `out` exists, there is no file, a file cannot be read, or a --column is invalid.

    """
    report = report or ReportFlags()
    check_new(out)
    columns = column_pairs(flags.column or ())
    ingested = ingest(spark, paths, flags.kind, timezone=flags.timezone, columns=columns)
    try:
        counts = write(ingested, out, max_reject_rate=report.max_reject_rate)
    except RejectRateError as error:
        write_summary(report.summary, out, error.counts, None, committed=False)
        complain(str(error))
        return DENIED
    write_summary(report.summary, out, counts, None, committed=True)
    if report.summary != STDOUT:
        say_counts(counts, out / "rejects")
    return ALLOWED
