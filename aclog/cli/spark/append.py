"""`aclog spark ingest --append` and `--follow`: access logs into a table that grows."""

from collections.abc import Sequence
from pathlib import Path

from attrs import define, field
from pyspark.sql import SparkSession

from aclog.cli.decisions import ALLOWED, DENIED
from aclog.cli.signals import Stop, on_signals
from aclog.cli.spark.flags import AppendFlags, IngestFlags, ReportFlags
from aclog.cli.spark.ingest_options import column_pairs
from aclog.cli.spark.ingest_summary import STDOUT, say_counts, watermark_text, write_summary
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import (
    Appended,
    ChangedFilesError,
    Layout,
    Ledger,
    NoFilesError,
    RejectRateError,
    append,
)
from aclog.terminal.notices import complain, note
from aclog.terminal.output import say

_ATTEMPTS = 3
"""Of one append: a nightly run may meet the rotation."""


def append_command(
    spark: SparkSession,
    paths: Sequence[str],
    out: Path,
    flags: IngestFlags,
    *,
    appending: AppendFlags,
    report: ReportFlags,
) -> int:
    """Append what is new once, or until a signal comes; return the exit code: 1 if too many lines are rejected.

    Raises:
        ConfigError: a file cannot be read, `out` is not a table that --append made, or a flag is wrong.
        LockedError: another process appends to it.

    """
    layout = Layout.of(spark, flags.kind, flags.timezone, column_pairs(flags.column or ()))
    with Ledger.open(out) as ledger:
        rounds = _Rounds(spark=spark, paths=paths, layout=layout, ledger=ledger, report=report)
        try:
            if appending.follow:
                rounds.follow(appending.interval)
            else:
                rounds.once()
        except RejectRateError as error:
            write_summary(report.summary, out, error.counts, None, committed=False)
            complain(str(error))
            return DENIED
    return ALLOWED


@define(kw_only=True)
class _Rounds:
    spark: SparkSession
    paths: Sequence[str]
    layout: Layout
    ledger: Ledger
    report: ReportFlags
    _noted: str = field(default="", init=False)

    def once(self) -> None:
        """Append once, and say what was found."""
        done = self._steadily()
        if self.report.summary != STDOUT:
            say_counts(done.counts, self.ledger.out / "rejects")
            say(_text(done))
        for path in done.waiting:
            note(f"{path}: ends in a line that is not whole: it is taken once it is")

    def _steadily(self) -> Appended:
        """Append; again if logs were rotated meanwhile, as they are but now and then."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._append()
            except ChangedFilesError as error:
                note(f"{error}: looking again")
        return self._append()

    def follow(self, interval: float) -> None:
        """Append until SIGTERM or SIGINT, and print a line whenever something was new."""
        stop = Stop()
        with on_signals(stop.set):
            note(f"following {', '.join(self.paths)} into {self.ledger.out}, every {interval:g} s")
            self._round(ChangedFilesError)
            while not stop.wait(interval):
                self._round(ChangedFilesError, NoFilesError)

    def _round(self, *passing: type[ConfigError]) -> None:
        """Append; what passes by itself, as when logs are being rotated, is only noted."""
        try:
            self._say(self._append())
        except passing as error:
            self._note_once(str(error))

    def _note_once(self, text: str) -> None:
        if text != self._noted:
            note(text)
        self._noted = text

    def _say(self, done: Appended) -> None:
        self._noted = ""
        if done.counts.total and self.report.summary != STDOUT:
            say(f"{done.counts.accesses:,} accesses, {done.counts.rejected:,} rejected; {_text(done)}", flush=True)

    def _append(self) -> Appended:
        limit = self.report.max_reject_rate
        done = append(self.spark, self.paths, self.layout, self.ledger, max_reject_rate=limit)
        write_summary(self.report.summary, self.ledger.out, done.counts, done, committed=True)
        return done


def _text(done: Appended) -> str:
    files = f"{done.files:,} files: {done.whole:,} new, {done.grown:,} grown, {done.known:,} known"
    late = f"; {done.late:,} accesses came late, for {', '.join(done.days)}" if done.late else ""
    return f"{files}; {watermark_text(done)}{late}"
