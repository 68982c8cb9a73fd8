"""The observer's state machine, without a network: what it fetches, what it shows, what it refuses."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.client.errors import CommittedRecordsLostError, QuorumRefusedError
from aclog.client.fetching import (
    EpochEnd,
    FetchAgain,
    FetchResponse,
    ObserverState,
    Position,
    Progress,
    Redirect,
    SnapshotNeeded,
)
from aclog.config.node_config import HostPort
from aclog.metalog.batches import build_batch, iter_batches, read_header
from aclog.metalog.errors import DecodeError, ReplayError
from tests.support.fakes.quorum import FakeQuorum

AT_1 = HostPort(host="one", port=1)


def batch(*values, base, epoch=1):
    return build_batch(values or [b"x"], base_offset=base, leader_epoch=epoch, timestamp=0)


def following(epoch=1):
    """An observer that knows the leader of this epoch."""
    found = ObserverState()
    assert found.handle(FetchResponse(error=74, leader_id=1, leader_epoch=epoch)) == FetchAgain()
    return found


def shown(step):
    assert isinstance(step, Progress)
    return b"".join(run.data for run in step.committed)


def test_starts_at_offset_0_without_a_leader():
    assert ObserverState().position == Position(offset=0, last_fetched_epoch=0, leader_epoch=0, high_watermark=-1)


@pytest.mark.parametrize("error", [42, 74, 75])
def test_an_error_response_carries_the_leader_epoch(error):
    found = ObserverState()
    assert found.handle(FetchResponse(error=error, leader_id=3, leader_epoch=7)) == FetchAgain()
    assert (found.leader_id, found.leader_epoch, found.position.leader_epoch) == (3, 7, 7)


@pytest.mark.parametrize("error", [42, 74])
def test_the_same_error_without_a_new_epoch_redirects(error):
    found = following(epoch=7)
    assert isinstance(found.handle(FetchResponse(error=error, leader_id=1, leader_epoch=7)), Redirect)


def test_a_node_with_an_older_epoch_is_ignored():
    found = following(epoch=7)
    step = found.handle(FetchResponse(error=75, leader_id=2, leader_epoch=5))
    assert step == Redirect(why="does not know leader epoch 7, only 5", older_epoch=5)
    assert (found.leader_id, found.leader_epoch) == (1, 7)


def test_a_follower_redirects_to_the_leader():
    found = following()
    answer = FetchResponse(error=6, leader_id=1, leader_epoch=2, endpoints={1: AT_1})
    assert found.handle(answer) == Redirect(why="not the leader of epoch 2", leader=AT_1)
    assert found.leader_epoch == 2


def test_an_election_has_no_leader():
    step = following().handle(FetchResponse(error=6, leader_id=-1, leader_epoch=2))
    assert step == Redirect(why="not the leader of epoch 2", leader=None)


@pytest.mark.parametrize(
    ("error", "said"),
    [(31, "CLUSTER_ACTION"), (104, "another cluster"), (3, "controller"), (100, "controller"), (35, "3.9")],
)
def test_refusals(error, said):
    with pytest.raises(QuorumRefusedError, match=said):
        following().handle(FetchResponse(error=error))


def test_any_other_error_redirects():
    assert following().handle(FetchResponse(error=-1)) == Redirect(why="responds with error -1")


def test_committed_batches_are_shown_at_once():
    found, records = following(), batch(base=0) + batch(b"a", b"b", base=1)
    assert shown(found.handle(FetchResponse(high_watermark=3, records=records))) == records
    assert found.position == Position(offset=3, last_fetched_epoch=1, leader_epoch=1, high_watermark=3)


def test_batches_above_the_mark_are_held_back():
    found = following()
    first, second, third = batch(base=0), batch(b"a", b"b", base=1), batch(base=3)
    assert shown(found.handle(FetchResponse(high_watermark=1, records=first + second + third))) == first
    assert found.position.offset == 4
    assert found.pending_bytes == len(second + third)
    assert shown(found.handle(FetchResponse(high_watermark=2))) == b""  # half of a batch
    assert shown(found.handle(FetchResponse(high_watermark=3))) == second
    assert shown(found.handle(FetchResponse(high_watermark=4))) == third
    assert found.pending_bytes == 0


def test_the_mark_never_goes_back():
    found = following()
    found.handle(FetchResponse(high_watermark=5, records=batch(base=0)))
    found.handle(FetchResponse(high_watermark=-1))
    assert found.high_watermark == 5
    assert shown(found.handle(FetchResponse(high_watermark=1, records=batch(base=1)))) == batch(base=1)


def test_without_room_records_are_dropped_but_the_mark_is_kept():
    found = following()
    assert shown(found.handle(FetchResponse(high_watermark=9, records=batch(base=0)), keep=False)) == b""
    assert (found.position.offset, found.high_watermark) == (0, 9)


def test_an_offset_inside_a_batch_returns_the_whole_batch():
    found = following()
    found.loaded(EpochEnd(epoch=1, end_offset=2))
    whole = batch(b"a", b"b", b"c", base=0)
    assert shown(found.handle(FetchResponse(high_watermark=3, records=whole))) == whole
    assert found.position.offset == 3


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (batch(base=1), "expected one that contains offset 0"),
        (batch(base=0, epoch=2), "beyond the leader's"),
        (batch(base=0) + batch(base=2), "expected one that contains offset 1"),
        (batch(base=0) + batch(base=0), "expected one that contains offset 1"),
        (batch(base=0, epoch=1) + batch(base=1, epoch=0), "epochs never decrease"),
    ],
    ids=["later", "epoch", "gap", "twice", "back"],
)
def test_batches_that_do_not_follow_the_position(records, error):
    found = following()
    with pytest.raises(ReplayError, match=error):
        found.handle(FetchResponse(high_watermark=9, records=records))
    assert found.position == Position(offset=0, last_fetched_epoch=0, leader_epoch=1, high_watermark=-1)


def test_an_epoch_that_decreases_between_responses():
    found = following(epoch=3)
    found.handle(FetchResponse(high_watermark=1, records=batch(base=0, epoch=2)))
    with pytest.raises(ReplayError, match="epoch 1 after epoch 2"):
        found.handle(FetchResponse(high_watermark=2, records=batch(base=1, epoch=1)))


def test_batches_before_damage_are_kept():
    found, good = following(), batch(base=0)
    damaged = bytearray(batch(base=1))
    damaged[-3] ^= 1
    assert shown(found.handle(FetchResponse(high_watermark=9, records=good + bytes(damaged)))) == good
    with pytest.raises(DecodeError, match="CRC"):
        found.handle(FetchResponse(high_watermark=9, records=bytes(damaged)))


def test_a_truncated_batch_is_fetched_again():
    found, first, second = following(), batch(base=0), batch(base=1)
    assert shown(found.handle(FetchResponse(high_watermark=9, records=first + second[:-1]))) == first
    for cut in (second[:-1], second[:30]):
        with pytest.raises(DecodeError, match="truncated batch"):
            found.handle(FetchResponse(high_watermark=9, records=cut))


def test_divergence_truncates_to_the_leaders_log():
    found = following(epoch=1)
    records = [batch(base=0), batch(base=1), batch(base=2)]
    found.handle(FetchResponse(high_watermark=1, records=b"".join(records)))
    found.handle(FetchResponse(error=74, leader_id=2, leader_epoch=2))
    assert found.handle(FetchResponse(high_watermark=1, diverging=EpochEnd(epoch=1, end_offset=2))) == FetchAgain()
    assert found.position == Position(offset=2, last_fetched_epoch=1, leader_epoch=2, high_watermark=1)
    new = batch(base=2, epoch=2)
    assert shown(found.handle(FetchResponse(high_watermark=3, records=new))) == records[1] + new


def test_a_divergence_that_truncates_nothing_drops_all_pending_batches():
    found = following()
    found.handle(FetchResponse(high_watermark=1, records=batch(base=0) + batch(base=1)))
    assert found.handle(FetchResponse(diverging=EpochEnd(epoch=1, end_offset=2))) == FetchAgain()
    assert found.position.offset == 1


def test_divergence_truncates_an_epoch_unknown_to_the_leader():
    found = following(epoch=3)
    records = [batch(base=0, epoch=1), batch(base=1, epoch=1), batch(base=2, epoch=3)]
    found.handle(FetchResponse(high_watermark=1, records=b"".join(records)))
    assert found.handle(FetchResponse(leader_epoch=4, diverging=EpochEnd(epoch=1, end_offset=9))) == FetchAgain()
    assert found.position == Position(offset=2, last_fetched_epoch=1, leader_epoch=4, high_watermark=1)


def test_divergence_below_the_committed_end_is_final():
    found = following()
    found.handle(FetchResponse(high_watermark=2, records=batch(base=0) + batch(base=1)))
    with pytest.raises(CommittedRecordsLostError, match="up to offset 2, epoch 1: its log of epoch 1 ends at 1"):
        found.handle(FetchResponse(diverging=EpochEnd(epoch=1, end_offset=1)))


def test_a_snapshot_beyond_the_committed_end_is_needed():
    found, snapshot = following(epoch=3), EpochEnd(epoch=2, end_offset=50)
    assert found.handle(FetchResponse(high_watermark=60, snapshot=snapshot)) == SnapshotNeeded(snapshot=snapshot)
    found.loaded(snapshot)
    assert found.position == Position(offset=50, last_fetched_epoch=2, leader_epoch=3, high_watermark=60)


def test_a_snapshot_does_not_set_the_mark():
    found = following()
    found.handle(FetchResponse(snapshot=EpochEnd(epoch=1, end_offset=50)))
    found.loaded(EpochEnd(epoch=1, end_offset=50))
    assert found.high_watermark == -1


@pytest.mark.parametrize("snapshot", [EpochEnd(epoch=1, end_offset=1), EpochEnd(epoch=1, end_offset=2)])
def test_a_snapshot_below_the_committed_end_drops_pending_batches_then_is_final(snapshot):
    found = following()
    found.handle(FetchResponse(high_watermark=2, records=batch(base=0) + batch(base=1) + batch(base=2)))
    assert found.handle(FetchResponse(snapshot=snapshot)) == FetchAgain()
    assert found.position.offset == 2
    with pytest.raises(CommittedRecordsLostError, match="offers a snapshot"):
        found.handle(FetchResponse(snapshot=snapshot))


def test_a_snapshot_of_an_older_epoch_is_a_different_log():
    found = following(epoch=5)
    found.handle(FetchResponse(high_watermark=1, records=batch(base=0, epoch=5)))
    with pytest.raises(CommittedRecordsLostError):
        found.handle(FetchResponse(snapshot=EpochEnd(epoch=4, end_offset=9)))


EVENTS = st.lists(
    st.tuples(st.sampled_from(["append", "commit", "elect", "fetch", "fetch", "small", "snapshot"]), st.integers(1, 4)),
    max_size=60,
)


def happen(quorum, event, number):
    match event:
        case "append":
            quorum.append([bytes([number])] * number, commit=False)
        case "commit":
            ends = [end for end in map(end_of, quorum.batches) if end >= quorum.high_watermark]
            quorum.commit(ends[min(number, len(ends)) - 1] if ends else None)
        case "elect":
            quorum.elect(number, keep=number - 1, commit=False)
        case "snapshot" if quorum.high_watermark > quorum.log_start:
            whole = [b for b in quorum.batches if end_of(b) <= quorum.high_watermark]
            if whole:
                last = read_header(whole[-1])
                quorum.forget_below(EpochEnd(epoch=last.leader_epoch, end_offset=last.end_offset), b"")


def end_of(batch_bytes):
    return read_header(batch_bytes).end_offset


@given(EVENTS)
def test_only_committed_records_are_shown_whatever_the_quorum_does(events):
    quorum, found, seen, mark = FakeQuorum(epoch=1), ObserverState(), {}, -1
    committed = {}
    for event, number in [*events, ("commit", 4), *[("fetch", 1)] * 12]:
        happen(quorum, event, number)
        for position, header in iter_batches(quorum.committed):
            committed[header.base_offset] = quorum.committed[position : position + header.size]
        if event not in ("fetch", "small"):
            continue
        answer = quorum.answer(found.position, 1 if event == "small" else 1 << 20)
        assert answer.error in (0, 74)
        step = found.handle(answer, keep=number < 4)
        if isinstance(step, SnapshotNeeded):
            found.loaded(step.snapshot)
        elif isinstance(step, Progress):
            for run in step.committed:
                for position, header in iter_batches(run.data):
                    assert header.base_offset not in seen
                    assert header.end_offset <= quorum.high_watermark
                    seen[header.base_offset] = run.data[position : position + header.size]
        assert found.high_watermark >= mark
        mark = found.high_watermark
    assert seen.items() <= committed.items()
    assert list(seen) == sorted(seen)
    assert found.high_watermark == quorum.high_watermark
    ends = [end for end in map(end_of, quorum.batches) if end <= mark]
    assert found.committed_end == max([quorum.log_start, *ends])


def test_the_last_fetched_epoch_is_sent():
    quorum, found = FakeQuorum(epoch=4), following(epoch=4)
    quorum.append([b"a"], commit=False)
    quorum.elect(2, commit=False)
    found.handle(evolve(quorum.answer(found.position, 1 << 20)))
    for _ in range(3):
        found.handle(quorum.answer(found.position, 1))
    assert (found.position.offset, found.position.last_fetched_epoch, found.position.leader_epoch) == (2, 5, 5)
