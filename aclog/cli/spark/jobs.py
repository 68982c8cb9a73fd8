"""Spark for a command: its session, and its failures in one line."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aclog.metalog.errors import ConfigError, MetadataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = re.compile(r"^aclog\.(?:metalog|authorizer)\.errors\.\w+: (.*)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*)?)$", re.MULTILINE)
_SHOWN = 300


@contextmanager
def spark_session(master: str | None) -> "Iterator[SparkSession]":
    """A session for one command, with Spark's own progress bar on a terminal; it ends with the `with`.

    Raises:
        ConfigError: PySpark is not installed, or the session or a job in it failed: the cause in one line.

    """
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        from aclog.pipeline.session import open_session
    except ImportError as error:
        raise ConfigError(f"{error}: `aclog spark` needs PySpark: pip install 'aclog[spark]', and Java 17") from error
    try:
        spark = open_session(master, {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()})
        try:
            yield spark
        finally:
            spark.stop()
    except (PySparkException, Py4JError) as error:
        raise failure(error) from error


def failure(error: Exception) -> MetadataError:
    """What a failed job says of its cause: our own error, where one of ours is in it."""
    text = str(error)
    ours = _OURS.search(text)
    if ours is not None:
        return ConfigError(ours[1])
    causes = _CAUSE.findall(text)
    return ConfigError(f"Spark failed: {(causes[-1] if causes else text.splitlines()[0])[:_SHOWN]}")
