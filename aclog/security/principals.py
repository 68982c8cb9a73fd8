"""Principals of logins: distinguished names of certificates, SASLprep, credentials and errors."""

import re
import ssl
import stringprep
import unicodedata
from collections.abc import Iterator
from typing import Protocol

from attrs import field

from aclog.authorizer.settings import KafkaPrincipal
from aclog.config.properties import NoMatchingRuleError, SslPrincipalMapper
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.records import UserScramCredentialRecord
from aclog.metalog.values import frozen
from aclog.protocol.session import ANONYMOUS

# Authentication errors.


class AuthenticationError(MetadataError):
    """Authentication failed. The text is sent to the client (SASL_AUTHENTICATION_FAILED, code 58)."""


class AuthenticationNotReadyError(MetadataError):
    """The credentials are not replayed yet, so the client should retry later."""


def invalid_credentials(mechanism: str, *, reauthentication: bool = False) -> AuthenticationError:
    """Return the error that does not reveal why (SaslServerAuthenticator's response to a SaslException)."""
    what = "re-authentication" if reauthentication else "authentication"
    return AuthenticationError(
        f"Authentication failed during {what} due to invalid credentials with SASL mechanism {mechanism}"
    )


# Distinguished names in Java's format: X500Principal.getName(), RFC 2253 with deviations.
#
# ACLs and super.users name TLS clients by this text, so it must match Java's to the character: RDNs in reverse order,
# keywords for nine attribute types only (others as OID and hex dump), and more escaping than the RFC requires.


_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_SEQUENCE, _SET, _OID, _INTEGER, _VERSION = 0x30, 0x31, 0x06, 0x02, 0xA0
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString: Java decodes all of them as UTF-8."""

_ESCAPED = frozenset(',=+<>#;"\\')
_BLANK = " \r"
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


@frozen(kw_only=True)
class _Value:
    """A DER value: tag, content, and the whole encoding."""

    tag: int
    content: bytes = field(repr=False)
    whole: bytes = field(repr=False)


def subject(certificate: bytes) -> str:
    """Return the subject of an X.509 certificate in DER; raise DecodeError for anything else."""
    signed = _inside(_only(certificate), _SEQUENCE)[:1]
    fields = [value for part in signed for value in _inside(part, _SEQUENCE) if value.tag != _VERSION]
    if len(fields) < 5 or fields[0].tag != _INTEGER:
        raise DecodeError("not a certificate: expected serial number, algorithm, issuer, validity and subject")
    return distinguished_name(fields[4].whole)


def distinguished_name(name: bytes) -> str:
    """Return the text of a Name in DER, such as `CN=alice,OU=Users,O=Example`; raise DecodeError for anything else."""
    rdns = [_rdn(value) for value in _inside(_only(name), _SEQUENCE)]
    return ",".join(reversed(rdns))


def _rdn(rdn: _Value) -> str:
    return "+".join(_attribute(value) for value in _inside(rdn, _SET))


def _attribute(attribute: _Value) -> str:
    parts = _inside(attribute, _SEQUENCE)
    if len(parts) != 2 or parts[0].tag != _OID:
        raise DecodeError("name attribute: expected a type and a value")
    oid, value = _oid(parts[0].content), parts[1]
    keyword = _KEYWORDS.get(oid)
    if keyword is None or value.tag not in _TEXTS:
        return f"{keyword or oid}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(_decoded(value.content))}"


def _decoded(content: bytes) -> str:
    """Decode UTF-8; like Java, replace an encoded surrogate (3 bytes) with a single U+FFFD."""
    return _SURROGATE.sub("\ufffd".encode(), content).decode("utf-8", "replace")


def _escaped(text: str) -> str:
    escaped = "".join(_escape(character) for character in text)
    start = len(escaped) - len(escaped.lstrip(_BLANK))
    end = len(escaped.rstrip(_BLANK)) if start < len(escaped) else 0
    edges = (f"\\{c}" if index < start or index >= end else c for index, c in enumerate(escaped))
    return "".join(edges)


def _escape(character: str) -> str:
    if character == "\0":
        return "\\00"
    return f"\\{character}" if character in _ESCAPED else character


def _oid(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not content or content[-1] & 0x80:
        raise DecodeError("truncated object identifier")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _only(buffer: bytes) -> _Value:
    values = list(_values(buffer))
    if len(values) != 1:
        raise DecodeError(f"{len(values)} DER values, expected one")
    return values[0]


def _inside(value: _Value, tag: int) -> list[_Value]:
    """Return the values in a constructed value with this tag."""
    if value.tag != tag:
        raise DecodeError(f"DER tag {value.tag:#04x}, expected {tag:#04x}")
    return list(_values(value.content))


def _values(buffer: bytes) -> Iterator[_Value]:
    position = 0
    while position < len(buffer):
        start, position = position, position + 2
        size = buffer[start + 1] if position <= len(buffer) else 0xFF
        if size >= 0x80:
            position += size & 0x7F
            if not 1 <= size & 0x7F <= 4 or position > len(buffer):
                raise DecodeError("truncated or indefinite DER length", position=start)
            size = int.from_bytes(buffer[start + 2 : position])
        end = position + size
        if end > len(buffer):
            raise DecodeError(f"truncated DER value of {size} bytes", position=start)
        yield _Value(tag=buffer[start], content=buffer[position:end], whole=buffer[start:end])
        position = end


# The principal of a TLS client (DefaultKafkaPrincipalBuilder).


def peer_principal(connection: object, mapper: SslPrincipalMapper) -> KafkaPrincipal:
    """Return the principal of the peer of an ssl_object; ANONYMOUS if it presented no certificate.

    Raises:
        AuthenticationError: No mapping rule matches the certificate's subject, or the subject is unreadable.

    """
    if not isinstance(connection, ssl.SSLObject | ssl.SSLSocket) or connection.context.verify_mode == ssl.CERT_NONE:
        return ANONYMOUS
    certificate = connection.getpeercert(binary_form=True)
    if certificate is None:
        return ANONYMOUS
    try:
        name = subject(certificate)
    except DecodeError as error:
        raise AuthenticationError(f"unreadable certificate subject: {error}") from error
    try:
        return KafkaPrincipal(type="User", name=mapper.name(name))
    except NoMatchingRuleError as error:
        raise AuthenticationError(str(error)) from error


# SASLprep: normalization of user names (RFC 4013).


_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,  # unassigned code points, prohibited in stored strings
)


def saslprep(text: str) -> str:
    """Return the prepared form of a text: uniform spaces, no soft hyphens, NFKC.

    Raises:
        DecodeError: A prohibited character, or mixed text directions.

    """
    mapped = (" " if stringprep.in_table_c12(c) else c for c in text if not stringprep.in_table_b1(c))
    # RFC 3454 is defined on Unicode 3.2; a newer version would normalize some names differently.
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", "".join(mapped))
    for position, character in enumerate(prepared):
        if any(prohibits(character) for prohibits in _PROHIBITED):
            raise DecodeError(f"U+{ord(character):04X} is not allowed in a user name (RFC 4013)", position=position)
    _check_directions(prepared)
    return prepared


def _check_directions(text: str) -> None:
    """Check RFC 3454, section 6: right-to-left text is not mixed with other text and begins and ends as such."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    if not ends or any(map(stringprep.in_table_d2, text)):
        raise DecodeError("user name mixes right-to-left and left-to-right text (RFC 4013)")


# The credentials that logins are verified against.


@frozen(kw_only=True)
class TokenCredential:
    """A delegation token as a SCRAM credential (KIP-48): the user is the token id, the password the token's HMAC.

    `expiry_ms` is in ms since 1970.
    """

    owner: KafkaPrincipal
    expiry_ms: int
    credential: UserScramCredentialRecord = field(repr=False)


class Credentials(Protocol):
    """The credentials that a node has replayed. An implementation without tokens keeps the defaults."""

    tokens_enabled: bool = False
    """Whether clients may log in with delegation tokens."""

    @property
    def ready(self) -> bool:
        """Whether the log has been replayed, so that an absent credential means an unknown user."""
        ...

    @property
    def decoy_key(self) -> bytes:
        """The key that the salts of unknown users are derived from, the same on all nodes of a cluster."""
        ...

    def scram(self, user: str, mechanism: ScramMechanism) -> UserScramCredentialRecord | None:
        """The user's credential, or None."""
        ...

    def token(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:  # noqa: ARG002
        """The unexpired token with this id, or None; called only if tokens are enabled."""
        return None
