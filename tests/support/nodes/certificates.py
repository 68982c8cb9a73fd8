"""Certificates for tests: an authority, what it issues, and the files that nodes and clients read them from."""

from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from attrs import frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

BEGIN, END = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)

Name = str | Sequence[tuple[x509.ObjectIdentifier, str]]


def name_of(name: Name) -> x509.Name:
    """A name of its attributes in order, or of a common name alone."""
    pairs = [(NameOID.COMMON_NAME, name)] if isinstance(name, str) else name
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in pairs])


@frozen
class Issued:
    """A certificate, its key, and who issued it (itself last, where it is the root)."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    issuers: tuple[x509.Certificate, ...] = ()

    def __iter__(self):
        return iter((self.certificate, self.key))

    def certificate_pem(self, *, chain=False):
        """The certificate as text, with its issuers after it."""
        return "".join(pem(certificate) for certificate in (self.certificate, *(self.issuers if chain else ())))

    def key_pem(self, password=None):
        """The key as PKCS 8 text."""
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def write_pem(self, path: Path, password=None):
        """A PEM key store: the key and the chain."""
        path.write_text(self.key_pem(password) + self.certificate_pem(chain=True))
        return path

    def write_pkcs12(self, path: Path, password="changeit"):
        """A PKCS 12 key store."""
        encryption = BestAvailableEncryption(password.encode())
        issuers = list(self.issuers)
        path.write_bytes(pkcs12.serialize_key_and_certificates(b"me", self.key, self.certificate, issuers, encryption))
        return path


@frozen
class Authority:
    """Who issues certificates: a root, or one below another."""

    own: Issued

    @classmethod
    def make(cls, name: Name = "root", parent: "Authority | None" = None):
        """A new authority with a new key."""
        return cls(_issue(name_of(name), parent, [(x509.BasicConstraints(ca=True, path_length=None), True)]))

    def issue(self, name: Name, *, hosts=("localhost", "127.0.0.1", "::1"), period=(BEGIN, END)):
        """A certificate that is good for servers of these hosts and for clients, from a time to a time."""
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        return _issue(name_of(name), self, [(names, False)], period)

    def write_pkcs12(self, path: Path, password="changeit"):
        """A PKCS 12 trust store that Java takes for one."""
        encryption = BestAvailableEncryption(password.encode())
        entries = [pkcs12.PKCS12Certificate(self.own.certificate, b"root")]
        path.write_bytes(pkcs12.serialize_java_truststore(entries, encryption))
        return path

    def write_pem(self, path: Path):
        """A PEM trust store."""
        path.write_text(pem(self.own.certificate))
        return path


def pem(certificate):
    """A certificate as text."""
    return certificate.public_bytes(Encoding.PEM).decode()


def _host(text):
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _issue(name, parent, extensions, period=(BEGIN, END)):
    key = ec.generate_private_key(ec.SECP256R1())
    signer, issuer = (key, name) if parent is None else (parent.own.key, parent.own.certificate.subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(period[0])
        .not_valid_after(period[1])
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    issuers = () if parent is None else (parent.own.certificate, *parent.own.issuers)
    return Issued(builder.sign(signer, hashes.SHA256()), key, issuers)
