import json
from uuid import UUID

import pytest

from aclog.metalog import records as r
from aclog.metalog.batches import iter_batches
from aclog.metalog.codec import SCHEMAS, decode_values
from aclog.metalog.control_records import OpaqueControlRecord, decode_control_batch
from aclog.metalog.text_forms import control_json, record_json
from tests.metalog.test_codec import EXAMPLES
from tests.support.kafka.dump_log import METADATA_FILES, dumped, was_dumped


@pytest.mark.parametrize(
    "path", [path for path in METADATA_FILES if was_dumped(path)], ids=lambda path: f"{path.parts[-3]}/{path.name}"
)
def test_every_record_is_what_kafkas_own_tool_prints(path):
    data = path.read_bytes()
    for (position, header), expected in zip(iter_batches(data), dumped(path), strict=True):
        if header.is_control:
            for record, line in zip(decode_control_batch(data, position, header), expected.records, strict=True):
                found = control_json(record)
                assert (found["type"], json.dumps(found["data"])) == (line.kind, json.dumps(line.json))
            continue
        for record, line in zip(decode_values(data, position, header), expected.records, strict=True):
            found = record_json(record, show_secrets=True)
            assert line.kind == "payload"
            if record.api_key in SCHEMAS:
                assert json.dumps(found) == json.dumps(line.json)
            else:
                assert (found["type"], found["version"]) == (line.json["type"], line.json["version"])
                assert list(found["data"]) == ["base64"]


def test_secrets_are_hidden_unless_asked_for():
    scram = EXAMPLES[2]
    assert record_json(scram)["data"] == {
        "name": "a",
        "mechanism": 1,
        "salt": "***",
        "storedKey": "***",
        "serverKey": "***",
        "iterations": 4096,
    }
    assert record_json(scram, show_secrets=True)["data"]["salt"] == "c2FsdA=="


def config(name: bytes) -> r.OpaqueRecord:
    body = b"\x04\x01" + bytes((len(name) + 1,)) + name + b"\x04abc\x00"
    return r.OpaqueRecord(api_key=4, version=0, value=b"\x01\x04\x00" + body)


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        (b"cleanup.policy", False),
        (b"ssl.keystore.type", False),
        (b"listener.name.x.ssl.keystore.password", True),
        (b"ssl.keystore.key", True),
        (b"listener.name.x.plain.sasl.jaas.config", True),
        (b"\xff", True),
    ],
)
def test_a_config_that_may_be_a_password_is_hidden(name, hidden):
    assert (record_json(config(name))["data"]["base64"] == "***") is hidden
    assert record_json(config(name), show_secrets=True)["data"]["base64"].startswith("AQQABAE")


def test_an_unknown_type_is_named_by_its_number():
    record = r.OpaqueRecord(api_key=30, version=2, value=b"\x01\x1e\x02")
    assert record_json(record) == {"type": "UNKNOWN_30", "version": 2, "data": {"base64": "AR4C"}}
    control = OpaqueControlRecord(control_type=9, key=b"\x00\x01\x00\x09", value=b"abc")
    assert control_json(control) == {"type": "UNKNOWN_9", "version": 1, "data": {"base64": "YWJj"}}


def test_null_fields_are_left_out_and_unknown_tagged_fields_too():
    assert record_json(r.BeginTransactionRecord(tagged_fields=((3, b"x"),)))["data"] == {}
    token = record_json(EXAMPLES[4])["data"]
    assert token["renewers"] == ["User:c", "User:d"]
    removed = record_json(r.RemoveAccessControlEntryRecord(id=UUID(int=1)))
    assert removed["data"] == {"id": "AAAAAAAAAAAAAAAAAAAAAQ"}
