"""The first pass over a log: what the driver must know before Spark can select what became visible."""

from pathlib import Path

from attrs import frozen
from pyspark.sql import DataFrame, SparkSession

from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.filelog import open_reader
from aclog.pipeline.history.batch_times import Summary, summarize
from aclog.pipeline.history.start import Start, read_log, start_of
from aclog.pipeline.history.transaction_spans import TransactionSpans, spans_of


@frozen(kw_only=True, eq=False)
class FirstPass:
    """A log that was read once: its table, where replay starts, what it holds, and the spans of its transactions."""

    name: str
    log: DataFrame
    start: Start
    summary: Summary
    spans: TransactionSpans

    @property
    def end_offset(self) -> int:
        """The end of what became visible."""
        return self.summary.end_offset if self.spans.hidden_from is None else self.spans.hidden_from

    @property
    def unknown_codes(self) -> bool:
        """Whether some ACLs have codes without a name: names cannot tell these ACLs apart."""
        return self.start.unknown_codes or self.summary.unknown_codes

    @property
    def failure(self) -> ReplayError | None:
        """The error of a transaction marker out of place."""
        return None if self.spans.failure is None else self.spans.failure.at(path=self.name)


def first_pass(spark: SparkSession, directory: Path) -> FirstPass:
    """Read a log directory once; later queries on the result do not see what is appended to it after this call.

    Raises:
        LogError: there is no log, it cannot be read, or retention has removed its start.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage that was set aside, or a ReplayError for a log that does not continue from its start.

    """
    start = start_of(spark, directory)
    log = read_log(spark, directory)
    try:
        summary = summarize(log, start.offset, start.timestamp)
        _check_follows(start, summary, directory)
    except DecodeError as e:
        raise e.at(path=str(directory)) from None
    return FirstPass(name=str(directory), log=log, start=start, summary=summary, spans=spans_of(summary.markers))


def _check_follows(start: Start, summary: Summary, directory: Path) -> None:
    if summary.first is None:
        return
    offset, epoch = summary.first
    if offset != start.offset:
        with open_reader(directory) as reader:
            begins = reader.start_offset()
        if begins > start.offset:
            what = f"the log now begins at offset {begins}: expected {start.offset}, where its history starts"
            raise LogError(f"{directory}: {what} (retention has removed segments: run again)")
        raise ReplayError(f"a batch begins at offset {offset}: expected {start.offset}", offset=offset)
    if epoch < start.epoch:
        what = f"leader epoch {epoch} after epoch {start.epoch}: epochs never decrease"
        raise ReplayError(what, offset=offset)
