"""The four messages of a SCRAM exchange (RFC 5802, section 7; ScramMessages)."""

import binascii
import re
from base64 import b64decode, b64encode

from attrs import field, frozen

from aclog.metalog.errors import DecodeError
from aclog.nodes.security.saslprep import saslprep

MAX_BYTES = 1 << 13
"""Longer messages are rejected without parsing."""

_NAME = r"(?:[^\x00=,]|=2C|=3D)+"
_VALUE = r"[^\x00,]+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"[A-Za-z0-9+/]*={0,2}"
_EXTENSIONS = rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*)"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}))?,)(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
)
_SERVER_FIRST = re.compile(rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(
    rf"(?P<signed>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


@frozen(kw_only=True)
class ClientFirst:
    """The client's first message. `bare` is the signed part after `gs2_header`; names are unescaped."""

    gs2_header: str
    bare: str
    user: str
    nonce: str
    authorization_id: str
    token_auth: bool


@frozen(kw_only=True)
class ServerFirst:
    """The server's first message. `nonce` is the client's nonce followed by the server's."""

    nonce: str
    salt: bytes = field(repr=False)
    iterations: int

    @property
    def text(self) -> str:
        """The message as sent."""
        return f"r={self.nonce},s={_base64(self.salt)},i={self.iterations}"


@frozen(kw_only=True)
class ClientFinal:
    """The client's final message. `signed` is the message without the proof, `binding` its copy of the GS2 header."""

    signed: str
    nonce: str
    binding: bytes
    proof: bytes = field(repr=False)


def parse_client_first(message: bytes) -> ClientFirst:
    """Parse a client's first message; extensions other than `tokenauth` are ignored.

    Raises:
        DecodeError: A malformed message, or a non-ASCII name that is not in its prepared form (saslprep).

    """
    match = _matched(_CLIENT_FIRST, message, "a client's first message")
    extensions = [pair.partition("=") for pair in match["extensions"].split(",") if pair]
    token_auth = any(name == "tokenauth" and value.lower() == "true" for name, _, value in extensions)
    return ClientFirst(
        gs2_header=match["gs2"],
        bare=match["bare"],
        user=_unescaped(match["name"]),
        nonce=match["nonce"],
        authorization_id=_unescaped(match["authzid"] or ""),
        token_auth=token_auth,
    )


def client_first(user: str, nonce: str, *, token_auth: bool = False) -> str:
    """Return the bare first message, which follows the GS2 header `n,,`."""
    name = _prepared(user).replace("=", "=3D").replace(",", "=2C")
    return f"n={name},r={nonce}" + (",tokenauth=true" if token_auth else "")


def parse_server_first(message: bytes) -> ServerFirst:
    """Parse a server's first message; raise DecodeError for anything else."""
    match = _matched(_SERVER_FIRST, message, "a server's first message")
    return ServerFirst(nonce=match["nonce"], salt=_bytes(match["salt"]), iterations=int(match["iterations"]))


def parse_client_final(message: bytes) -> ClientFinal:
    """Parse a client's final message; raise DecodeError for anything else."""
    match = _matched(_CLIENT_FINAL, message, "a client's final message")
    return ClientFinal(
        signed=match["signed"],
        nonce=match["nonce"],
        binding=_bytes(match["binding"]),
        proof=_bytes(match["proof"]),
    )


def client_final(gs2_header: str, nonce: str) -> str:
    """Return the client's final message without the proof."""
    return f"c={_base64(gs2_header.encode())},r={nonce}"


def with_proof(signed: str, proof: bytes) -> bytes:
    """Return the complete client's final message."""
    return f"{signed},p={_base64(proof)}".encode()


def parse_server_final(message: bytes) -> bytes | str:
    """Return the server's signature as bytes, or its error as text; raise DecodeError for anything else."""
    match = _matched(_SERVER_FINAL, message, "a server's final message")
    error = match["error"]
    return error if error is not None else _bytes(match["signature"])


def server_final(signature: bytes) -> bytes:
    """Return the server's final message."""
    return f"v={_base64(signature)}".encode()


def _matched(pattern: re.Pattern[str], message: bytes, what: str) -> re.Match[str]:
    """Match a whole message. Errors do not quote it: it is untrusted, or contains a proof."""
    if len(message) > MAX_BYTES:
        raise DecodeError(f"{len(message)} bytes, expected {what} of at most {MAX_BYTES}")
    try:
        match = pattern.fullmatch(message.decode())
    except UnicodeDecodeError as error:
        raise DecodeError("not UTF-8", position=error.start) from error
    if match is None:
        raise DecodeError(f"{len(message)} bytes, expected {what} of SCRAM (RFC 5802, section 7)")
    return match


def _unescaped(name: str) -> str:
    text = name.replace("=2C", ",").replace("=3D", "=")
    if _prepared(text) != text:
        raise DecodeError("user name is not in its prepared form (RFC 4013)")
    return text


def _prepared(name: str) -> str:
    """Prepare a name. ASCII is left as it is, as in Kafka; Kafka does not support other names, so the RFC applies."""
    return name if name.isascii() else saslprep(name)


def _base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise DecodeError("not base64") from error
