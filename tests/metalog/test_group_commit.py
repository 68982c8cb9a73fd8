import asyncio
import threading
from concurrent.futures import FIRST_EXCEPTION, wait

import pytest

from aclog.metalog import group_commit
from aclog.metalog.batches import build_batch
from aclog.metalog.committed_log import Appended
from aclog.metalog.errors import LogError, UncertainError
from aclog.metalog.group_commit import Acknowledgement, GroupCommit

APPENDED = Appended(base_offset=1, last_offset=2, leader_epoch=3)


def waiting_threads(future, count):
    found = []
    threads = [threading.Thread(target=lambda: found.append(future.result(30))) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, found


def test_all_waiters_are_released():
    future = Acknowledgement()
    threads, found = waiting_threads(future, 5)
    future.set_result(APPENDED)
    for thread in threads:
        thread.join(30)
    assert found == [APPENDED] * 5
    assert future.result() == APPENDED
    assert future.exception() is None


def test_an_error_is_raised_in_all_waiters():
    future = Acknowledgement()
    future.set_exception(LogError("no"))
    for _ in range(2):
        with pytest.raises(LogError, match="no"):
            future.result()
    assert str(future.exception()) == "no"


@pytest.mark.parametrize("timeout", [0, -1, 0.001])
def test_a_wait_times_out(timeout):
    future = Acknowledgement()
    with pytest.raises(TimeoutError):
        future.result(timeout)
    with pytest.raises(TimeoutError):
        future.exception(timeout)
    future.set_result(APPENDED)
    assert future.result(timeout) == APPENDED


def test_it_cannot_be_cancelled():
    future = Acknowledgement()
    assert future.running()
    assert not future.cancel()


def test_a_callback_that_raises_does_not_block_waiters():
    future = Acknowledgement()

    def leave(_):
        raise SystemExit

    future.add_done_callback(leave)
    with pytest.raises(SystemExit):
        future.set_result(APPENDED)
    assert future.result(0) == APPENDED


def test_it_works_as_a_plain_future():
    futures = [Acknowledgement() for _ in range(3)]

    async def gather():
        waiting = [asyncio.wrap_future(future) for future in futures]
        await asyncio.sleep(0)
        for future in futures:
            threading.Thread(target=future.set_result, args=(APPENDED,)).start()
        return await asyncio.gather(*waiting)

    assert asyncio.run(gather()) == [APPENDED] * 3
    assert not wait(futures, timeout=1, return_when=FIRST_EXCEPTION).not_done


def committing(commit):
    """A queue whose first batch is being committed by a function, and whose second one waits."""
    begun, go_on = threading.Event(), threading.Event()

    def held(_batches, _ends):
        begun.set()
        go_on.wait(30)
        return commit()

    queue = GroupCommit("log", 0, held)
    batch = build_batch([b"x"], base_offset=0, leader_epoch=1, timestamp=0)
    first = queue.submit(batch, 1, 1)
    begun.wait(30)
    return queue, first, queue.submit(batch, 1, 1), go_on


def test_abandoning_leaves_the_outcome_of_the_commit_that_has_begun_unknown_and_of_no_other():
    queue, first, second, go_on = committing(lambda: 1)
    queue.abandon("the disk fails")
    assert [type(each.exception(30)) for each in (first, second)] == [UncertainError, LogError]
    assert type(queue.failure) is LogError
    go_on.set()
    queue.close()


@pytest.mark.parametrize("kind", [LogError, UncertainError])
def test_a_commit_that_fails_says_whether_its_batches_may_be_in_the_log(kind):
    def fail():
        raise kind("no")

    queue, first, second, go_on = committing(fail)
    go_on.set()
    assert [type(each.exception(30)) for each in (first, second)] == [kind, LogError]
    queue.close()


def test_a_group_does_not_linger_as_long_as_a_slow_commit_took(monkeypatch):
    """A second batch of a group that does not come again: the first one is committed without it."""
    now = [0.0]
    monkeypatch.setattr(group_commit.clock, "monotonic", lambda: now[0])

    def slow():
        now[0] += 1000.0
        return 1

    queue, first, second, go_on = committing(slow)
    batch = build_batch([b"x"], base_offset=0, leader_epoch=1, timestamp=0)
    third = queue.submit(batch, 1, 1)  # in the group of the second
    go_on.set()
    assert [each.result(30).last_offset for each in (first, second, third)] == [0, 1, 2]
    assert queue.submit(batch, 1, 1).result(30).last_offset == 3
    queue.close()
