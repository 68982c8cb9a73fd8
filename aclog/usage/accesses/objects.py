"""Access logs in an object store: a prefix, of which every object is copied and then read as a file is.

A log is read several times, and by several processes, and a packed one from its beginning: from copies on the disk of
temporary files. Spark reads objects where they are (`aclog spark ingest`). Addresses: `addresses.py`; the clients of
stores: `clients.py`.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path, PurePosixPath
from shutil import rmtree
from tempfile import gettempdir
from typing import Any, Final, Self
from weakref import finalize

from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.usage.accesses.addresses import Address
from aclog.usage.accesses.clients import (
    UNPACKED,
    Opened,
    errors,
    is_missing,
    is_of_marker,
    is_replaced,
    listed,
    opened,
    reason,
)
from aclog.usage.accesses.globs import is_hidden
from aclog.usage.accesses.lines import TABLES, FileChangedError, PinnedFile
from aclog.usage.accesses.table_formats import MARKERS, Places, is_of_log
from aclog.usage.scratch import private_directory

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

        `path` is as in `addresses.py`, and may end in the options of its store: `?region=eu-west-1`, or
        `?endpoint_override=HOST:PORT&scheme=http` of another one. Credentials are those that its kind of store has
        (`Store.credentials`).

        Raises:
            ConfigError: an address that may hold credentials, no such object, a table of Delta, Hudi or Iceberg, or the
                store or the disk has an error.
            FileChangedError: an object was replaced or deleted meanwhile.

        """
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few logs are in a store

        address, directory = Address.of(path), private_directory()
        try:
            store = opened(address)
            infos, is_prefix = _listing(store)
            _check_no_table(store, [each.path for each in infos])
            read = [
                each
                for each in infos
                if not is_prefix or not is_hidden(PurePosixPath(each.path.removeprefix(store.base)))
            ]
            places = (Path(directory, str(number)) for number in range(len(read)))
            with ThreadPoolExecutor(_AT_ONCE) as pool:  # each request waits for the store
                files = tuple(filter(None, pool.map(partial(_copied, store), read, places)))
            if any(is_of_table(file) for file in files):
                _check_not_in_table(store)
        except BaseException as error:
            rmtree(directory, ignore_errors=True)
            if isinstance(error, errors()):
                raise ConfigError(f"{address.name}: {reason(address.store, error)}") from None
            raise
        copies = cls(files, is_prefix, directory)
        if not files:
            raise ConfigError(f"{address.name}: no objects (names that begin with `.` or `_` are skipped)")
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


def _listing(store: Opened) -> tuple[list[Any], bool]:
    """Return the objects of an address by name, and whether it is a prefix. Raises OSError.

    An empty object with the name of a prefix marks a directory in Azure, where pyarrow lists it as a file.
    """
    from pyarrow import fs  # noqa: PLC0415 - few logs are in a store, and loading its client takes a second

    # of a whole bucket, Google Cloud Storage would require a permission that readers of objects lack
    one = store.files.get_file_info(store.base) if "/" in store.base else None
    is_file = one is not None and one.type is fs.FileType.File
    if one is not None and is_file and one.size:
        return [one], False
    below = listed(store, store.base, allow_not_found=is_file)
    if is_file and not below:
        return [one], False
    directories = {each.path for each in below if each.type is fs.FileType.Directory}
    files = [each for each in below if each.type is fs.FileType.File and (each.size or each.path not in directories)]
    return sorted(files, key=lambda each: each.path), True


def _check_no_table(store: Opened, paths: Collection[str]) -> None:
    """Raise ConfigError if there is a table, whose files also have rows that were deleted or rewritten."""
    for path in paths:
        if is_of_log(path):
            raise of_table(
                f"{store.address.name}: has a table of Delta, Hudi or Iceberg ({store.address.name_of(path)})"
            )


def _check_not_in_table(store: Opened) -> None:
    """Raise ConfigError if objects are in a table above their address. Raises OSError: the store refuses the list."""
    from pyarrow import fs  # noqa: PLC0415 - as above

    files = store.files

    def _markers(directory: str) -> list[str]:
        # lists: of Azure, pyarrow does not find a directory by its name if `NAME-OTHER/` is there
        places = [fs.FileSelector(f"{directory}/{name}", allow_not_found=True) for name in MARKERS]
        return [name for name, place in zip(MARKERS, places, strict=True) if files.get_file_info(place)]

    def _names(directory: str) -> list[str]:
        return [info.base_name for info in listed(store, directory)]

    places = Places(_markers, _names)
    for directory in PurePosixPath(store.base).parents[:-1]:
        table = places.root(str(directory))
        if table is not None:
            raise of_table(
                f"{store.address.name}: in the {table.format} table {store.address.name_of(str(table.path))}"
            )


def of_table(what: str) -> ConfigError:
    """Return the error of files that are of a table."""
    return ConfigError(f"{what}: expected logs: pass a copy of the table on this machine, or read it with aclog spark")


def is_of_table(file: PinnedFile) -> bool:
    """Return whether a table may consist of such files: columnar ones."""
    with Path(file.place).open("rb") as copy:
        return copy.read(4).startswith(_MAGIC)


def _copied(store: Opened, info: Any, place: Path) -> PinnedFile | None:
    """Copy an object; return None for one that marks an empty directory.

    Raises ConfigError, OSError: it cannot be copied; FileChangedError: it was replaced or deleted.

    Each block is a request of its own in S3 and Azure, so that blocks of two objects of one name could come together.
    """
    name = store.address.name_of(info.path)
    try:
        with store.files.open_input_stream(info.path, compression=None) as stream:
            version = _version(name, stream)
            size = _written(name, stream, place)
        with store.files.open_input_stream(info.path, compression=None) as stream:
            now = _version(name, stream)
    except errors() as error:
        if not info.size and is_of_marker(error):
            return None
        if is_missing(error):
            raise FileChangedError(f"{name}: deleted while it was being read: run again") from None
        if is_replaced(error):
            raise _replaced(name) from None
        raise ConfigError(f"{name}: {reason(store.address.store, error)}") from None
    if now != version:
        raise _replaced(name)
    if size != info.size:
        if version.get("Content-Encoding"):
            raise ConfigError(f"{name}: {UNPACKED}")
        raise _replaced(name)
    return PinnedFile.of(name, str(place))


def _written(name: str, stream: Any, place: Path) -> int:
    """Write the rest of a stream to a file; return its bytes. Raises ConfigError: no room; errors of the store."""
    size = 0
    with _room_for(name):
        copy = place.open("wb")
    try:
        for block in _blocks(stream):
            with _room_for(name):
                copy.write(block)
            size += len(block)
    finally:
        with _room_for(name):
            copy.close()  # writes what is buffered
    return size


@contextmanager
def _room_for(name: str) -> Iterator[None]:
    """Take errors of the operating system for those of the disk. Raises ConfigError."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{name}: cannot be copied to {gettempdir()}: {error.strerror or error}: expected room for it there, or in "
            "TMPDIR"
        ) from error


def _replaced(name: str) -> FileChangedError:
    return FileChangedError(f"{name}: replaced by another object while it was being read: run again")


_OF_VERSIONS: Final = ("ETag", "VersionId", "Last-Modified", "Content-Length", "generation", "size", "Content-Encoding")


def _version(name: str, stream: Any) -> dict[str, bytes]:
    """Return by what the store distinguishes an object from others of its name. Raises ConfigError: by nothing."""
    metadata = stream.metadata()
    version = {key: metadata[key] for key in _OF_VERSIONS if key in metadata}
    if not version.get("ETag") and not version.get("generation"):
        raise ConfigError(
            f"{name}: the store sends no version of it (ETag or generation), so that a change would not be noticed: "
            "expected a store with versions, or a copy on this machine"
        )
    return version


def _blocks(stream: Any) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block
