"""The history of ACLs: what changed, when, and from where it is known."""

import pytest

from aclog.metalog.errors import CheckpointError, ReplayError
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.history import ChangeKind, history
from aclog.snapshots.publisher import recover
from tests.support.builders.ids import uuid_of
from tests.support.builders.state_logs import damage, write_log
from tests.support.builders.state_records import acl, removal

ADDED, REMOVED = ChangeKind.ADDED, ChangeKind.REMOVED


def changes(directory):
    return [(c.offset, c.end_offset, c.timestamp, c.kind, c.rule.acl.resource_name) for c in history(directory)]


def test_additions_and_removals_with_their_content(tmp_path):
    log = write_log(tmp_path, [acl(1, name="a"), acl(2, name="b")], [removal(1)], [acl(1, name="c")])
    assert changes(log) == [
        (0, 2, 1000, ADDED, "a"),
        (1, 2, 1000, ADDED, "b"),
        (2, 3, 2000, REMOVED, "a"),
        (3, 4, 3000, ADDED, "c"),
    ]
    assert next(history(log)).rule.id == uuid_of(1)


def test_a_transaction_comes_at_its_end_with_the_times_of_its_batches(tmp_path):
    log = write_log(tmp_path, [BeginTransactionRecord(), acl(1)], [acl(2)], [EndTransactionRecord()], [acl(3)])
    assert changes(log) == [(1, 4, 1000, ADDED, "1"), (2, 4, 2000, ADDED, "2"), (4, 5, 4000, ADDED, "3")]


def test_an_aborted_or_open_transaction_leaves_nothing(tmp_path):
    begin = BeginTransactionRecord()
    log = write_log(tmp_path, [acl(1)], [begin, acl(2), removal(1)], [AbortTransactionRecord()], [begin, acl(3)])
    assert changes(log) == [(0, 1, 1000, ADDED, "1")]


def test_a_log_that_was_shortened_starts_from_its_oldest_checkpoint(tmp_path):
    whole = write_log(tmp_path / "whole", *([acl(n)] for n in range(6)), [removal(0)])
    short = write_log(tmp_path / "short", [acl(4)], [acl(5)], [removal(0)], base=4, times=[5000, 6000, 7000])
    for offset in (3, 4, 5):
        write_checkpoint(recover(whole, offset).image, short)
    found = list(history(short))
    assert [(c.offset, c.timestamp, c.first_seen) for c in found[:4]] == [(3, 4000, True)] * 4
    assert [(c.offset, c.kind, c.first_seen) for c in found[4:]] == [
        (4, ADDED, False),
        (5, ADDED, False),
        (6, REMOVED, False),
    ]
    assert found[-1].rule.acl.resource_name == "0"


def test_a_shortened_log_without_a_checkpoint(tmp_path):
    log = write_log(tmp_path, [acl(4)], base=4)
    with pytest.raises(CheckpointError, match="begins at offset 4: expected a checkpoint"):
        list(history(log))
    whole = write_log(tmp_path / "whole", *([acl(n)] for n in range(4)))
    path = write_checkpoint(recover(whole).image, log)
    damage(path)
    with pytest.raises(CheckpointError, match=str(path)):
        list(history(log))


@pytest.mark.parametrize("record", [acl(1, name="x"), removal(7), acl(2, name="1")])
def test_an_inconsistency_is_reported_with_its_offset(tmp_path, record):
    log = write_log(tmp_path, [acl(1)], [record])
    found = history(log)
    assert next(found).offset == 0
    with pytest.raises(ReplayError, match=f"{log}: offset 1: "):
        next(found)


def test_one_content_under_two_ids_is_refused_where_the_applier_refuses_it(tmp_path):
    log = write_log(tmp_path, [acl(1)], [removal(1)], [acl(2, name="1")], [acl(3), acl(4, name="1")])
    with pytest.raises(ReplayError) as ours:
        list(history(log))
    with pytest.raises(ReplayError) as appliers:
        recover(log)
    assert str(ours.value) == str(appliers.value)
    assert f"offset 4: ACL {uuid_text(uuid_of(4))} is the same as ACL {uuid_text(uuid_of(2))}" in str(ours.value)


def test_a_content_in_the_first_checkpoint_belongs_to_its_id(tmp_path):
    whole = write_log(tmp_path / "whole", [acl(1)], [acl(2)])
    short = write_log(tmp_path / "short", [removal(1)], [acl(3, name="1")], [acl(4, name="2")], base=2)
    write_checkpoint(recover(whole).image, short)
    found = history(short)
    assert [next(found).offset for _ in range(4)] == [1, 1, 2, 3]
    with pytest.raises(ReplayError, match=r"offset 4: .*: expected every ACL once"):
        next(found)
