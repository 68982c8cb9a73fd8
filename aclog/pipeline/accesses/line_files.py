"""Text files as input: their lines, and Spark's errors about them in one line."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.pipeline.spark_errors import cause, own_error


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return `value` and `file` of every line of files, directories (recursively) and globs; `.gz` is decompressed.

    Like everywhere in Spark, files in directories are skipped if their names begin with `.` or `_`.

    Raises:
        ConfigError: no file is found, or a directory cannot be listed.

    """
    with readable_errors(paths):
        # by default Spark also splits lines at a carriage return, which a client may put into a resource name
        reader = spark.read.option("lineSep", "\n").option("recursiveFileLookup", value=True)
        frame = reader.text(list(paths))
        check_found(frame, paths)
        return frame.select("value", F.col("_metadata.file_path").alias("file"))


class NoFilesError(ConfigError):
    """There is nothing to read: a path that does not exist, or a directory without files."""


def check_found(frame: DataFrame, paths: Sequence[str]) -> None:
    """Raise NoFilesError if there is no file at all."""
    if not frame.inputFiles():
        raise NoFilesError(f"{', '.join(paths)}: no files to read (names that begin with `.` or `_` are skipped)")


@contextmanager
def readable_errors(paths: Sequence[str]) -> Iterator[None]:
    """Turn Spark's errors about input into ConfigErrors of one line that name the file."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise NoFilesError(f"{_path_in(str(error)) or ', '.join(paths)}: no such file or directory") from error
        raise ConfigError(f"{', '.join(paths)}: {cause(str(error))}") from error
    except (PySparkException, Py4JJavaError) as error:
        own = own_error(str(error))
        if own is not None:
            raise ConfigError(own) from error
        found = re.search(r"reading file (\S+?)\.?(?:\s|$)", str(error))
        where = found[1] if found else ", ".join(paths)
        raise ConfigError(f"{where}: {cause(str(error))}") from error


def _path_in(text: str) -> str | None:
    found = re.search(r"does not exist: (?:file:)?(\S+?)\.(?:\s|$)", text)
    return found[1] if found else None
