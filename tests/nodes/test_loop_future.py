"""A future of an event loop's own thread."""

import asyncio
import functools
import threading

import pytest

from aclog.server.loops import LoopFuture, committed


def on_a_loop(test):
    @functools.wraps(test)
    def run():
        asyncio.run(test())

    return run


async def made():
    return LoopFuture(asyncio.get_running_loop())


@on_a_loop
async def test_who_waits_gets_the_result_and_who_comes_later_too():
    future = await made()
    waiting = [asyncio.create_task(committed(future)) for _ in range(3)]
    await asyncio.sleep(0)
    assert future.running()
    future.set_result(7)
    assert await asyncio.gather(*waiting, committed(future)) == [7] * 4
    assert (future.done(), future.running(), future.exception()) == (True, False, None)


@on_a_loop
async def test_a_cancelled_waiter_affects_nobody():
    future = await made()
    gone, stays = (asyncio.create_task(committed(future)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert not future.cancel()
    assert not future.cancelled()
    future.set_result(7)
    assert await stays == 7


@on_a_loop
async def test_an_error_is_raised_to_all():
    future = await made()
    waiting = asyncio.create_task(committed(future))
    await asyncio.sleep(0)
    future.set_exception(ValueError("no"))
    for each in (waiting, committed(future)):
        with pytest.raises(ValueError, match="no"):
            await each
    assert isinstance(future.exception(), ValueError)


@on_a_loop
async def test_callbacks_are_called_once_and_one_that_fails_hides_no_other():
    future, called = await made(), []
    future.add_done_callback(lambda _: 1 / 0)
    future.add_done_callback(lambda done: called.append(done.result()))
    future.set_result(7)
    future.add_done_callback(lambda done: called.append(done.result() + 1))
    assert called == [7, 8]


@on_a_loop
async def test_its_own_loop_never_blocks_on_it():
    future = await made()
    with pytest.raises(TimeoutError):
        future.result(30)


@on_a_loop
async def test_another_thread_may_wait():
    future, found = await made(), []
    waiting = threading.Thread(target=lambda: found.append(future.result(30)))
    waiting.start()
    await asyncio.sleep(0.01)
    future.set_result(7)
    await asyncio.to_thread(waiting.join)
    with pytest.raises(TimeoutError):
        await asyncio.to_thread((await made()).result, 0.01)
    assert found == [7]
