"""Distinguished names in Java's format: X500Principal.getName(), RFC 2253 with deviations.

ACLs and super.users name TLS clients by this text, so it must match Java's to the character: RDNs in reverse order,
keywords for nine attribute types only (others as OID and hex dump), and more escaping than the RFC requires.
"""

import re
from collections.abc import Iterator

from attrs import field, frozen

from aclog.metalog.errors import DecodeError

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
