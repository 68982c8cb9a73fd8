"""TLS contexts, key stores, and their reloading."""

import asyncio
import binascii
import re
import secrets
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from attrs import field
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from aclog.config.node_config import ClientAuth, TlsSettings
from aclog.config.security import cipher_suites
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

# Key stores and trust stores in PEM or PKCS12, from files or inline (DefaultSslEngineFactory.SecurityStore).
#
# PKCS12 is recognized by content: like Java, ssl.keystore.type=JKS reads PKCS12 files as well.


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


# TLS contexts of listeners and clients (DefaultSslEngineFactory).


_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@frozen(kw_only=True)
class _TlsCertificates:
    """The content of key store and trust store; None for a store that is not configured."""

    entry: KeyEntry | None
    trusted: tuple[x509.Certificate, ...] | None


class ServerContext(ssl.SSLContext):
    """A listener's TLS context whose certificates can be replaced while it is in use.

    Certificates cannot be removed from an SSLContext, so this one holds none: each handshake continues on `current`,
    which is rebuilt from the stores. Sessions from before a change of the trusted certificates are not resumed.
    """

    current: ssl.SSLContext
    _trusted: tuple[x509.Certificate, ...] | None = None
    _trusted_since: float = 0.0

    def load(self, settings: TlsSettings) -> None:
        """Use the current content of the stores for new handshakes; on an error nothing changes."""
        certificates = _server_certificates(settings)
        current = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _configure_server(current, settings)
        _load_certificates(current, certificates)
        # Only a change of trust invalidates sessions; a renewed server certificate does not.
        if certificates.trusted != self._trusted and self._trusted is not None:
            self._trusted_since = time.time()
        self._trusted = certificates.trusted
        self.current = current

    def continue_on_current(self, connection: ssl.SSLObject | ssl.SSLSocket, *_: object) -> int | None:
        """Continue a handshake on `current`, or end it with an alert. The sni_callback, called after ClientHello."""
        if connection.session_reused and self.verify_mode != ssl.CERT_NONE:
            # A resumed session skips certificate verification, so it would outlive a certificate that is revoked by
            # removing it from the trust store.
            session = connection.session
            if session is None or session.time <= self._trusted_since:
                return ssl.ALERT_DESCRIPTION_CERTIFICATE_UNKNOWN
        connection.context = self.current
        return None


def server_context(settings: TlsSettings) -> ServerContext:
    """Return the context of a listener.

    Raises:
        ConfigError: A store is unreadable or incomplete, or a protocol or cipher suite is unsupported.

    """
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    _configure_server(context, settings)
    context.load(settings)
    context.sni_callback = context.continue_on_current
    return context


def reload(context: ServerContext, settings: TlsSettings) -> None:
    """Reload the stores for new connections; existing ones are unaffected.

    Raises:
        ConfigError: As server_context; the context keeps its certificates.

    """
    context.load(settings)


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return a client context; without a trust store it trusts the system's certificates.

    Raises:
        ConfigError: As server_context.

    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.endpoint_identification
    _configure(context, settings)
    certificates = _TlsCertificates(entry=key_entry(settings), trusted=trusted_certificates(settings))
    _load_certificates(context, certificates)
    if certificates.trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def _server_certificates(settings: TlsSettings) -> _TlsCertificates:
    certificates = _TlsCertificates(entry=key_entry(settings), trusted=trusted_certificates(settings))
    if certificates.entry is None:
        raise ConfigError("ssl.keystore.location: not set, but a TLS listener requires a key and a certificate")
    if certificates.trusted is None and settings.client_auth is not ClientAuth.NONE:
        raise ConfigError("ssl.truststore.location: not set, but ssl.client.auth requires trusted certificates")
    return certificates


def _configure_server(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set up a listener's context or its `current`: OpenSSL reads some settings from one and some from the other."""
    context.verify_mode = _VERIFY[settings.client_auth]
    context.num_tickets = 0  # a ticket would admit a client whose certificate is no longer trusted
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    _configure(context, settings)


def _configure(context: ssl.SSLContext, settings: TlsSettings) -> None:
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, any certificate in the trust store is an anchor
    suites = cipher_suites(settings.cipher_suites)
    versions = set(settings.protocols)
    # OpenSSL cannot restrict the suites of TLS 1.3 through Python's ssl module, so a version without a listed suite is
    # disabled altogether.
    if settings.cipher_suites:
        versions -= {"TLSv1.3"} if not suites.tls_1_3 else set()
        versions -= {"TLSv1.2"} if not suites.tls_1_2 else set()
    if not versions or not versions <= _VERSIONS.keys():
        names = ",".join(settings.protocols)
        raise ConfigError(
            f"ssl.enabled.protocols: {names}: expected TLSv1.2 or TLSv1.3, with a matching suite in ssl.cipher.suites"
        )
    context.minimum_version = min(_VERSIONS[version] for version in versions)
    context.maximum_version = max(_VERSIONS[version] for version in versions)
    if suites.tls_1_2:
        _set_ciphers(context, suites.tls_1_2)


def _set_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError as error:
        raise ConfigError(f"ssl.cipher.suites: OpenSSL supports none of {', '.join(names)}") from error


def _load_certificates(context: ssl.SSLContext, certificates: _TlsCertificates) -> None:
    if certificates.entry is not None:
        _load_chain(context, certificates.entry)
    try:
        for certificate in certificates.trusted or ():
            context.load_verify_locations(cadata=certificate.public_bytes(Encoding.DER))
    except ssl.SSLError as error:
        raise ConfigError(f"unusable certificate in the trust store: {error.reason}") from error


def _load_chain(context: ssl.SSLContext, entry: KeyEntry) -> None:
    """Load key and chain through a temporary file, as OpenSSL requires; the key in it is encrypted."""
    password = secrets.token_bytes(32).hex().encode()
    encryption = BestAvailableEncryption(password)
    key = entry.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    chain = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in entry.chain)
    try:
        with TemporaryDirectory(prefix="aclog-") as directory:
            path = Path(directory) / "chain.pem"
            path.touch(mode=0o600)
            path.write_bytes(key + chain)
            context.load_cert_chain(path, password=password)
    except ssl.SSLError as error:
        raise ConfigError(f"key or certificates unusable for TLS: {error.reason}") from error
    except OSError as error:
        raise ConfigError(f"cannot write a temporary file for the key: {error.strerror or error}") from error


# Reloading of a listener's certificates when their files change.


INTERVAL_SECONDS = 3.0
"""Polling interval of the files."""

_Stamps: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@define(kw_only=True)
class CertificateWatcher:
    """Watches the stores of one listener's context, starting from their state at creation."""

    context: ServerContext
    settings: TlsSettings
    _last_stamps: _Stamps = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._last_stamps = _stamps(self.settings)

    def check(self) -> bool:
        """Reload the files if they changed; return whether they did. Blocks.

        Raises:
            ConfigError: The new content is unusable. The context keeps its certificates, and the files are reloaded
                once they change again.

        """
        stamps = _stamps(self.settings)
        if stamps == self._last_stamps:
            return False
        self._last_stamps = stamps  # before loading: a broken file is reported once, not at every poll
        reload(self.context, self.settings)
        return True

    async def run(
        self,
        report: Callable[[ConfigError | None], None],
        *,
        interval: float = INTERVAL_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Check until cancelled; call `report` after each change, with the error if the new content is unusable."""
        while True:
            await sleep(interval)
            try:
                if await asyncio.to_thread(self.check):
                    report(None)
            except ConfigError as error:
                report(error)
            except Exception as error:  # noqa: BLE001 - keep watching after any error of this file
                report(ConfigError(f"the certificates cannot be read: {type(error).__name__}"))


def _stamps(settings: TlsSettings) -> _Stamps:
    return tuple(map(_stamp, filter(None, (settings.keystore, settings.truststore))))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return values that change when a file is written or replaced; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
