"""Checks of the flags of `aclog spark ingest` that need no Spark."""

from collections.abc import Sequence
from pathlib import Path

from aclog.cli.spark.flags import AppendFlags, ReportFlags
from aclog.metalog.errors import ConfigError

_MAX_INTERVAL_S = 86_400.0


def check_report(report: ReportFlags, appending: AppendFlags) -> None:
    """Refuse values out of range, and a summary that could not be written.

    Raises:
        ConfigError: one of these.

    """
    rate = report.max_reject_rate
    if rate is not None and not 0 <= rate <= 1:
        raise ConfigError(f"--max-reject-rate {rate:g}: expected a share from 0 to 1, such as 0.01 for 1 %")
    if not 0 < appending.interval <= _MAX_INTERVAL_S:
        raise ConfigError(
            f"--interval {appending.interval:g}: expected seconds above 0, and at most {_MAX_INTERVAL_S:g}"
        )
    if report.summary is not None and report.summary != "-":
        path = Path(report.summary)
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise ConfigError(f"--summary {path}: expected the name of a file in a directory that exists, or -")


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
