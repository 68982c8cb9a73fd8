"""Files of the server of a Spark Connect session, by its own readers: this process has no file system of Hadoop there.

Files whose names begin with `_` or `.` are read, by their path, but in no listing. An empty file is in a listing by
name only.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.pipeline.output_directory import place_of
from aclog.pipeline.session import cause

State: TypeAlias = tuple[int, int]
"""The size of a file, and the time of its last change in us since 1970."""

_CHUNK: Final = 4 << 20
"""Bytes of a file in one row: a message of Spark Connect has up to 128 MiB."""
_FIRST_LINES: Final = 16
"""Lines by which the form of a file is recognized."""
_NO_PATH: Final = "PATH_NOT_FOUND"


def exists(spark: SparkSession, name: str) -> bool:
    """Return whether a path, a URI or a glob names a file or a directory. Raises ConfigError: it cannot be reached."""
    return _listed(spark, [name]) is not None


def has_children(spark: SparkSession, directory: str) -> bool:
    """Return whether a directory has a file or a directory. Raises as `exists`."""
    return exists(spark, f"{directory.rstrip('/')}/*")


def names_in(spark: SparkSession, directory: str) -> list[str]:
    """Return the names of the files in a directory; none without such a directory. Raises as `exists`."""
    below = directory.rstrip("/").rpartition("/")[2]
    names = (unquote(name).split("/") for name in _listed(spark, [f"{directory.rstrip('/')}/*"]) or ())
    return sorted(name[-1] for name in names if name[-2] == below)


def names_below(spark: SparkSession, directory: str) -> list[str]:
    """Return the names of the files in a directory and below it, relative to it. Raises as `exists`."""
    place = place_of(directory)
    path = str(place) if isinstance(place, Path) else urlsplit(place).path
    files = _listed(spark, [f"{directory.rstrip('/')}/*"]) or ()
    return sorted(unquote(urlsplit(name).path).removeprefix(f"{path.rstrip('/')}/") for name in files)


def directories_in(spark: SparkSession, directory: str, names: Collection[str]) -> list[str]:
    """Return which of these directories are in a directory, and not empty. Raises as `exists`."""
    if not exists(spark, f"{directory.rstrip('/')}/{{{','.join(names)}}}"):  # one look for all, as there are few
        return []
    return [name for name in names if has_children(spark, f"{directory.rstrip('/')}/{name}")]


def states(spark: SparkSession, paths: Sequence[str]) -> dict[str, State]:
    """Return the state of each file of paths, directories and globs, by its path as Hadoop writes it; empty ones apart.

    Raises:
        ConfigError: a path does not exist, or cannot be reached.

    """
    try:
        rows = _reader(spark, paths).select("path", "length", F.unix_micros("modificationTime").alias("at")).collect()
    except AnalysisException as error:
        raise ConfigError(f"{', '.join(paths)}: {cause(str(error))}") from error
    return {row["path"]: (row["length"], row["at"]) for row in rows}


def read_bytes(spark: SparkSession, name: str, most: int | None = None) -> bytes:
    """Return the content of a file of up to 2 GiB, or its first bytes. Raises ConfigError: there is no such file."""
    content = F.col("content") if most is None else F.substring("content", 1, most)
    return _only(_reader(spark, [name]).select(content.alias("content")), name)


def read_end(spark: SparkSession, name: str, count: int) -> bytes:
    """Return the last bytes of a file of up to 2 GiB. Raises as `read_bytes`."""
    return _only(_reader(spark, [name]).select(F.substring("content", -count, count).alias("content")), name)


def first_lines(spark: SparkSession, name: str, most: int) -> bytes:
    """Return the first bytes of a file of any size, of a few lines at most; unpacked, by its ending.

    Of several: a binary file may have a line feed among its first bytes, as ORC has.
    """
    lines = spark.read.option("lineSep", "\n").text(name).limit(_FIRST_LINES)
    rows = lines.select(F.substring(F.col("value").cast("binary"), 1, most).alias("content")).collect()
    return b"\n".join(bytes(row["content"]) for row in rows)[:most]


def _only(rows: DataFrame, name: str) -> bytes:
    try:
        found = rows.collect()
    except AnalysisException as error:
        raise ConfigError(f"{name}: {cause(str(error))}") from error
    if len(found) != 1:
        raise ConfigError(f"{name}: no such file, or an empty one")
    return bytes(found[0]["content"])


def copy_directory(spark: SparkSession, directory: str, target: Path) -> None:
    """Copy the files in a directory to this machine, without those in directories below it.

    Raises:
        ConfigError: there is no such directory, or its files change meanwhile.

    """
    pattern = [f"{directory.rstrip('/')}/*"]
    before, names = _states_of(spark, pattern), names_in(spark, directory)
    if not names:
        raise ConfigError(f"--log {directory}: no such directory, or no files in it")
    for name in names:
        (target / name).touch()  # an empty one has no row
    for path, data in _chunks(_reader(spark, pattern)):
        name = path.rpartition("/")[2]
        if name in names:
            with (target / name).open("ab") as file:
                file.write(data)
    sizes = {path.rpartition("/")[2]: size for path, (size, _) in before.items()}
    copied = {name: (target / name).stat().st_size for name in names}
    is_same = copied == {name: sizes.get(name, 0) for name in names}
    if not is_same or (_states_of(spark, pattern), names_in(spark, directory)) != (before, names):
        raise ConfigError(f"--log {directory}: changed while it was being copied: run again, or on a copy of the log")


def copy_files(spark: SparkSession, directory: str, names: Collection[str], target: Path) -> None:
    """Copy those of some files that are in a directory."""
    pattern = f"{directory.rstrip('/')}/{{{','.join(names)}}}"
    if exists(spark, pattern):
        for path, data in _chunks(_reader(spark, [pattern])):
            with (target / path.rpartition("/")[2]).open("ab") as file:
                file.write(data)


def _chunks(files: DataFrame) -> Iterator[tuple[str, bytes]]:
    """Yield the path and some bytes, in order, of files of up to 2 GiB each."""
    starts = F.explode(F.sequence(F.lit(1), F.col("length").cast("int"), F.lit(_CHUNK))).alias("start")
    chunks = files.select("path", "content", starts).select(
        "path", "start", F.expr(f"substring(content, start, {_CHUNK})").alias("data")
    )
    for row in chunks.sortWithinPartitions("path", "start").toLocalIterator():
        yield row["path"], bytes(row["data"])


def _states_of(spark: SparkSession, paths: Sequence[str]) -> Mapping[str, State]:
    return states(spark, paths) if _listed(spark, paths) else {}


def _reader(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # recursive: otherwise Spark looks for columns in the names of directories
    return spark.read.format("binaryFile").option("recursiveFileLookup", value=True).load(list(paths))


def _listed(spark: SparkSession, paths: Sequence[str]) -> list[str] | None:
    """Return the URIs of the files of paths, None if one does not exist."""
    try:
        return list(_reader(spark, paths).inputFiles())
    except AnalysisException as error:
        if error.getCondition() == _NO_PATH:
            return None
        raise ConfigError(f"{', '.join(paths)}: {cause(str(error))}") from error
