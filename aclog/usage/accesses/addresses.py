"""Addresses of objects: the stores, what is valid in each, and the file system of pyarrow that reads it.

No error names a part of an address that may be a secret. Credentials are never in an address: they are in the
environment.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, unquote

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen


@frozen(kw_only=True)
class Opened:
    """An address, and the file system that has its objects."""

    address: str
    """Without options."""
    files: Any
    """A pyarrow.fs.FileSystem."""
    base: str
    """The path of the address in the file system: BUCKET/PREFIX."""
    named: Callable[[str], str]
    """Returns the address of a path of the file system."""


@frozen(kw_only=True)
class Store:
    """A kind of object store."""

    schemes: tuple[str, ...]
    """With `://`."""
    check: Callable[[str], None]
    """Checks an address. Raises ConfigError, which names no part that may be a secret."""
    open: Callable[[str], Opened]
    """Opens an address that was checked. Raises ConfigError, OSError."""

    def owns(self, path: str) -> bool:
        """Return whether a path is an address of this store."""
        return path.startswith(self.schemes)


# S3: addresses and their options are pyarrow's.

SCHEME: Final = "s3://"
_HADOOP_SCHEME: Final = "s3a://"
BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def check_s3_address(path: str, credentials: str = "the variables or the profile of the AWS SDK") -> None:
    """Check that a path is s3://BUCKET/PREFIX without credentials. Raises ConfigError, which never names those.

    `credentials`: where they are read from.

    A secret may contain `/` or `?`, after which its rest is like a prefix or options. So only the prefix may have an
    `@`, below a name that a bucket of S3 may have: the id of a key has capital letters, and a `:` behind it.
    """
    address, _, options = path.partition("?")
    bucket, _, prefix = address.removeprefix(SCHEME).partition("/")
    is_of_prefix = "@" not in bucket + options and BUCKET.fullmatch(bucket)
    if ("@" in path and not is_of_prefix) or ":" in bucket or _S3_SECRETS.search(path):
        raise ConfigError(
            f"an address of {SCHEME} has `@` before its prefix, or `:` in its bucket, or a key, so it may hold "
            f"credentials: expected s3://BUCKET/PREFIX, and credentials in {credentials}"
        )
    if not bucket or "*" in prefix:
        raise ConfigError(f"{SCHEME}{bucket}/{prefix}: expected s3://BUCKET/PREFIX, without *")


_S3_SECRETS: Final = re.compile(r"[?&](?:access_key|secret_key|session_token)=", re.IGNORECASE)


def _open_s3(path: str) -> Opened:
    import pyarrow as pa  # noqa: PLC0415 - few logs are in a store, and loading its client takes a second
    from pyarrow import fs  # noqa: PLC0415

    address, _, options = path.partition("?")
    bucket, _, prefix = address.removeprefix(SCHEME).partition("/")
    quoted = f"{SCHEME}{bucket}/{quote(prefix)}"
    try:
        files, base = fs.FileSystem.from_uri(f"{quoted}?{options}" if options else quoted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"{address}: {str(error).splitlines()[0]}") from error
    return Opened(address=address, files=files, base=base, named=SCHEME.__add__)


S3: Final = Store(schemes=(SCHEME, _HADOOP_SCHEME), check=check_s3_address, open=_open_s3)


STORES: Final = (S3,)


def store_of(path: str) -> Store | None:
    """Return the store of an address; None for a path of this machine, and for stores that are not read."""
    return next((store for store in STORES if store.owns(path)), None)


def is_object_path(path: str) -> bool:
    """Return whether a path is in an object store that is read without Spark."""
    return store_of(path) is not None


def check_address(path: str) -> None:
    """Check an address in an object store. Raises ConfigError, which names no part that may be a secret."""
    store = store_of(path)
    if store is not None:
        store.check(path)


_FILE: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/)")


def plain_name(path: str) -> str:
    """Return the path that a `file:` URI names, and s3://... for Hadoop's name of it, s3a://...; else the same."""
    if path.startswith(_HADOOP_SCHEME):
        return SCHEME + path.removeprefix(_HADOOP_SCHEME)
    if match := _FILE.match(path):
        return unquote(path[match.end() :])  # as a whole: `?` and `#` are of a glob or a name
    return path
