"""The write path: decisions on the newest state, one atomic batch each, responses in order and after the commit."""

import asyncio
import os
import random
import threading
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.interface import RequestContext
from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import EncodeError, LogError, ReplayError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.verify import verify
from aclog.metalog.records import NoOpRecord
from aclog.protocol.headers import OutcomeUnknownError, RequestError
from aclog.server.controller.quorum_controller import ControllerResult, QuorumController
from aclog.server.loops import committed
from aclog.server.telemetry import Metrics
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Merger, Publisher, recover
from tests.support.builders.acls import acl
from tests.support.fakes.held_log import HeldLog
from tests.support.fakes.memory_log import MemoryLog
from tests.support.runs.profiles import examples

CONTEXT = RequestContext(principal="User:admin", host="127.0.0.1")


def exactly(name):
    return AclBindingFilter(resource_type=2, resource_name=name, pattern_type=3)


def names(image: Image):
    return {each.acl.resource_name for each in image.acls}


def replayed(log):
    publisher = Publisher()
    while publisher.applier.next_offset < log.high_watermark():
        publisher.advance(log.read(publisher.applier.next_offset))
    return publisher


def controller(log, **options):
    return QuorumController(log=log, publisher=replayed(log), loop=asyncio.get_running_loop(), **options)


def held():
    log = HeldLog()
    log.append([b"\x01\x14\x00\x00"], timestamp=1)
    log.hold()
    return log


async def settle():
    for _ in range(4):
        await asyncio.sleep(0)


async def created_apart(quorum, count):
    """Requests that do not arrive together: a batch each."""
    futures = []
    for number in range(count):
        futures.append(quorum.create_acls(CONTEXT, [acl(f"t{number}")]))
        await settle()
    return futures


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


class TestAnswers:
    async def test_nothing_is_answered_or_visible_before_its_commit(self):
        log = held()
        quorum = controller(log)
        future = quorum.create_acls(CONTEXT, [acl("t")])
        await settle()
        assert not future.done()
        assert len(quorum.publisher.current.acls) == 0
        await settle()
        log.release()
        assert [result.error for result in await committed(future)] == [None]
        assert names(quorum.publisher.current) == {"t"}

    async def test_a_duplicate_of_an_uncommitted_rule_waits_for_its_commit(self):
        log = held()
        quorum = controller(log)
        first, again = quorum.create_acls(CONTEXT, [acl("t")]), quorum.create_acls(CONTEXT, [acl("t")])
        await settle()
        assert log.end_offset() == 2
        assert not again.done()
        await settle()
        log.release()
        await settle()
        assert first.done()
        assert again.result()[0].error is None

    async def test_a_no_op_request_is_answered_at_once_if_nothing_is_pending(self):
        quorum = controller(held())
        assert quorum.delete_acls(CONTEXT, [exactly("t")]).done()

    async def test_a_response_waits_for_everything_before_it(self):
        log = held()
        quorum = controller(log)
        futures = await created_apart(quorum, 4)
        await settle()
        log.release(2)
        await settle()
        assert [future.done() for future in futures] == [True, True, False, False]
        assert names(quorum.publisher.current) == {"t0", "t1"}
        assert names(quorum.publisher.latest) == {"t0", "t1", "t2", "t3"}

    async def test_a_rejected_acl_is_answered_in_order(self):
        log = held()
        quorum = controller(log)
        quorum.create_acls(CONTEXT, [acl("t")])
        refused = quorum.create_acls(CONTEXT, [acl("u", principal="nobody")])
        assert not refused.done()
        await settle()
        log.release()
        assert (await committed(refused))[0].error.code == 42

    async def test_a_group_is_one_commit(self):
        log, shown, marks = held(), [], []
        quorum = controller(log)
        quorum.publisher.subscribe(shown.append)
        quorum.watch(marks.append)
        futures = [quorum.create_acls(CONTEXT, [acl(f"t{n}")]) for n in range(20)]
        await settle()
        log.release()
        await asyncio.gather(*map(committed, futures))
        assert len(shown) == 1
        assert marks == [21]

    async def test_an_error_of_the_operation_is_its_own(self):
        log = held()
        quorum = controller(log)
        with pytest.raises(EncodeError):
            await committed(quorum.create_acls(CONTEXT, [acl("x" * 40_000)]))
        assert quorum.failure is None
        assert log.end_offset() == 1

    async def test_a_batch_beyond_the_limit_is_rejected(self):
        log = held()
        quorum = controller(log)
        with pytest.raises(RequestError, match="8388608") as refused:
            await committed(quorum.create_acls(CONTEXT, [acl(f"{n:04}" + "x" * 32_760) for n in range(257)]))
        assert refused.value.code == 18
        await settle()
        log.release()
        await settle()
        assert quorum.failure is None

    async def test_too_many_uncommitted_bytes_make_others_wait(self, monkeypatch):
        monkeypatch.setattr("aclog.server.controller.quorum_controller.MAX_UNCOMMITTED_BYTES", 200)
        log = held()
        quorum = controller(log)
        futures = await created_apart(quorum, 9)
        assert 1 < log.end_offset() < 5
        while not all(future.done() for future in futures):
            await settle()
            log.release()
            await settle()
        assert len(quorum.publisher.current.acls) == 9

    async def test_a_request_cannot_be_cancelled(self):
        log = held()
        quorum = controller(log)
        future = quorum.create_acls(CONTEXT, [acl("t")])
        assert not future.cancel()
        await settle()
        log.release()
        assert (await committed(future))[0].error is None
        assert quorum.failure is None


class TestTogether:
    """Requests that arrive in one turn of the event loop share a batch, and none notices the others."""

    async def test_they_become_one_batch(self):
        log = held()
        quorum = controller(log)
        futures = [quorum.create_acls(CONTEXT, [acl(f"t{n}")]) for n in range(20)]
        await settle()
        (header,) = [header for _, header in iter_batches(MemoryLog.read(log, 1))]
        assert header.record_count == 20
        log.release()
        assert [len(await committed(future)) for future in futures] == [1] * 20

    async def test_each_gets_its_own_results(self):
        log = held()
        quorum = controller(log)
        wanted = [[acl("a"), acl("b")], [acl("c", principal="nobody"), acl("d")], [], [acl("a"), acl("", "User:x")]]
        futures = [quorum.create_acls(CONTEXT, each) for each in wanted]
        await settle()
        log.release()
        codes = [[result.error and result.error.code for result in await committed(future)] for future in futures]
        assert codes == [[None, None], [42, None], [], [None, 42]]
        assert names(quorum.publisher.current) == {"a", "b", "d"}

    async def test_one_that_cannot_be_written_fails_alone(self):
        log = held()
        quorum = controller(log)
        futures = [quorum.create_acls(CONTEXT, [acl(name)]) for name in ("a", "x" * 40_000, "b")]
        await settle()
        log.release()
        assert (await committed(futures[0]))[0].error is None
        with pytest.raises(EncodeError):
            await committed(futures[1])
        assert (await committed(futures[2]))[0].error is None
        assert names(quorum.publisher.current) == {"a", "b"}

    async def test_one_that_holds_a_filters_value_fails_alone(self):
        log = held()
        quorum = controller(log)
        futures = [quorum.create_acls(CONTEXT, [acl("a"), acl("b", operation=operation)]) for operation in (3, 1, 4)]
        await settle()
        log.release()
        codes = [[result.error and result.error.code for result in await committed(future)] for future in futures]
        assert codes == [[None, None], [-1, -1], [None, None]]

    async def test_what_arrives_behind_them_is_decided_after_them(self):
        log = held()
        quorum = controller(log)
        quorum.create_acls(CONTEXT, [acl("t")])
        deleting = quorum.delete_acls(CONTEXT, [exactly("t")])
        creating = quorum.create_acls(CONTEXT, [acl("t")])
        await settle()
        log.release()
        assert len((await committed(deleting))[0].deleted) == 1
        assert (await committed(creating))[0].error is None
        assert names(quorum.publisher.current) == {"t"}

    async def test_a_group_is_bounded(self):
        log = held()
        quorum = controller(log)
        for number in range(3):
            quorum.create_acls(CONTEXT, [acl(f"t{number}-{n}") for n in range(100)])
        await settle()
        assert [header.record_count for _, header in iter_batches(MemoryLog.read(log, 1))] == [200, 100]


class TestManyAtOnce:
    async def test_a_large_request_is_decided_in_a_thread_and_keeps_its_order(self):
        log = held()
        quorum = controller(log)
        before = quorum.create_acls(CONTEXT, [acl("t0")])
        large = quorum.create_acls(CONTEXT, [acl(f"t{n}") for n in range(300)])
        after = quorum.delete_acls(CONTEXT, [exactly("t299")])
        assert log.end_offset() == 2
        await until(lambda: log.end_offset() == 302)
        log.release()
        await asyncio.gather(committed(before), committed(large))
        assert len((await committed(after))[0].deleted) == 1
        assert len(quorum.publisher.current.acls) == 299

    @pytest.mark.parametrize("filters", [[exactly("t")], [exactly(f"x{n}") for n in range(17)]])
    async def test_wide_filters_are_decided_in_a_thread(self, filters):
        log = held()
        quorum = controller(log)
        creating = quorum.create_acls(CONTEXT, [acl("t", f"User:u{n}") for n in range(300)])
        await until(lambda: log.end_offset() == 301)
        log.release()
        await committed(creating)
        deleting = quorum.delete_acls(CONTEXT, filters)
        assert quorum._deciding is not None
        await until(lambda: quorum._deciding is None)
        log.release()
        assert len((await committed(deleting))[0].deleted) == (300 if len(filters) == 1 else 0)

    async def test_commits_during_a_decision_are_published_after_it(self):
        log = held()
        quorum = controller(log)
        before = quorum.create_acls(CONTEXT, [acl("t")])
        decided, go_on = threading.Event(), threading.Event()

        def operation(image):
            decided.set()
            assert go_on.wait(30)
            return ControllerResult(records=[NoOpRecord()], response="done")

        large = quorum.write(operation, offload=True)
        await until(decided.is_set)
        log.release()
        await committed(before)
        go_on.set()
        await until(lambda: log.end_offset() == 3)
        log.release()
        assert await committed(large) == "done"

    async def test_a_failure_meanwhile_reaches_it(self):
        log = held()
        quorum = controller(log)
        before = quorum.create_acls(CONTEXT, [acl("t")])
        go_on = threading.Event()
        large = quorum.write(
            lambda _: go_on.wait(30) and ControllerResult(records=[NoOpRecord()], response=1), offload=True
        )
        behind = quorum.create_acls(CONTEXT, [acl("u")])
        await settle()
        log.break_down()
        await settle()
        go_on.set()
        for future in (before, large, behind):
            with pytest.raises(LogError, match="no space left"):
                await committed(future)
        assert log.end_offset() == 2


class TestOneBatch:
    @pytest.mark.parametrize("count", [1, 300])
    async def test_the_staged_bytes_are_appended_unchanged(self, monkeypatch, count):
        """The appended bytes are the staged ones: built once, with one timestamp."""
        log, staged, times = held(), [], iter(range(5, 1000))
        quorum = controller(log, clock=lambda: next(times))
        stage = Publisher.stage
        monkeypatch.setattr(Publisher, "stage", lambda self, batch: (staged.append(batch), stage(self, batch)))
        creating = quorum.create_acls(CONTEXT, [acl(f"t{n}") for n in range(count)])
        await until(lambda: log.end_offset() == 1 + count)
        log.release()
        await committed(creating)
        assert staged == [log.read(1)]
        assert next(times) == 6


class TestFailure:
    async def test_all_pending_requests_fail_and_nothing_becomes_visible(self):
        log, told = held(), []
        quorum = controller(log, on_failure=told.append)
        futures = await created_apart(quorum, 3)
        futures.append(quorum.create_acls(CONTEXT, [acl("t0")]))
        await settle()
        log.release(1)
        await settle()
        log.break_down()
        await settle()
        assert futures[0].result(0)[0].error is None
        for future in futures[1:]:
            with pytest.raises(LogError, match="no space left"):
                future.result(0)
        assert names(quorum.publisher.current) == {"t0"}
        assert [str(error) for error in told] == ["no space left"]
        with pytest.raises(LogError, match="no space left"):
            quorum.delete_acls(CONTEXT, [exactly("t0")]).result(0)

    async def test_a_rejected_append_stops_it(self):
        log, told = held(), []
        quorum = controller(log, on_failure=told.append)
        log.broken = "closed"
        with pytest.raises(LogError, match="closed"):
            await committed(quorum.create_acls(CONTEXT, [acl("t")]))
        assert len(told) == 1
        assert len(quorum.publisher.current.acls) == 0

    async def test_records_that_cannot_be_replayed_never_reach_the_log(self):
        log, told = held(), []
        quorum = controller(log, on_failure=told.append, new_id=lambda: UUID(int=5))
        await settle()
        same = quorum.write(
            lambda image: ControllerResult(
                records=[*quorum_records(quorum, image, "a"), *quorum_records(quorum, image, "b")], response=None
            )
        )
        with pytest.raises(ReplayError, match="exists already"):
            same.result(0)
        assert log.end_offset() == 1
        assert len(told) == 1

    async def test_a_second_writer_is_noticed(self):
        log = held()
        quorum = controller(log)
        log.append([b"\x01\x14\x00\x00"], timestamp=1)
        with pytest.raises(LogError, match="another caller"):
            await committed(quorum.create_acls(CONTEXT, [acl("t")]))

    async def test_records_of_another_writer_are_not_overwritten(self):
        log = held()
        quorum = controller(log)
        decided, go_on = threading.Event(), threading.Event()

        def operation(image):
            decided.set()
            assert go_on.wait(30)
            return ControllerResult(records=[NoOpRecord()], response="done")

        large = quorum.write(operation, offload=True)
        await until(decided.is_set)
        log.append([b"\x01\x14\x00\x00"], timestamp=1)
        go_on.set()
        with pytest.raises(LogError, match="another caller"):
            await committed(large)
        assert log.end_offset() == 2

    async def test_an_image_behind_the_log_is_refused(self):
        log = held()
        with pytest.raises(LogError, match="all three"):
            QuorumController(log=log, publisher=Publisher(), loop=asyncio.get_running_loop())

    async def test_a_subscriber_that_fails_stops_it(self):
        log, told = held(), []
        quorum = controller(log, on_failure=told.append)
        future = quorum.create_acls(CONTEXT, [acl("t")])
        quorum.publisher.subscribe(lambda _: 1 / 0)
        await settle()
        log.release()
        with pytest.raises(OutcomeUnknownError, match="ZeroDivisionError"):
            await committed(future)
        assert len(told) == 1


def quorum_records(quorum, image, name):
    from aclog.authorizer.control import create_acls

    return create_acls(image.acls, [acl(name)], quorum.new_id).records


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.lists(st.integers(0, 6), min_size=1, max_size=4)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 6), min_size=1, max_size=3)),
        st.tuples(st.just("release"), st.integers(1, 4)),
    ),
    max_size=40,
)


class Naive:
    """A sequential model on a set."""

    def __init__(self):
        self.rules, self.states = set(), [frozenset()]

    def create(self, wanted):
        before = set(self.rules)
        self.rules |= {f"t{n}" for n in wanted}
        return len(wanted), self.rules != before

    def delete(self, wanted):
        answer = [int(f"t{n}" in self.rules) for n in wanted]
        before = set(self.rules)
        self.rules -= {f"t{n}" for n in wanted}
        return answer, self.rules != before


@settings(deadline=None, max_examples=examples(60))
@given(OPERATIONS)
def test_concurrent_requests_equal_sequential_ones(operations):
    """Compare responses, their order, every published state, and the final state."""

    async def run():
        log, naive = held(), Naive()
        quorum = controller(log)
        shown, order, futures, states = [], [], [], [frozenset()]
        quorum.publisher.subscribe(lambda image: shown.append(frozenset(names(image))))

        def answered(number, end_offset):
            def done(_):
                order.append((number, end_offset <= log.mark and end_offset <= quorum.publisher.current.end_offset))

            return done

        for kind, wanted in operations:
            if kind == "release":
                await settle()
                log.release(wanted)
                await settle()
                continue
            if kind == "create":
                expected, changes = naive.create(wanted)
                future = quorum.create_acls(CONTEXT, [acl(f"t{n}") for n in wanted])
            else:
                expected, changes = naive.delete(wanted)
                future = quorum.delete_acls(CONTEXT, [exactly(f"t{n}") for n in wanted])
            if changes:
                states.append(frozenset(naive.rules))
            future.add_done_callback(answered(len(futures), log.end_offset()))
            futures.append((kind, future, expected))
        await settle()
        log.release()
        for kind, future, expected in futures:
            answer = await committed(future)
            found = len(answer) if kind == "create" else [len(one.deleted) for one in answer]
            assert found == expected
        assert order == [(number, True) for number in range(len(futures))]
        assert frozenset(names(quorum.publisher.current)) == states[-1]
        position = 0
        for state in shown:
            position = states.index(state, position)
        assert names(replayed(log).current) == naive.rules

    asyncio.run(run())


class TestOnDisk:
    async def test_what_may_be_committed_when_the_log_is_abandoned_is_not_answered_as_failed(self, tmp_path):
        is_slow, begun, go_on = threading.Event(), threading.Event(), threading.Event()

        def fsync(fd):
            if is_slow.is_set():
                begun.set()
                go_on.wait(30)
            os.fsync(fd)

        log = open_log(tmp_path / "log", create=True, fsync=fsync)
        quorum = controller(log)
        is_slow.set()
        creating = quorum.create_acls(CONTEXT, [acl("t")])
        await until(begun.is_set)
        log.abandon("the disk fails")
        with pytest.raises(OutcomeUnknownError, match="appended, but the commit is unknown: the disk fails"):
            await committed(creating)
        go_on.set()
        await asyncio.to_thread(log.close)
        assert names(recover(tmp_path / "log").image) == {"t"}

    async def test_acknowledged_changes_survive_a_restart(self, tmp_path):
        with open_log(tmp_path / "log", create=True) as log:
            quorum = controller(log)
            await asyncio.gather(*(committed(quorum.create_acls(CONTEXT, [acl(f"t{n}")])) for n in range(100)))
            await asyncio.gather(*(committed(quorum.delete_acls(CONTEXT, [exactly(f"t{n}")])) for n in range(50)))
            digest = quorum.publisher.current.acls.digest()
            await asyncio.to_thread(log.close)
        assert not list(verify(tmp_path / "log"))
        assert recover(tmp_path / "log").image.acls.digest() == digest
        with open_log(tmp_path / "log", new_epoch=True) as log:
            quorum = controller(log)
            assert len(quorum.publisher.current.acls) == 50
            await committed(quorum.create_acls(CONTEXT, [acl("again")]))
            await asyncio.to_thread(log.close)
        assert not list(verify(tmp_path / "log"))

    async def test_a_failed_fsync_fails_all_pending_requests(self, tmp_path):
        broken = threading.Event()

        def fsync(fd):
            if broken.is_set():
                raise OSError(28, "No space left on device")
            os.fsync(fd)

        log = open_log(tmp_path / "log", create=True, fsync=fsync)
        told = []
        quorum = controller(log, on_failure=told.append)
        acknowledged = set()

        async def client(number):
            for turn in range(50):
                await committed(quorum.create_acls(CONTEXT, [acl(f"{number}-{turn}")]))
                acknowledged.add(f"{number}-{turn}")
                if turn == 20:
                    broken.set()

        ended = await asyncio.gather(*map(client, range(8)), return_exceptions=True)
        assert all(isinstance(error, LogError) for error in ended)
        assert len(told) == 1
        assert names(quorum.publisher.current) == acknowledged
        await asyncio.to_thread(log.close)
        assert acknowledged <= names(recover(tmp_path / "log").image)

    async def test_a_slow_disk_makes_larger_groups_and_leaves_the_loop_free(self, tmp_path):
        gate = threading.Semaphore(0)
        slow = threading.Event()

        def fsync(fd):
            if slow.is_set():
                assert gate.acquire(timeout=30)
            os.fsync(fd)

        with open_log(tmp_path / "log", create=True, fsync=fsync) as log:
            shown = []
            quorum = controller(log)
            quorum.publisher.subscribe(shown.append)
            slow.set()
            futures = [quorum.create_acls(CONTEXT, [acl("first")])]
            await asyncio.sleep(0)
            futures += [quorum.create_acls(CONTEXT, [acl(f"t{n}")]) for n in range(50)]
            slow.clear()
            for _ in range(4):
                gate.release()
            await asyncio.gather(*map(committed, futures))
            assert len(shown) <= 3
            assert len(quorum.publisher.current.acls) == 51
            await asyncio.to_thread(log.close)

    async def test_merging_concurrently_with_staging_loses_nothing(self, tmp_path):
        rnd = random.Random(3)
        with open_log(tmp_path / "log", create=True) as log:
            quorum = controller(log)
            merger = Merger(publisher=quorum.publisher, merge_at=40)

            async def client(number):
                for turn in range(60):
                    await committed(quorum.create_acls(CONTEXT, [acl(f"{number}-{turn}")]))
                    if rnd.random() < 0.4:
                        await committed(quorum.delete_acls(CONTEXT, [exactly(f"{number}-{rnd.randrange(turn + 1)}")]))

            await asyncio.gather(*map(client, range(8)))
            await asyncio.to_thread(merger.close)
            current = quorum.publisher.current
            assert current is quorum.publisher.latest
            await asyncio.to_thread(log.close)
        assert len(current.acls.index.base) > 0
        found = recover(tmp_path / "log").image
        assert found.acls.digest() == current.acls.digest()
        assert found.provenance == current.provenance


async def test_what_it_measures():
    log, metrics = held(), Metrics(process=False)
    quorum = controller(log, metrics=metrics)
    futures = [quorum.create_acls(CONTEXT, [acl(f"t{n}")]) for n in range(5)]
    await settle()
    log.release()
    await asyncio.gather(*map(committed, futures))
    text = metrics.text().decode()
    for line in (
        "aclog_commit_duration_seconds_count 5.0",
        "aclog_append_duration_seconds_count 1.0",
        "aclog_apply_duration_seconds_count 1.0",
    ):
        assert line in text
    assert quorum.committed_bytes > 61


class TestCommitted:
    async def test_a_future_done_by_another_thread_wakes_the_loop(self):
        from concurrent.futures import Future

        future: Future[int] = Future()
        threading.Timer(0.01, future.set_result, [7]).start()
        assert await committed(future) == 7

    async def test_a_cancelled_waiter_affects_nobody(self):
        log = held()
        quorum = controller(log)
        task = asyncio.ensure_future(committed(quorum.create_acls(CONTEXT, [acl("t")])))
        await settle()
        task.cancel()
        await settle()
        log.release()
        await settle()
        assert names(quorum.publisher.current) == {"t"}
