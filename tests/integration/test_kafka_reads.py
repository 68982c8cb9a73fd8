"""What we write, Kafka's own DumpLogSegments and metadata shell read, record by record."""

import json
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest

from aclog.metalog.batches import iter_batches
from aclog.metalog.codec import SCHEMAS, decode_values, encode_record
from aclog.metalog.control_records import decode_control_batch
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    RecordType,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from aclog.metalog.text_forms import control_json, record_json
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl, acl_record
from tests.support.kafka.dump_log import DumpedBatch, parse
from tests.support.kafka.jvm import KAFKA_44, KAFKA_VERSION
from tests.support.kafka.metadata_shell import shell_answers
from tests.support.kafka.warm_jvms import ToolPipe

DATA = Path(__file__).parents[1] / "data"


def dump(*paths: Path, version: str = KAFKA_VERSION) -> list[list[DumpedBatch]]:
    """What Kafka's tool prints of each file."""
    tool, files = "org.apache.kafka.tools.DumpLogSegments", ",".join(map(str, paths))
    done = ToolPipe(version).run(tool, ["--cluster-metadata-decoder", "--files", files])
    assert done.code == 0, done.err
    found = parse(done.out)
    return [found[str(path)] for path in paths]


def assert_is_what_we_wrote(path: Path, dumped: list[DumpedBatch]) -> Counter:
    """Each batch and record as we read it ourselves; how many records of each type there were."""
    data, seen = path.read_bytes(), Counter()
    for (position, header), printed in zip(iter_batches(data), dumped, strict=True):
        assert printed.fields["base_offset"] == header.base_offset
        assert printed.fields["leader_epoch"] == header.leader_epoch
        assert printed.fields["max_timestamp"] == header.max_timestamp
        if header.is_control:
            records = map(control_json, decode_control_batch(data, position, header))
            rows = [{"type": line.kind, "data": line.json} for line in printed.records]
            records = [{"type": record["type"], "data": record["data"]} for record in records]
        else:
            records = [record_json(record, show_secrets=True) for record in decode_values(data, position, header)]
            rows = [line.json for line in printed.records]
        for record, row in zip(records, rows, strict=True):
            seen[record["type"]] += 1
            if "base64" in record["data"]:
                assert (record["type"], record["version"]) == (row["type"], row["version"])
            else:
                assert json.dumps(record) == json.dumps(row)
    return seen


def numbered(number: int, name: str) -> AccessControlEntryRecord:
    added = acl(
        name,
        f"User:{name}",
        operation=2 + number % 14,
        resource_type=2 + number % 6,
        pattern_type=3 + number % 2,
        permission_type=2 + number % 2,
    )
    return acl_record((number << 64) + 99, added)


TEXTS = ["a", "é", "結", "😀", 'a"b\\c', "x" * 300, "*", "tab\there"]
RULES = [numbered(number, TEXTS[number % len(TEXTS)] + str(number)) for number in range(40)]
TOKEN = DelegationTokenRecord(
    owner="User:a",
    requester="User:b",
    renewers=("User:c", "Group:d"),
    issue_timestamp=1,
    max_timestamp=1 << 42,
    expiration_timestamp=1 << 41,
    token_id="AAAAAAAAAAAAAAAAAAAAaQ",
)
SCRAM = UserScramCredentialRecord(
    name="bøb", mechanism=1, salt=b"salt", stored_key=bytes(range(32)), server_key=bytes(32), iterations=4096
)
ID = UUID(int=1 << 70)


def registered(broker_id: int, version: int) -> RegisterBrokerRecord:
    """A registration with all that the version has."""
    return RegisterBrokerRecord(
        version=version,
        broker_id=broker_id,
        is_migrating_zk_broker=version == 2,
        incarnation_id=ID,
        broker_epoch=5,
        end_points=(BrokerEndpoint(name="LÖCAL", host="localhost", port=65535, security_protocol=3),),
        features=(BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),),
        rack="rack" if version % 2 else None,
        in_controlled_shutdown=version == 1,
        log_dirs=(ID,) if version >= 3 else (),
        cordoned_log_dirs=() if version == 4 else None,
    )


BATCHES: list[list[MetadataRecord]] = [
    [FeatureLevelRecord(name="metadata.version", feature_level=30), FeatureLevelRecord(name="x", feature_level=0)],
    RULES[:30],
    [RemoveAccessControlEntryRecord(id=RULES[3].id), *RULES[30:]],
    [SCRAM, TOKEN],
    [NoOpRecord()],
    [BeginTransactionRecord(name="päir"), numbered(50, "in"), EndTransactionRecord()],
    [BeginTransactionRecord(), numbered(51, "never"), AbortTransactionRecord(reason="says so")],
    [RemoveUserScramCredentialRecord(name="gone", mechanism=2), RemoveDelegationTokenRecord(token_id="gone")],
    [registered(2, version) for version in range(5)],
    [
        FenceBrokerRecord(id=2, epoch=5),
        UnfenceBrokerRecord(id=2, epoch=5),
        BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=5, fenced=1),
        BrokerRegistrationChangeRecord(version=1, broker_id=2, broker_epoch=5, fenced=-1, in_controlled_shutdown=1),
        BrokerRegistrationChangeRecord(version=2, broker_id=2, broker_epoch=5, log_dirs=(ID,)),
        BrokerRegistrationChangeRecord(version=3, broker_id=2, broker_epoch=5, cordoned_log_dirs=(ID,)),
    ],
    [registered(3, 4), UnregisterBrokerRecord(broker_id=3, broker_epoch=5)],
]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A log of ours in several segments, with every type of record that we write, and a checkpoint of its end."""
    directory = tmp_path / "log"
    log = open_log(directory, create=True, timestamp=1_700_000_000_000, segment_bytes=4000)
    for number, batch in enumerate(BATCHES):
        log.append([encode_record(record) for record in batch], timestamp=1_700_000_000_001 + number).result()
    log.close()
    write_checkpoint(recover(directory).image, directory)
    return directory


@pytest.mark.tier("test")
def test_dump_log_reads_our_segments_and_checkpoints(written: Path) -> None:
    paths = [segment.path for segment in list_segments(written)] + [file.path for file in list_checkpoints(written)]
    assert len(paths) >= 3
    seen = sum(
        (assert_is_what_we_wrote(path, dumped) for path, dumped in zip(paths, dump(*paths), strict=True)), Counter()
    )
    of_4_3 = {kind.name for kind in SCHEMAS if kind is not RecordType.UNREGISTER_CONTROLLER_RECORD}
    assert set(seen) == of_4_3 | {"LeaderChange", "SnapshotHeader", "SnapshotFooter"}


def test_dump_log_of_kafka_4_4_reads_its_new_record(tmp_path: Path) -> None:
    with open_log(tmp_path / "log", create=True, timestamp=1_700_000_000_000) as log:
        log.append([encode_record(UnregisterControllerRecord(controller_id=2))], timestamp=1_700_000_000_001).result()
    (segment,) = list_segments(tmp_path / "log")
    seen = assert_is_what_we_wrote(segment.path, *dump(segment.path, version=KAFKA_44))
    assert seen["UNREGISTER_CONTROLLER_RECORD"] == 1


def test_dump_log_reads_the_checkpoints_we_make_of_kafkas_logs(tmp_path: Path) -> None:
    paths = []
    for fixture in ("kafka-4.3.1-small", "kafka-4.3.1-churn", "kafka-4.1.1", "kafka-3.9.1"):
        image = recover(DATA / fixture / "__cluster_metadata-0").image
        (tmp_path / fixture).mkdir()
        paths.append(write_checkpoint(image, tmp_path / fixture))
    for path, dumped in zip(paths, dump(*paths), strict=True):
        seen = assert_is_what_we_wrote(path, dumped)
        assert seen["SnapshotHeader"] == seen["SnapshotFooter"] == 1
        assert seen["KRaftVersion"] == seen["KRaftVoters"] == (path.parent.name != "kafka-3.9.1")


def test_the_metadata_shell_shows_our_checkpoints(written: Path, tmp_path: Path) -> None:
    small = recover(DATA / "kafka-4.3.1-small" / "__cluster_metadata-0").image
    assert_shell_shows(recover(written).image, list_checkpoints(written)[-1].path)
    assert_shell_shows(small, write_checkpoint(small, tmp_path))


def assert_shell_shows(image: Image, checkpoint: Path) -> None:
    """The rules by id and by what they say, and the SCRAM users."""
    commands = ["ls /image/acls/byId", "cat /image/acls/byId/*", "find /image/scram"]
    ids, texts, scram = shell_answers(checkpoint, commands, until=f"epoch {image.epoch}")
    assert sorted(ids) == sorted(uuid_text(entry.id) for entry in image.acls)
    assert sorted(texts) == sorted(str(entry.acl) for entry in image.acls)
    names = {info.name for info in image.scram.records()}
    assert names
    assert all(any(name in line for line in scram) for name in names)
