from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.primitives import unsigned_varint
from aclog.protocol import messages as m
from aclog.protocol.error_codes import NewerErrorCode
from aclog.protocol.messages import MAX_ELEMENTS, MAX_SLOW_BYTES, build
from tests.support.nodes.wire_messages import MESSAGES, SERVED, UNKNOWN_TAGS, encode, filled, messages, mutations


def decoder(kind):
    return m.decode_request if kind == "request" else m.decode_response


def native(message, data):
    return entity_reader(type(message))(data, 0)[0]


@given(st.data(), MESSAGES, st.binary(max_size=5), st.binary(max_size=5))
def test_every_message_round_trips_and_surrounding_bytes_are_ignored(data, which, before, after):
    api_key, version, kind = which
    message = data.draw(messages(*which))
    encoded = m.encode_request(message)
    assert encoded == m.encode_response(message)
    assert decoder(kind)(api_key, version, before + encoded + after, len(before)) == message
    assert native(message, encoded) == message


@given(st.data(), MESSAGES)
def test_unknown_tagged_fields_are_skipped_at_any_depth(data, which):
    api_key, version, kind = which
    message = data.draw(messages(*which))
    assume(type(message).__flexible__)
    assert encode(message) == m.encode_request(message)
    encoded = encode(message, tags=lambda: data.draw(UNKNOWN_TAGS))
    assert decoder(kind)(api_key, version, encoded, 0) == message


@pytest.mark.parametrize(("api_key", "version"), [found for found in SERVED if found != (18, 0)])
def test_an_unknown_tagged_field_in_every_structure_of_every_api(api_key, version):
    for kind in ("request", "response"):
        message = filled(m.message_type(api_key, version, kind))
        assert decoder(kind)(api_key, version, encode(message, tags=lambda: [(99, b"new")]), 0) == message


@given(st.data(), MESSAGES)
def test_hostile_bytes_raise_decode_errors_only(data, which):
    api_key, version, kind = which
    message = data.draw(messages(*which))
    hostile = data.draw(mutations(m.encode_request(message)) | st.binary(max_size=60))
    found = attempt(decoder(kind), api_key, version, hostile)
    if isinstance(found, DecodeError):
        assert found.__suppress_context__ or found.__context__ is None, "an error from within may show what was read"
    else:
        assert type(found) is type(message)


def attempt(decode, api_key, version, data):
    try:
        return decode(api_key, version, data, 0)
    except DecodeError as error:
        return error


@given(st.data(), MESSAGES)
def test_every_cut_of_a_message_is_refused(data, which):
    api_key, version, kind = which
    encoded = m.encode_request(data.draw(messages(*which)))
    assume(encoded)
    at = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(DecodeError):
        decoder(kind)(api_key, version, encoded[:at], 0)


@pytest.mark.parametrize(("api_key", "version"), SERVED)
@pytest.mark.parametrize("length", [2**31 - 1, 200])
def test_array_lengths_are_checked_against_the_remaining_bytes(api_key, version, length):
    """kio's reader allocates for the announced length, and would abort the process on such a length."""
    for kind in ("request", "response"):
        message = filled(m.message_type(api_key, version, kind))
        for chosen, name in enumerate(array_names(message)):
            with pytest.raises(DecodeError, match=f"{length} {name} announced"):
                decoder(kind)(api_key, version, with_false_length(message, chosen, length), 0)


def array_names(message):
    """Return the names of a message's arrays in the order of encoding."""
    names = []

    def note(name, real):
        names.append(name)
        return real

    encode(message, length=note)
    return names


def with_false_length(message, chosen, length):
    """Encode the message with another length for the array of that number."""
    turns = count()
    return encode(message, length=lambda _name, real: length if next(turns) == chosen else real)


@pytest.mark.parametrize(
    ("api_key", "version", "head"), [(30, 1, b"\xff\xff\xff\xff"), (30, 3, b"\0"), (30, 1, b"\xff\xff\xff\xfe")]
)
def test_null_and_negative_where_an_array_is_required(api_key, version, head):
    with pytest.raises(DecodeError):
        m.decode_request(api_key, version, head + bytes(20), 0)


def test_requests_have_no_more_elements_than_the_limit():
    topics = MAX_ELEMENTS.to_bytes(4, "big") + bytes(2 * MAX_ELEMENTS)
    assert len(m.decode_request(3, 1, topics, 0).topics) == MAX_ELEMENTS
    with pytest.raises(DecodeError, match="announced"):
        m.decode_request(3, 1, (MAX_ELEMENTS + 1).to_bytes(4, "big") + bytes(2 * MAX_ELEMENTS + 10), 0)


def test_slow_reads_are_bounded():
    """An unknown tagged field in each of 200,000 structures: skipping them all would take long."""
    creation = b"\2\2a\3\2b\2*\3\3\1\x63\0"
    few, many = 1000, MAX_SLOW_BYTES // len(creation) + 1
    request = unsigned_varint(few + 1) + creation * few + b"\0"
    assert len(m.decode_request(30, 3, request, 0).creations) == few
    with pytest.raises(DecodeError, match=f"expected {MAX_SLOW_BYTES} at most"):
        m.decode_request(30, 3, unsigned_varint(many + 1) + creation * many + b"\0", 0)


def test_a_records_field_of_a_fetch_may_be_large():
    partition = build(1, 18, "response", "PartitionData", records=bytes(MAX_SLOW_BYTES + 1))
    topic = build(1, 18, "response", "FetchableTopicResponse", partitions=(partition,))
    response = build(1, 18, "response", responses=(topic,))
    assert m.decode_response(1, 18, m.encode_response(response), 0) == response


def test_what_librdkafka_sends_behind_its_metadata_request_is_ignored():
    body = bytes.fromhex("00000000010000")
    assert m.decode_request(3, 13, body, 0).topics is None


def test_strings_that_are_not_utf8_are_read_as_java_reads_them():
    assert m.decode_request(17, 1, b"\0\2\xffA", 0).mechanism == "\N{REPLACEMENT CHARACTER}A"
    creation = b"\2\3\xffx\3\7User:a\2*\3\3\0"
    found = m.decode_request(30, 3, b"\2" + creation + b"\0", 0).creations[0]
    assert (found.resource_name, found.principal, found.host) == ("\N{REPLACEMENT CHARACTER}x", "User:a", "*")


@pytest.mark.parametrize("millis", [2**63 - 1, -(2**63)])
def test_durations_beyond_pythons_range_become_its_end(millis):
    body = b"\2x" + millis.to_bytes(8, "big", signed=True) + b"\0"
    assert abs(m.decode_request(39, 2, body, 0).renew_period) == timedelta(days=999_999_998)


@pytest.mark.parametrize(
    ("millis", "expected"),
    [
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (2**63 - 1, datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (300_000_000_000_000, datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
    ],
)
def test_times_beyond_pythons_range_become_its_end(millis, expected):
    body = b"\0\0" + millis.to_bytes(8, "big", signed=True) + bytes(4) + b"\0"
    assert m.decode_response(39, 2, body, 0).expiry_timestamp == expected


def test_an_error_code_from_the_future_is_an_unknown_server_error():
    body = (10801).to_bytes(2, "big") + bytes(8 + 4) + b"\0"
    assert m.decode_response(39, 2, body, 0).error_code == ErrorCode.unknown_server_error


@pytest.mark.parametrize("known", NewerErrorCode)
def test_the_errors_of_kafka_4_4_are_known_to_clients_and_nodes(known):
    body = known.to_bytes(2, "big") + bytes(8 + 4) + b"\0"
    response = m.decode_response(39, 2, body, 0)
    assert (response.error_code, response.error_code.name) == (known.value, known.name)
    assert build(39, 2, "response", error_code=known.value).error_code is known


def test_a_tagged_field_whose_size_is_false():
    message = build(1, 18, "request", cluster_id="abc")
    encoded = m.encode_request(message)
    assert encoded.count(b"\0\4\4abc") == 1
    with pytest.raises(DecodeError, match="tagged field 0 has 3 bytes: 4 read"):
        m.decode_request(1, 18, encoded.replace(b"\0\4\4abc", b"\0\3\4abc"), 0)


@pytest.mark.parametrize(("api_key", "version"), [(30, 4), (30, -1), (999, 0), (58, 1)])
def test_unknown_versions(api_key, version):
    with pytest.raises(DecodeError, match=f"API key {api_key}"):
        m.decode_request(api_key, version, b"\0" * 20, 0)
    with pytest.raises(DecodeError):
        m.message_type(api_key, version, "request", "Nested")


def test_structures_are_found_by_name():
    assert m.message_type(30, 3, "request", "AclCreation").__name__ == "AclCreation"
    with pytest.raises(DecodeError, match="AclCreations"):
        m.message_type(30, 3, "request", "AclCreations")


@pytest.mark.parametrize(
    "values", [{"max_bytes": 2**31}, {"max_bytes": "x"}, {"rack_id": None}, {"topics": (3,)}, {"max_wait": 5}]
)
def test_values_that_do_not_fit_are_encode_errors(values):
    with pytest.raises(EncodeError, match="FetchRequest"):
        m.encode_request(build(1, 18, "request", **values))


def test_errors_hold_no_value_of_the_message():
    body = b"\2u\x01" + b"\x07secret" + b"\xff\xff\xff\xff\x0f"
    with pytest.raises(DecodeError) as caught:
        m.decode_request(51, 0, b"\1\2" + body, 0)
    assert "secret" not in str(caught.value)


def test_warm_up_skips_unknown_versions():
    m.warm_up([(30, 3), (58, 1), (999, 0)])
    assert m.decode_request(30, 3, b"\1\0", 0).creations == ()


def test_late_times_are_exact():
    late = datetime(2286, 11, 20, 17, 46, 39, 998000, tzinfo=UTC)
    message = build(40, 2, "response", expiry_timestamp=late)
    assert m.decode_response(40, 2, m.encode_response(message), 0) == message


def test_trailing_bytes_of_a_whole_response_are_an_error():
    body = bytes(2 + 8 + 4) + b"\0"
    assert m.decode_response(39, 2, b"xx" + body, 2, whole=True) == m.decode_response(39, 2, body + b"\0", 0)
    with pytest.raises(DecodeError, match="byte 15: 1 bytes after the end of the message"):
        m.decode_response(39, 2, body + b"\0", 0, whole=True)
