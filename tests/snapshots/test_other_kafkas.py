"""Logs that a real Kafka 4.1.1 and 3.9.1 wrote (tests/jvm/make_fixtures.py), replayed: what their own tools say.

What differs from 4.3.1: metadata.version 27 and 21 instead of 30; 3.9.1 has a static quorum, so kraft.version 0, no
KRaftVersion and KRaftVoters records and no 0-0 checkpoint, the ZkMigrationState record, which 4.x never writes, and
delegation.token.master.key for the secret.
"""

import json
from pathlib import Path

import pytest

from aclog.metalog.batches import decode_batch, encode_batch, iter_batches
from aclog.metalog.codec import SCHEMAS, decode_values, encode_record
from aclog.metalog.control_records import decode_control_batch
from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.metalog.filelog.verify import verify
from aclog.metalog.text_forms import control_json, record_json
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import read_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import recover
from tests.support.kafka.described import acl_rows, json_lines, scram_rows, token_rows
from tests.support.kafka.dump_log import dumped

DATA = Path(__file__).parents[1] / "data"
KAFKAS = {"kafka-4.1.1": (27, 1), "kafka-3.9.1": (21, 0)}
"""Their metadata.version and kraft.version."""
FILES = sorted(
    path
    for kafka in KAFKAS
    for pattern in ("*.log", "*.checkpoint")
    for path in (DATA / kafka / "__cluster_metadata-0").glob(pattern)
)


def assert_is_what_kafka_says(image: Image, kafka: str) -> None:
    expected = DATA / kafka / "expected"
    assert acl_rows(image) == json_lines(expected / "acls.jsonl")
    assert scram_rows(image) == json_lines(expected / "scram.jsonl")
    assert token_rows(image, "fixture-secret") == json_lines(expected / "tokens.jsonl")
    levels = {record.name: record.feature_level for record in image.features.records()}
    assert (levels["metadata.version"], image.provenance.kraft_version) == KAFKAS[kafka]


@pytest.mark.parametrize("kafka", KAFKAS)
class TestReplay:
    def test_from_the_newest_checkpoint(self, kafka: str) -> None:
        directory = DATA / kafka / "__cluster_metadata-0"
        found = recover(directory)
        assert str(list_checkpoints(directory)[-1].path) in found.source
        assert_is_what_kafka_says(found.image, kafka)

    def test_from_the_start_of_the_log(self, kafka: str) -> None:
        data = b"".join(segment.path.read_bytes() for segment in list_segments(DATA / kafka / "__cluster_metadata-0"))
        assert_is_what_kafka_says(Applier().apply(data), kafka)

    def test_a_checkpoint_is_the_state_of_the_log_there(self, kafka: str) -> None:
        directory = DATA / kafka / "__cluster_metadata-0"
        data = b"".join(segment.path.read_bytes() for segment in list_segments(directory))
        ends = {header.last_offset + 1: position + header.size for position, header in iter_batches(data)}
        compared = 0
        for file in list_checkpoints(directory):
            if file.end_offset:
                read, replayed = read_checkpoint(file.path), Applier().apply(data[: ends[file.end_offset]])
                assert read.acls.digest() == replayed.acls.digest()
                assert (acl_rows(read), scram_rows(read)) == (acl_rows(replayed), scram_rows(replayed))
                assert token_rows(read, "") == token_rows(replayed, "")
                compared += 1
        assert compared == 3

    def test_nothing_is_wrong_with_it(self, kafka: str) -> None:
        assert list(verify(DATA / kafka / "__cluster_metadata-0")) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_every_record_is_what_its_own_dump_prints_and_encodes_to_the_same_bytes(path: Path) -> None:
    data = path.read_bytes()
    for (position, header), expected in zip(iter_batches(data), dumped(path), strict=True):
        batch = data[position : position + header.size]
        assert encode_batch(decode_batch(batch)) == batch
        if header.is_control:
            for record, line in zip(decode_control_batch(data, position, header), expected.records, strict=True):
                found = control_json(record)
                assert found["type"] == line.kind
                assert found["data"] == line.json or line.json == {}, "3.9.1 prints no fields of a LeaderChange"
            continue
        values = [record.value for record in decode_batch(batch).records]
        records = list(decode_values(data, position, header))
        assert [encode_record(record) for record in records] == values
        for record, line in zip(records, expected.records, strict=True):
            found = record_json(record, show_secrets=True)
            if record.api_key in SCHEMAS:
                assert json.dumps(found) == json.dumps(line.json)
            else:
                assert (found["type"], found["version"]) == (line.json["type"], line.json["version"])
