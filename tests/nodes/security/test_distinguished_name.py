"""Distinguished names compared with Java's text."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import DecodeError
from aclog.security.principals import distinguished_name, subject
from tests.support.nodes.certificates import Authority

JAVA = json.loads((Path(__file__).parent / "java_texts.json").read_text())["distinguishedNames"]


@pytest.mark.parametrize("name", sorted(JAVA))
def test_a_name_reads_as_java_prints_it(name):
    assert distinguished_name(bytes.fromhex(name)) == JAVA[name]


def test_the_subject_of_a_certificate():
    name = [(NameOID.COUNTRY_NAME, "US"), (NameOID.ORGANIZATION_NAME, "A, Inc."), (NameOID.COMMON_NAME, "alice")]
    certificate, _ = Authority.make("root").issue(name)
    assert subject(certificate.public_bytes(Encoding.DER)) == "CN=alice,O=A\\, Inc.,C=US"


NO_NAMES = """30 3001 3080 30850000000000 0500 30003000 3002 300230 30023100ff 30033101ff 30023000 3004310230ff
300431023000 3008310630040c000c00 30083106300406000c00 3009310730050601800c00 300c310a3008060355040300000000"""


@pytest.mark.parametrize("name", ["", *NO_NAMES.split()])
def test_malformed_names(name):
    with pytest.raises(DecodeError):
        distinguished_name(bytes.fromhex(name))


@pytest.mark.parametrize("certificate", ["", "3000", "30023000", "30053003020101", "300c300a02010130003000300030"])
def test_malformed_certificates(certificate):
    with pytest.raises(DecodeError):
        subject(bytes.fromhex(certificate))


@given(st.binary(max_size=60))
def test_any_bytes_give_a_name_or_a_decode_error(buffer):
    for read in (distinguished_name, subject):
        with suppress(DecodeError):
            read(buffer)


@given(st.data())
def test_a_damaged_certificate_is_refused_or_read(data):
    whole = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")]).public_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:position] + bytes([data.draw(st.integers(0, 255))]) + whole[position + 1 :]
    for buffer in (damaged, whole[:position]):
        with suppress(DecodeError):
            distinguished_name(buffer)
