"""A log that a job on Spark is to read: what is wrong with it, or to be said of it, before a session starts."""

from pathlib import Path

from aclog.metalog.filelog import open_reader
from aclog.terminal.notices import note


def check_log(log: Path) -> None:
    """Say on stderr where a Kafka's log ends for us, and what of its tail is left out.

    Raises:
        LogError: no log is there (checkpoints alone are none), or it cannot be read.
        DecodeError: damage where the log's end is looked for.

    """
    with open_reader(log) as reader:
        reader.high_watermark()
        for text in reader.notes:
            note(text)
