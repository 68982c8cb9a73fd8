"""Access logs in an object store: a prefix, of which every object is copied and then read as a file is.

A log is read several times, and by several processes, and a packed one from its beginning: from copies on the disk of
temporary files. Spark reads objects where they are (`aclog spark ingest`). Addresses: `addresses.py`.
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
from urllib.parse import quote
from weakref import finalize

from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.usage.accesses.addresses import SCHEME, check_address
from aclog.usage.accesses.globs import is_hidden
from aclog.usage.accesses.lines import TABLES, FileChangedError, PinnedFile
from aclog.usage.accesses.table_formats import MARKERS, Places, is_of_log

_BLOCK: Final = 1 << 22
_AT_ONCE: Final = 8
"""Objects that are copied at the same time, each in memory for one block."""
_MAGIC: Final = (*TABLES, b"PARE")
"""How files begin that tables consist of: the last is encrypted Parquet."""


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
        address, directory = path.partition("?")[0], mkdtemp(prefix="aclog-")
        try:
            opened = _opened(path)
            infos, is_prefix = _listing(opened)
            _check_no_table(opened, [each.path for each in infos])
            read = [
                each
                for each in infos
                if not is_prefix or not is_hidden(PurePosixPath(each.path.removeprefix(opened.base)))
            ]
            places = (Path(directory, str(number)) for number in range(len(read)))
            with ThreadPoolExecutor(_AT_ONCE) as pool:  # each request waits for the store
                files = tuple(pool.map(partial(_copied, opened), read, places))
            if any(is_of_table(file) for file in files):
                _check_not_in_table(opened)
        except BaseException as error:
            rmtree(directory, ignore_errors=True)
            if isinstance(error, _errors()):
                raise ConfigError(f"{address}: {_reason(error)}") from error
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


@frozen(kw_only=True)
class _Opened:
    """An address, and the file system that has its objects."""

    address: str
    """Without options."""
    files: Any
    """A pyarrow.fs.FileSystem."""
    base: str
    """The path of the address in the file system: BUCKET/PREFIX."""


def _opened(path: str) -> _Opened:
    """Open an address that was checked. Raises ConfigError, OSError."""
    import pyarrow as pa  # noqa: PLC0415 - few logs are in a store, and loading its client takes a second
    from pyarrow import fs  # noqa: PLC0415

    address, _, options = path.partition("?")
    bucket, _, prefix = address.removeprefix(SCHEME).partition("/")
    quoted = f"{SCHEME}{bucket}/{quote(prefix)}"
    try:
        files, base = fs.FileSystem.from_uri(f"{quoted}?{options}" if options else quoted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"{address}: {str(error).splitlines()[0]}") from error
    return _Opened(address=address, files=files, base=base)


def _name(path: str) -> str:
    """Return the address of a path of the file system."""
    return f"{SCHEME}{path}"


def _listing(opened: _Opened) -> tuple[list[Any], bool]:
    """Return the objects of an address by name, and whether it is a prefix. Raises OSError."""
    from pyarrow import fs  # noqa: PLC0415 - as above

    one = opened.files.get_file_info(opened.base)
    if one.type is fs.FileType.File:
        return [one], False
    listed = opened.files.get_file_info(fs.FileSelector(opened.base, recursive=True))
    return sorted((each for each in listed if each.type is fs.FileType.File), key=lambda each: each.path), True


def _check_no_table(opened: _Opened, paths: Collection[str]) -> None:
    """Raise ConfigError if there is a table, whose files also have rows that were deleted or rewritten."""
    for path in paths:
        if is_of_log(path):
            raise of_table(f"{opened.address}: has a table of Delta, Hudi or Iceberg ({_name(path)})")


def _check_not_in_table(opened: _Opened) -> None:
    """Raise ConfigError if objects are in a table above their address. Raises OSError: the store refuses the list."""
    from pyarrow import fs  # noqa: PLC0415 - as above

    store = opened.files

    def _markers(directory: str) -> list[str]:
        infos = store.get_file_info([f"{directory}/{name}" for name in MARKERS])
        return [info.base_name for info in infos if info.type is fs.FileType.Directory]

    def _names(directory: str) -> list[str]:
        return [info.base_name for info in store.get_file_info(fs.FileSelector(directory, recursive=True))]

    places = Places(_markers, _names)
    for directory in PurePosixPath(opened.base).parents[:-1]:
        table = places.root(str(directory))
        if table is not None:
            raise of_table(f"{opened.address}: in the {table.format} table {_name(table.path)}")


def of_table(what: str) -> ConfigError:
    """Return the error of files that are of a table."""
    return ConfigError(f"{what}: expected logs: pass a copy of the table on this machine, or read it with aclog spark")


def is_of_table(file: PinnedFile) -> bool:
    """Return whether a table may consist of such files: columnar ones."""
    with Path(file.place).open("rb") as copy:
        return copy.read(4).startswith(_MAGIC)


def _copied(opened: _Opened, info: Any, place: Path) -> PinnedFile:
    """Copy an object. Raises ConfigError, OSError: it cannot be; FileChangedError: it was replaced or deleted.

    Each block is a request of its own, so that blocks of two objects of one name could come together.
    """
    name, store, size = _name(info.path), opened.files, 0
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
    except _errors() as error:
        if isinstance(error, FileNotFoundError) or any(each in str(error) for each in _MISSING):
            raise FileChangedError(f"{name}: deleted while it was being read: run again") from error
        raise ConfigError(f"{name}: {_reason(error)}") from error
    if not is_same:
        raise FileChangedError(f"{name}: replaced by another object while it was being read: run again")
    return PinnedFile.of(name, str(place))


_MISSING: Final = ("NO_SUCH_KEY", "RESOURCE_NOT_FOUND")


_QUERY: Final = re.compile(r"(?<=[^\s?])\?[^\s'\"]*=[^\s'\"]*")
"""The query of a URL, which may have a signature."""


def _errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors of stores: pyarrow has no class for some, such as missing credentials."""
    from pyarrow import ArrowException  # noqa: PLC0415 - as above

    return OSError, ArrowException


def _reason(error: BaseException) -> str:
    """Return the first line of an error of a store, without the queries of its URLs."""
    return _QUERY.sub("", str(error).splitlines()[0])


def _version(stream: Any) -> dict[str, bytes]:
    """Return by what the store distinguishes an object from others of its name."""
    metadata = stream.metadata()
    return {key: metadata[key] for key in ("ETag", "VersionId", "Last-Modified", "Content-Length") if key in metadata}


def _blocks(stream: Any) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block
