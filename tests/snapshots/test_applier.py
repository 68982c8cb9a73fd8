"""The applier against the naive replayer, in bulk and batch by batch, on valid and on broken logs."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.metalog.batches import build_batch, iter_batches
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from aclog.snapshots import applier as applier_module
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import NewerKafka
from tests.support.builders.ids import uuid_of
from tests.support.builders.random_log import RandomLog
from tests.support.builders.state_records import acl, removal
from tests.support.models.naive_replay import RefusedError, assert_shows, naive_replay
from tests.support.runs.profiles import examples

BULK, ONE_BY_ONE = 0, 1 << 60
SEEDS = st.integers(0, 2**32)


def log_of(*batches, epoch=1):
    """Return the bytes of a log with these batches of records."""
    data, offset = [], 0
    for records in batches:
        values = [encode_record(record) for record in records]
        data.append(build_batch(values, base_offset=offset, leader_epoch=epoch, timestamp=100 + offset))
        offset += len(values)
    return b"".join(data)


def ids_of(image):
    return {rule.id for rule in image.acls}


def outcome(batches, rnd, bulk_bytes):
    """Replay batches in chunks of random size: (the applier, the error that stopped it)."""
    applier = Applier(bulk_bytes=bulk_bytes)
    left = list(batches)
    while left:
        size = rnd.randrange(1, len(left) + 1)
        chunk, left = b"".join(left[:size]), left[size:]
        try:
            applier.apply(chunk)
        except DecodeError as e:
            return applier, e
    return applier, None


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=SEEDS, count=st.integers(1, 40), acls_only=st.booleans())
def test_every_state_equals_that_of_the_naive_replayer(seed, count, acls_only):
    batches = RandomLog(random.Random(seed), acls_only=acls_only).batches(count)
    applier, data = Applier(), b"".join(batches)
    moments = {moment.end_offset: moment for moment in naive_replay(data)}
    for batch in batches:
        image = applier.apply(batch)
        if not applier.in_transaction:
            assert image.end_offset == applier.next_offset
            assert_shows(image, moments[image.end_offset])
    last = max(moments, default=None)
    for bulk_bytes in (BULK, ONE_BY_ONE):
        again, error = outcome(batches, random.Random(seed), bulk_bytes)
        assert error is None
        assert again.next_offset == applier.next_offset
        if last is not None:
            assert_shows(again.image, moments[last])


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=SEEDS, count=st.integers(1, 40), faults=st.sampled_from((0.02, 0.1)), acls_only=st.booleans())
def test_bulk_and_one_by_one_accept_and_refuse_the_same(seed, count, faults, acls_only):
    batches = RandomLog(random.Random(seed), faults=faults, acls_only=acls_only).batches(count)
    slow, slow_error = outcome(batches, random.Random(seed), ONE_BY_ONE)
    fast, fast_error = outcome(batches, random.Random(seed), BULK)
    assert type(fast_error) is type(slow_error)
    if slow_error is not None:
        assert (fast_error.what, fast_error.offset) == (slow_error.what, slow_error.offset)
    assert fast.image.provenance == slow.image.provenance
    assert fast.next_offset == slow.next_offset
    assert fast.image.acls.digest() == slow.image.acls.digest()
    assert list(fast.image.opaque.values()) == list(slow.image.opaque.values())
    assert (fast.image.scram, fast.image.tokens, fast.image.features) == (
        slow.image.scram,
        slow.image.tokens,
        slow.image.features,
    )


@settings(max_examples=examples(100), deadline=None)
@given(seed=SEEDS, count=st.integers(1, 30))
def test_what_the_naive_replayer_refuses_is_refused_at_the_same_offset(seed, count):
    log = RandomLog(random.Random(seed), faults=0.0)
    log.faults = 0.15
    log.damaged = lambda data: data
    batches = log.batches(count)
    try:
        moments, refused = list(naive_replay(b"".join(batches))), None
    except RefusedError as e:
        refused = e.offset
    _, error = outcome(batches, random.Random(seed), BULK)
    assert (None if error is None else error.offset) == refused
    if refused is None and moments:
        assert_shows(outcome(batches, random.Random(seed), BULK)[0].image, moments[-1])


@pytest.mark.parametrize("bulk_bytes", [BULK, ONE_BY_ONE])
class TestTransactions:
    def test_records_become_visible_together_at_the_end(self, bulk_bytes):
        applier = Applier(bulk_bytes=bulk_bytes)
        data = log_of([acl(1)], [BeginTransactionRecord(name="t"), acl(2)], [acl(3)], [EndTransactionRecord()])
        seen = []
        for position, header in iter_batches(data):
            image = applier.apply(data[position : position + header.size])
            seen.append((len(image.acls), image.end_offset, applier.next_offset))
        assert seen == [(1, 1, 1), (1, 1, 3), (1, 1, 4), (3, 5, 5)]

    def test_aborted_records_leave_no_trace(self, bulk_bytes):
        begin, abort = BeginTransactionRecord(), AbortTransactionRecord(reason="failover")
        image = Applier(bulk_bytes=bulk_bytes).apply(log_of([acl(1)], [begin, acl(2), removal(1)], [abort, acl(3)]))
        assert ids_of(image) == {uuid_of(1), uuid_of(3)}
        assert image.end_offset == 6

    def test_an_aborted_record_may_contradict_the_state(self, bulk_bytes):
        begin, abort = BeginTransactionRecord(), AbortTransactionRecord()
        image = Applier(bulk_bytes=bulk_bytes).apply(log_of([acl(1)], [begin, acl(1), removal(9), abort]))
        assert ids_of(image) == {uuid_of(1)}

    def test_a_batch_that_begins_a_transaction_is_visible_with_it(self, bulk_bytes):
        applier = Applier(bulk_bytes=bulk_bytes)
        data = log_of([acl(1)], [acl(2), BeginTransactionRecord(), acl(3)], [AbortTransactionRecord(), acl(4)])
        first, second, third = (data[p : p + h.size] for p, h in iter_batches(data))
        assert ids_of(applier.apply(first + second)) == {uuid_of(1)}
        assert ids_of(applier.apply(third)) == {uuid_of(1), uuid_of(2), uuid_of(4)}

    @pytest.mark.parametrize(
        ("records", "offset"),
        [
            ([BeginTransactionRecord(), BeginTransactionRecord()], 2),
            ([NoOpRecord(), EndTransactionRecord()], 2),
            ([AbortTransactionRecord()], 1),
            ([BeginTransactionRecord(), EndTransactionRecord(), EndTransactionRecord()], 3),
        ],
    )
    def test_a_marker_out_of_place_is_refused(self, bulk_bytes, records, offset):
        applier = Applier(bulk_bytes=bulk_bytes)
        with pytest.raises(ReplayError) as e:
            applier.apply(log_of([acl(1)], records))
        assert e.value.offset == offset
        assert ids_of(applier.image) == {uuid_of(1)}


@pytest.mark.parametrize("bulk_bytes", [BULK, ONE_BY_ONE])
class TestRefusals:
    def refused(self, data, bulk_bytes):
        applier = Applier(bulk_bytes=bulk_bytes)
        with pytest.raises(DecodeError) as e:
            applier.apply(data)
        assert ids_of(applier.image) == {uuid_of(1)}
        assert applier.image.end_offset == 1
        with pytest.raises(type(e.value)) as again:
            applier.apply(b"")
        assert again.value is e.value
        return e.value

    @pytest.mark.parametrize(
        ("records", "offset"),
        [
            ([acl(2), acl(1, name="other")], 2),
            ([acl(2), acl(3, name="1")], 2),
            ([removal(1), removal(1)], 2),
            ([removal(1), acl(1, name="x"), acl(1, name="y")], 3),
            ([acl(2), removal(7)], 2),
        ],
    )
    def test_acls_that_contradict_the_state(self, bulk_bytes, records, offset):
        assert self.refused(log_of([acl(1)], records), bulk_bytes).offset == offset

    def test_the_rest_of_a_refused_batch_is_not_applied(self, bulk_bytes):
        self.refused(log_of([acl(1)], [acl(2), removal(1), removal(1)], [acl(5)]), bulk_bytes)

    def test_a_gap(self, bulk_bytes):
        later = build_batch([encode_record(acl(2))], base_offset=2, leader_epoch=1, timestamp=5)
        assert "begins at offset 2: expected 1" in str(self.refused(log_of([acl(1)]) + later, bulk_bytes))

    def test_an_epoch_that_decreases(self, bulk_bytes):
        later = build_batch([encode_record(acl(2))], base_offset=1, leader_epoch=3, timestamp=5)
        error = self.refused(log_of([acl(1)], epoch=4) + later, bulk_bytes)
        assert isinstance(error, ReplayError)
        assert error.offset == 1

    def test_a_bad_crc(self, bulk_bytes):
        data = log_of([acl(1)], [acl(2)])
        assert "CRC" in str(self.refused(data[:-1] + b"\1", bulk_bytes))

    def test_a_truncated_batch(self, bulk_bytes):
        self.refused(log_of([acl(1)], [acl(2)])[:-1], bulk_bytes)


@pytest.mark.parametrize("bulk_bytes", [BULK, ONE_BY_ONE])
class TestNewerKafka:
    def data(self, *values):
        return log_of([acl(1)]) + build_batch(values, base_offset=1, leader_epoch=1, timestamp=5)

    @pytest.mark.parametrize("value", [b"\1\x1e\0abc", b"\1\x0c\0\x11metadata.version\0\x22\0"])
    def test_a_node_stops(self, bulk_bytes, value):
        applier = Applier(bulk_bytes=bulk_bytes)
        with pytest.raises(ReplayError, match="newer Kafka") as e:
            applier.apply(self.data(encode_record(acl(2)), value))
        assert e.value.offset == 2
        assert applier.image.end_offset == 1

    def test_a_lenient_reader_continues_with_a_warning_each(self, bulk_bytes):
        newer = NewerKafka(strict=False)
        unknown, version = b"\1\x1e\0abc", b"\1\x0c\0\x11metadata.version\0\x22\0"
        image = Applier(bulk_bytes=bulk_bytes, newer=newer).apply(self.data(unknown, version, unknown))
        assert [w.split(":")[0] for w in newer.warnings()] == ["offset 1", "offset 2"]
        assert list(image.opaque.values()) == [unknown, unknown]
        assert image.features.level("metadata.version") == 34

    def test_an_interpreted_record_of_a_later_version_stops_both(self, bulk_bytes):
        value = encode_record(acl(2))
        later = value[:2] + b"\1" + value[3:]
        applier = Applier(bulk_bytes=bulk_bytes, newer=NewerKafka(strict=False))
        with pytest.raises(DecodeError, match="newer Kafka"):
            applier.apply(self.data(later))


def test_a_long_transaction_and_many_odd_batches_are_not_scanned_repeatedly(monkeypatch):
    looked = []
    from aclog.snapshots import applier as module

    real = module.replay_bulk
    monkeypatch.setattr(module, "replay_bulk", lambda *a, **kw: looked.append(a[1]) or real(*a, **kw))
    odd = [acl(n, tags=((1, b""),)) for n in range(1000)]
    image = Applier(bulk_bytes=BULK).apply(log_of(*([record] for record in odd)))
    assert len(image.acls) == 1000
    assert len(looked) < 12


def test_what_failed_half_way_in_a_batch_is_not_applied_twice(monkeypatch):
    """After any error, even a MemoryError, a retry must not replay half of a batch again."""
    topics = [b"\x01\x02\x00\x02a" + bytes([n]) * 16 + b"\x00" for n in (1, 2)]
    data = build_batch(topics, base_offset=0, leader_epoch=1, timestamp=0)
    applier = Applier(bulk_bytes=1 << 60)
    real = applier_module.decode_values

    def out_of_memory(*arguments):
        yield next(iter(real(*arguments)))
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(applier_module, "decode_values", out_of_memory)
        with pytest.raises(MemoryError):
            applier.apply(data)
    with pytest.raises(ReplayError, match="interrupted by a MemoryError"):
        applier.apply(data)
    assert applier.image.opaque.count == 0
    applier.load(applier.image)
    assert list(applier.apply(data).opaque.values()) == topics
