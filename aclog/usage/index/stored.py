"""An index of last use in S3 or Azure: one object, of which commands work on a private copy.

SQLite needs a file system, so that readers copy one version of the object, and writers copy it, add to the copy, and
put that back as a whole. The put has a condition (`If-Match: ETAG` of the copied version, or `If-None-Match: *` for a
new index): of two writers that copied the same version, the store refuses the later one, which then has changed
nothing. A put whose response is lost is compared with the object before it is reported. The clients of stores and their
errors: `store_clients.py`.

Begin with `reading_index` and `writing_index`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from tempfile import gettempdir
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from attrs import field

from aclog.installation import install_command
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.usage.accesses.addresses import AZURE, BUCKET, S3, SCHEME, Address, is_s3_path, plain_name
from aclog.usage.index.database import FILE
from aclog.usage.index.store_clients import AZURE_KIND, S3_KIND, StoreKind, client_settings, is_final, s3_options, why
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.scratch import private_directory

if TYPE_CHECKING:
    from obstore.store import AzureStore, S3Store

# Where an index is: a directory, or an address.

EXPECTED: Final = f"a directory of this machine, {S3.form} or {AZURE.form}"
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


@frozen(kw_only=True)
class StoredIndex:
    """The address of an index in a store."""

    bucket: str
    """Or the container."""
    prefix: str
    """Without a slash at its ends; may be empty."""
    options: Mapping[str, str] = field(factory=dict)
    azure: Address | None = None
    """The address in Azure; None in S3."""

    @classmethod
    def of(cls, path: str) -> Self:
        """Read s3://BUCKET/PREFIX?OPTIONS, or s3a://, or abfss://. Raises ConfigError, which names no credentials."""
        plain = plain_name(path)
        address = Address.of(plain, (S3_KIND if is_s3_path(plain) else AZURE_KIND).credentials)
        is_s3, scheme = address.store is S3, address.scheme
        if is_s3 and not BUCKET.fullmatch(address.authority):
            raise ConfigError(f"an index in a store: not the name of a bucket: expected {S3.form}")
        prefix = address.prefix.rstrip("/")
        name = f"{scheme}{address.authority}/{prefix}"
        if prefix.rpartition("/")[2] == FILE:
            raise ConfigError(f"{name}: expected the prefix of {FILE}, without that name")
        if not _is_key(prefix):
            raise ConfigError(
                f"an index in {scheme}{address.authority}: its prefix has an empty part, `.`, `..`, a control "
                f"character or one that is not Unicode: expected {address.store.form}"
            )
        if is_s3:
            return cls(bucket=address.authority, prefix=prefix, options=s3_options(name, address.query))
        return cls(bucket=address.container, prefix=prefix, options=address.options, azure=address)

    @property
    def kind(self) -> StoreKind:
        """The kind of store."""
        return S3_KIND if self.azure is None else AZURE_KIND

    @property
    def address(self) -> str:
        """The address without its options."""
        root = f"{SCHEME}{self.bucket}" if self.azure is None else f"{self.azure.scheme}{self.azure.authority}"
        return f"{root}/{self.prefix}".rstrip("/")

    def key(self, name: str = FILE) -> str:
        """Return the key of an object of the index."""
        return f"{self.prefix}/{name}" if self.prefix else name


def _is_key(prefix: str) -> bool:
    parts = prefix.split("/") if prefix else []
    try:
        prefix.encode()
    except UnicodeEncodeError:
        return False
    return not any(part in {"", ".", ".."} for part in parts) and not any(
        ord(each) < 32 or each == "\x7f" for each in prefix
    )


def index_place(index: Path | str) -> Path | StoredIndex:
    """Return the directory, or the address in a store, that --index names. `file:///DIR` is a directory.

    Raises:
        ConfigError: an address that may hold credentials, which the error does not name, or of another kind of store.

    """
    text = str(index)
    if isinstance(index, str) and (is_s3_path(text) or text.startswith(AZURE.schemes)):
        return StoredIndex.of(text)
    plain = plain_name(text)
    match = _URI.match(plain)
    if match is None:
        return Path(plain)
    scheme = match[1].lower()
    if isinstance(index, Path):
        raise ConfigError(f"--index: a URI of {scheme} as a Path, which has lost slashes: expected it as text")
    raise ConfigError(f"--index: an index in a store of {scheme}: is not supported: expected {EXPECTED}")


# What commands do with an index.


@contextmanager
def reading_index(index: Path | str) -> Iterator[UsageIndex]:
    """Open an index for reading; of a store, a private copy of one version, which ends with the `with`.

    Raises:
        ConfigError: no index; the address is not valid; obstore is not installed; the store or the disk of temporary
            files has an error; or as UsageIndex.open.

    """
    place = index_place(index)
    if isinstance(place, Path):
        with UsageIndex.open(place) as opened:
            yield opened
        return
    store = _Store.of(place)
    with _scratch() as scratch:
        if store.copy(scratch / FILE) is None:
            raise ConfigError(
                f"{place.address}: no index: no object {FILE}: expected one, which `aclog accesses index --index "
                f"{place.address}` makes"
            )
        with UsageIndex.open(scratch, name=place.address) as opened:
            yield opened


@contextmanager
def writing_index(index: Path | str, *, kept: type[Exception] | tuple[()] = ()) -> Iterator[UsageIndex]:
    """Open an index for writing, or create one; of a store, its object is replaced at the end of the `with`.

    Of a store nothing is written if the block ends with an error, or changes nothing. `kept`: errors after which what
    the block has written is kept all the same.

    Raises:
        ConfigError: as reading_index, except for no index; another process has written the object meanwhile; the store
            does not honor conditions; or the result of the put is unknown.

    """
    with writing_batches(index, kept=kept) as batches:
        yield batches.index


@contextmanager
def writing_batches(
    index: Path | str, *, kept: type[Exception] | tuple[type[Exception], ...] = ()
) -> Iterator["WrittenBatches"]:
    """Open an index as `writing_index`, for batches of which each is as good as all: `store` puts them meanwhile.

    Raises:
        ConfigError: as writing_index; after an error of `kept`, its message is in that of the put.

    """
    place = index_place(index)
    if isinstance(place, Path):
        with UsageIndex.create(place) as opened:
            yield WrittenBatches(opened, None)
        return
    store = _Store.of(place)
    store.check_conditions()
    with _scratch() as scratch:
        file = scratch / FILE
        version, ended = store.copy(file), None
        with UsageIndex.create(scratch, name=place.address) as opened:
            copy = _Copy(store, file, version, _digest(file))
            batches = WrittenBatches(opened, copy)
            try:
                yield batches
            except kept as error:
                if batches.has_failed:
                    raise
                ended = error
        with _after(ended):
            if ended is not None:  # perhaps of a damaged disk
                with UsageIndex.open(scratch, name=place.address) as closed:
                    closed.database.check_sound()
            batches.put(copy)
        if ended is not None:
            raise ended


@contextmanager
def _after(ended: Exception | None) -> Iterator[None]:
    """Add to an error of the `with` the one that has ended the batches before it."""
    try:
        yield
    except ConfigError as error:
        if ended is None:
            raise
        raise ConfigError(f"{ended}; what was added before that is not stored: {error}") from ended


@define(eq=False)
class WrittenBatches:
    """An index that is written, and what of it is in its place."""

    index: UsageIndex
    _copy: "_Copy | None"
    """None: of a directory."""
    is_stored: bool = field(default=True, init=False)
    """Whether all that was added is in the directory or the store."""
    has_failed: bool = field(default=False, init=False)
    """Whether a put by `store` has failed, which is not repeated."""

    def store(self) -> bool:
        """Put what was added, unless the last put is recent; return `is_stored`. Raises ConfigError: as the end."""
        if self._copy is not None:
            self.is_stored = False
            if monotonic() - self._copy.at >= _INTERVAL:
                self.has_failed = True
                self.index.database.settle()
                self.put(self._copy)
                self.has_failed = False
        return self.is_stored

    def put(self, copy: "_Copy") -> None:
        """Put a copy. Raises as `store`."""
        copy.put()
        self.is_stored = True


@define(eq=False)
class _Copy:
    """A private copy of an index in a store."""

    store: "_Store"
    file: Path
    version: str | None
    """The ETag of the object that the store has; None: no object."""
    digest: bytes
    """The SHA-256 of that object, or of an empty index."""
    at: float = field(factory=monotonic, init=False)
    """When the store had it, by the monotonic clock."""

    def put(self) -> None:
        """Put the file in place of the object, unless they are equal. Raises ConfigError: as writing_index."""
        _check_whole(self.file)
        if (digest := _digest(self.file)) != self.digest:
            self.version, self.digest = self.store.replace(self.file, digest, self.version), digest
        self.at = monotonic()


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a private directory for copies."""
    try:
        directory = private_directory()
    except OSError as error:
        raise ConfigError(f"{gettempdir()}: {error.strerror or error}: expected room there, or in TMPDIR") from error
    try:
        yield Path(directory)
    finally:
        rmtree(directory, ignore_errors=True)


def _check_whole(file: Path) -> None:
    """Raise ConfigError if commits are in the write-ahead log beside a file, and not in it."""
    log = file.with_name(f"{FILE}-wal")
    if log.exists() and log.stat().st_size:
        raise ConfigError(
            f"{gettempdir()}: the copy of the index is not complete without its write-ahead log: expected room there, "
            "or in TMPDIR; nothing was written to the store"
        )


def _digest(file: Path) -> bytes:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").digest()


# The store.

_LARGEST: Final = 5_000_000_000
"""Bytes of one put of S3; Azure takes 5,000 MiB."""
_INTERVAL: float = 300.0
"""Seconds between two puts of a run of several batches: each is of the whole index."""
_ATTEMPTS: Final = 3
"""Puts of an index, if the object is still the former one after each."""
_PAUSE: float = 1.0
"""Seconds between two attempts, which double."""
_BLOCK: Final = 1 << 22
_NO_TAG: Final = '"00000000000000000000000000000000"'
"""An ETag that no object has."""


class _Version(NamedTuple):
    """A version of an object."""

    tag: str
    digest: bytes
    """The SHA-256 of its content."""


class _Failure(NamedTuple):
    """A put that has no good response."""

    is_refused: bool
    """Whether by its condition."""
    why: str
    is_final: bool
    """Whether the same put would fail again."""


@define(eq=False)
class _Store:
    """The objects of an index: reads are repeated by the client, puts are not."""

    place: StoredIndex
    _read: "S3Store | AzureStore" = field(repr=False)
    _put: "S3Store | AzureStore" = field(repr=False)

    @classmethod
    def of(cls, place: StoredIndex) -> Self:
        """Connect to nothing yet. Raises ConfigError: obstore is not installed, or its variables are not valid."""
        if find_spec("obstore") is None:
            extra = place.kind.extra
            raise ConfigError(f"no module obstore: an index in a store needs it: {install_command(extra)}")
        from datetime import timedelta  # noqa: PLC0415 - few indexes are in a store

        from obstore.store import AzureStore, S3Store  # noqa: PLC0415

        settings = client_settings(place.bucket, place.options, place.azure)
        client: Any = S3Store if place.azure is None else AzureStore
        patience = timedelta(seconds=60)
        try:
            read, put = (
                client(**settings, retry_config={"max_retries": retries, "retry_timeout": patience})
                for retries in (3, 0)
            )
        except Exception:  # noqa: BLE001 - errors of the client have no class in common
            # the text may have a value of a variable
            raise ConfigError(
                f"{place.address}: {place.kind.variables} are not valid, or the options of the address"
            ) from None
        return cls(place, read, put)

    # one version of the object

    def copy(self, to: Path) -> str | None:
        """Copy the object to a file; return its ETag, None if there is no object. Raises ConfigError."""
        try:
            with to.open("xb") as copy:
                version = self._version(copy.write)
        except OSError as error:
            raise ConfigError(
                f"{self.place.address}: cannot be copied to {gettempdir()}: {error.strerror or error}: expected room "
                "for it there, or in TMPDIR"
            ) from error
        if version is None:
            to.unlink()
        return None if version is None else version.tag

    def _version(self, write: Any = lambda _: None) -> _Version | None:
        """Read the object in one request: all of its bytes are of one version. Raises ConfigError; errors of `write`.

        The client continues a request that breaks with a condition on the ETag.
        """
        from obstore import get  # noqa: PLC0415

        sha = sha256()
        try:
            result = get(self._read, self.place.key())
        except FileNotFoundError:
            return None
        except Exception as error:  # noqa: BLE001 - as above
            raise self._unread(self._why(error)) from None
        blocks, tag = iter(result.stream(min_chunk_size=_BLOCK)), result.meta["e_tag"]
        while (block := self._next(blocks)) is not None:
            sha.update(block)
            write(block)
        if not tag:
            raise self._unread("the store sends no ETag: expected a store with conditional writes")
        return _Version(tag, sha.digest())

    def _next(self, blocks: Iterator[Any]) -> Any:
        """Return the next block, None at the end. Raises ConfigError."""
        try:
            return next(blocks, None)
        except Exception as error:  # noqa: BLE001 - as above
            raise self._unread(self._why(error)) from None

    def _unread(self, cause: str) -> ConfigError:
        return ConfigError(f"{self.place.address}: cannot be read: {cause}")

    def _why(self, error: Exception) -> str:
        return why(self.place.kind, error, self.place.prefix or FILE)

    # writing

    def replace(self, file: Path, digest: bytes, tag: str | None) -> str:
        """Put a file, of this SHA-256, in place of the version with this ETag, or of none; return its own ETag.

        Raises:
            ConfigError: as writing_index.

        """
        address = self.place.address
        if (size := file.stat().st_size) > _LARGEST:
            raise ConfigError(
                f"{address}: the index has {size:,} bytes: expected at most {_LARGEST:,}, which a store takes in one "
                "put: keep it in a directory"
            )
        is_unsure = False
        for attempt in range(_ATTEMPTS):
            if attempt:
                sleep(_PAUSE * 2 ** (attempt - 1))
            failure = self._try(file, tag)
            if isinstance(failure, str):
                return failure
            refused, cause, is_final = failure
            # a response may have been lost, also that of the attempt before
            try:
                now = self._version()
            except ConfigError as error:
                raise ConfigError(
                    f"{address}: writing has failed ({cause}), and what is there now is unknown ({_cause(error)}): the "
                    f"former index or the new one, each as a whole: {_AGAIN}"
                ) from error
            if now is not None and now.digest == digest:
                return now.tag
            is_former = (None if now is None else now.tag) == tag
            if refused and not is_unsure and not is_former:
                raise ConfigError(
                    f"{address}: another process has written the index meanwhile, so that this upload has changed "
                    f"nothing: {_AGAIN}"
                )
            if not is_former:
                raise ConfigError(
                    f"{address}: another process has written the index meanwhile, perhaps after this one: {_AGAIN}"
                )
            if is_final:
                break
            is_unsure = is_unsure or not refused
        raise ConfigError(f"{address}: cannot be written: {cause}: the former index was still there: {_AGAIN}")

    def _try(self, file: Path, tag: str | None) -> str | _Failure:
        """Put a file; return its ETag, or why that failed."""
        from obstore import put  # noqa: PLC0415
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        mode: Any = "create" if tag is None else {"e_tag": tag}
        try:
            written = put(self._put, self.place.key(), file, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError) as error:
            return _Failure(True, self._why(error), False)
        except Exception as error:  # noqa: BLE001 - errors of the client have no class in common
            return _Failure(False, self._why(error), is_final(self.place.kind, error))
        return written["e_tag"] or _Failure(False, "the store sends no ETag", False)

    def check_conditions(self) -> None:
        """Check with a probe object that the store honors both conditions.

        Raises:
            ConfigError: it ignores one, refuses what meets them, or has another error.

        """
        from obstore import delete  # noqa: PLC0415

        probe = self.place.key(f".aclog-probe-{token_hex(16)}")
        try:
            try:
                self._probe(probe)
            except BaseException:
                with suppress(Exception):
                    delete(self._put, probe)
                raise
            delete(self._put, probe)
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise ConfigError(
                f"{self.place.address}: writing was tried with a probe object: {self._why(error)}"
            ) from None

    def _probe(self, probe: str) -> None:
        """Put the probe with conditions that hold and that do not. Raises ConfigError, and errors of the client."""
        from obstore import put  # noqa: PLC0415
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        tag = put(self._put, probe, b"1", mode="create")["e_tag"]
        for ignored, mode in (("If-None-Match", "create"), ("If-Match", {"e_tag": _NO_TAG})):
            try:
                put(self._put, probe, b"2", mode=mode)  # type: ignore[arg-type]
            except (AlreadyExistsError, PreconditionError):
                continue
            raise ConfigError(
                f"{self.place.address}: the store ignores {ignored}: two writers could lose each other's accesses: "
                "expected a store with conditional writes, or --index DIR"
            )
        try:
            put(self._put, probe, b"3", mode={"e_tag": tag})
        except PreconditionError:
            raise ConfigError(
                f"{self.place.address}: the store refuses the ETag that it has sent (If-Match): expected a store with "
                "conditional writes, or --index DIR"
            ) from None


_AGAIN: Final = "run the command again: each access is counted once"


def _cause(error: ConfigError) -> str:
    return str(error).rpartition("cannot be read: ")[2]
