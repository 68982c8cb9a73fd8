"""Records of interest: found in bulk as by one value after another, and enough of them for the question."""

from random import Random

import pytest

from aclog.analysis.timeline import AnyAllowed, concerns, intervals
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.filelog import open_reader
from aclog.metalog.records import AccessControlEntryRecord, OpaqueRecord, RecordType
from aclog.snapshots.deciding_kafka import kafka_history
from aclog.snapshots.history import RecordReplay, history_from, visible_records
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import recover
from aclog.snapshots.record_filters import AclsNear, AdditionsOf, OfKinds
from tests.support.analysis.timelines import batches_of, random_query, with_brokers
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal


def filters(random, records):
    ids = {each.id.bytes for each in records if isinstance(each, AccessControlEntryRecord) and random.random() < 0.3}
    markers = frozenset({23, 24, 25})
    names = random.sample(["a", "ab", "b.x", "*", "*a", "", "ä", "kafka-cluster"], random.randint(1, 3))
    return (
        lambda: AdditionsOf(ids),
        lambda: OfKinds(markers | {random.choice(list(RecordType))}),
        lambda: OfKinds(markers | {RecordType.ACCESS_CONTROL_ENTRY_RECORD}),
        lambda: AclsNear(names),
    )


def by_each_way(log, predicate, monkeypatch):
    """The records that a filter leaves: in bulk, and one by one."""
    found = []
    for in_bulk in (True, False):
        with open_reader(log) as reader, monkeypatch.context() as patch:
            if not in_bulk:
                patch.setattr(RecordReplay, "_proved", lambda *_: None)
            found.append(list(visible_records(Image.EMPTY.provenance, reader, predicate())))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_in_bulk_as_one_by_one(seed, tmp_path, monkeypatch):
    random = Random(seed)
    batches = with_brokers(random, batches_of(random, 30))
    if seed % 2:  # without transactions the whole log is read in bulk
        batches = [kept for each in batches if (kept := [one for one in each if one.api_key not in {23, 24, 25}])]
    log = write_log(tmp_path, *batches, [OpaqueRecord(api_key=200, version=1, value=b"\1\xc8\1\0x")])
    for predicate in filters(random, [record for batch in batches for record in batch]):
        state = random.getstate()
        in_bulk, one_by_one = by_each_way(log, lambda p=predicate, s=state: (random.setstate(s), p())[1], monkeypatch)
        assert in_bulk == one_by_one


@pytest.mark.parametrize("seed", range(15))
def test_what_is_near_is_all_that_a_question_depends_on(seed, tmp_path):
    random = Random(seed)
    log = write_log(tmp_path, *with_brokers(random, batches_of(random, 40, cidr=seed % 2 == 0)))
    for _ in range(4):
        query, settings = random_query(random), Settings(allow_everyone=random.random() < 0.2)
        answers = []
        for near in (None, AclsNear([each.name for each in query.resources])):
            with open_reader(log) as reader:
                changes = list(history_from(Image.EMPTY, reader, near))
                kafka = lambda reader=reader: kafka_history(Image.EMPTY, reader)  # noqa: E731
                found = list(intervals(Image.EMPTY, changes, AnyAllowed(query), settings, kafka))
            answers.append(([each for each in changes if concerns(query, each.rule.acl, settings)], found))
        assert answers[0] == answers[1]


def test_rules_from_before_the_log_are_near_by_their_names(tmp_path):
    whole = write_log(tmp_path / "whole", [acl(1, name="a"), acl(2, name="b")])
    begin = recover(whole).image
    log = write_log(tmp_path / "rest", [removal(1)], [removal(2)], base=2, times=[3000, 4000])
    with open_reader(log) as reader:
        changes = [(each.offset, each.rule.acl.resource_name) for each in history_from(begin, reader, AclsNear(["a"]))]
    assert changes == [(1, "a"), (2, "a")]


def test_what_is_near_must_be_consistent(tmp_path):
    log = write_log(tmp_path, [acl(1, name="a")], [acl(1, name="a")])
    with open_reader(log) as reader, pytest.raises(ReplayError, match=r"offset 1: ACL .* is added, but exists already"):
        list(history_from(Image.EMPTY, reader, AclsNear(["a"])))


def test_a_damaged_record_is_reported_after_those_before_it(tmp_path):
    damaged = OpaqueRecord(api_key=18, version=0, value=b"\1\x12\0" + bytes(16) + b"\2\2a")
    log = write_log(tmp_path, [acl(1, name="a")], [damaged], [acl(2, name="a")])
    with open_reader(log) as reader:
        changes = history_from(Image.EMPTY, reader, AclsNear(["a"]))
        assert next(changes).offset == 0
        with pytest.raises(DecodeError, match="offset 1"):
            next(changes)
