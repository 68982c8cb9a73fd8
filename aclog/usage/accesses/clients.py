"""The clients of object stores: pyarrow's file systems, opened for an address, and what their errors mean.

Retries end after about a minute. Texts of errors of Google Cloud Storage and Azure have only what is known to hold no
credentials: a response may have what was signed, and an error of a client the path or a part of a key. No error of a
client is the `__cause__` of another, since a traceback prints it.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.usage.accesses.addresses import AZURE, GCS, S3, SCHEME, Address, Store

_PATIENCE: Final = timedelta(seconds=45)
"""For how long a request of Google Cloud Storage is repeated; Azure's client repeats one three times, in 6 s."""


@frozen(kw_only=True)
class Opened:
    """An address, and the file system that has its objects."""

    address: Address
    files: Any
    """A pyarrow.fs.FileSystem."""
    base: str
    """The path of the address in the file system: CONTAINER/PREFIX."""


def opened(address: Address) -> Opened:
    """Open an address; few clients connect yet. Raises ConfigError, OSError."""
    open_files = {S3.scheme: _s3, GCS.scheme: _gcs, AZURE.scheme: _azure}[address.store.scheme]
    return open_files(address)


def _s3(address: Address) -> Opened:
    import pyarrow as pa  # noqa: PLC0415 - few logs are in a store, and loading its client takes a second
    from pyarrow import fs  # noqa: PLC0415

    uri = f"{SCHEME}{address.authority}/{quote(address.prefix)}"
    try:
        files, base = fs.FileSystem.from_uri(f"{uri}?{address.query}" if address.query else uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"{address.name}: {str(error).splitlines()[0]}") from None
    return Opened(address=address, files=files, base=base)


def _gcs(address: Address) -> Opened:
    options, is_anonymous = address.options, "anonymous" in address.options
    if options.get("scheme") == "http" and not is_anonymous:
        check_host(address, options.get("endpoint_override", ""))
    files = _client(address, "GcsFileSystem")(
        anonymous=is_anonymous,
        scheme=options.get("scheme"),
        endpoint_override=options.get("endpoint_override"),
        project_id=options.get("project_id"),
        retry_time_limit=_PATIENCE,
    )
    return Opened(address=address, files=files, base=address.base)


def _azure(address: Address) -> Opened:
    (account, cloud), options = address.account, address.options
    settings: dict[str, Any] = {}
    for kind in ("blob", "dfs"):
        settings[f"{kind}_storage_authority"] = options.get(f"{kind}_storage_authority", f".{kind}.core.{cloud}")
        settings[f"{kind}_storage_scheme"] = options.get(f"{kind}_storage_scheme", "https")
    plain = [kind for kind in ("blob", "dfs") if settings[f"{kind}_storage_scheme"] == "http"]
    client = _client(address, "AzureFileSystem")
    if "anonymous" in options:
        return Opened(address=address, files=_anonymous(address, settings, bool(plain)), base=address.base)
    credentials = azure_credentials(address)
    for kind in () if "account_key" in credentials else plain:  # a key signs, and is not sent
        check_host(address, settings[f"{kind}_storage_authority"])
    return Opened(address=address, files=client(account, **credentials, **settings), base=address.base)


_OF_THIS_MACHINE: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]+)?")


def check_host(address: Address, host: str) -> None:
    """Raise ConfigError if a token would go to another machine without encryption."""
    if not _OF_THIS_MACHINE.fullmatch(host):
        raise ConfigError(
            f"{address.name}: http would send a token without encryption: expected https, or &anonymous=true for "
            "objects that are public"
        )


def _anonymous(address: Address, settings: Mapping[str, str], is_plain: bool) -> Any:
    """Return a client without credentials, which only a URI can name."""
    from pyarrow import fs  # noqa: PLC0415 - as above

    query = {
        "credential_kind": "anonymous",
        "enable_tls": str(not is_plain).lower(),
        **{key: value for key, value in settings.items() if key.endswith("authority")},
    }
    return fs.FileSystem.from_uri(f"{AZURE.scheme}{address.authority}/?{urlencode(query)}")[0]


def _client(address: Address, name: str) -> Callable[..., Any]:
    """Return a class of pyarrow.fs. Raises ConfigError: this pyarrow was built without it."""
    from pyarrow import fs  # noqa: PLC0415 - as above

    try:
        client: Callable[..., Any] = getattr(fs, name)
    except (AttributeError, ImportError) as error:
        raise ConfigError(
            f"{address.name}: pyarrow has no client for {address.scheme} ({name}): expected a pyarrow that was built "
            "with it, such as the wheels for Linux"
        ) from error
    return client


# Lists.


def listed(store: Opened, directory: str, *, allow_not_found: bool = False) -> list[Any]:
    """Return all objects and directories below a directory, in any order. Raises ConfigError, OSError.

    pyarrow's own walk of Azure does not end at a name with an empty part, which it lists as the directory itself.
    """
    from pyarrow import fs  # noqa: PLC0415 - as above

    if store.address.store is not AZURE:
        selector = fs.FileSelector(directory, recursive=True, allow_not_found=allow_not_found)
        found: list[Any] = store.files.get_file_info(selector)
        return found
    found, directories = [], [directory]
    for each in directories:
        for info in store.files.get_file_info(fs.FileSelector(each, allow_not_found=allow_not_found)):
            if info.path == each:
                raise ConfigError(f"{store.address.name_of(each)}: {_EMPTY_PART}")
            found.append(info)
            if info.type is fs.FileType.Directory:
                directories.append(info.path)
    return found


_EMPTY_PART: Final = "an object has an empty part in its name (`//`), which pyarrow cannot read: expected names without"


# The credentials of Azure, by the names of its command line.

_KEY: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_TOKEN: Final = re.compile(r"[!-~]+")


def azure_credentials(address: Address) -> dict[str, str]:
    """Return `account_key` or `sas_token` of the environment, or nothing: an identity of Azure.

    Raises:
        ConfigError: one is damaged, or of another account.

    """
    credentials: dict[str, str] = {}
    for name, variable, expected in (
        ("account_key", "AZURE_STORAGE_KEY", _KEY),
        ("sas_token", "AZURE_STORAGE_SAS_TOKEN", _TOKEN),
    ):
        value = os.environ.get(variable, "").removeprefix("?")
        if not value or credentials:
            continue
        if not expected.fullmatch(value):
            raise ConfigError(f"{address.name}: {variable} is damaged: expected it as Azure shows it")
        if os.environ.get("AZURE_STORAGE_ACCOUNT") not in {None, "", address.account[0]}:
            raise ConfigError(
                f"{address.name}: AZURE_STORAGE_ACCOUNT names another account, whose {variable} is not sent to this "
                "one: expected the variables of this account"
            )
        credentials[name] = value if name == "account_key" else f"?{value}"  # pyarrow takes it for a part of the URL
    return credentials


# Errors.

_MISSING: Final = ("NO_SUCH_KEY", "RESOURCE_NOT_FOUND", "(NOT_FOUND:", "[BlobNotFound]", "[ContainerNotFound]")


def errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors of stores: pyarrow has no class for some, such as missing credentials."""
    from pyarrow import ArrowException  # noqa: PLC0415 - as above

    return OSError, ArrowException


def is_missing(error: Exception) -> bool:
    """Return whether there is no such object."""
    return isinstance(error, FileNotFoundError) or any(each in str(error) for each in _MISSING)


def is_of_marker(error: Exception) -> bool:
    """Return whether an object only marks a directory: in Azure, by its metadata."""
    return str(error).startswith("Not a regular file")


def is_replaced(error: Exception) -> bool:
    """Return whether an object has become shorter meanwhile."""
    return "[InvalidRange]" in str(error)


def reason(store: Store, error: BaseException) -> str:
    """Return what an error of a store means, on one line."""
    if store is S3:
        return _QUERY.sub("", str(error).splitlines()[0])
    text = str(error)
    for sign, meaning in _SIGNS:
        if sign in text:
            return meaning.format(credentials=store.credentials)
    match = _STATUS.search(text)
    status = next((each for each in match.groups() if each), "") if match else ""
    status = status or next((code for sign, code in _CODES.items() if sign in text), "")
    if status in _HINTS:
        return _HINTS[status].format(credentials=store.credentials, permissions=_PERMISSIONS[store.scheme])
    if isinstance(error, FileNotFoundError) or "No such file or directory" in text or status == "404":
        return f"not found: expected a {'container' if store is AZURE else 'bucket'} and a prefix that exist"
    if status or "(UNAVAILABLE:" in text:
        return f"the store has failed{f' (HTTP status {status})' if status else ''}: run again later"
    return f"the client of the store has failed ({type(error).__name__})"


_QUERY: Final = re.compile(r"(?<=[^\s?])\?[^\s'\"]*=[^\s'\"]*")
"""The query of a URL, which may have a signature."""
_STATUS: Final = re.compile(
    r"http_status_code=([1-5][0-9]{2})\b|HTTP status code: ([1-5][0-9]{2})\b|Azure Error: \[\w*\] ([1-5][0-9]{2})\b"
)
UNPACKED: Final = (
    "has a Content-Encoding, by which the store sends other bytes than it has, or was damaged on the way: expected an "
    "object without one (gcloud storage objects update --clear-content-encoding)"
)
_NO_CREDENTIALS: Final = "no credentials: expected {credentials}"
_NO_CONNECTION: Final = "no connection to the store: expected its host in the address, and a network"
_SIGNS: Final = (
    ("OAuth2 access token", _NO_CREDENTIALS),
    ("AuthenticationException", _NO_CREDENTIALS),
    ("Base64", "AZURE_STORAGE_KEY is damaged: expected it as Azure shows it"),
    ("CURL error", _NO_CONNECTION),
    ("Fail to get a new connection", _NO_CONNECTION),
    ("Timeout waiting for socket", _NO_CONNECTION),
    ("(DATA_LOSS:", UNPACKED),
    ("Empty path component", _EMPTY_PART),
)
_CODES: Final = {"(UNAUTHENTICATED:": "401", "(PERMISSION_DENIED:": "403"}
"""Of Google Cloud Storage, if a response has no other text."""
_PERMISSIONS: Final = {
    GCS.scheme: "storage.objects.get and storage.objects.list",
    AZURE.scheme: "of Storage Blob Data Reader, or to read and to list",
}
_HINTS: Final = {
    "401": "HTTP status 401: expected {credentials}",
    "403": "HTTP status 403: expected permission {permissions}, and {credentials}",
}
