"""A small blocking client of Kafka's protocol for tests: frames over a socket, messages by kio, SASL by hand.

It says what came back, or that the connection was closed; it never retries and knows nothing of the code under test.
"""

import base64
import contextlib
import dataclasses
import hashlib
import hmac
import io
import socket
import struct
from datetime import timedelta
from types import ModuleType
from typing import Any, Self

from kio.index import load_payload_module, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from tests.support.processes.waiting import SECONDS

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
CLIENT_ID = "wire-client"


class ClosedError(Exception):
    """The server closed the connection (or reset it) where an answer was due."""


class NoAnswerError(Exception):
    """The server neither answered nor closed in time."""


class RefusedError(Exception):
    """A login failed, and the connection is closed: the error's name and message."""


def module_of(api_key: int, version: int) -> ModuleType:
    """kio's module of a request."""
    return load_payload_module(api_key, version, EntityType.request)


def nested(api_key: int, version: int, entity: str, /, **fields: Any) -> Any:
    """A nested entity of a request; fields that this version lacks are left out."""
    return _build(getattr(module_of(api_key, version), entity), fields)


def encode_request(api_key: int, version: int, /, **fields: Any) -> bytes:
    """The body of a request; fields that this version lacks are left out."""
    schema = load_request_schema(api_key, version)
    return _encode(_build(schema, fields))


def _build(schema: type, fields: dict[str, Any]) -> Any:
    names = {field.name for field in dataclasses.fields(schema)}
    return schema(**{name: value for name, value in fields.items() if name in names})


def _encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def request_header(api_key: int, version: int, correlation_id: int, *, flexible: bool | None = None) -> bytes:
    """Header v1, or v2 where the request is flexible (asked of kio unless said)."""
    if flexible is None:
        flexible = load_request_schema(api_key, version).__flexible__
    client_id = CLIENT_ID.encode()
    head = struct.pack(">hhih", api_key, version, correlation_id, len(client_id)) + client_id
    return head + b"\0" if flexible else head


def decode_response(api_key: int, version: int, payload: bytes) -> tuple[int, Any, bytes]:
    """The correlation id, the message and what is left over."""
    schema = load_response_schema(api_key, version)
    header, position = entity_reader(schema.__header_schema__)(payload, 0)
    message, size = entity_reader(schema)(payload, position)
    return header.correlation_id, message, payload[position + size :]


class WireClient:
    """One connection to localhost."""

    def __init__(self, port: int, timeout: float = SECONDS) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation_id = 0
        self.session_lifetime_ms = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def write(self, data: bytes) -> None:
        """Bytes as they are."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ClosedError(str(error)) from error

    def read_frame(self) -> bytes:
        """The next frame, without its length."""
        return self._read(struct.unpack(">i", self._read(4))[0])

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except TimeoutError as error:
                self.close()
                raise NoAnswerError("no answer in time") from error
            except OSError as error:
                self.close()
                raise ClosedError(str(error)) from error
            if not part:
                self.close()
                raise ClosedError("closed")
            data += part
        return bytes(data)

    def ask_bytes(self, payload: bytes) -> bytes:
        """Send one frame and take the next one."""
        self.write(struct.pack(">i", len(payload)) + payload)
        return self.read_frame()

    def ask_body(self, api_key: int, version: int, body: bytes) -> bytes:
        """Send a header and a body; the payload of the answer."""
        self.correlation_id += 1
        return self.ask_bytes(request_header(api_key, version, self.correlation_id) + body)

    def ask(self, api_key: int, version: int, **fields: Any) -> Any:
        """Send a request; the answer as kio's message."""
        answer = self.ask_body(api_key, version, encode_request(api_key, version, **fields))
        correlation_id, message, rest = decode_response(api_key, version, answer)
        assert correlation_id == self.correlation_id
        assert not rest
        return message

    def plain(self, user: str, password: str) -> Self:
        """Log in by SASL PLAIN."""
        self._handshake("PLAIN")
        self._authenticate(f"\0{user}\0{password}".encode())
        return self

    def scram(self, mechanism: str, user: str, password: str, extensions: str = "") -> Self:
        """Log in by SCRAM (RFC 5802), the server's proof checked; `extensions` are such as `,tokenauth=true`."""
        self._handshake(mechanism)
        digest = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r=fyko+d2lbbFgONRv9qkxdawL{extensions}"
        challenge = self._authenticate(b"n,," + first.encode()).decode()
        parts = dict(part.split("=", 1) for part in challenge.split(","))
        final = f"c=biws,r={parts['r']}"
        signed = f"{first},{challenge},{final}".encode()
        proof, expected = scram_proof(digest, password, base64.b64decode(parts["s"]), int(parts["i"]), signed)
        answer = self._authenticate(f"{final},p={base64.b64encode(proof).decode()}".encode())
        if answer != b"v=" + base64.b64encode(expected):
            raise RefusedError("the server does not know the password")
        return self

    def _handshake(self, mechanism: str) -> None:
        answer = self.ask(SASL_HANDSHAKE, 1, mechanism=mechanism)
        if answer.error_code:
            self.close()
            raise RefusedError(answer.error_code.name)

    def _authenticate(self, token: bytes) -> bytes:
        answer = self.ask(SASL_AUTHENTICATE, 2, auth_bytes=token)
        if answer.error_code:
            self.close()
            raise RefusedError(f"{answer.error_code.name}: {answer.error_message}")
        self.session_lifetime_ms = answer.session_lifetime // timedelta(milliseconds=1)
        return bytes(answer.auth_bytes)


def scram_proof(digest: str, password: str, salt: bytes, iterations: int, signed: bytes) -> tuple[bytes, bytes]:
    """The client's proof and the server's signature."""

    def mac(key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, digest).digest()

    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    client_key = mac(salted, b"Client Key")
    signature = mac(hashlib.new(digest, client_key).digest(), signed)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return proof, mac(mac(salted, b"Server Key"), signed)
