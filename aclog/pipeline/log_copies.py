"""The log of another store, copied to this machine for a job: the log's reader takes files of a file system."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError
from aclog.pipeline import server_files, storage
from aclog.pipeline.history.bulk import MOST_BYTES
from aclog.pipeline.output_directory import place_of
from aclog.pipeline.session import is_connect

_BESIDE: Final = ("meta.properties", "bootstrap.checkpoint")
"""Files of Kafka beside the directory of the log."""


@contextmanager
def local_log(spark: SparkSession, log: Path | str, *, by_workers: bool) -> Iterator[Path]:
    """Yield the directory of a log by its path or URI: of another store, a copy in TMPDIR, which is deleted at the end.

    `by_workers`: whether Spark's workers read it too if it is large (history.bulk.MOST_BYTES), not only this process.

    Raises:
        ConfigError: no such directory, the log changes while it is copied, or workers on other machines read it.

    """
    place = place_of(log)
    if isinstance(place, Path):
        yield place
        return
    if by_workers and not is_here(spark) and _size(spark, place) > MOST_BYTES:
        raise ConfigError(
            f"--log {place}: the workers of {master_of(spark)} read a log of over {MOST_BYTES >> 20} MiB by "
            "its path: expected a directory of a file system that they share, or --master local[*]"
        )
    with TemporaryDirectory(prefix="aclog-") as scratch:
        parent, name = split(place)
        directory = Path(scratch, name)
        directory.mkdir()
        if is_connect(spark):
            server_files.copy_directory(spark, place, directory)
            server_files.copy_files(spark, parent, _BESIDE, Path(scratch))
            yield directory
            return
        _copy(spark, place, directory)
        for other in storage.files_in(spark, parent):
            if other.name in _BESIDE:
                storage.copy_to_local(spark, storage.joined(parent, other.name), Path(scratch, other.name))
        yield directory


def split(place: str) -> tuple[str, str]:
    """Return the URI of the parent of a directory, and its name. Raises ConfigError: the root of a store."""
    parent, _, name = place.rpartition("/")
    if not name or parent.endswith(":/"):
        raise ConfigError(f"--log {place}: the root of a store: expected a directory in it")
    return (f"{parent}/" if parent.endswith("://") else parent), name


def is_here(spark: SparkSession) -> bool:
    """Return whether the workers of a session run on this machine, so that they can read its files."""
    return not is_connect(spark) and str(spark.sparkContext.master).startswith("local")


def master_of(spark: SparkSession) -> str:
    """Return what runs the jobs of a session, for a message."""
    return "the server of Spark Connect" if is_connect(spark) else str(spark.sparkContext.master)


def _size(spark: SparkSession, place: str) -> int:
    if is_connect(spark):
        return sum(size for size, _ in server_files.states(spark, [place]).values())
    return sum(file.size for file in storage.files_in(spark, place))


def _copy(spark: SparkSession, place: str, directory: Path) -> None:
    before = storage.files_in(spark, place)
    if not before:
        raise ConfigError(f"--log {place}: no such directory, or no files in it")
    for file in before:
        storage.copy_to_local(spark, storage.joined(place, file.name), directory / file.name)
    if storage.files_in(spark, place) != before:
        raise ConfigError(f"--log {place}: changed while it was being copied: run again, or on a copy of the log")
