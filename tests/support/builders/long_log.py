"""Metadata logs that take a while to replay: many batches of one record that add a rule and remove it again."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.filelog.files import segment_name, write_epochs
from aclog.metalog.records import MetadataRecord, RemoveAccessControlEntryRecord
from tests.support.builders.acls import acl_record

EPOCH = 1
_TIME = 1_700_000_000_000


def begin_log(directory: Path, *batches: bytes) -> None:
    """A log as a Kafka leaves it, in a directory that was formatted, or was not there."""
    directory.mkdir(parents=True, exist_ok=True)
    write_epochs(directory, [EpochStart(epoch=EPOCH, start_offset=0)])
    (directory / segment_name(0)).write_bytes(b"".join(batches))


def coming_and_going(rule: StandardAcl, pairs: int, *, base_offset: int = 0, epoch: int = EPOCH) -> bytes:
    """2 * `pairs` batches: the rule comes, the rule goes.

    All pairs are the same bytes but for their offsets, which a batch's CRC does not cover.
    """
    record = acl_record(1, rule)
    both = batch([record], epoch=epoch), batch([RemoveAccessControlEntryRecord(id=record.id)], epoch=epoch)
    data = np.tile(np.frombuffer(b"".join(both), dtype=np.uint8), (pairs, 1))
    for number, start in enumerate((0, len(both[0]))):
        offsets = np.arange(pairs, dtype=">i8") * 2 + base_offset + number
        data[:, start : start + 8] = offsets.astype(">i8").view(np.uint8).reshape(pairs, 8)
    return data.tobytes()


def batch(records: Sequence[MetadataRecord | bytes], base_offset: int = 0, epoch: int = EPOCH) -> bytes:
    """A batch of records, or of the values of records."""
    values = [each if isinstance(each, bytes) else encode_record(each) for each in records]
    return build_batch(values, base_offset=base_offset, leader_epoch=epoch, timestamp=_TIME)
