"""TLS contexts of listeners and clients (DefaultSslEngineFactory)."""

import secrets
import ssl
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.cipher_suites import cipher_suites
from aclog.nodes.config.node_config import ClientAuth, TlsSettings
from aclog.nodes.security.key_stores import KeyEntry, key_entry, trusted_certificates

_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@frozen(kw_only=True)
class _Certificates:
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
    certificates = _Certificates(entry=key_entry(settings), trusted=trusted_certificates(settings))
    _load_certificates(context, certificates)
    if certificates.trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def _server_certificates(settings: TlsSettings) -> _Certificates:
    certificates = _Certificates(entry=key_entry(settings), trusted=trusted_certificates(settings))
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
        given = ",".join(settings.protocols)
        raise ConfigError(
            f"ssl.enabled.protocols: {given}: expected TLSv1.2 or TLSv1.3, with a matching suite in ssl.cipher.suites"
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


def _load_certificates(context: ssl.SSLContext, certificates: _Certificates) -> None:
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
