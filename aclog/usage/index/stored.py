"""An index of last use in an S3 store: one object, of which commands work on a private copy.

SQLite needs a file system, so that readers copy one version of the object, and writers copy it, add to the copy, and
put that back as a whole. The put has a condition (`If-Match: ETAG` of the copied version, or `If-None-Match: *` for a
new index): of two writers that copied the same version, the store refuses the later one, which then has changed
nothing. A put whose response is lost is compared with the object before it is reported.

Begin with `reading_index` and `writing_index`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from time import sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from urllib.parse import parse_qsl

from attrs import field

from aclog.installation import install_command
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.usage.accesses.addresses import BUCKET, SCHEME, Address, is_s3_path, plain_name
from aclog.usage.index.database import FILE
from aclog.usage.index.usage_index import UsageIndex

if TYPE_CHECKING:
    from obstore.store import S3Store

# Where an index is: a directory, or an address.

EXPECTED: Final = f"a directory of this machine, or {SCHEME}BUCKET/PREFIX"
CREDENTIALS: Final = (
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), or the role of the pod, the container or the "
    "machine; files of profiles are not read"
)
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_OPTIONS: Final = {
    "region": re.compile(r"[a-z0-9-]{1,64}"),
    "endpoint_override": re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"),
    "scheme": re.compile(r"https?"),
}
"""The options of an address, which are some of those of pyarrow.fs.S3FileSystem."""


@frozen(kw_only=True)
class StoredIndex:
    """The address of an index in a store."""

    bucket: str
    prefix: str
    """Without a slash at its ends; may be empty."""
    options: Mapping[str, str] = field(factory=dict)

    @classmethod
    def of(cls, path: str) -> Self:
        """Read s3://BUCKET/PREFIX?OPTIONS, or s3a://. Raises ConfigError, which names no credentials."""
        plain = plain_name(path)
        Address.of(plain, CREDENTIALS)
        address, _, query = plain.partition("?")
        bucket, _, prefix = address.removeprefix(SCHEME).partition("/")
        if not BUCKET.fullmatch(bucket):
            raise ConfigError(f"an index in a store: not the name of a bucket: expected {SCHEME}BUCKET/PREFIX")
        prefix = prefix.rstrip("/")
        if prefix.rpartition("/")[2] == FILE:
            raise ConfigError(f"{SCHEME}{bucket}/{prefix}: expected the prefix of {FILE}, without that name")
        if not _is_key(prefix):
            raise ConfigError(
                f"an index in {SCHEME}{bucket}: its prefix has an empty part, `.`, `..`, a control character or one "
                f"that is not Unicode: expected {SCHEME}BUCKET/PREFIX"
            )
        return cls(bucket=bucket, prefix=prefix, options=_options(f"{SCHEME}{bucket}/{prefix}", query))

    @property
    def address(self) -> str:
        """The address without its options."""
        return f"{SCHEME}{self.bucket}/{self.prefix}".rstrip("/")

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


def _options(address: str, query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        # neither is named: it may hold a part of a secret with `?` or `&`
        if key not in _OPTIONS or key in options or not _OPTIONS[key].fullmatch(value):
            raise ConfigError(
                f"{address}: its options are not valid: expected at most one each of region=REGION, "
                "endpoint_override=HOST:PORT and scheme=http or https"
            )
        options[key] = value
    return options


def index_place(index: Path | str) -> Path | StoredIndex:
    """Return the directory, or the address in a store, that --index names. `file:///DIR` is a directory.

    Raises:
        ConfigError: an address that may hold credentials, which the error does not name, or of another kind of store.

    """
    text = str(index)
    if isinstance(index, str) and is_s3_path(text):
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
    place = index_place(index)
    if isinstance(place, Path):
        with UsageIndex.create(place) as opened:
            yield opened
        return
    store = _Store.of(place)
    store.check_conditions()
    with _scratch() as scratch:
        file = scratch / FILE
        version, ended = store.copy(file), None
        with UsageIndex.create(scratch, name=place.address) as opened:
            before = _digest(file)
            try:
                yield opened
            except kept as error:
                ended = error
        _check_whole(file)
        if (digest := _digest(file)) != before:
            store.replace(file, digest, version)
        if ended is not None:
            raise ended


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a private directory for copies."""
    try:
        directory = mkdtemp(prefix="aclog-")
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
"""Bytes of one put of S3."""
_ATTEMPTS: Final = 3
"""Puts of an index, if the object is still the former one after each."""
_PAUSE: float = 1.0
"""Seconds between two attempts, which double."""
_BLOCK: Final = 1 << 22
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
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
    _read: "S3Store" = field(repr=False)
    _put: "S3Store" = field(repr=False)

    @classmethod
    def of(cls, place: StoredIndex) -> Self:
        """Connect to nothing yet. Raises ConfigError: obstore is not installed, or its variables are not valid."""
        if find_spec("obstore") is None:
            raise ConfigError(f"no module obstore: an index in a store needs it: {install_command('s3')}")
        from datetime import timedelta  # noqa: PLC0415 - few indexes are in a store

        from obstore.store import S3Store  # noqa: PLC0415

        options, endpoint = place.options, place.options.get("endpoint_override")
        scheme = options.get("scheme", "https")
        variables = () if endpoint else (os.environ.get(name, "") for name in _ENDPOINTS)
        is_plain = scheme == "http" or any(each.startswith("http:") for each in variables)
        settings: dict[str, Any] = {
            # an index is one request; a stalled one ends
            "client_options": {
                "timeout": "15 min",
                "connect_timeout": "10 s",
                "allow_http": is_plain,
            },
            "conditional_put": "etag",
            # not every store has the request that deletes several objects
            "disable_bulk_delete": True,
            **({"region": options["region"]} if "region" in options else {}),
            **(
                {
                    "endpoint": f"{scheme}://{endpoint}",
                    "aws_endpoint_url_s3": f"{scheme}://{endpoint}",  # of a variable it would come first
                    "virtual_hosted_style_request": False,
                }
                if endpoint
                else {}
            ),
        }
        patience = timedelta(seconds=60)
        try:
            read, put = (
                S3Store(place.bucket, **settings, retry_config={"max_retries": retries, "retry_timeout": patience})
                for retries in (3, 0)
            )
        except Exception as error:
            # the text may have a value of a variable
            raise ConfigError(
                f"{place.address}: the variables of the AWS SDK (AWS_*) are not valid, or the options of the address"
            ) from error
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
        except Exception as error:
            raise self._unread(_why(error)) from error
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
        except Exception as error:
            raise self._unread(_why(error)) from error

    def _unread(self, why: str) -> ConfigError:
        return ConfigError(f"{self.place.address}: cannot be read: {why}")

    # writing

    def replace(self, file: Path, digest: bytes, tag: str | None) -> None:
        """Put a file, of this SHA-256, in place of the version with this ETag, or of none.

        Raises:
            ConfigError: as writing_index.

        """
        address = self.place.address
        if (size := file.stat().st_size) > _LARGEST:
            raise ConfigError(
                f"{address}: the index has {size:,} bytes: expected at most {_LARGEST:,}, which S3 takes in one put: "
                "keep it in a directory"
            )
        is_unsure = False
        for attempt in range(_ATTEMPTS):
            if attempt:
                sleep(_PAUSE * 2 ** (attempt - 1))
            failure = self._try(file, tag)
            if failure is None:
                return
            refused, why, is_final = failure
            # a response may have been lost, also that of the attempt before
            try:
                now = self._version()
            except ConfigError as error:
                raise ConfigError(
                    f"{address}: writing has failed ({why}), and what is there now is unknown ({_cause(error)}): the "
                    f"former index or the new one, each as a whole: {_AGAIN}"
                ) from error
            if now is not None and now.digest == digest:
                return
            is_former = (None if now is None else now.tag) == tag
            if refused and not is_unsure and not is_former:
                raise ConfigError(
                    f"{address}: another process has written the index meanwhile, so that nothing was changed: {_AGAIN}"
                )
            if not is_former:
                raise ConfigError(
                    f"{address}: another process has written the index meanwhile, perhaps after this one: {_AGAIN}"
                )
            if is_final:
                break
            is_unsure = is_unsure or not refused
        raise ConfigError(f"{address}: cannot be written: {why}: the former index was still there: {_AGAIN}")

    def _try(self, file: Path, tag: str | None) -> "_Failure | None":
        """Put a file; return why that failed."""
        from obstore import put  # noqa: PLC0415
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        try:
            put(
                self._put, self.place.key(), file, mode="create" if tag is None else {"e_tag": tag}, use_multipart=False
            )
        except (AlreadyExistsError, PreconditionError) as error:
            return _Failure(True, _why(error), False)
        except Exception as error:  # noqa: BLE001 - errors of the client have no class in common
            return _Failure(False, _why(error), _status(error) in _HINTS)
        return None

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
        except Exception as error:
            raise ConfigError(f"{self.place.address}: writing was tried with a probe object: {_why(error)}") from error

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
        except PreconditionError as error:
            raise ConfigError(
                f"{self.place.address}: the store refuses the ETag that it has sent (If-Match): expected a store with "
                "conditional writes, or --index DIR"
            ) from error


_AGAIN: Final = "run the command again: each access is counted once"


def _cause(error: ConfigError) -> str:
    return str(error).rpartition("cannot be read: ")[2]


# Texts of errors: only what is known to hold no credentials. A store's response may have the id of a key and what was
# signed, and an address the token of an identity.

_STATUS: Final = re.compile(r"status code: ([1-5][0-9]{2})")
_CODE: Final = re.compile(r"<Code>([A-Za-z.]{1,64})</Code>")
_OF_CREDENTIALS: Final = re.compile(r"latest/api/token|latest/meta-data|AssumeRole|redential")
_HINTS: Final = {
    "301": "expected the region of the bucket (?region=REGION)",
    "400": "expected the region of the bucket (?region=REGION), if it is another one",
    "401": f"expected {CREDENTIALS}",
    "403": "expected permission (s3:GetObject, s3:ListBucket; to write s3:PutObject, s3:DeleteObject), and "
    + CREDENTIALS,
}


def _status(error: Exception) -> str | None:
    match = _STATUS.search(str(error))
    return None if match is None else match[1]


def _why(error: Exception) -> str:
    text, status = str(error), _status(error)
    code = _CODE.search(text)
    if _OF_CREDENTIALS.search(text) and code is None:
        return f"no credentials: expected {CREDENTIALS}"
    if status is not None:
        named = f"HTTP status {status}" + (f" ({code[1]})" if code else "")
        return f"{named}: {_HINTS[status]}" if status in _HINTS else named
    for sign, meaning in _SIGNS.items():
        if sign in text:
            return meaning
    return f"the client of the store has failed ({type(error).__name__})"


_SIGNS: Final = {
    "builder error": "the address of the store is not valid, or not of https: expected it, or &scheme=http",
    "kind: Timeout": "no response in time",
    "kind: Connect": "no connection to the store",
    "error sending request": "the connection broke",
    "body error": "the connection broke, or the object was replaced meanwhile: run the command again",
}
