"""Following a log: each visible state with the changes that made it."""

from itertools import islice
from pathlib import Path

import pytest

from aclog.metalog.filelog import open_reader
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Followed, follow
from aclog.sources.logs import LogSource
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal


def followed(log: Path, count: int) -> list[Followed]:
    source = LogSource(log, lambda _: None)
    with open_reader(log) as reader:
        return list(islice(follow(source, reader, Image.EMPTY), count))


def test_one_batch_at_a_time(tmp_path: Path) -> None:
    log = write_log(tmp_path, [acl(1), acl(2)], [removal(1)])
    first, second = followed(log, 2)
    assert [len(first.before.acls), len(first.after.acls), len(second.after.acls)] == [0, 2, 1]
    assert (first.changes, second.changes) == ((acl(1), acl(2)), (removal(1),))


def test_a_transaction_is_one_step_and_an_aborted_one_changes_nothing(tmp_path: Path) -> None:
    begin = BeginTransactionRecord()
    log = write_log(
        tmp_path, [begin, acl(1)], [AbortTransactionRecord()], [begin, acl(2)], [acl(3)], [EndTransactionRecord()]
    )
    steps = [step for step in followed(log, 2) if step.changes]
    assert [step.changes for step in steps] == [(acl(2), acl(3))]


def test_many_changes_are_merged_between_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aclog.snapshots.publisher._MANY_CHANGES", 10)
    log = write_log(tmp_path, *([acl(number)] for number in range(30)))
    steps = followed(log, 30)
    assert max(step.after.acls.overlay_size for step in steps) <= 11
    # Both states of a step stand on one base, so that they are compared by what changed.
    assert all(step.before.acls.index.base is step.after.acls.index.base for step in steps)
    assert [len(step.after.acls) for step in steps] == list(range(1, 31))
