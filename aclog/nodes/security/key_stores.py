"""Key stores and trust stores in PEM or PKCS12, from files or inline (DefaultSslEngineFactory.SecurityStore).

PKCS12 is recognized by content: like Java, ssl.keystore.type=JKS reads PKCS12 files as well.
"""

import binascii
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from attrs import field, frozen
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import TlsSettings

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_UNUSABLE = (ValueError, TypeError, UnsupportedAlgorithm, binascii.Error)
_Certificates: TypeAlias = tuple[x509.Certificate, ...]


@frozen(kw_only=True)
class KeyEntry:
    """A private key and its certificate chain, leaf first."""

    key: PrivateKeyTypes = field(repr=False)
    chain: _Certificates


def key_entry(settings: TlsSettings) -> KeyEntry | None:
    """Return the key and certificate chain of a node or client; None if no key store is configured.

    Raises:
        ConfigError: Unreadable file, wrong password, not exactly one key, or no certificate for it.

    """
    if settings.key_pem is not None:
        key = _key("ssl.keystore.key", settings.key_pem, settings.key_password)
        where = "ssl.keystore.certificate.chain"
        return _entry(where, key, _certificates(where, settings.certificate_chain_pem or ""))
    if settings.keystore is None:
        return None
    where, content = _read("ssl.keystore.location", settings.keystore)
    if settings.keystore_type == "PEM":
        text = content.decode("latin-1")
        return _entry(where, _key(where, text, settings.key_password), _certificates(where, text))
    key12, certificates = _pkcs12(where, content, settings.keystore_password)
    if key12 is None:
        raise ConfigError(f"{where}: contains no private key")
    return _entry(where, key12, certificates)


def trusted_certificates(settings: TlsSettings) -> _Certificates | None:
    """Return the trusted certificates; None if no trust store is configured.

    Raises:
        ConfigError: Unreadable file, wrong password, or no certificate.

    """
    if settings.truststore_pem is not None:
        return _certificates("ssl.truststore.certificates", settings.truststore_pem)
    if settings.truststore is None:
        return None
    where, content = _read("ssl.truststore.location", settings.truststore)
    if settings.truststore_type == "PEM":
        return _certificates(where, content.decode("latin-1"))
    _, certificates = _pkcs12(where, content, settings.truststore_password)
    if not certificates:
        raise ConfigError(f"{where}: contains no certificate")
    return certificates


def _read(key: str, path: Path) -> tuple[str, bytes]:
    """Return the key and path for messages, and the content."""
    try:
        return f"{key}: {path}", path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{key}: {path}: {error.strerror or error}") from error


def _pkcs12(where: str, content: bytes, password: str | None) -> tuple[PrivateKeyTypes | None, _Certificates]:
    if content.startswith(_JKS_MAGIC):
        raise ConfigError(
            f"{where}: JKS is not supported, expected PKCS12 or PEM: convert it with "
            "`keytool -importkeystore -srckeystore OLD.jks -destkeystore NEW.p12 -deststoretype PKCS12`"
        )
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except _UNUSABLE as error:
        raise ConfigError(f"{where}: not a PKCS12 store, or wrong password: {_one_line(error)}") from error
    own = [store.cert] if store.cert is not None else []
    return store.key, tuple(entry.certificate for entry in (*own, *store.additional_certs))


def _key(where: str, text: str, password: str | None) -> PrivateKeyTypes:
    blocks = [block for kind, block in _pem_blocks(text) if kind.endswith("PRIVATE KEY")]
    if len(blocks) != 1:
        raise ConfigError(f"{where}: {len(blocks)} private keys in PEM, expected one")
    try:
        return load_pem_private_key(blocks[0], None if password is None else password.encode())
    except _UNUSABLE as error:
        raise ConfigError(f"{where}: not a private key, or wrong ssl.key.password: {_one_line(error)}") from error


def _certificates(where: str, text: str) -> _Certificates:
    try:
        certificates = [
            x509.load_pem_x509_certificate(block) for kind, block in _pem_blocks(text) if kind == "CERTIFICATE"
        ]
    except _UNUSABLE as error:
        raise ConfigError(f"{where}: unreadable certificate: {_one_line(error)}") from error
    if not certificates:
        raise ConfigError(f"{where}: no certificate in PEM, expected at least one")
    return tuple(certificates)


def _pem_blocks(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield type and text of each PEM block; line breaks lost in a properties file are restored."""
    for match in _BLOCK.finditer(text):
        kind, body = match.groups()
        if ":" not in body:  # no headers
            body = f"\n{''.join(body.split())}\n"
        yield kind, f"-----BEGIN {kind}-----{body}-----END {kind}-----\n".encode("latin-1")


def _entry(where: str, key: PrivateKeyTypes, certificates: _Certificates) -> KeyEntry:
    """Return the key with its chain in order; unrelated certificates come last."""
    try:
        own = [certificate for certificate in certificates if certificate.public_key() == key.public_key()]
    except _UNUSABLE as error:
        raise ConfigError(f"{where}: unreadable key of a certificate: {_one_line(error)}") from error
    if not own:
        raise ConfigError(f"{where}: no certificate matches the private key")
    chain = own[:1]
    rest = [certificate for certificate in certificates if certificate not in chain]
    # Stores list certificates in any order, but TLS sends the chain from the leaf upwards.
    while issuers := [certificate for certificate in rest if certificate.subject == chain[-1].issuer]:
        chain.append(issuers[0])
        rest.remove(issuers[0])
    return KeyEntry(key=key, chain=(*chain, *rest))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
