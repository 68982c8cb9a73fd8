"""Why a connection failed, and what to change: texts for people, from the failure and from what listens there."""

import ssl

from cryptography import x509
from cryptography.x509.oid import NameOID

from aclog.nodes.client.peer import Peer, Service
from aclog.nodes.config.node_config import ClientSecurity, HostPort, TlsSettings
from aclog.nodes.session import SecurityProtocol

PROPERTIES = "the client's properties (--command-config FILE)"
"""Where a user sets security.protocol and the rest."""

_EXPIRED, _NOT_YET_VALID, _HOST_MISMATCH, _ADDRESS_MISMATCH = 10, 9, 62, 64
"""X509_V_ERR_* of OpenSSL."""
_UNKNOWN_AUTHORITY = frozenset((2, 18, 19, 20, 21))


def mismatch(security: ClientSecurity, peer: Peer) -> str | None:
    """Return what is wrong with the address or with security.protocol; None if nothing is, or if nothing is known."""
    if peer.service is Service.ZOOKEEPER:
        return (
            "a ZooKeeper server listens there: expected a Kafka listener's address; ACLs in ZooKeeper are read with "
            "--authorizer-properties zookeeper.connect=HOST:PORT"
        )
    if peer.service is Service.HTTP:
        return "an HTTP server listens there: expected the port of a Kafka listener"
    ours = security.security_protocol
    if peer.tls and not ours.tls and (peer.protocol is None or peer.wants_certificate):
        wanted = SecurityProtocol.SASL_SSL if ours.sasl else SecurityProtocol.SSL
        return _expected(f"the listener speaks TLS, and security.protocol is {ours.value}", wanted, peer)
    if peer.protocol is None or peer.protocol is ours or peer.wants_certificate:
        return None
    return _expected(_differ(peer.protocol, ours), peer.protocol, peer, encrypted=ours.tls)


def no_login_wanted(security: ClientSecurity) -> str:
    """Return what to change if a listener without SASL was asked for a login."""
    ours = security.security_protocol
    theirs = SecurityProtocol.SSL if ours.tls else SecurityProtocol.PLAINTEXT
    return _expected(_differ(theirs, ours), theirs, Peer(service=Service.KAFKA, tls=ours.tls))


def _differ(theirs: SecurityProtocol, ours: SecurityProtocol) -> str:
    return f"the listener is {theirs.value}, and security.protocol is {ours.value}"


def _expected(what: str, protocol: SecurityProtocol, peer: Peer, *, encrypted: bool = False) -> str:
    """Return what is wrong and what to set; who set out to encrypt is not told to do without as if it were nothing."""
    more = ""
    if protocol.sasl and peer.mechanisms:
        more = f", sasl.mechanism={' or '.join(peer.mechanisms)} and a sasl.jaas.config"
    setting = f"security.protocol={protocol.value}{more} in {PROPERTIES}"
    if encrypted and not protocol.tls:
        return f"{what}: expected the port of a listener with TLS, or, if nobody listens in on the network, {setting}"
    return f"{what}: expected {setting}"


def tls_failure(error: ssl.SSLError, address: HostPort, tls: TlsSettings, peer: Peer | None) -> str:
    """Return why a TLS handshake failed; `peer`, if known, has the server's certificate."""
    certificate = None if peer is None else peer.certificate
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: {error.verify_message.rstrip('.')}{_unverified(error.verify_code, address, tls, certificate)}"
    reason = error.reason or str(error)
    if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason or "HANDSHAKE_FAILURE" in reason):
        return f"TLS: {reason}: {_client_certificate(tls)}"
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        return f"TLS: {reason}: expected an ssl.enabled.protocols that the server knows, not {','.join(tls.protocols)}"
    return f"TLS: {reason}"


def _client_certificate(tls: TlsSettings) -> str:
    if tls.keystore is None and tls.certificate_chain_pem is None:
        return f"the server requires a client certificate: expected ssl.keystore.location in {PROPERTIES}"
    return (
        "the server refuses the certificate in ssl.keystore.location: expected one that is valid, of an authority in "
        "the server's ssl.truststore.location"
    )


def _unverified(code: int, address: HostPort, tls: TlsSettings, certificate: x509.Certificate | None) -> str:
    """Return what to do about a server's certificate, beginning with a colon; nothing if that is not known."""
    if code in _UNKNOWN_AUTHORITY:
        issuer = f" ({certificate.issuer.rfc4514_string()})" if certificate else ""
        if tls.truststore is None and tls.truststore_pem is None:
            return f": expected ssl.truststore.location with the server's authority{issuer} in {PROPERTIES}"
        where = tls.truststore or "ssl.truststore.certificates"
        return f": expected the server's authority{issuer} among those that {where} trusts"
    if code in (_HOST_MISMATCH, _ADDRESS_MISMATCH):
        names = f": it is for {', '.join(_names(certificate))}" if certificate and _names(certificate) else ""
        return (
            f"{names}: expected an address with a name of the certificate, or, if you know the server, an empty "
            f"ssl.endpoint.identification.algorithm in {PROPERTIES}"
        )
    if code == _EXPIRED:
        since = f" on {certificate.not_valid_after_utc:%Y-%m-%d}" if certificate else ""
        return f"{since}: expected a renewed one in the server's ssl.keystore.location, or another clock here"
    if code == _NOT_YET_VALID:
        since = f" before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M}Z" if certificate else ""
        return f"{since}: expected a later time on the clock of this machine"
    return f" ({address})"


def _names(certificate: x509.Certificate) -> list[str]:
    """Return the names and addresses that a certificate is for; its common name if it has no others."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return [
        *found.get_values_for_type(x509.DNSName),
        *(str(each) for each in found.get_values_for_type(x509.IPAddress)),
    ]
