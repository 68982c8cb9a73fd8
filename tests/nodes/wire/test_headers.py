import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.primitives import unsigned_varint
from aclog.protocol.api_keys import FIRST_FLEXIBLE, is_flexible
from aclog.protocol.headers import RequestHeader, decode_header, decode_response_header, encode_header, response_header
from tests.support.nodes.wire_messages import SERVED, UNKNOWN_TAGS, mutations

CLIENT_IDS = st.none() | st.text(max_size=20) | st.just("adminclient-1")
HEADERS = st.builds(
    lambda api, correlation_id, client_id: RequestHeader(
        api_key=api[0], api_version=api[1], correlation_id=correlation_id, client_id=client_id
    ),
    st.sampled_from(SERVED),
    st.integers(-(2**31), 2**31 - 1),
    CLIENT_IDS,
)


def versions(api_key):
    known = schema_name_map[api_key_map[api_key]]
    return sorted(version for version, kinds in known.items() if EntityType.request in kinds)


def tag_bytes(tags):
    return unsigned_varint(len(tags)) + b"".join(
        unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in tags
    )


@pytest.mark.parametrize("api_key", sorted(api_key_map))
def test_the_table_of_flexible_versions_is_that_of_the_schemas(api_key):
    for version in versions(api_key):
        header = load_request_schema(api_key, version).__header_schema__
        assert is_flexible(api_key, version) == (header.__version__ == 2)
        answer = load_response_schema(api_key, version).__header_schema__
        assert len(response_header(api_key, version, 7)) == 4 + answer.__version__


def test_the_table_has_every_api_and_no_other():
    assert FIRST_FLEXIBLE.keys() == api_key_map.keys() | {93, 94}  # which kio does not have yet


@given(HEADERS, st.binary(max_size=8))
def test_a_header_is_kios_and_comes_back(header, body):
    schema = load_request_schema(header.api_key, header.api_version).__header_schema__
    theirs = schema(
        request_api_key=header.api_key,
        request_api_version=header.api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )
    out = io.BytesIO()
    entity_writer(schema)(out, theirs)
    encoded = encode_header(header)
    assert encoded == out.getvalue()
    assert decode_header(encoded + body) == (header, len(encoded))


@given(HEADERS.filter(lambda header: is_flexible(header.api_key, header.api_version)), UNKNOWN_TAGS, st.binary())
def test_unknown_tagged_fields_of_a_header_are_skipped(header, tags, body):
    start = encode_header(header)[:-1] + tag_bytes(tags)
    assert decode_header(start + body) == (header, len(start))


@given(st.sampled_from(SERVED), st.integers(-(2**31), 2**31 - 1), UNKNOWN_TAGS, st.binary(max_size=5))
def test_a_response_header_comes_back_with_whatever_tagged_fields(api, correlation_id, tags, body):
    start = response_header(*api, correlation_id)
    if len(start) == 5:
        start = start[:-1] + tag_bytes(tags)
    assert decode_response_header(*api, start + body) == (correlation_id, len(start))


@pytest.mark.parametrize("version", range(6))
def test_the_answer_to_api_versions_never_has_tagged_fields(version):
    assert response_header(18, version, 5) == b"\0\0\0\5"


@pytest.mark.parametrize("version", [5, 32767])
def test_a_request_from_the_future_has_the_newest_header(version):
    frame = b"\0\x12" + version.to_bytes(2, "big") + b"\0\0\0\7\0\1c" + b"\1\x63\2ab" + b"body"
    header, position = decode_header(frame)
    assert (header.correlation_id, header.client_id, frame[position:]) == (7, "c", b"body")


def test_a_client_id_that_is_not_utf8_is_replaced():
    assert decode_header(b"\0\x12\0\0\0\0\0\0\0\2\xffA")[0].client_id == "\N{REPLACEMENT CHARACTER}A"


@pytest.mark.parametrize("api_key", [-1, 4, 7, 95, 32767])
def test_an_api_key_that_kafka_does_not_have_is_refused(api_key):
    frame = api_key.to_bytes(2, "big", signed=True) + bytes(10)
    with pytest.raises(DecodeError, match=f"API key {api_key}"):
        decode_header(frame)


@given(st.binary(max_size=40) | HEADERS.flatmap(lambda header: mutations(encode_header(header))))
def test_hostile_headers_raise_decode_errors_only(frame):
    try:
        _, position = decode_header(frame)
    except DecodeError:
        return
    assert position <= len(frame)


@given(st.sampled_from(SERVED), st.binary(max_size=20))
def test_hostile_response_headers_raise_decode_errors_only(api, payload):
    try:
        _, position = decode_response_header(*api, payload)
    except DecodeError:
        return
    assert position <= len(payload)


@pytest.mark.parametrize(
    "change", [{"api_key": 70000}, {"correlation_id": 2**31}, {"client_id": "x" * 40000}, {"api_key": 5}]
)
def test_a_header_that_cannot_be_written(change):
    values = {"api_key": 3, "api_version": 9, "correlation_id": 1, "client_id": "a"} | change
    with pytest.raises(EncodeError):
        encode_header(RequestHeader(**values))
