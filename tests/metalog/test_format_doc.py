"""Decodes every example in docs/format.md and compares it with what the page says."""

import json
import re
from pathlib import Path

import pytest

from aclog.metalog import primitives as p
from aclog.metalog.batches import decode_batch, encode_batch, iter_batches
from aclog.metalog.codec import SCHEMAS, decode_record, encode_record
from aclog.metalog.control_records import ControlType, decode_control, decode_control_batch, encode_control
from aclog.metalog.text_forms import control_json, record_json
from aclog.metalog.topic_message import Placement, encode_headers
from aclog.snapshots.image_file import decode_header, encode_header
from tests.support.kafka.dump_log import DATA

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
BLOCKS = re.findall(r"```(\w\S*)\n(.*?)```\n(?:```json\n(.*?)```\n)?", PAGE, re.DOTALL)
LOG = DATA / "kafka-4.3.1-small" / "__cluster_metadata-0"


def blocks(kind):
    return [pytest.param(text, json_, id=f"{kind}-{n}") for n, (k, text, json_) in enumerate(BLOCKS) if k == kind]


def raw(text: str) -> bytes:
    return bytes.fromhex(" ".join(line.split("#")[0] for line in text.splitlines()))


@pytest.mark.parametrize(("text", "expected"), blocks("record"))
def test_records(text, expected):
    record = decode_record(raw(text))
    assert record_json(record) == json.loads(expected)
    assert encode_record(record) == raw(text)


@pytest.mark.parametrize(("text", "expected"), blocks("control"))
def test_control_records(text, expected):
    record = decode_control(raw(text)[:4], raw(text)[4:])
    assert control_json(record) == json.loads(expected)
    assert b"".join(encode_control(record)) == raw(text)


def test_every_type_has_an_example():
    records = [decode_record(raw(text)) for kind, text, _ in BLOCKS if kind == "record"]
    assert {record.api_key for record in records} >= set(SCHEMAS)
    controls = [decode_control(raw(text)[:4], raw(text)[4:]) for kind, text, _ in BLOCKS if kind == "control"]
    assert {control.control_type for control in controls} == set(ControlType)


@pytest.mark.parametrize(("text", "expected"), blocks("batch"))
def test_batches(text, expected):
    batch = decode_batch(raw(text))
    header = batch.header
    assert json.loads(expected) == {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "partitionLeaderEpoch": header.leader_epoch,
        "isControl": header.is_control,
        "maxTimestamp": header.max_timestamp,
        "size": header.size,
        "crc": header.crc,
    }
    assert encode_batch(batch) == raw(text)


@pytest.mark.parametrize(("text", "expected"), blocks("checkpoint"))
def test_the_checkpoint(text, expected):
    data = raw(text)
    assert data == (LOG / "00000000000000000000-0000000000.checkpoint").read_bytes()
    found = [decode_control_batch(data, position, header) for position, header in iter_batches(data)]
    assert [type(record).__name__ for batch in found for record in batch] == json.loads(expected)


@pytest.mark.parametrize(("text", "expected"), blocks("image-header"))
def test_the_header_of_an_image_file(text, expected):
    header = decode_header(raw(text))
    made_from = header.checkpoint
    assert json.loads(expected) == {
        "end_offset": made_from.end_offset,
        "epoch": made_from.epoch,
        "size": made_from.size,
        "rest_size": header.rest_size,
        "base_size": header.base_size,
        "base_start": header.base_start,
        "file_size": header.file_size,
    }
    assert made_from.digest == bytes(range(32))
    assert encode_header(header) == raw(text)


@pytest.mark.parametrize(("text", "expected"), blocks("headers"))
def test_headers_of_a_message(text, expected):
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    place = Placement(**json.loads(expected))
    assert encode_headers(place) == [(name, bytes.fromhex(value)) for name, value in lines]


@pytest.mark.parametrize(("text", "_"), blocks("varints"))
def test_varints(text, _):
    rows = [re.split(r" {2,}", line) for line in text.splitlines()[1:]]
    assert len(rows) == 8
    for value, unsigned, zigzag in rows:
        assert p.unsigned_varint(int(value)) == bytes.fromhex(unsigned)
        assert p.varint(int(value)) == bytes.fromhex(zigzag)


@pytest.mark.parametrize(("kind", "name"), [("epochs", "leader-epoch-checkpoint"), ("quorum-state", "quorum-state")])
def test_files_are_those_of_the_fixture(kind, name):
    texts = [text for found, text, _ in BLOCKS if found == kind]
    assert [text.rstrip("\n") for text in texts] == [(LOG / name).read_text().rstrip("\n")]
