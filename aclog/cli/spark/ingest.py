"""`aclog spark ingest`: access logs into a table of accesses and a table of rejects."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from aclog.cli.spark.flags import IngestFlags
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import Counts, ingest, write
from aclog.pipeline.output_directory import check_new
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.terminal.table import aligned


def ingest_command(spark: SparkSession, paths: Sequence[str], out: Path, flags: IngestFlags) -> Counts:
    """Write `out`/accesses and `out`/rejects, print the counts, and warn of rejects.

    Raises:
        ConfigError: `out` exists, there is no file, a file cannot be read, or a --column is invalid.

    """
    check_new(out)
    columns = column_pairs(flags.column or ())
    counts = write(ingest(spark, paths, flags.kind, timezone=flags.timezone, columns=columns), out)
    for line in aligned(("lines", "what"), _rows(counts)):
        say(line)
    if counts.rejected:
        warn(f"{counts.rejected:,} of {counts.total:,} lines are not accesses: see {out / 'rejects'}")
    return counts


def column_pairs(texts: Sequence[str]) -> dict[str, str]:
    """Return the names in `OURS=THEIRS` by OURS; THEIRS may contain `=`.

    Raises:
        ConfigError: not a pair, or OURS is given twice.

    """
    pairs: dict[str, str] = {}
    for text in texts:
        ours, equals, theirs = text.partition("=")
        if not equals or not ours or not theirs:
            raise ConfigError(f"--column {text!r}: expected OURS=THEIRS, such as principal=user")
        if ours in pairs:
            raise ConfigError(f"--column {text!r}: {ours} is given twice")
        pairs[ours] = theirs
    return pairs


def _rows(counts: Counts) -> list[tuple[str, str]]:
    rejects = [(f"{count:,}", f"rejected: {reason}") for reason, count in counts.rejects.items()]
    blanks = [(f"{counts.blanks:,}", "blank")] if counts.blanks else []
    return [(f"{counts.accesses:,}", "accesses"), *rejects, *blanks, (f"{counts.total:,}", "read")]
