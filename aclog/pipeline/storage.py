"""Files of any store that a Spark session reaches: paths of this machine, and URIs by Hadoop's FileSystem.

URIs are opened with the session's own credentials and settings.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError


def local_path(name: str) -> str | None:
    """Return the path of a file of this machine, by its path or `file:` URI; None for other stores."""
    parts = urlsplit(name)
    if "://" not in name and not name.startswith("file:"):
        return name
    return unquote(parts.path) if parts.scheme == "file" else None


def joined(directory: str, *names: str) -> str:
    """Return the path or URI of something in a directory."""
    return "/".join((directory.rstrip("/"), *names))


def is_directory(spark: SparkSession, name: str) -> bool:
    """Return whether there is a directory. Raises ConfigError: the store cannot be reached."""
    local = local_path(name)
    if local is not None:
        return os.path.isdir(local)  # noqa: PTH112 - as text
    with _errors(name):
        statuses = _file_system(spark, name).globStatus(_path(spark, name))
        return any(status.isDirectory() for status in statuses or ())


def names_in(spark: SparkSession, directory: str, pattern: str = "*") -> list[str]:
    """Return the names in a directory that match a glob; none without such a directory. Raises as `is_directory`."""
    with _errors(directory):
        statuses = _file_system(spark, directory).globStatus(_path(spark, joined(directory, pattern)))
        return [str(status.getPath().getName()) for status in statuses or ()]


def has_file(spark: SparkSession, directory: str, ending: str) -> bool:
    """Return whether a directory, or one of its own, has a file with this ending. Raises as `is_directory`."""
    local = local_path(directory)
    if local is not None:
        return next(Path(local).rglob(f"*{ending}"), None) is not None
    return bool(names_in(spark, directory, f"*{ending}") or names_in(spark, directory, f"*/*{ending}"))


def read_bytes(spark: SparkSession, name: str, most: int | None = None) -> bytes:
    """Return the content of a file, or its first bytes. Raises ConfigError: it cannot be read."""
    local = local_path(name)
    if local is not None:
        with Path(local).open("rb") as file:
            return file.read(-1 if most is None else most)
    with _errors(name):
        stream = _file_system(spark, name).open(_path(spark, name))
        try:
            return bytes(stream.readAllBytes() if most is None else stream.readNBytes(most))
        finally:
            stream.close()


def _path(spark: SparkSession, name: str) -> Any:
    return _jvm(spark).org.apache.hadoop.fs.Path(name)


def _file_system(spark: SparkSession, name: str) -> Any:
    return _path(spark, name).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise ConfigError(f"{name}: {_cause(error)}") from error


def _cause(error: Py4JJavaError) -> str:
    text = str(error.java_exception.getMessage() or error.java_exception.toString()).split("\n", 1)[0]
    return f"{text[:300]}: expected the Hadoop package of the store (--packages)" if "No FileSystem" in text else text
