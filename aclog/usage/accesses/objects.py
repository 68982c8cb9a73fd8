"""Access logs in an object store: an S3 prefix, of which every object is copied and then read as a file is.

A log is read several times, and by several processes, and a packed one from its beginning: from copies on the disk of
temporary files. Spark reads objects where they are (`aclog spark ingest`).
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path, PurePosixPath
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import Any, Final, Self
from urllib.parse import quote, unquote
from weakref import finalize

from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.usage.accesses.globs import is_hidden
from aclog.usage.accesses.lines import TABLES, FileChangedError, PinnedFile
from aclog.usage.accesses.table_formats import MARKERS, Places, is_of_log

SCHEME: Final = "s3://"
_HADOOP_SCHEME: Final = "s3a://"
_BLOCK: Final = 1 << 22
_AT_ONCE: Final = 8
"""Objects that are copied at the same time, each in memory for one block."""
_MAGIC: Final = (*TABLES, b"PARE")
"""How files begin that tables consist of: the last is encrypted Parquet."""
BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_FILE: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/)")
_SECRETS: Final = re.compile(r"[?&](?:access_key|secret_key|session_token)=", re.IGNORECASE)


def plain_name(path: str) -> str:
    """Return the path that a `file:` URI names, and s3://... for Hadoop's name of it, s3a://...; else the same."""
    if path.startswith(_HADOOP_SCHEME):
        return SCHEME + path.removeprefix(_HADOOP_SCHEME)
    if match := _FILE.match(path):
        return unquote(path[match.end() :])  # as a whole: `?` and `#` are of a glob or a name
    return path


def is_object_path(path: str) -> bool:
    """Return whether a path is in an object store."""
    return path.startswith((SCHEME, _HADOOP_SCHEME))


def check_address(path: str, credentials: str = "the variables or the profile of the AWS SDK") -> None:
    """Check that a path is s3://BUCKET/PREFIX without credentials. Raises ConfigError, which never names those.

    `credentials`: where they are read from.

    A secret may contain `/` or `?`, after which its rest is like a prefix or options. So only the prefix may have an
    `@`, below a name that a bucket of S3 may have: the id of a key has capital letters, and a `:` behind it.
    """
    address, _, options = path.partition("?")
    bucket, _, prefix = address.removeprefix(SCHEME).partition("/")
    is_of_prefix = "@" not in bucket + options and BUCKET.fullmatch(bucket)
    if ("@" in path and not is_of_prefix) or ":" in bucket or _SECRETS.search(path):
        raise ConfigError(
            f"an address of {SCHEME} has `@` before its prefix, or `:` in its bucket, or a key, so it may hold "
            f"credentials: expected s3://BUCKET/PREFIX, and credentials in {credentials}"
        )
    if not bucket or "*" in prefix:
        raise ConfigError(f"{SCHEME}{bucket}/{prefix}: expected s3://BUCKET/PREFIX, without *")


@define(eq=False)
class ObjectCopies:
    """Copies of the objects of a path, which end with this value, or with the process."""

    files: tuple[PinnedFile, ...]
    """Each with the address of its object."""
    is_prefix: bool
    """Whether the path names a prefix with objects below it, and not one object."""
    _directory: str = field(repr=False)

    def __attrs_post_init__(self) -> None:
        finalize(self, rmtree, self._directory, ignore_errors=True)

    @classmethod
    def of(cls, path: str) -> Self:
        """Copy one object, or all below a prefix but those with names that begin with `.` or `_`.

        `path` is s3://BUCKET/PREFIX, and may end in the options of pyarrow.fs.S3FileSystem: `?region=eu-west-1`, or
        `?endpoint_override=HOST:PORT&scheme=http` of another store. Credentials are those of the AWS SDK: variables,
        files of a profile, a role.

        Raises:
            ConfigError: no such object, a table of Delta, Hudi or Iceberg, or the store or the disk has an error.
            FileChangedError: an object was replaced or deleted meanwhile.

        """
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few logs are in a store

        check_address(path)
        address, _, options = path.partition("?")
        bucket, _, prefix = address.removeprefix(SCHEME).partition("/")
        directory = mkdtemp(prefix="aclog-")
        try:
            store, infos, is_prefix = _listing(address, f"{SCHEME}{bucket}/{quote(prefix)}", options)
            _check_no_table(address, [each.path for each in infos])
            read = [
                each
                for each in infos
                if not is_prefix or not is_hidden(PurePosixPath(each.path.removeprefix(f"{bucket}/{prefix}")))
            ]
            places = (Path(directory, str(number)) for number in range(len(read)))
            with ThreadPoolExecutor(_AT_ONCE) as pool:  # each request waits for the store
                files = tuple(pool.map(partial(_copied, store), read, places))
            if any(is_of_table(file) for file in files):
                _check_not_in_table(address, store, PurePosixPath(bucket, prefix))
        except BaseException as error:
            rmtree(directory, ignore_errors=True)
            if isinstance(error, OSError):
                raise ConfigError(f"{address}: {str(error).splitlines()[0]}") from error
            raise
        copies = cls(files, is_prefix, directory)
        if not files:
            raise ConfigError(f"{address}: no objects (names that begin with `.` or `_` are skipped)")
        return copies


_COPIES: ContextVar[dict[str, ObjectCopies] | None] = ContextVar("aclog_object_copies", default=None)


@contextmanager
def copied_once() -> Iterator[None]:
    """Copy each path once during the `with`, in this thread: all that read it see the same objects."""
    token = _COPIES.set({})
    try:
        yield
    finally:
        _COPIES.reset(token)


def copies_of(path: str) -> ObjectCopies:
    """Return copies of the objects of a path, which `copied_once` may have. Raises as ObjectCopies.of."""
    copies = _COPIES.get()
    if copies is None:
        return ObjectCopies.of(path)
    if path not in copies:
        copies[path] = ObjectCopies.of(path)
    return copies[path]


def _listing(address: str, quoted: str, options: str) -> tuple[Any, list[Any], bool]:
    """Return the store, the objects of an address by name, and whether it is a prefix. Raises OSError, ConfigError."""
    import pyarrow as pa  # noqa: PLC0415 - few logs are in a store, and loading its client takes a second
    from pyarrow import fs  # noqa: PLC0415

    try:
        store, base = fs.FileSystem.from_uri(f"{quoted}?{options}" if options else quoted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"{address}: {str(error).splitlines()[0]}") from error
    one = store.get_file_info(base)
    if one.type is fs.FileType.File:
        return store, [one], False
    listed = store.get_file_info(fs.FileSelector(base, recursive=True))
    return store, sorted((each for each in listed if each.type is fs.FileType.File), key=lambda each: each.path), True


def _check_no_table(address: str, paths: Collection[str]) -> None:
    """Raise ConfigError if there is a table, whose files also have rows that were deleted or rewritten."""
    for path in paths:
        if is_of_log(path):
            raise of_table(f"{address}: has a table of Delta, Hudi or Iceberg ({SCHEME}{path})")


def _check_not_in_table(address: str, store: Any, base: PurePosixPath) -> None:
    """Raise ConfigError if objects are in a table above their address. Raises OSError: the store refuses the list."""
    from pyarrow import fs  # noqa: PLC0415 - as above

    def _markers(directory: str) -> list[str]:
        infos = store.get_file_info([f"{directory}/{name}" for name in MARKERS])
        return [info.base_name for info in infos if info.type is fs.FileType.Directory]

    def _names(directory: str) -> list[str]:
        return [info.base_name for info in store.get_file_info(fs.FileSelector(directory, recursive=True))]

    places = Places(_markers, _names)
    for directory in base.parents[:-1]:
        table = places.root(str(directory))
        if table is not None:
            raise of_table(f"{address}: in the {table.format} table {SCHEME}{table.path}")


def of_table(what: str) -> ConfigError:
    """Return the error of files that are of a table."""
    return ConfigError(f"{what}: expected logs: pass a copy of the table on this machine, or read it with aclog spark")


def is_of_table(file: PinnedFile) -> bool:
    """Return whether a table may consist of such files: columnar ones."""
    with Path(file.place).open("rb") as copy:
        return copy.read(4).startswith(_MAGIC)


def _copied(store: Any, info: Any, place: Path) -> PinnedFile:
    """Copy an object. Raises ConfigError, OSError: it cannot be; FileChangedError: it was replaced or deleted.

    Each block is a request of its own, so that blocks of two objects of one name could come together.
    """
    name, size = f"{SCHEME}{info.path}", 0
    try:
        with store.open_input_stream(info.path, compression=None) as stream, place.open("wb") as copy:
            version = _version(stream)
            for block in _blocks(stream):
                try:
                    copy.write(block)
                except OSError as error:
                    raise ConfigError(
                        f"{name}: cannot be copied to {gettempdir()}: {error.strerror or error}: expected room for it "
                        "there, or in TMPDIR"
                    ) from error
                size += len(block)
        with store.open_input_stream(info.path, compression=None) as stream:
            is_same = size == info.size and _version(stream) == version
    except OSError as error:
        if isinstance(error, FileNotFoundError) or any(each in str(error) for each in _MISSING):
            raise FileChangedError(f"{name}: deleted while it was being read: run again") from error
        raise ConfigError(f"{name}: {str(error).splitlines()[0]}") from error
    if not is_same:
        raise FileChangedError(f"{name}: replaced by another object while it was being read: run again")
    return PinnedFile.of(name, str(place))


_MISSING: Final = ("NO_SUCH_KEY", "RESOURCE_NOT_FOUND")


def _version(stream: Any) -> dict[str, bytes]:
    """Return by what the store distinguishes an object from others of its name."""
    metadata = stream.metadata()
    return {key: metadata[key] for key in ("ETag", "VersionId", "Last-Modified", "Content-Length") if key in metadata}


def _blocks(stream: Any) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block
