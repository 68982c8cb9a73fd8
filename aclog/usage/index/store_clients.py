"""The clients of an index in a store, obstore's of S3 and of Azure: their settings, and what their errors mean.

Texts of errors have only what is known to hold no credentials. A store's response may have the id of a key and what was
signed, and an address the token of an identity: an error of a client is no `__cause__` of another, since a traceback
prints it.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.usage.accesses.addresses import Address
from aclog.usage.accesses.clients import azure_credentials, check_host


@frozen(kw_only=True)
class StoreKind:
    """What a kind of store has of its own."""

    extra: str
    """Of aclog, which installs its client."""
    credentials: str
    """Where they are read from."""
    variables: str
    """Of which the client may refuse one."""
    hints: Mapping[str, str]
    """What the status of a response means, after which the same request would fail again (`is_final`)."""


_S3_CREDENTIALS: Final = (
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), or the role of the pod, the container or the "
    "machine; files of profiles are not read"
)
_AZURE_CREDENTIALS: Final = (
    "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or an identity: AZURE_CLIENT_ID, AZURE_TENANT_ID and "
    "AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE, AZURE_USE_AZURE_CLI=true, or a managed identity"
)
S3_KIND: Final = StoreKind(
    extra="s3",
    credentials=_S3_CREDENTIALS,
    variables="the variables of the AWS SDK (AWS_*)",
    hints={
        "301": "expected the region of the bucket (?region=REGION)",
        "400": "expected the region of the bucket (?region=REGION), if it is another one",
        "401": f"expected {_S3_CREDENTIALS}",
        "403": "expected permission (s3:GetObject, s3:ListBucket; to write s3:PutObject, s3:DeleteObject), and "
        + _S3_CREDENTIALS,
    },
)
AZURE_KIND: Final = StoreKind(
    extra="azure",
    credentials=_AZURE_CREDENTIALS,
    variables="the variables of Azure (AZURE_*)",
    hints={
        "401": f"expected {_AZURE_CREDENTIALS}",
        "403": "expected permission (Storage Blob Data Reader; to write Storage Blob Data Contributor), and "
        + _AZURE_CREDENTIALS,
    },
)
# Settings.

_S3_OPTIONS: Final = {
    "region": re.compile(r"[a-z0-9-]{1,64}"),
    "endpoint_override": re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"),
    "scheme": re.compile(r"https?"),
}
"""The options of an address of S3, which are some of those of pyarrow.fs.S3FileSystem."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def s3_options(address: str, query: str) -> dict[str, str]:
    """Return the options of an address of S3. Raises ConfigError: other ones, which it does not name."""
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        # neither is named: it may hold a part of a secret with `?` or `&`
        if key not in _S3_OPTIONS or key in options or not _S3_OPTIONS[key].fullmatch(value):
            raise ConfigError(
                f"{address}: its options are not valid: expected at most one each of region=REGION, "
                "endpoint_override=HOST:PORT and scheme=http or https"
            )
        options[key] = value
    return options


def client_settings(bucket: str, options: Mapping[str, str], azure: Address | None) -> dict[str, Any]:
    """Return the settings of S3Store, or with an address in Azure those of AzureStore.

    Raises:
        ConfigError: a variable with credentials of Azure is damaged or of another account, or a token would be sent
            without encryption.

    """
    return _s3_settings(bucket, options) if azure is None else _azure_settings(azure)


def _s3_settings(bucket: str, options: Mapping[str, str]) -> dict[str, Any]:
    endpoint, scheme = options.get("endpoint_override"), options.get("scheme", "https")
    variables = () if endpoint else (os.environ.get(name, "") for name in _ENDPOINTS)
    settings: dict[str, Any] = {
        "bucket": bucket,
        "client_options": _client_options(
            is_plain=scheme == "http" or any(each.startswith("http:") for each in variables)
        ),
        "conditional_put": "etag",
        # not every store has the request that deletes several objects
        "disable_bulk_delete": True,
    }
    if "region" in options:
        settings["region"] = options["region"]
    if endpoint:
        settings |= {
            "endpoint": f"{scheme}://{endpoint}",
            "aws_endpoint_url_s3": f"{scheme}://{endpoint}",  # of a variable it would come first
            "virtual_hosted_style_request": False,
        }
    return settings


def _azure_settings(address: Address) -> dict[str, Any]:
    """Return settings that no variable of the client changes, except those of identities."""
    (account, cloud), options = address.account, address.options
    host, scheme = options.get("blob_storage_authority"), options.get("blob_storage_scheme", "https")
    settings: dict[str, Any] = {
        "container_name": address.container,
        "account_name": account,
        "endpoint": f"{scheme}://{host}/{account}" if host else f"{scheme}://{account}.blob.core.{cloud}",
        "client_options": _client_options(is_plain=scheme == "http"),
        "use_emulator": False,
        "use_fabric_endpoint": False,
        "skip_signature": "anonymous" in options,
    }
    if "anonymous" in options:
        return settings
    credentials = azure_credentials(address)
    if scheme == "http" and "account_key" not in credentials:
        check_host(address, host or "")
    if "account_key" in credentials:
        return settings | {"credential_type": "access_key", "account_key": credentials["account_key"]}
    if "sas_token" in credentials:
        return settings | {"credential_type": "sas_token", "sas_key": credentials["sas_token"].removeprefix("?")}
    identities = {
        "AZURE_CLIENT_SECRET": "client_secret",
        "AZURE_FEDERATED_TOKEN_FILE": "workload_identity",
        "AZURE_USE_AZURE_CLI": "azure_cli",
    }
    kind = next((kind for variable, kind in identities.items() if os.environ.get(variable)), "managed_identity")
    return settings | {"credential_type": kind}


def _client_options(*, is_plain: bool) -> dict[str, Any]:
    """Return the options of connections. An index is one request; a stalled one ends."""
    return {"timeout": "15 min", "connect_timeout": "10 s", "allow_http": is_plain}


# Errors.

_STATUS: Final = re.compile(r"status code: ([1-5][0-9]{2})")
_CODE: Final = re.compile(r"<Code>([A-Za-z.]{1,64})</Code>")
_OF_CREDENTIALS: Final = re.compile(
    r"latest/api/token|latest/meta-data|AssumeRole|redential|metadata/identity|token request|azure cli",
    re.IGNORECASE,
)


_SLOW: Final = "RequestTimeout"
"""Of S3, with the status 400: a part of the request came too late, so that another attempt may succeed."""
_CODES_OF_CREDENTIALS: Final = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
"""Of S3, with the status 400 also."""


def is_final(kind: StoreKind, error: Exception) -> bool:
    """Return whether the same request would fail again."""
    code = _CODE.search(str(error))
    return _status_of(error) in kind.hints and (code is None or code[1] != _SLOW)


def _status_of(error: Exception) -> str | None:
    match = _STATUS.search(str(error))
    return None if match is None else match[1]


def why(kind: StoreKind, error: Exception, key: str) -> str:
    """Return what an error of a client means; `key`: of the object, whose name may have a word of credentials."""
    text, status = str(error).replace(key, "").replace(quote(key), ""), _status_of(error)
    code = _CODE.search(text)
    if _OF_CREDENTIALS.search(text) and code is None:
        return f"no credentials: expected {kind.credentials}"
    if status is not None:
        named = f"HTTP status {status}" + (f" ({code[1]})" if code else "")
        if code and code[1] in _CODES_OF_CREDENTIALS:
            return f"{named}: expected {kind.credentials}"
        is_explained = status in kind.hints and not (code and code[1] == _SLOW)
        return f"{named}: {kind.hints[status]}" if is_explained else named
    for sign, meaning in _SIGNS.items():
        if sign in text:
            return meaning
    return f"the client of the store has failed ({type(error).__name__})"


_SIGNS: Final = {
    "builder error": "the address of the store is not valid, or not of https: expected it, or the option for http",
    "kind: Timeout": "no response in time",
    "kind: Connect": "no connection to the store",
    "error sending request": "the connection broke",
    "body error": "the connection broke, or the object was replaced meanwhile: run the command again",
}
