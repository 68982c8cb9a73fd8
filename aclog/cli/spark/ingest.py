"""`aclog spark ingest`: access logs into a table of accesses and one of rejects."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import Counts, ingest, write
from aclog.pipeline.output_directory import check_new
from aclog.terminal.notices import warn
from aclog.terminal.table import aligned


def ingest_command(
    spark: SparkSession,
    paths: Sequence[str],
    *,
    kind: str,
    out: Path,
    timezone: str = "UTC",
    columns: Sequence[str] = (),
) -> Counts:
    """Write `out`/accesses and `out`/rejects, print what was counted, and warn of rejects.

    `columns` are pairs `OURS=THEIRS`.

    Raises:
        ConfigError: `out` is there, nothing is to be read, or a file cannot be; a pair is none.

    """
    check_new(out)
    counts = write(ingest(spark, paths, kind, timezone=timezone, columns=column_pairs(columns)), out)
    for line in aligned(("lines", "what"), _rows(counts)):
        print(line)
    if counts.rejected:
        warn(f"{counts.rejected:,} of {counts.total:,} lines are no accesses: see {out / 'rejects'}")
    return counts


def column_pairs(texts: Sequence[str]) -> dict[str, str]:
    """The names in `OURS=THEIRS`; theirs may hold `=`.

    Raises:
        ConfigError: not a pair, or one of our names comes twice.

    """
    pairs: dict[str, str] = {}
    for text in texts:
        ours, equals, theirs = text.partition("=")
        if not equals or not ours or not theirs:
            raise ConfigError(f"--column {text!r}: expected OURS=THEIRS, such as principal=user")
        if ours in pairs:
            raise ConfigError(f"--column {text!r}: {ours} is named already")
        pairs[ours] = theirs
    return pairs


def _rows(counts: Counts) -> list[tuple[str, str]]:
    rejects = [(f"{count:,}", f"rejected: {reason}") for reason, count in counts.rejects.items()]
    blanks = [(f"{counts.blanks:,}", "blank")] if counts.blanks else []
    return [(f"{counts.accesses:,}", "accesses"), *rejects, *blanks, (f"{counts.total:,}", "read")]
