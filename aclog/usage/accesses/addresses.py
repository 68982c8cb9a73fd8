"""Addresses of objects in an S3 store. No error names a part of an address that may be a secret."""

import re
from typing import Final
from urllib.parse import unquote

from aclog.metalog.errors import ConfigError

SCHEME: Final = "s3://"
_HADOOP_SCHEME: Final = "s3a://"
BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def is_object_path(path: str) -> bool:
    """Return whether a path is in an object store that is read without Spark."""
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


_SECRETS: Final = re.compile(r"[?&](?:access_key|secret_key|session_token)=", re.IGNORECASE)


_FILE: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/)")


def plain_name(path: str) -> str:
    """Return the path that a `file:` URI names, and s3://... for Hadoop's name of it, s3a://...; else the same."""
    if path.startswith(_HADOOP_SCHEME):
        return SCHEME + path.removeprefix(_HADOOP_SCHEME)
    if match := _FILE.match(path):
        return unquote(path[match.end() :])  # as a whole: `?` and `#` are of a glob or a name
    return path
