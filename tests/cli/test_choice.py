"""Notes on a directory: the end of a Kafka log may be uncommitted if the quorum has several voters; an older copy."""

import shutil
from pathlib import Path

import pytest
from attrs import evolve

from aclog.metalog.batches import build_control_batch, decode_batch, iter_batches
from aclog.metalog.control_records import decode_control, encode_control
from aclog.metalog.filelog.committed_mark import CommittedMark
from tests.support.cli.command import aclog

DATA = Path(__file__).parents[1] / "data"
SEGMENT = "00000000000000000000.log"
LISTED = ("acls", "list", "--topic", "none", "--format", "jsonl", "--log")


@pytest.mark.parametrize("kafka", ["kafka-4.3.1-small", "kafka-4.3.1-churn", "kafka-4.1.1", "kafka-3.9.1"])
def test_a_quorum_of_one_voter_has_no_note_dynamic_or_static(kafka):
    assert aclog(*LISTED, DATA / kafka / "__cluster_metadata-0").ok().err == ""
    assert "note" not in aclog("log", "verify", DATA / kafka / "__cluster_metadata-0").ok().err


def with_another_voter(log):
    """Add a second voter to every record with a voter set in the only segment; delete the checkpoints."""
    for path in log.glob("*.checkpoint"):
        path.unlink()
    data = (log / SEGMENT).read_bytes()
    batches = [data[at : at + header.size] for at, header in iter_batches(data)]
    (log / SEGMENT).write_bytes(b"".join(_changed(batch) for batch in batches))


def _changed(batch):
    header, records = decode_batch(batch).header, decode_batch(batch).records
    if not header.is_control:
        return batch
    controls = [decode_control(record.key, record.value) for record in records]
    controls = [
        evolve(each, voters=(*each.voters, evolve(each.voters[0], voter_id=2))) if hasattr(each, "voters") else each
        for each in controls
    ]
    return build_control_batch(
        [encode_control(each) for each in controls],
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        timestamp=header.max_timestamp,
    )


@pytest.mark.parametrize("kafka", ["kafka-4.1.1", "kafka-3.9.1"])
def test_a_quorum_of_several_voters_has_one_note(kafka, tmp_path):
    log = Path(shutil.copytree(DATA / kafka / "__cluster_metadata-0", tmp_path / "log"))
    with_another_voter(log)
    [said] = aclog(*LISTED, log).ok().err.splitlines()
    end = "is treated as committed: in a quorum of several voters the last records may not be"
    assert said.startswith(f"aclog: note: {log}: the end of this Kafka log, offset 13")
    assert said.endswith(end)
    assert end in aclog("log", "verify", log).err


def test_a_log_without_a_voter_set_has_a_note(tmp_path):
    log = Path(shutil.copytree(DATA / "kafka-3.9.1" / "__cluster_metadata-0", tmp_path / "log"))
    (log / "leader-epoch-checkpoint").unlink()
    assert "may not be" in aclog(*LISTED, log).ok().err


def test_an_older_copy_in_a_nodes_directory_has_a_note_and_a_log_that_is_gone_is_refused(tmp_path):
    log = Path(shutil.copytree(DATA / "kafka-4.3.1-small" / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0"))
    mark = CommittedMark.beside(log, cluster_id="c", end_offset=9999, epoch=1)
    mark.write()
    [said] = aclog(*LISTED, log).ok().err.splitlines()
    assert said.startswith(f"aclog: note: {log}: ends at offset ")
    assert said.endswith(
        "up to 9999: this state is older than the node's, and unless the rest is in the log, no node starts on it"
    )
    for path in log.glob("*.log"):
        path.unlink()
    found = aclog(*LISTED, log)
    assert (found.code, found.out) == (2, "")
    assert f"{log}: no log, but {mark.path} records one committed up to offset 9999" in found.err
