from uuid import UUID

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog import records as r
from aclog.metalog.batches import decode_batch, iter_batches
from aclog.metalog.codec import (
    ACL_CONTENT,
    SCHEMAS,
    decode_record,
    decode_values,
    encode_acl,
    encode_record,
    is_known_to_kafka,
    read_frame,
)
from aclog.metalog.errors import DecodeError, EncodeError
from tests.support.builders.records import ACL_ADDS, RECORDS, check_error, mutations
from tests.support.kafka.dump_log import METADATA_FILES
from tests.support.runs.profiles import examples

ACL = bytes.fromhex(
    "011200 3193dd48fc8a4152b48c91973962e9e0 02 05 656e7674 03 0d 557365723a656e7674657374 02 2a 03 03 00"
)
EXAMPLES = (
    r.AccessControlEntryRecord(
        id=UUID(int=7),
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    ),
    r.RemoveAccessControlEntryRecord(id=UUID(int=7), tagged_fields=((5, b"ab"),)),
    r.UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"salt", stored_key=b"stored", server_key=b"server", iterations=4096
    ),
    r.RemoveUserScramCredentialRecord(name="a", mechanism=2),
    r.DelegationTokenRecord(
        owner="User:a",
        requester="User:b",
        renewers=("User:c", "User:d"),
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=3,
        token_id="t",
    ),
    r.RemoveDelegationTokenRecord(token_id="t"),
    r.FeatureLevelRecord(name="metadata.version", feature_level=30),
    r.NoOpRecord(tagged_fields=((0, b""), (200, b"x"))),
    r.BeginTransactionRecord(name="n", tagged_fields=((1, b"x"),)),
    r.EndTransactionRecord(),
    r.AbortTransactionRecord(reason="why"),
    r.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=UUID(int=7),
        broker_epoch=16,
        end_points=(r.BrokerEndpoint(name="PLAINTEXT", host="localhost", port=65535, security_protocol=0),),
        features=(r.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),),
        log_dirs=(UUID(int=8),),
        cordoned_log_dirs=(),
        tagged_fields=((2, b"x"),),
    ),
    r.UnregisterBrokerRecord(broker_id=1, broker_epoch=16),
    r.FenceBrokerRecord(id=1, epoch=16),
    r.UnfenceBrokerRecord(id=1, epoch=16),
    r.BrokerRegistrationChangeRecord(version=3, broker_id=1, broker_epoch=16, fenced=-1, cordoned_log_dirs=()),
    r.UnregisterControllerRecord(controller_id=2),
)
"""One of each type."""


@pytest.mark.parametrize("path", METADATA_FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_every_record_of_a_real_kafka_encodes_to_the_same_bytes(path):
    data = path.read_bytes()
    for position, header in iter_batches(data):
        if not header.is_control:
            values = [record.value for record in decode_batch(data, position).records]
            records = list(decode_values(data, position, header))
            assert [encode_record(record) for record in records] == values
            assert [record.api_key for record in records] == [read_frame(value)[0] for value in values]


@given(RECORDS)
def test_round_trip_of_every_type(record):
    value = encode_record(record)
    assert decode_record(value) == record
    assert encode_record(decode_record(value)) == value


def test_there_is_an_example_and_a_schema_of_every_type_that_is_interpreted():
    assert {type(example).api_key for example in EXAMPLES} == set(SCHEMAS)
    assert all(type(decode_record(encode_record(example))) is type(example) for example in EXAMPLES)


def test_an_acl_of_known_bytes():
    record = decode_record(ACL)
    assert record == r.AccessControlEntryRecord(
        id=UUID("3193dd48-fc8a-4152-b48c-91973962e9e0"),
        resource_type=2,
        resource_name="envt",
        pattern_type=3,
        principal="User:envtest",
        host="*",
        operation=3,
        permission_type=3,
    )
    assert encode_record(record) == ACL


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_every_record_truncated_anywhere_is_refused(example):
    value = encode_record(example)
    for size in range(len(value)):
        with pytest.raises(DecodeError) as caught:
            decode_record(value[:size])
        assert 0 <= caught.value.position <= size


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_trailing_bytes_are_refused(example):
    value = encode_record(example)
    with pytest.raises(DecodeError, match="1 trailing bytes after the record") as caught:
        decode_record(value + b"\x00")
    assert caught.value.position == len(value)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_an_interpreted_record_in_a_newer_version_is_refused(example):
    value = encode_record(example)
    newer = len(SCHEMAS[example.api_key])
    with pytest.raises(DecodeError, match=f"{example.api_key.name} in version {newer}, written by a newer Kafka"):
        decode_record(value[:2] + bytes((newer,)) + value[3:])


@pytest.mark.parametrize(
    ("value", "what", "position"),
    [
        ("", "truncated varint", 0),
        ("00 14 00 00", "frame version 0: expected 1", 0),
        ("02 14 00 00", "frame version 2: expected 1", 0),
        ("01 ff ff 03 00", "apiKey 65535", 1),
        ("01 1d ff ff 03", "record version 65535", 2),
        ("01", "truncated varint", 1),
        ("01 14", "truncated varint", 2),
        ("01 94 00 00 00", "shortest form", 1),
        ("01 14 80 00 00", "shortest form", 2),
        ("01 14 00 ff ff ff ff 0f", "truncated varint", 8),
        ("01 14 00 02 05 00 04 00", "tag 4 after tag 5", 6),
        ("01 14 00 02 05 00 05 00", "tag 5 after tag 5", 6),
        ("01 14 00 01 05 02 00", "tag 5 has 2 bytes, but only 1 remain", 4),
        ("01 17 00 01 00 01 00", "tag 0: null", 3),
        ("01 17 00 01 00 04 02 61 00 00", "tag 0: 2 trailing bytes", 3),
        ("01 17 00 01 00 02 02 ff", "tag 0: .*UTF-8", 3),
        ("01 0c 00 00 00 01 00", "null", 3),
        ("01 0c 00 02 ff 00 01 00", "UTF-8", 4),
        ("01 0c 00 02 61 00", "truncated integer of 2 bytes", 5),
        ("01 13 00 00 01", "truncated uuid", 3),
        ("01 0a 00 02 61 02 61 00", "null array", 7),
        ("01 0a 00 02 61 02 61 ff ff ff ff 0f 02", "array of 4294967294 elements, but only 1 bytes remain", 7),
        ("01 0b 00 02 61 01 ff ff ff ff 0f 02", "field of 4294967294 bytes, but only 1 remain", 6),
    ],
)
def test_bad_values_are_refused_with_the_position(value, what, position):
    with pytest.raises(DecodeError, match=what) as caught:
        decode_record(bytes.fromhex(value))
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("api_key", "known"), [(2, True), (6, False), (13, False), (28, True), (30, False), (200, False)]
)
def test_an_uninterpreted_type_is_kept_verbatim(api_key, known):
    value = b"\x01" + (bytes((api_key,)) if api_key < 128 else b"\xc8\x01") + b"\x03whatever"
    record = decode_record(value)
    assert record == r.OpaqueRecord(api_key=api_key, version=3, value=value)
    assert encode_record(record) is value
    assert is_known_to_kafka(api_key) is known


@pytest.mark.parametrize(
    "bad",
    [
        r.FeatureLevelRecord(name="x" * 32768, feature_level=1),
        r.FeatureLevelRecord(name="\udc00", feature_level=1),
        r.FeatureLevelRecord(name="x", feature_level=32768),
        r.RemoveUserScramCredentialRecord(name="x", mechanism=128),
        r.NoOpRecord(tagged_fields=((3, b""), (3, b""))),
        r.NoOpRecord(tagged_fields=((-1, b""),)),
        r.BeginTransactionRecord(name="x", tagged_fields=((0, b"\x02y"),)),
    ],
)
def test_values_that_the_format_cannot_represent_are_refused(bad):
    with pytest.raises(EncodeError):
        encode_record(bad)


def test_no_secret_in_any_message():
    record = EXAMPLES[2]
    value = encode_record(record)
    assert "salt" not in repr(decode_record(value)).replace("salt=", "")
    for damaged in mutations(value, 1, 500):
        try:
            text = repr(decode_record(damaged))
        except DecodeError as e:
            text = str(e)
        assert "stored" not in text.replace("stored_key", "")


@given(ACL_ADDS, st.integers(0, 1 << 40))
def test_the_fast_path_for_acls_agrees_with_the_schema(record, seed):
    for damaged in mutations(encode_record(record), seed, 20):
        if damaged[:3] == ACL[:3]:
            try:
                expected, end = SCHEMAS[r.RecordType.ACCESS_CONTROL_ENTRY_RECORD][0].read(damaged, 3)
            except DecodeError:
                expected, end = None, 0
            if expected is None or end != len(damaged):
                with pytest.raises(DecodeError):
                    decode_record(damaged)
            else:
                assert decode_record(damaged) == expected


@given(ACL_ADDS)
def test_an_acl_is_encoded_as_by_the_schema(record):
    schema = SCHEMAS[r.RecordType.ACCESS_CONTROL_ENTRY_RECORD][0]
    value = encode_record(record)
    assert value == ACL[:3] + schema.write(record)
    plain = evolve(record, tagged_fields=())
    assert encode_acl(plain, plain.id) == encode_record(plain) == ACL[:3] + schema.write(plain)
    assert encode_acl(plain, UUID(int=5))[ACL_CONTENT:] == encode_record(plain)[ACL_CONTENT:]


@settings(max_examples=examples(20))
@given(st.integers(0, 1 << 40))
def test_hostile_bytes_raise_only_our_errors(seed):
    for example in EXAMPLES:
        for damaged in mutations(encode_record(example), seed, 60):
            try:
                record = decode_record(damaged)
            except DecodeError as e:
                check_error(e)
            else:
                assert encode_record(record) == damaged
