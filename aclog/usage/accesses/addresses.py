"""Addresses of objects in S3, Google Cloud Storage and Azure. No error names a part that may be a secret."""

import re
from collections.abc import Mapping
from typing import Final, Self
from urllib.parse import parse_qsl, unquote

from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

SCHEME: Final = "s3://"
_HADOOP_SCHEME: Final = "s3a://"
BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

# Kinds of stores.


@frozen(kw_only=True)
class Store:
    """A kind of object store: what its addresses are, and where their credentials come from."""

    schemes: tuple[str, ...]
    form: str
    """What an address is like."""
    authority: re.Pattern[str]
    """What is before the prefix: of a bucket or a container, and perhaps an account."""
    credentials: str
    """Where they are read from."""
    options: Mapping[str, re.Pattern[str]] | None = None
    """The options that an address may have; None for those of pyarrow's file system."""
    expected: str = ""
    """The options as text."""

    @property
    def scheme(self) -> str:
        """The first scheme, for texts."""
        return self.schemes[0]


_ENDPOINT: Final = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_HTTP: Final = re.compile(r"https?")
_TRUE: Final = re.compile(r"true")

S3: Final = Store(
    schemes=(SCHEME, _HADOOP_SCHEME),
    form=f"{SCHEME}BUCKET/PREFIX",
    authority=BUCKET,
    credentials="the variables or the profile of the AWS SDK",
)
GCS: Final = Store(
    schemes=("gs://",),
    form="gs://BUCKET/PREFIX",
    authority=re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"),
    credentials="the application default credentials of Google Cloud (GOOGLE_APPLICATION_CREDENTIALS, gcloud auth "
    "application-default login, or the service account of the machine)",
    options={
        "endpoint_override": _ENDPOINT,
        "scheme": _HTTP,
        "anonymous": _TRUE,
        "project_id": re.compile(r"[a-z0-9.:-]{1,64}"),
    },
    expected="endpoint_override=HOST:PORT, scheme=http or https, anonymous=true and project_id=PROJECT",
)
AZURE: Final = Store(
    schemes=("abfss://", "abfs://"),
    form="abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX",
    authority=re.compile(
        r"(?=[a-z0-9-]{3,63}@)[a-z0-9]+(?:-[a-z0-9]+)*@[a-z0-9]{3,24}"
        r"\.dfs\.core\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)"
    ),
    credentials="AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or an identity of Azure (variables AZURE_CLIENT_ID, ..., "
    "a managed identity, az login)",
    options={
        "blob_storage_authority": _ENDPOINT,
        "dfs_storage_authority": _ENDPOINT,
        "blob_storage_scheme": _HTTP,
        "dfs_storage_scheme": _HTTP,
        "anonymous": _TRUE,
    },
    expected="blob_storage_authority=HOST:PORT, dfs_storage_authority=HOST:PORT, blob_storage_scheme=http or https, "
    "dfs_storage_scheme=http or https, and anonymous=true",
)
_STORES: Final = (S3, GCS, AZURE)


def is_object_path(path: str) -> bool:
    """Return whether a path is in an object store that is read without Spark."""
    return path.startswith(_SCHEMES)


def is_s3_path(path: str) -> bool:
    """Return whether a path is in S3, which commands of Spark also read without Hadoop."""
    return path.startswith(S3.schemes)


_SCHEMES: Final = tuple(scheme for store in _STORES for scheme in store.schemes)


# One address.


@frozen(kw_only=True)
class Address:
    """An address that was checked, so that its name may be shown."""

    store: Store
    scheme: str
    authority: str
    prefix: str
    """As in the address, perhaps with a slash at its end."""
    query: str
    """Its options, as in the address."""
    options: Mapping[str, str] = field(factory=dict)
    """Its options by name, for stores other than S3."""

    @classmethod
    def of(cls, path: str, credentials: str | None = None) -> Self:
        """Read an address. Raises ConfigError, which names no credentials: it may hold some, or is not of a store.

        `credentials`: where they are read from, if not where Store.credentials has them.
        """
        store, scheme = next(
            ((store, scheme) for store in _STORES for scheme in store.schemes if path.startswith(scheme)), (None, "")
        )
        if store is None:
            raise ConfigError(f"not an address of an object store: expected {', '.join(each.form for each in _STORES)}")
        address, _, query = path.partition("?")
        authority, _, prefix = address.removeprefix(scheme).partition("/")
        read = cls(store=store, scheme=scheme, authority=authority, prefix=prefix, query=query)
        if store is S3:
            read._check_s3(path, credentials or store.credentials)
            return read
        read._check(credentials or store.credentials)
        return cls(store=store, scheme=scheme, authority=authority, prefix=prefix, query=query, options=read._options())

    @property
    def name(self) -> str:
        """The address without its options."""
        return f"{self.scheme}{self.authority}/{self.prefix}" if self.prefix else f"{self.scheme}{self.authority}"

    @property
    def container(self) -> str:
        """The name of the bucket, or of the container in its account."""
        return self.authority.partition("@")[0]

    @property
    def account(self) -> tuple[str, str]:
        """The account of Azure, and the domain of its cloud."""
        account, _, cloud = self.authority.partition("@")[2].partition(".dfs.core.")
        return account, cloud

    @property
    def base(self) -> str:
        """The path in a file system of the store: CONTAINER/PREFIX."""
        return f"{self.container}/{self.prefix.strip('/')}".rstrip("/")

    def name_of(self, path: str) -> str:
        """Return the address of a path of the file system."""
        rest = path.partition("/")[2]
        return f"{self.scheme}{self.authority}/{rest}" if rest else f"{self.scheme}{self.authority}"

    def _check_s3(self, path: str, credentials: str) -> None:
        """Raise ConfigError if there are credentials, or there is no bucket.

        A secret may contain `/` or `?`, after which its rest is like a prefix or options. So only the prefix may have
        an `@`, below a name that a bucket of S3 may have: the id of a key has capital letters, and a `:` behind it.
        """
        bucket = self.authority
        is_of_prefix = "@" not in bucket + self.query and BUCKET.fullmatch(bucket)
        if ("@" in path and not is_of_prefix) or ":" in bucket or _S3_SECRETS.search(path):
            raise ConfigError(
                f"an address of {SCHEME} has `@` before its prefix, or `:` in its bucket, or a key, so it may hold "
                f"credentials: expected {S3.form}, and credentials in {credentials}"
            )
        if not bucket or "*" in self.prefix:
            raise ConfigError(f"{SCHEME}{bucket}/{self.prefix}: expected {S3.form}, without *")

    def _check(self, credentials: str) -> None:
        """Raise ConfigError, which names no part, if the authority is of another form, or there may be a secret."""
        if (
            not self.store.authority.fullmatch(self.authority)
            or "@" in self.query
            or _SECRETS.search(f"{self.prefix}?{self.query}")
            or not _is_plain(self.prefix)
        ):
            raise ConfigError(
                f"an address of {self.scheme} is of another form, or has a key or a control character, so it may hold "
                f"credentials: expected {self.store.form}, and credentials in {credentials}"
            )
        if "*" in self.prefix:
            raise ConfigError(f"{self.name}: expected {self.store.form}, without *")

    def _options(self) -> dict[str, str]:
        options: dict[str, str] = {}
        allowed = self.store.options or {}
        for key, value in parse_qsl(self.query, keep_blank_values=True):
            # neither is named: it may hold a part of a secret with `?` or `&`
            if key not in allowed or key in options or not allowed[key].fullmatch(value):
                raise ConfigError(
                    f"an address of {self.scheme} has options that are not valid: expected at most one each of "
                    f"{self.store.expected}, and credentials in {self.store.credentials}"
                )
            options[key] = value
        return options


_S3_SECRETS: Final = re.compile(r"[?&](?:access_key|secret_key|session_token)=", re.IGNORECASE)
_SECRETS: Final = re.compile(
    r"[?&;](?:access_?key|secret_?key|session_?token|account_?key|credentials?|sas_?token|sig|signature|password|"
    r"(?:access_?)?token|client_?secret|shared_?access_?signature)=",
    re.IGNORECASE,
)


def _is_plain(prefix: str) -> bool:
    """Return whether a prefix is Unicode without control characters."""
    try:
        prefix.encode()
    except UnicodeEncodeError:
        return False
    return not any(ord(each) < 32 or each == "\x7f" for each in prefix)


_FILE: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/)")


def plain_name(path: str) -> str:
    """Return the path that a `file:` URI names, and s3://... for Hadoop's name of it, s3a://...; else the same."""
    if path.startswith(_HADOOP_SCHEME):
        return SCHEME + path.removeprefix(_HADOOP_SCHEME)
    if match := _FILE.match(path):
        return unquote(path[match.end() :])  # as a whole: `?` and `#` are of a glob or a name
    return path
