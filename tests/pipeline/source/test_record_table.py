"""Bytes to Arrow, without Spark: the same rows as by the scalar decoder."""

import struct
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.batches import build_batch, build_control_batch, scan_batches
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import LeaderChange, LeaderChangeVoter, encode_control
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from aclog.pipeline.source.rows import LOG_SCHEMA, RowSelection, arrow_batches, columns_of
from aclog.pipeline.spark_versions import arrow_schema
from aclog.usage.arrow import id_texts
from tests.support.spark import source

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
CODE = st.integers(-128, 127)
TAGS = st.sampled_from([(), ((3, b"new"),)])
TIME = st.integers(-(1 << 63), (1 << 63) - 1) | st.just(-1) | st.integers(0, 1 << 42)
RECORD = st.one_of(
    st.builds(
        AccessControlEntryRecord,
        id=st.uuids(),
        resource_type=CODE,
        resource_name=TEXT,
        pattern_type=CODE,
        principal=TEXT,
        host=TEXT,
        operation=CODE,
        permission_type=CODE,
        tagged_fields=TAGS,
    ),
    st.builds(RemoveAccessControlEntryRecord, id=st.uuids(), tagged_fields=TAGS),
    st.builds(
        UserScramCredentialRecord,
        name=TEXT,
        mechanism=CODE,
        salt=st.just(b"SALT"),
        stored_key=st.just(b"STORED"),
        server_key=st.just(b"SERVER"),
        iterations=st.integers(-(1 << 31), (1 << 31) - 1),
    ),
    st.builds(RemoveUserScramCredentialRecord, name=TEXT, mechanism=CODE),
    st.builds(
        DelegationTokenRecord,
        owner=TEXT,
        requester=TEXT,
        renewers=st.lists(TEXT, max_size=3).map(tuple),
        issue_timestamp=st.integers(0, 1 << 42),
        max_timestamp=st.integers(0, 1 << 42),
        expiration_timestamp=st.just(-1),
        token_id=TEXT,
    ),
    st.builds(RemoveDelegationTokenRecord, token_id=TEXT),
    st.builds(FeatureLevelRecord, name=TEXT, feature_level=st.integers(0, 100)),
    st.builds(NoOpRecord, tagged_fields=TAGS),
    st.builds(BeginTransactionRecord, name=st.none() | TEXT),
)
VALUE = RECORD.map(encode_record) | st.binary(max_size=40).map(lambda rest: b"\x01\x02\x00" + rest)
UNKNOWN = st.tuples(st.integers(30, 0x7FFF), st.integers(0, 300)).map(
    lambda frame: b"\x01" + _varint(frame[0]) + _varint(frame[1]) + b"new"
)


def _varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7) if number > 0x7F else bytes([number])


def rows(data: bytes, selection: RowSelection | None = None, schema=LOG_SCHEMA) -> list[dict]:
    batches, damage = scan_batches(data)
    assert damage is None
    return source.rows_of(arrow_batches(data, batches, selection or RowSelection(), schema))


def log_bytes(batches: list[list[bytes]]) -> bytes:
    """A control batch, then these data batches, each 1 ms later than the previous one."""
    voter = LeaderChangeVoter(voter_id=1)
    change = LeaderChange(leader_id=1, voters=(voter,), granting_voters=(voter,))
    odd = (struct.pack(">hh", 0, -7), b"\x00\x05what?")
    data = build_control_batch([encode_control(change), odd], base_offset=0, leader_epoch=1, timestamp=-1)
    offset = 2
    for number, values in enumerate(batches):
        data += build_batch(values, base_offset=offset, leader_epoch=1, timestamp=1_700_000_000_000 + number)
        offset += len(values)
    return data


@pytest.mark.parametrize(
    "path", source.CHECKPOINTS + tuple(p for d in source.LOGS for p in source.segments(d)), ids=str
)
def test_a_fixture_agrees_with_its_dump(path):
    assert rows(path.read_bytes()) == source.expected_rows([path])


@given(st.lists(st.lists(VALUE | UNKNOWN, min_size=1, max_size=4), max_size=6))
def test_any_records_agree_with_their_dump(tmp_path_factory, batches):
    path = tmp_path_factory.getbasetemp() / "00000000000000000000.log"
    path.write_bytes(log_bytes(batches))
    assert rows(path.read_bytes()) == source.expected_rows([path])


def test_no_secret_is_in_the_table():
    secret = encode_record(
        UserScramCredentialRecord(
            name="u", mechanism=1, salt=b"SALT", stored_key=b"STORED", server_key=b"SERVER", iterations=4096
        )
    )
    config = b"\x01\x04\x00\x02\x08orders\x14ssl.password\x08hidden\x00"
    password = b"\x01\x04\x00\x02\x07orders\x11sasl.jaas.config\x07hidden\x00"
    found = rows(log_bytes([[secret, config, password, config[:5]]]))
    assert [row["opaque"] for row in found] == [None] * 6
    for hidden in ("SALT", "STORED", "SERVER", "hidden"):
        assert hidden not in repr(found)


@given(TIME)
def test_times_that_spark_cannot_hold_are_null(millis):
    data = build_batch([b"\x01\x02\x00"], base_offset=0, leader_epoch=0, timestamp=millis)
    (batch,) = arrow_batches(data, scan_batches(data)[0], RowSelection(), columns_of(["timestamp"]))
    micros = batch.column(0).cast("int64").to_pylist()[0]
    fits = millis != -1 and abs(millis) <= ((1 << 63) - 1) // 1000
    assert micros == (millis * 1000 if fits else None)


@given(st.lists(st.uuids(), max_size=4))
def test_ids_are_kafkas_text(ids):
    columns = np.frombuffer(b"".join(each.bytes for each in ids), np.uint8).reshape(-1, 16)
    assert id_texts(columns).to_pylist() == [uuid_text(each) for each in ids]


@given(
    st.lists(st.lists(VALUE, min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(0, 20),
    st.integers(0, 20),
    st.none() | st.frozensets(st.integers(0, 20)),
    st.none() | st.frozensets(st.sampled_from(["LeaderChange", "UNKNOWN_-7", "NO_OP_RECORD", "TOPIC_RECORD"])),
    st.booleans(),
)
def test_selections(batches, first, last, among, types, timed):
    data = log_bytes(batches)
    selection = RowSelection().with_offsets(first=first, last=last, among=among)
    selection = selection if types is None else selection.with_types(types)
    after = 1_700_000_000_001_000
    selection = selection.with_times(first=after) if timed else selection

    def passes(row: dict) -> bool:
        return (
            first <= row["offset"] <= last
            and (among is None or row["offset"] in among)
            and (types is None or row["record_type"] in types)
            and (not timed or (row["timestamp"] is not None and row["timestamp"].timestamp() * 1e6 >= after))
        )

    assert rows(data, selection) == [row for row in rows(data) if passes(row)]
    narrow = columns_of(["record_type", "offset"])
    assert rows(data, selection, narrow) == [
        {name: row[name] for name in narrow.names} for row in rows(data) if passes(row)
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\x01\x12\x01" + bytes(16), "in version 1, written by a newer Kafka"),
        (b"\x02\x12\x00", "frame version 2"),
        (b"\x01\x12\x00" + bytes(30), "offset 3"),
        (b"\x01\x14\x00\x00\x00", "1 trailing bytes after the record"),
        (b"\x01\x0b\x00\x02u", "offset 3"),
        (b"\x01", "truncated varint"),
    ],
)
def test_a_damaged_record_is_an_error_with_its_position(value, said):
    data = log_bytes([[b"\x01\x02\x00", value]])
    with pytest.raises(DecodeError, match=said) as caught:
        rows(data)
    assert caught.value.offset == 3
    assert data.rfind(value) <= caught.value.position <= data.rfind(value) + len(value)


def test_arrow_batches_are_of_bounded_size():
    one = encode_record(RemoveAccessControlEntryRecord(id=UUID(int=7)))
    data = log_bytes([[one] * 70_000, [one] * 70_000])
    sizes = [len(batch) for batch in arrow_batches(data, scan_batches(data)[0], RowSelection(), LOG_SCHEMA)]
    assert sizes == [65536, 65536, 140_002 - 2 * 65536]


def test_the_schema_is_what_spark_makes_of_it():
    assert arrow_schema(from_arrow_schema(LOG_SCHEMA)).equals(LOG_SCHEMA)
    assert LOG_SCHEMA.names[:5] == ["offset", "batch_offset", "batch_end_offset", "leader_epoch", "timestamp"]


def test_every_batch_has_the_schema():
    path = source.segments(source.LOGS[-1])[0]
    data = path.read_bytes()
    for batch in arrow_batches(data, scan_batches(data)[0], RowSelection(), LOG_SCHEMA):
        batch.validate(full=True)
        assert batch.schema.equals(LOG_SCHEMA)
