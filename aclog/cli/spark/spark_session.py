"""Spark for a command: its session, its failures in one line, and the check of a log before a job starts."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.filelog import open_reader
from aclog.terminal.notices import progress
from aclog.terminal.output import note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(master: str | None) -> "Iterator[SparkSession]":
    """Open a session for one command, with Spark's progress bar on a terminal, and stop it at the end.

    Raises:
        ConfigError: the session or a job in it failed; one line with the cause.

    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from aclog.pipeline.session import open_session

    root = logging.getLogger()
    root.addFilter(_says_more)
    try:
        with progress("starting Spark"):
            spark = open_session(master, {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()})
        try:
            yield spark
        finally:
            spark.stop()
    except (PySparkException, Py4JError) as error:
        raise failure(error) from error
    finally:
        root.removeFilter(_says_more)


def _says_more(record: logging.LogRecord) -> bool:
    """Return whether a line of the log is more than py4j's traceback of what the command reports, such as Ctrl-C."""
    return not str(record.msg).endswith("while sending command.")


def failure(error: Exception) -> MetadataError:
    """Return the error to report for a failed job: the one aclog raised in a worker if any, else the last cause."""
    from aclog.pipeline.session import cause, own_error

    own = own_error(str(error))
    return ConfigError(own if own is not None else f"Spark failed: {cause(str(error))}")


def check_log(log: Path) -> None:
    """Print notes on where the log of a Kafka node is taken to end, and on what is left out of its tail.

    Raises:
        LogError: there is no log (checkpoints alone do not count), or it cannot be read.
        DecodeError: damage near the end of the log.

    """
    with open_reader(log) as reader:
        reader.high_watermark()
        for text in reader.notes:
            note(text)
