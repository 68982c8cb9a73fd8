"""Files of any store that a Spark session reaches: paths of this machine, and URIs by Hadoop's FileSystem.

URIs are opened with the session's own credentials and settings. With Spark Connect, every path and URI is one of the
server, which its readers open (`aclog.pipeline.server_files`); nothing but tables of Spark is written there.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline import server_files
from aclog.pipeline.output_directory import hadoop_name, place_of
from aclog.pipeline.session import is_connect


def local_path(name: str) -> str | None:
    """Return the path of a file of this machine, by its path or `file:` URI; None for other stores."""
    if name[:5].lower() == "file:":
        return str(place_of(name))
    return None if "://" in name else name


def path_here(spark: SparkSession, name: str) -> str | None:
    """Return the same, but None for any file of a server of Spark Connect."""
    return None if is_connect(spark) else local_path(name)


def joined(directory: str, *names: str) -> str:
    """Return the path or URI of something in a directory."""
    return "/".join((directory.rstrip("/"), *names))


def is_directory(spark: SparkSession, name: str) -> bool:
    """Return whether there is a directory, with Spark Connect one that is not empty.

    Raises:
        ConfigError: the store cannot be reached.

    """
    if is_connect(spark):
        return server_files.has_children(spark, name)
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
    if is_connect(spark):
        return any(server_files.exists(spark, joined(directory, f"{below}*{ending}")) for below in ("", "*/"))
    local = local_path(directory)
    if local is not None:
        return next(Path(local).rglob(f"*{ending}"), None) is not None
    return bool(names_in(spark, directory, f"*{ending}") or names_in(spark, directory, f"*/*{ending}"))


def read_bytes(spark: SparkSession, name: str, most: int | None = None) -> bytes:
    """Return the content of a file, or its first bytes. Raises ConfigError: it cannot be read."""
    if is_connect(spark):
        return server_files.read_bytes(spark, name, most)
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


# Changes, by URI alone: files of this machine need no JVM.


def exists(spark: SparkSession, name: str) -> bool:
    """Return whether a URI names a file or a directory. Raises as `is_directory`."""
    if is_connect(spark):
        return server_files.exists(spark, name)
    with _errors(name):
        return bool(_file_system(spark, name).exists(_path(spark, name)))


def children(spark: SparkSession, directory: str) -> list[str]:
    """Return the names in a directory, hidden ones included; none without such a directory. Raises as `exists`."""
    return [str(status.getPath().getName()) for status in _statuses(spark, directory)]


def _statuses(spark: SparkSession, directory: str) -> list[Any]:
    with _errors(directory):
        try:
            return list(_file_system(spark, directory).listStatus(_path(spark, directory)))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error):
                return []
            raise


@frozen(kw_only=True)
class StoredFile:
    """A file of a directory, and by what a change of it is detected."""

    name: str
    size: int
    modified: int
    """In ms since 1970."""
    tag: str | None
    """The version of an object, or the id of a file, where the store has one (`tag_of`)."""


def files_in(spark: SparkSession, directory: str) -> list[StoredFile]:
    """Return the files of a directory by name; none without such a directory. Raises as `exists`."""
    files = [
        StoredFile(
            name=str(status.getPath().getName()),
            size=int(status.getLen()),
            modified=int(status.getModificationTime()),
            tag=tag_of(spark, status),
        )
        for status in _statuses(spark, directory)
        if status.isFile()
    ]
    return sorted(files, key=lambda file: file.name)


@frozen(kw_only=True)
class FileState:
    """What a file in a store was at one time."""

    size: int
    modified: int
    """In ms since 1970."""
    tag: str | None


def states_of(spark: SparkSession, names: Sequence[str]) -> dict[str, FileState]:
    """Return the states of files by their URIs, without those that do not exist; by one listing of each directory.

    A request for the status of each file would take longer than a read of small files. Raises as `exists`.
    """
    in_directories: dict[str, dict[str, str]] = {}
    for name in names:
        directory, _, last = unquote(name).rpartition("/")
        in_directories.setdefault(directory, {})[last] = name
    states: dict[str, FileState] = {}
    for directory, by_last in in_directories.items():
        if len(by_last) == 1:
            statuses = _status(spark, f"{directory}/{next(iter(by_last))}")
        else:
            statuses = _statuses(spark, directory)
        for status in statuses:
            name = by_last.get(str(status.getPath().getName()), "")
            if name:
                states[name] = _state(spark, status)
    return states


def state_of(spark: SparkSession, name: str) -> FileState | None:
    """Return the state of a file by its URI, as it is; None if it does not exist. Raises as `exists`."""
    statuses = _status(spark, name)
    return _state(spark, statuses[0]) if statuses else None


def files_at(spark: SparkSession, name: str) -> tuple[list[tuple[str, str, FileState]], bool]:
    """Return the files that a URI names: itself, or all below a directory, or those of a pattern of Hadoop.

    Each with its URI and its path below the directory, which is empty if it is in none; none if there is no such file.
    And whether the URI may name several: it is of a directory or a pattern. A pattern matches no name that begins with
    `.`, unless it names that, as a glob of this machine. Raises as `exists`.
    """
    with _errors(name):
        roots = _status(spark, name)
        is_several = not roots or roots[0].isDirectory()
        if not roots and any(each in name for each in _MAGIC):
            pattern = str(_path(spark, name).toUri().getPath())
            matches = _file_system(spark, name).globStatus(_path(spark, name)) or ()
            roots = [each for each in matches if not _is_hidden(str(each.getPath().toUri().getPath()), pattern)]
        found = []
        for root in roots:
            at = str(root.getPath())
            if root.isFile():
                found.append((at, "", _state(spark, root)))
                continue
            below = _file_system(spark, name).listFiles(root.getPath(), True)
            while below.hasNext():
                status = below.next()
                path = str(status.getPath())
                found.append((path, path.removeprefix(at).lstrip("/"), _state(spark, status)))
        return sorted(found, key=lambda each: each[0]), is_several


def _is_hidden(path: str, pattern: str) -> bool:
    """Return whether a part of a path begins with `.` and that of the pattern does not, nor an alternative in it."""
    parts = zip_longest(path.split("/"), pattern.split("/"), fillvalue="")  # braces with slashes shift them
    return any(part.startswith(".") and not _NAMES_HIDDEN.search(of_pattern) for part, of_pattern in parts)


_NAMES_HIDDEN: Final = re.compile(r"(?:^|[{,])\.")
_MAGIC: Final = "*?[{"


def _state(spark: SparkSession, status: Any) -> FileState:
    return FileState(size=int(status.getLen()), modified=int(status.getModificationTime()), tag=tag_of(spark, status))


def _status(spark: SparkSession, name: str) -> list[Any]:
    with _errors(name):
        try:
            return [_file_system(spark, name).getFileStatus(_path(spark, name))]
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error):
                return []
            raise


_TAGGED: Final = "org.apache.hadoop.fs.EtagSource"
_NUMBERED: Final = "org.apache.hadoop.hdfs.protocol.HdfsFileStatus"


def tag_of(spark: SparkSession, status: Any) -> str | None:
    """Return what another file of the same name, size and time differs by: an ETag, or the id of a file in HDFS."""
    if is_instance_of(_gateway(spark), status, _TAGGED):
        return str(status.getEtag())
    if is_instance_of(_gateway(spark), status, _NUMBERED):
        return str(status.getFileId())
    return None


def modified(spark: SparkSession, name: str) -> int:
    """Return the time of the last change of a file, in ms since 1970. Raises ConfigError: no such file."""
    with _errors(name):
        return int(_file_system(spark, name).getFileStatus(_path(spark, name)).getModificationTime())


def create(spark: SparkSession, name: str, content: bytes) -> bool:
    """Create a small file, in one step; return False if there is one. Raises as `exists`."""
    with _errors(name):
        return _created(spark, name, lambda stream: stream.write(bytearray(content)))


def publish(spark: SparkSession, source: str, target: str) -> bool:
    """Give a complete file its final name in one step; return False if there is a file of this name.

    An object store has no rename: there the file is copied by this process, to an object that appears whole, and only
    if no object has the name. Raises as `exists`.
    """
    with _errors(target):
        if exists(spark, target):
            return False
        if not is_object_store(target):
            if _file_system(spark, target).rename(_path(spark, source), _path(spark, target)):
                return True
            if exists(spark, target):
                return False
            raise ConfigError(f"{target}: {source} cannot be renamed to it")
        stream = _file_system(spark, source).open(_path(spark, source))
        try:
            copy: Any = _jvm(spark).org.apache.hadoop.io.IOUtils.copyBytes
            is_new = _created(spark, target, lambda out: copy(stream, out, _BLOCK, False))
        finally:
            stream.close()
        if is_new:
            delete(spark, source)
        return is_new


def is_object_store(name: str) -> bool:
    """Return whether the scheme of a URI is that of a store of objects, which appear whole, and have no rename."""
    return name.partition(":")[0].lower() in {"s3", "s3a", "s3n", "gs"}


def check_conditional(spark: SparkSession, name: str) -> None:
    """Check that Hadoop can create a file of S3 only if no file has its name.

    Raises:
        ConfigError: it cannot. An older one looks first, and then writes: of two processes, both would.

    """
    with _errors(name):
        system = _file_system(spark, name)
        is_able = bool(system.hasPathCapability(_path(spark, name), _CONDITIONAL))
    if name.partition(":")[0].lower() in {"s3", "s3a", "s3n"} and not is_able:
        raise ConfigError(
            f"{name}: Hadoop's client of this store has no conditional writes, without which two processes with one "
            "output could both write a batch: expected Hadoop 3.4.2 or later (PySpark 4.1) with "
            "fs.s3a.create.conditional.enabled=true, or --out-format delta or iceberg"
        )


_CONDITIONAL: Final = "fs.option.create.conditional.overwrite"
"""Of S3A: create an object by If-None-Match. Without it, S3A looks for the object before it writes."""
_BLOCK: Final = 1 << 20
_EXISTS: Final = ("FileAlreadyExistsException", "AlreadyBeingCreatedException", "PreconditionFailed")
"""In HDFS the second one, while another process has the file open for writing; of S3 the third one."""


def _created(spark: SparkSession, name: str, write: Callable[[Any], object]) -> bool:
    """Create a file by what `write` writes to its stream; return False if there is one, perhaps since this began."""
    path = _path(spark, name)
    try:
        file = _file_system(spark, name).createFile(path).recursive().overwrite(False)
        stream = file.opt(_CONDITIONAL, True).build()
    except Py4JJavaError as error:
        if any(each in str(error) for each in _EXISTS):
            return False
        raise
    try:
        write(stream)
    except BaseException:
        with suppress(Py4JError):  # a store without abort: an object of a stream that is not closed never appears
            stream.abort()
        raise
    try:
        stream.close()
    except Py4JJavaError as error:
        if any(each in str(error) for each in _EXISTS):
            return False
        raise
    return True


def copy_from_local(spark: SparkSession, source: Path, name: str) -> None:
    """Copy a file of this machine to a new file. Raises as `exists`."""
    with _errors(name):
        path = _path(spark, hadoop_name(source))
        _file_system(spark, name).copyFromLocalFile(False, False, path, _path(spark, name))


def copy_to_local(spark: SparkSession, name: str, target: Path) -> None:
    """Copy a file to this machine. Raises as `exists`."""
    with _errors(name):
        path = _path(spark, hadoop_name(target))
        raw = True  # no file of checksums beside it
        _file_system(spark, name).copyToLocalFile(False, _path(spark, name), path, raw)


def delete(spark: SparkSession, name: str) -> None:
    """Delete a file or an empty directory. Raises ConfigError: there is no such file, or as `exists`."""
    with _errors(name):
        deleted = bool(_file_system(spark, name).delete(_path(spark, name), False))
    if not deleted:
        raise ConfigError(f"{name}: deleted by another process")


def delete_tree(spark: SparkSession, name: str) -> None:
    """Delete a directory with all that it contains, if there is one. Raises as `exists`."""
    with _errors(name):
        _file_system(spark, name).delete(_path(spark, name), True)


def make_directory(spark: SparkSession, name: str) -> None:
    """Create a directory and its parents, unless they exist. Raises as `exists`."""
    with _errors(name):
        _file_system(spark, name).mkdirs(_path(spark, name))


def _path(spark: SparkSession, name: str) -> Any:
    return _jvm(spark).org.apache.hadoop.fs.Path(name)


def _file_system(spark: SparkSession, name: str) -> Any:
    return _path(spark, name).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


def _gateway(spark: SparkSession) -> Any:
    return spark.sparkContext._gateway


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise ConfigError(f"{name}: {_cause(error)}") from error


def _cause(error: Py4JJavaError) -> str:
    text = str(error.java_exception.getMessage() or error.java_exception.toString()).split("\n", 1)[0]
    return f"{text[:300]}: expected the Hadoop package of the store (--packages)" if "No FileSystem" in text else text
