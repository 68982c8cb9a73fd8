"""Every decoder of the project on more than 10,000 damaged inputs each: only our errors, in bounded memory and time.

A part of the damage leaves a batch's CRC right, as an attacker would: else little of it came further than the CRC.
"""

import json
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import numpy as np
import psutil
import pytest

from aclog.cli.transfer.transfer import open_state
from aclog.metalog import records as r
from aclog.metalog.batches import build_batch, decode_batch, scan_batches, scan_values
from aclog.metalog.codec import decode_record, encode_record
from aclog.metalog.columns import read_acls
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.control_records import (
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    control_batch,
    decode_control,
    encode_control,
)
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.filelog.committed_mark import Mark, decode_slots, encode_slot
from aclog.metalog.filelog.files import decode_epochs, decode_quorum_state, encode_epochs
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import decode_checkpoint
from aclog.sources.acl_lines import parse_acl
from tests.support.builders.logs import fitted
from tests.support.builders.records import mutations
from tests.support.cli.command import aclog
from tests.support.kafka.dump_log import METADATA_FILES

pytestmark = pytest.mark.slow(2)

COUNT = 10_000
MOST_BYTES = 1 << 30
"""What a decoder may ask for beyond what the process has: far below the 2^31 that hostile lengths announce."""

MOST_SECONDS = 5.0
"""For one input. What is timed here is only that nothing hangs."""

RECORDS = (
    r.AccessControlEntryRecord(
        id=UUID(int=5),
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    ),
    r.FeatureLevelRecord(name="metadata.version", feature_level=30),
    r.UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"salt", stored_key=b"k" * 32, server_key=b"s" * 32, iterations=4096
    ),
    r.DelegationTokenRecord(
        owner="User:alice",
        requester="User:bob",
        renewers=("User:carol",),
        issue_timestamp=1,
        max_timestamp=3,
        expiration_timestamp=2,
        token_id="3aPpDAnMRlu4BAsYOn9-Bg",
    ),
    r.BeginTransactionRecord(name="a change"),
    r.RemoveUserScramCredentialRecord(name="alice", mechanism=1),
    r.RemoveDelegationTokenRecord(token_id="3aPpDAnMRlu4BAsYOn9-Bg"),
    r.EndTransactionRecord(),
    r.RemoveAccessControlEntryRecord(id=UUID(int=5)),
)
FRAME = bytes((r.FRAME_VERSION, r.RecordType.ACCESS_CONTROL_ENTRY_RECORD, 0))
VALUES = [encode_record(record) for record in RECORDS]
BATCH = build_batch(VALUES, base_offset=0, leader_epoch=1, timestamp=1)
CONTROL = (KRaftVersion(kraft_version=1), KRaftVoters(voters=()), SnapshotHeader(last_contained_log_timestamp=1))
CHECKPOINT = b"".join(
    (
        control_batch(CONTROL[2], base_offset=0, leader_epoch=1, timestamp=1),
        build_batch(VALUES[:4], base_offset=1, leader_epoch=1, timestamp=1),
        control_batch(SnapshotFooter(), base_offset=5, leader_epoch=1, timestamp=1),
    )
)
QUORUM = next(path.with_name("quorum-state") for path in METADATA_FILES if path.suffix == ".log").read_bytes()
RULE = {
    "resourceType": "TOPIC",
    "resourceName": "orders",
    "patternType": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permissionType": "ALLOW",
    "id": "3aPpDAnMRlu4BAsYOn9-Bg",
}


@contextmanager
def bounded_memory() -> Iterator[None]:
    """An allocation of gigabytes fails here with a MemoryError, which is none of our errors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + MOST_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def control(data: bytes) -> None:
    decode_control(data[:4], data[4:])


def columns(data: bytes) -> None:
    value = FRAME + data
    _, left = read_acls(value, np.array([0]), np.array([len(value)]))
    if len(left):
        decode_record(value)


def scan(data: bytes) -> None:
    batches, damaged = scan_batches(data)
    _, bad = scan_values(data, batches)
    if damaged is not None or bad is not None:
        raise DecodeError("found damaged", position=damaged)


def replay(data: bytes) -> None:
    Applier().apply(data)


def replay_in_bulk(data: bytes) -> None:
    Applier(bulk_bytes=0).apply(data)


def checkpoint(data: bytes) -> None:
    decode_checkpoint(data, end_offset=9, epoch=1)


def with_right_crc(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Half of the damage as it is, half with the first batch's length and CRC made right again."""
    for number, damaged in enumerate(mutations(data, seed, count)):
        yield fitted(damaged) if number % 2 else damaged


Damage = Callable[[bytes, int, int], Iterator[bytes]]
DECODERS: dict[str, tuple[Callable[[bytes], object], list[bytes], Damage]] = {
    "record": (decode_record, VALUES, mutations),
    "columns": (columns, [VALUES[0][len(FRAME) :]], mutations),
    "batch": (decode_batch, [BATCH], with_right_crc),
    "scan": (scan, [BATCH], with_right_crc),
    "control record": (control, [b"".join(encode_control(record)) for record in CONTROL], mutations),
    "replay": (replay, [BATCH], with_right_crc),
    "bulk replay": (replay_in_bulk, [BATCH], with_right_crc),
    "checkpoint": (checkpoint, [CHECKPOINT], mutations),
    "leader-epoch-checkpoint": (
        decode_epochs,
        [encode_epochs([EpochStart(epoch=1, start_offset=0), EpochStart(epoch=3, start_offset=9)])],
        mutations,
    ),
    "quorum-state": (decode_quorum_state, [QUORUM], mutations),
    "high-water mark": (decode_slots, [encode_slot(Mark(epoch=1, offset=5)) * 2], mutations),
    "a rule as JSON": (parse_acl, [json.dumps(RULE).encode()], mutations),
}


@pytest.mark.parametrize("name", DECODERS)
def test_only_our_errors(name):
    decode, examples, damage = DECODERS[name]
    refused, longest, complaints = 0, 0.0, set()
    with bounded_memory():
        for number, example in enumerate(examples):
            for data in damage(example, number, COUNT // len(examples) + 1):
                begin = time.thread_time()
                try:
                    decode(data)
                except MetadataError as error:
                    complaints.add(str(error))
                    refused += 1
                longest = max(longest, time.thread_time() - begin)
    assert refused > COUNT // 10
    assert not [text for text in complaints if "\n" in text]
    assert longest < MOST_SECONDS


@pytest.mark.parametrize("suffix", ["avro", "jsonl"])
def test_exports(suffix, tmp_path):
    path = tmp_path / f"export.{suffix}"
    rules = tmp_path / "rules.jsonl"
    rules.write_text(json.dumps(RULE) + "\n")
    assert aclog("export", "--acls", str(rules), "--format", suffix, "--out", str(path)).code == 0
    sound = path.read_bytes()
    refused, complaints = 0, set()
    with bounded_memory():
        for data in mutations(sound, 1, COUNT):
            path.write_bytes(data)
            try:
                with open_state(str(path)) as rows:
                    for _ in rows:
                        pass
            except MetadataError as error:
                refused += 1
                complaints.add(str(error))
    assert not [text for text in complaints if "\n" in text]
    assert refused > COUNT // 10
