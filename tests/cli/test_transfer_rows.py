"""Every record survives a round trip through Avro and JSON lines."""

import io
import json
import struct
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.codec import decode_record, encode_record
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object
from aclog.metalog.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    NoOpRecord,
    OpaqueRecord,
    UserScramCredentialRecord,
)
from aclog.ops.export_rows import (
    HISTORY,
    IMAGE,
    RowReader,
    acl_record,
    acl_row,
    load_schema,
    read_rows,
    record_of,
    row_line,
    row_of,
    write_rows,
)
from tests.support.builders.records import registrations

SCHEMAS = Path(__file__).parents[1] / "data/avro"

codes = st.integers(-128, 127)
tags = st.lists(st.tuples(st.integers(0, 2**31), st.binary(max_size=9)), max_size=2).map(tuple)
longs = st.integers(-(2**63), 2**63 - 1)
acls = st.builds(
    AccessControlEntryRecord,
    id=st.uuids(),
    resource_type=codes,
    resource_name=st.text(),
    pattern_type=codes,
    principal=st.text(),
    host=st.text(),
    operation=codes,
    permission_type=codes,
    tagged_fields=tags,
)
opaques = st.binary(max_size=30).map(lambda rest: OpaqueRecord(api_key=2, version=1, value=b"\x01\x02\x01" + rest))
records = st.one_of(
    acls,
    opaques,
    registrations(4),
    st.builds(
        UserScramCredentialRecord,
        name=st.text(),
        mechanism=codes,
        salt=st.binary(),
        stored_key=st.binary(),
        server_key=st.binary(),
        iterations=st.integers(-(2**31), 2**31 - 1),
        tagged_fields=tags,
    ),
    st.builds(
        DelegationTokenRecord,
        owner=st.text(),
        requester=st.text(),
        renewers=st.lists(st.text(), max_size=3).map(tuple),
        issue_timestamp=longs,
        max_timestamp=longs,
        expiration_timestamp=longs,
        token_id=st.text(),
        tagged_fields=tags,
    ),
    st.builds(FeatureLevelRecord, name=st.text(), feature_level=st.integers(-(2**15), 2**15 - 1), tagged_fields=tags),
)


def back(row):
    [(kind, value)] = [(kind, value) for kind, value in row.items() if value is not None]
    return record_of(kind, value)


@given(st.lists(records, max_size=5))
def test_records_survive_avro(originals):
    file = io.BytesIO()
    write_rows(file, IMAGE, (row_of(record, show_secrets=True) for record in originals))
    file.seek(0)
    name, rows = read_rows(file, "test")
    assert (name, [back(row) for row in rows]) == (IMAGE, originals)


@given(records)
def test_records_survive_json(record):
    line = row_line(row_of(record, show_secrets=True))
    assert "\n" not in line
    assert back(RowReader(IMAGE).row(parse_object(line.encode()))) == record


@given(acls, longs)
def test_changes_survive_avro_and_json(record, number):
    row = {
        "offset": number,
        "endOffset": 1,
        "timestamp": 0,
        "change": "ADDED",
        "firstSeen": True,
        "acl": acl_row(record),
    }
    file = io.BytesIO()
    write_rows(file, HISTORY, [row])
    file.seek(0)
    _, [from_avro] = read_rows(file, "test")
    assert from_avro == RowReader(HISTORY).row(parse_object(row_line(row).encode())) == row
    assert acl_record(from_avro["acl"]) == record


def test_secrets_are_left_out_unless_requested():
    record = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"s4lt", stored_key=b"st0red", server_key=b"s3rver", iterations=4096
    )
    row = row_of(record, show_secrets=False)
    assert json.loads(row_line(row)) == {"scram": {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096}}
    assert record_of("scram", row["scram"]) is None


def test_records_that_may_contain_a_password_are_left_out_unless_requested():
    config = b"".join((b"\x01\x04\x00\x04", b"\x021", b"\x16ssl.keystore.password", b"\x07secret", b"\x00"))
    record = decode_record(config)
    row = row_of(record, show_secrets=False)
    assert row == {"opaque": {"type": "CONFIG_RECORD", "value": None}}
    assert record_of("opaque", row["opaque"]) is None
    assert record_of("opaque", row_of(record, show_secrets=True)["opaque"]) == record


def test_a_former_exports_changes_of_registrations_are_read():
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1)
    row = {"type": "BROKER_REGISTRATION_CHANGE_RECORD", "value": encode_record(change)}
    assert record_of("opaque", row) == change


def test_transaction_markers_are_not_part_of_a_state():
    with pytest.raises(TypeError):
        row_of(NoOpRecord(), show_secrets=False)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("opaque", {"type": "TOPIC_RECORD", "value": b""}, "not an opaque record"),
        ("opaque", {"type": "X", "value": encode_record(NoOpRecord())}, "its value is a NO_OP_RECORD"),
        ("acl", {**acl_row(AccessControlEntryRecord(
            id=UUID(int=9), resource_type=2, resource_name="t", pattern_type=3, principal="p", host="h", operation=3,
            permission_type=3)), "operation": "FLY"}, "'FLY' is neither one of"),
    ],
)  # fmt: skip
def test_a_row_that_is_not_a_record_is_refused(kind, value, message):
    with pytest.raises(ConfigError, match=message):
        record_of(kind, value)


FEATURE = '{"feature":{"name":"metadata.version","level":30}}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"feature":{"name":"x"}}', "row.feature.level is missing"),
        ('{"feature":{"name":"x","level":true}}', "row.feature.level must be an integer of 32 bits"),
        ('{"feature":{"name":"x","level":2147483648}}', "row.feature.level must be an integer of 32 bits"),
        ('{"feature":{"name":1,"level":1}}', "row.feature.name must be a string"),
        ('{"feature":{"name":"\\ud800","level":1}}', "a lone surrogate"),
        ('{"feature":[]}', "row.feature must be an object"),
        ('{"feature":{"name":"x","level":1,"taggedFields":{}}}', "row.feature.taggedFields must be a list"),
        ('{"opaque":{"type":"x","value":"?"}}', "row.opaque.value is not base64"),
        ('{"wings":1}', "row has no field 'wings': expected provenance, acl"),
        ("7", "expected a JSON object"),
    ],
)
def test_a_json_row_is_checked_against_the_schema(line, message):
    with pytest.raises(ConfigError, match=message):
        RowReader(IMAGE).row(parse_object(line.encode()))


def test_missing_fields_take_the_defaults_of_the_schema():
    assert RowReader(IMAGE).row(parse_object(FEATURE.encode())) == {
        "provenance": None,
        "acl": None,
        "scram": None,
        "delegationToken": None,
        "feature": {"name": "metadata.version", "level": 30, "taggedFields": []},
        "opaque": None,
    }


def sample():
    file = io.BytesIO()
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    write_rows(file, IMAGE, [row_of(record, show_secrets=False)] * 3)
    return file.getvalue()


@given(st.integers(0, 5000), st.integers(0, 7))
def test_a_damaged_avro_file_raises_only_config_errors(at, bit):
    damaged = bytearray(sample())
    damaged[at % len(damaged)] ^= 1 << bit
    with suppress(ConfigError):
        list(read_rows(io.BytesIO(bytes(damaged)), "test")[1])


def test_a_truncated_avro_file_is_an_error():
    with pytest.raises(ConfigError, match="test: damaged or truncated after row 3"):
        list(read_rows(io.BytesIO(sample()[:-5]), "test")[1])


def test_an_avro_file_of_another_schema_is_refused():
    file = io.BytesIO()
    fastavro.writer(file, {"type": "record", "name": "Other", "fields": []}, [{}])
    file.seek(0)
    with pytest.raises(ConfigError, match=r"an Avro file of Other: expected aclog\.ImageRow or aclog\.AclChange"):
        read_rows(file, "test")


class TestEvolution:
    """Compatibility: each released schema reads current files, and the current one reads its files."""

    NAMES = (("image", IMAGE), ("history", HISTORY))

    @staticmethod
    def rows(name):
        acl = acl_row(
            AccessControlEntryRecord(
                id=UUID(int=77), resource_type=2, resource_name="t", pattern_type=3, principal="User:a", host="*",
                operation=3, permission_type=3,
            )
        )  # fmt: skip
        if name == HISTORY:
            return [{"offset": 1, "endOffset": 1, "timestamp": 5, "change": "REMOVED", "firstSeen": False, "acl": acl}]
        return [{"acl": acl}]

    @staticmethod
    def through(rows, writer, reader):
        file = io.BytesIO()
        fastavro.writer(file, fastavro.parse_schema(json.loads(json.dumps(writer))), rows)
        file.seek(0)
        return list(fastavro.reader(file, reader_schema=json.loads(json.dumps(reader))))

    @pytest.mark.parametrize(("file", "name"), NAMES)
    def test_the_current_version_is_recorded_unchanged(self, file, name):
        """A changed schema needs the next aclog.version and its own copy; older copies are kept."""
        today = load_schema(name)
        kept = json.loads((SCHEMAS / f"{file}-{today['aclog.version']}.avsc").read_text())
        assert kept == today

    @pytest.mark.parametrize(("file", "name"), NAMES)
    def test_released_versions_and_the_current_one_read_each_other(self, file, name):
        today, rows = load_schema(name), self.rows(name)
        released = [json.loads(path.read_text()) for path in sorted(SCHEMAS.glob(f"{file}-*.avsc"))]
        assert released
        for schema in released:
            assert len(self.through(rows, today, schema)) == 1
            [row] = self.through(self.through(rows, today, schema), schema, today)
            assert row["acl"] == rows[0]["acl"]

    @pytest.mark.parametrize(("file", "name"), NAMES)
    def test_a_field_with_a_default_may_be_added_and_removed(self, file, name):
        today, rows = load_schema(name), self.rows(name)
        tomorrow = json.loads(json.dumps(today))
        tomorrow["fields"].append({"name": "novelty", "type": ["null", "string"], "default": None})
        [row] = self.through([{**row, "novelty": "new"} for row in rows], tomorrow, today)
        assert "novelty" not in row
        [row] = self.through(rows, today, tomorrow)
        assert row["novelty"] is None

    @pytest.mark.parametrize(("file", "name"), NAMES)
    def test_a_field_without_a_default_would_break_older_files(self, file, name):
        tomorrow = load_schema(name)
        tomorrow["fields"].append({"name": "novelty", "type": "string"})
        with pytest.raises(Exception, match="novelty"):
            self.through(self.rows(name), load_schema(name), tomorrow)

    def test_both_schemas_have_the_same_acl(self):
        image = next(field for field in load_schema(IMAGE)["fields"] if field["name"] == "acl")["type"][1]
        history = next(field for field in load_schema(HISTORY)["fields"] if field["name"] == "acl")["type"]
        assert image == history


def test_hostile_lengths_are_refused_quickly():
    header = sample()[: sample().index(b"avro.schema")]
    with pytest.raises(ConfigError):
        read_rows(io.BytesIO(header + struct.pack(">q", 2**62)), "test")
