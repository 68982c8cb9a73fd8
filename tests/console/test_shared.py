"""One at a time of a key, however they come, go and are cancelled."""

import asyncio
import random

import pytest

from aclog.console.shared import NoTurnError, Turns


class Asker:
    """Takes a turn, and ends it when it is let go."""

    def __init__(self, turns: Turns, key: object, *, is_lasting: bool = False) -> None:
        self.has_turn, self.let_go, self.is_refused = False, asyncio.Event(), False
        self.task = asyncio.ensure_future(self._run(turns, key, is_lasting))

    async def _run(self, turns: Turns, key: object, is_lasting: bool) -> None:
        try:
            async with turns.turn(key, is_lasting=is_lasting):
                self.has_turn = True
                await self.let_go.wait()
        except NoTurnError:
            self.is_refused = True


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def askers(turns: Turns, *lasting: bool, key: object = "k") -> list[Asker]:
    found = []
    for is_lasting in lasting:
        found.append(Asker(turns, key, is_lasting=is_lasting))
        await settle()
    return found


def test_the_newest_takes_the_place_of_the_one_that_waits() -> None:
    async def scenario() -> None:
        turns = Turns(waiting=1, replaces=True)
        first, second, third = await askers(turns, False, False, False)
        assert [each.has_turn for each in (first, second, third)] == [True, False, False]
        assert [each.is_refused for each in (first, second, third)] == [False, True, False]
        first.let_go.set()
        await settle()
        assert third.has_turn
        third.let_go.set()
        await settle()
        assert turns._lines == {}

    asyncio.run(scenario())


def test_what_writes_gives_its_place_to_nobody() -> None:
    async def scenario() -> None:
        first, writes, third = await askers(Turns(waiting=1, replaces=True), False, True, False)
        assert third.is_refused
        first.let_go.set()
        await settle()
        assert writes.has_turn
        writes.let_go.set()

    asyncio.run(scenario())


def test_without_replacing_those_that_came_first_stay() -> None:
    async def scenario() -> None:
        turns = Turns(waiting=2)
        found = await askers(turns, False, False, False, False)
        assert [each.is_refused for each in found] == [False, False, False, True]
        for each in found[:3]:
            assert each.has_turn
            each.let_go.set()
            await settle()
        assert turns._lines == {}

    asyncio.run(scenario())


def test_other_keys_do_not_wait() -> None:
    async def scenario() -> None:
        turns = Turns(waiting=1)
        found = [Asker(turns, key) for key in range(5)]
        await settle()
        assert all(each.has_turn for each in found)
        for each in found:
            each.let_go.set()

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("replaces", [False, True])
def test_turns_are_passed_on_whoever_is_cancelled(seed: int, replaces: bool) -> None:
    async def scenario() -> None:
        draw, turns, found = random.Random(seed), Turns(waiting=3, replaces=replaces), list[Asker]()
        for _ in range(200):
            kind = draw.randrange(4)
            if kind == 0:
                found.append(Asker(turns, "k", is_lasting=draw.random() < 0.3))
            elif found:
                each = draw.choice(found)
                (each.task.cancel if kind == 1 else each.let_go.set)()
            if draw.random() < 0.7:
                await settle()
            at_work = [each for each in found if each.has_turn and not each.task.done() and not each.let_go.is_set()]
            assert len(at_work) <= 1
        for each in found:
            each.let_go.set()
        await asyncio.gather(*(each.task for each in found), return_exceptions=True)
        assert turns._lines == {}

    asyncio.run(scenario())
