import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.default_principal_data.v0.data import DefaultPrincipalData
from kio.serial import entity_writer

from aclog.authorizer.principals import KafkaPrincipal
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.nodes.wire.principal_data import decode_principal, encode_principal
from tests.support.nodes.wire_messages import mutations

TEXT = st.text(max_size=8) | st.just("é" * 70)


@pytest.mark.parametrize(
    ("captured", "name", "token"),
    [("0000 05 55736572 06 61646d696e 00 00", "admin", False), ("0000 05 55736572 06 616c696365 01 00", "alice", True)],
)
def test_principals_of_a_real_broker(captured, name, token):
    data = bytes.fromhex(captured)
    principal = KafkaPrincipal(type="User", name=name)
    assert decode_principal(data) == (principal, token)
    assert encode_principal(principal, token_authenticated=token) == data


@given(TEXT, TEXT, st.booleans(), st.binary(max_size=5))
def test_principals_are_kios_and_come_back(kind, name, token, behind):
    out = io.BytesIO()
    entity_writer(DefaultPrincipalData)(out, DefaultPrincipalData(type_=kind, name=name, token_authenticated=token))
    principal = KafkaPrincipal(type=kind, name=name)
    encoded = encode_principal(principal, token_authenticated=token)
    assert encoded == b"\0\0" + out.getvalue()
    assert decode_principal(encoded + behind) == (principal, token)
    assert decode_principal(encoded[:-1] + b"\1\x63\2ab") == (principal, token)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\2a\2b\0\0", b"\xff\xff\2a\2b\0\0"])
def test_another_version_is_refused(data):
    with pytest.raises(DecodeError, match="expected 0"):
        decode_principal(data)


@given(st.binary(max_size=20).map(lambda tail: b"\0\0" + tail) | mutations(b"\0\0\5User\6alice\0\0"))
def test_hostile_bytes_raise_decode_errors_only(data):
    try:
        principal, _ = decode_principal(data)
    except DecodeError:
        return
    assert isinstance(principal, KafkaPrincipal)


def test_a_name_that_is_too_long():
    with pytest.raises(EncodeError):
        encode_principal(KafkaPrincipal(type="User", name="x" * 40000))
