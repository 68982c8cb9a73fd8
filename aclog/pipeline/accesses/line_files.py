"""Files of lines for Spark: which there are, and Spark's refusals in our words."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError

_SHOWN = 300


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """`value` and `file` of every line of files, directories (with all below them) and globs; gzip by its name.

    Only a line feed ends a line: a carriage return may stand in a name. Files whose names begin with `.` or `_` are
    left out of directories, as Spark does everywhere.

    Raises:
        ConfigError: nothing is there, or it cannot be listed.

    """
    with readable_errors(paths):
        reader = spark.read.option("lineSep", "\n").option("recursiveFileLookup", value=True)
        frame = reader.text(list(paths))
        check_found(frame, paths)
        return frame.select("value", F.col("_metadata.file_path").alias("file"))


def check_found(frame: DataFrame, paths: Sequence[str]) -> None:
    """Raise ConfigError where there is no file at all."""
    if not frame.inputFiles():
        raise ConfigError(f"{', '.join(paths)}: no files to read (names that begin with `.` or `_` do not count)")


@contextmanager
def readable_errors(paths: Sequence[str]) -> Iterator[None]:
    """Spark's errors about input as ConfigError, in one line that names the file."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise ConfigError(f"{_path_in(str(error)) or ', '.join(paths)}: no such file or directory") from error
        raise ConfigError(f"{', '.join(paths)}: {_first_line(error)}") from error
    except (PySparkException, Py4JJavaError) as error:
        found = re.search(r"reading file (\S+?)\.?(?:\s|$)", str(error))
        where = found[1] if found else ", ".join(paths)
        raise ConfigError(f"{where}: {_cause(str(error))}") from error


def _path_in(text: str) -> str | None:
    found = re.search(r"does not exist: (?:file:)?(\S+?)\.(?:\s|$)", text)
    return found[1] if found else None


def _first_line(error: PySparkException) -> str:
    return str(error).split("\n", 1)[0][:_SHOWN]


def _cause(text: str) -> str:
    """The innermost cause that Spark tells, or its first line."""
    causes = re.findall(r"^Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*)?)$", text, re.MULTILINE)
    return (causes[-1] if causes else text.split("\n", 1)[0])[:_SHOWN]
