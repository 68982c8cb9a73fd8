"""The log of another store, copied to this machine for a job: the log's reader takes files of a file system."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import field
from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.pipeline import server_files, storage
from aclog.pipeline.history.bulk import MOST_BYTES
from aclog.pipeline.output_directory import place_of
from aclog.pipeline.session import is_connect
from aclog.usage.scratch import before_copy

_BESIDE: Final = ("meta.properties", "bootstrap.checkpoint")
"""Files of Kafka beside the directory of the log."""


_ATTEMPTS: Final = 5
"""Copies of a log whose files change meanwhile."""


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
    before_copy()
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
        _copy_beside(spark, parent, Path(scratch))
        yield directory


@contextmanager
def growing_log(spark: SparkSession, log: Path | str) -> Iterator["GrowingLog"]:
    """Yield a log that grows while it is read: of another store, a copy as in `local_log`.

    Raises:
        ConfigError: no such directory, or the log changes all the time while it is copied.

    """
    place = place_of(log)
    if isinstance(place, Path):
        yield GrowingLog(spark=spark, directory=place.absolute())
        return
    before_copy()
    with TemporaryDirectory(prefix="aclog-") as scratch:
        parent, name = split(place)
        copy = GrowingLog(spark=spark, directory=Path(scratch, name), place=place)
        copy.directory.mkdir()
        copy.update()
        _copy_beside(spark, parent, Path(scratch))
        yield copy


@define(kw_only=True)
class GrowingLog:
    """A log, whose copy `update` makes equal to it."""

    spark: SparkSession
    directory: Path
    place: str | None = None
    """The URI of the log; None: it is `directory` itself."""
    _files: Sequence[storage.StoredFile] = field(factory=list, init=False)

    def update(self) -> None:
        """Copy the files that have changed since, and delete those that are gone. Raises ConfigError: as growing_log.

        An object is another one after each change of its log, so a file is copied as a whole.
        """
        for _ in range(_ATTEMPTS if self.place is not None else 0):
            files = storage.files_in(self.spark, str(self.place))
            if not files:
                raise ConfigError(f"--log {self.place}: no such directory, or no files in it")
            with TemporaryDirectory(dir=self.directory.parent) as scratch:
                changed = [file.name for file in files if file not in self._files]
                try:
                    for name in changed:
                        storage.copy_to_local(self.spark, storage.joined(str(self.place), name), Path(scratch, name))
                    if storage.files_in(self.spark, str(self.place)) != files:
                        continue
                except ConfigError:
                    if storage.files_in(self.spark, str(self.place)) == files:
                        raise
                    continue  # deleted meanwhile
                for name in changed:
                    Path(scratch, name).replace(self.directory / name)
            for file in self._files:
                if file.name not in {each.name for each in files}:
                    (self.directory / file.name).unlink()
            self._files = files
            return
        if self.place is not None:
            raise _changes(self.place)


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
        raise _changes(place)


def _copy_beside(spark: SparkSession, parent: str, target: Path) -> None:
    for other in storage.files_in(spark, parent):
        if other.name in _BESIDE:
            storage.copy_to_local(spark, storage.joined(parent, other.name), target / other.name)


def _changes(place: str) -> ConfigError:
    return ConfigError(f"--log {place}: changed while it was being copied: run again, or on a copy of the log")
