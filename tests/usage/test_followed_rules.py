"""The ACLs of a log that grows are those of a log that is read as a whole."""

from pathlib import Path

import numpy as np
import pytest

from aclog.authorizer.settings import Settings
from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import LogError
from aclog.metalog.filelog.files import segment_name
from aclog.usage import rules
from aclog.usage.rules import FollowedRules, deciding_rules_of_log
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, registration, removal

CHURN = Path(__file__).parents[1] / "data" / "kafka-4.3.1-churn" / "__cluster_metadata-0"
NAMES = ("visible_from", "visible_to", "content_of", "record_ends")


def check(followed: FollowedRules, directory: Path, settings: Settings) -> None:
    """Compare with a reading of the whole log."""
    whole, deciding = deciding_rules_of_log(directory, settings)
    assert followed.rules.table.equals(whole.table)
    assert all(
        np.array_equal(getattr(followed.rules.intervals, name), getattr(whole.intervals, name)) for name in NAMES
    )
    assert followed.rules.intervals.known_from == whole.intervals.known_from
    assert followed.rules.intervals.kafka == whole.intervals.kafka
    assert followed.deciding == deciding


def test_a_real_log_that_grows(tmp_path):
    data = b"".join(segment.read_bytes() for segment in sorted(CHURN.glob("*.log")))
    ends = [position for position, _ in iter_batches(data)][1:]
    cuts = [*ends[len(ends) // 3 :: max(1, len(ends) // 12)], len(data)]
    path = tmp_path / segment_name(0)
    path.write_bytes(data[: ends[0]])
    followed = FollowedRules.of(tmp_path, Settings())
    assert not followed.update()
    changed = 0
    for cut in cuts:
        path.write_bytes(data[:cut])
        changed += followed.update()
        check(followed, tmp_path, Settings())
    assert changed > 3


def test_brokers_whose_kafka_changes(tmp_path):
    unnamed = Settings(is_kafka_stated=False)
    ranged = acl(1, name="t", principal="User:bob", host="10.0.0.0/8")
    steps = [[ranged], [registration(1, 30)], [registration(1, 33)], [removal(1)]]
    followed = None
    for number in range(1, len(steps) + 1):
        log = write_log(tmp_path / "log", *steps[:number])
        if followed is None:
            followed = FollowedRules.of(log, unnamed)
        else:
            assert followed.update()
        check(followed, log, unnamed)
    assert followed.end_time == 1000 * len(steps)


def test_a_log_that_is_another_one(tmp_path):
    log = write_log(tmp_path / "log", [acl(1)], [acl(2)])
    followed = FollowedRules.of(log, Settings())
    write_log(tmp_path / "log", [acl(1)])
    with pytest.raises(LogError, match="ends at offset 1, and was read up to 2: another log"):
        followed.update()


def test_records_that_retention_has_removed_unread(tmp_path):
    log = write_log(tmp_path / "log", [acl(1)])
    followed = FollowedRules.of(log, Settings())
    (log / segment_name(0)).unlink()
    write_log(tmp_path / "log", [acl(7)], base=6)
    with pytest.raises(LogError):
        followed.update()


def test_a_log_that_grows_while_it_is_read(tmp_path, monkeypatch):
    steps, of = [[acl(1)], [acl(2)], [removal(1)]], rules._Times.of
    for read in (
        lambda log: FollowedRules.of(log, Settings()).rules,
        lambda log: deciding_rules_of_log(log, Settings())[0],
    ):
        log = write_log(tmp_path / "log", *steps[:1])

        def growing(reader, start, log=log):
            times = of(reader, start)
            write_log(log, *steps)
            return times

        monkeypatch.setattr(rules._Times, "of", growing)
        grown = read(log)
        monkeypatch.undo()
        whole = deciding_rules_of_log(log, Settings())[0]
        assert len(grown.table) in {1, 2}
        assert grown.table.equals(whole.table.slice(0, len(grown.table)))
