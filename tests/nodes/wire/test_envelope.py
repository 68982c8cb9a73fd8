import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.default_principal_data.v0.data import DefaultPrincipalData
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from aclog.authorizer.settings import KafkaPrincipal
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.protocol.headers import RequestHeader, decode_header
from aclog.protocol.messages import decode_request
from aclog.protocol.responses import (
    AUTHORIZER_NOT_READY,
    EnvelopeRequest,
    EnvelopeResponse,
    decode_envelope_request,
    decode_envelope_response,
    decode_principal,
    encode_envelope_request,
    encode_envelope_response,
    encode_principal,
)
from tests.support.nodes.wire_messages import mutations

CAPTURED = bytes.fromhex(
    "003a 0000 00000000 0001 31 00"
    "34 001e 0003 00000004 000d 61646d696e636c69656e742d31 00"
    "02 02 07 6f7264657273 03 0b 557365723a616c696365 02 2a 03 03 00 00"
    "10 0000 05 55736572 06 61646d696e 00 00"
    "05 7f000001 00"
)
"""The Envelope that a Kafka 4.3.1 broker with node id 1 sends for a client's CreateAcls (names are made up)."""

REQUESTS = st.builds(
    EnvelopeRequest,
    request_data=st.binary(max_size=200),
    request_principal=st.none() | st.binary(max_size=20),
    client_host_address=st.binary(min_size=4, max_size=16),
)
RESPONSES = st.builds(
    EnvelopeResponse, response_data=st.none() | st.binary(max_size=200), error_code=st.sampled_from(list(ErrorCode))
)


def kio_bytes(entity):
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def test_an_envelope_of_a_real_broker():
    header, position = decode_header(CAPTURED)
    assert header == RequestHeader(api_key=58, api_version=0, correlation_id=0, client_id="1")
    envelope = decode_envelope_request(CAPTURED, position)
    assert decode_principal(envelope.request_principal) == (KafkaPrincipal(type="User", name="admin"), False)
    assert envelope.client_host_address == bytes((127, 0, 0, 1))
    inner, body = decode_header(envelope.request_data)
    assert inner == RequestHeader(api_key=30, api_version=3, correlation_id=4, client_id="adminclient-1")
    (creation,) = decode_request(30, 3, envelope.request_data, body).creations
    assert (creation.resource_name, creation.principal) == ("orders", "User:alice")
    assert encode_envelope_request(envelope) == CAPTURED[position:]


@given(REQUESTS, st.binary(max_size=5))
def test_requests_are_kios(request_value, behind):
    theirs = load_request_schema(58, 0)(
        request_data=request_value.request_data,
        request_principal=request_value.request_principal,
        client_host_address=request_value.client_host_address,
    )
    assert encode_envelope_request(request_value) == kio_bytes(theirs)
    assert decode_envelope_request(b"#" + kio_bytes(theirs) + behind, 1) == request_value


@given(RESPONSES, st.sampled_from([0, 1]), st.binary(max_size=5))
def test_responses_are_kios(response, version, behind):
    theirs = load_response_schema(58, 0)(response_data=response.response_data, error_code=response.error_code)
    assert encode_envelope_response(version, response) == kio_bytes(theirs)
    assert decode_envelope_response(b"#" + kio_bytes(theirs) + behind, 1) == response


@pytest.mark.parametrize(("version", "code"), [(0, -1), (1, AUTHORIZER_NOT_READY)])
def test_authorizer_not_ready_exists_in_version_1_only(version, code):
    encoded = encode_envelope_response(version, EnvelopeResponse(error_code=AUTHORIZER_NOT_READY))
    assert decode_envelope_response(encoded, 0) == EnvelopeResponse(error_code=code)


def test_unknown_tagged_fields_are_skipped():
    tags = b"\2\x63\1x\x64\0"
    request = EnvelopeRequest(request_data=b"r", request_principal=None, client_host_address=b"abcd")
    assert decode_envelope_request(encode_envelope_request(request)[:-1] + tags, 0) == request
    response = EnvelopeResponse(response_data=b"r")
    assert decode_envelope_response(encode_envelope_response(1, response)[:-1] + tags, 0) == response


@pytest.mark.parametrize("body", [b"\0\0\5abcd\0", b"\2r\0\0\0"])
def test_null_where_a_value_is_required(body):
    with pytest.raises(DecodeError, match="null"):
        decode_envelope_request(body, 0)


@given(REQUESTS.map(encode_envelope_request).flatmap(mutations) | st.binary(max_size=40))
def test_hostile_requests_raise_decode_errors_only(data):
    try:
        assert isinstance(decode_envelope_request(data, 0), EnvelopeRequest)
    except DecodeError:
        return


@given(RESPONSES.map(lambda found: encode_envelope_response(0, found)).flatmap(mutations) | st.binary(max_size=40))
def test_hostile_responses_raise_decode_errors_only(data):
    try:
        assert isinstance(decode_envelope_response(data, 0), EnvelopeResponse)
    except DecodeError:
        return


def test_payloads_are_not_in_reprs():
    request = EnvelopeRequest(request_data=b"password", request_principal=None, client_host_address=b"abcd")
    assert "password" not in repr(request) + repr(EnvelopeResponse(response_data=b"password"))


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
