"""Pages that are made once for all who ask, and documents that differ by the token of a session only."""

import asyncio
from operator import attrgetter

import pytest

from aclog.console.pages.page import Form, Page, Parameters
from aclog.console.web.rendering import Around, Kept, MadePage, page_html

POSTED = Form(key="ask", title="Ask", path="/", fields=(), submit="Ask", writes=True)


def made(title: str, *, status: int = 200, is_settled: bool = True) -> MadePage:
    return MadePage.of(Page(path="/", title=title, parts=(POSTED,), is_settled=is_settled), Parameters(), status)


def kept(most: int) -> Kept[MadePage]:
    return Kept(most=most, lasts=attrgetter("lasts"))


def around(token: str, status: str = "at 1") -> Around:
    return Around(source="s", status=status, trouble=None, version="1", csrf_token=token)


class Maker:
    """Makes pages that are numbered, each when it is let go."""

    def __init__(self, **how) -> None:
        self.number, self.let_go, self._how = 0, asyncio.Event(), how

    async def __call__(self) -> MadePage:
        self.number += 1
        await self.let_go.wait()
        return made(f"number {self.number}", **self._how)


def test_a_page_is_made_once_however_many_ask() -> None:
    async def asked() -> None:
        pages, make = kept(4), Maker()
        waiting = [asyncio.ensure_future(pages.get("state", "key", make)) for _ in range(50)]
        await asyncio.sleep(0)
        make.let_go.set()
        assert len(set(await asyncio.gather(*waiting))) == 1
        assert await pages.get("state", "key", make) is waiting[0].result()
        assert make.number == 1

    asyncio.run(asked())


def test_who_gives_up_waiting_does_not_end_it_for_the_others() -> None:
    async def asked() -> None:
        pages, make = kept(4), Maker()
        first, second = (asyncio.ensure_future(pages.get("state", "key", make)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        make.let_go.set()
        assert (await second).page.title == "number 1"
        assert first.cancelled()

    asyncio.run(asked())


def test_what_is_asked_of_a_new_state_is_not_what_was_being_made_of_the_old_one() -> None:
    async def asked() -> None:
        pages, old, new = kept(4), Maker(), Maker()
        before = asyncio.ensure_future(pages.get("old", "key", old))
        await asyncio.sleep(0)
        new.number = 10
        after = asyncio.ensure_future(pages.get("new", "key", new))
        await asyncio.sleep(0)
        old.let_go.set()
        assert (await before).page.title == "number 1"
        new.let_go.set()
        assert (await after).page.title == "number 11"
        assert (await pages.get("new", "key", new)).page.title == "number 11"

    asyncio.run(asked())


@pytest.mark.parametrize(
    ("how", "is_moving"), [({"status": 400}, False), ({"is_settled": False}, False), ({}, True)], ids=str
)
def test_what_may_be_another_one_next_time_is_not_kept(how: dict, is_moving: bool) -> None:
    async def asked() -> None:
        pages, make = kept(4), Maker(**how)
        make.let_go.set()
        for number in (1, 2):
            found = await pages.get("state", "key", make, is_moving=is_moving)
            assert found.page.title == f"number {number}"

    asyncio.run(asked())


def test_what_failed_is_made_again() -> None:
    async def fails() -> MadePage:
        raise ZeroDivisionError

    async def asked() -> None:
        pages, make = kept(4), Maker()
        for found in await asyncio.gather(
            *(pages.get("state", "key", fails) for _ in range(3)), return_exceptions=True
        ):
            assert isinstance(found, ZeroDivisionError)
        make.let_go.set()
        assert (await pages.get("state", "key", make)).page.title == "number 1"

    asyncio.run(asked())


def test_the_page_that_nobody_asked_for_the_longest_is_given_up() -> None:
    async def asked() -> None:
        pages, make = kept(2), Maker()
        make.let_go.set()
        for key in ("a", "b", "a", "c"):
            await pages.get("state", key, make)
        assert list(pages._pages) == ["a", "c"]

    asyncio.run(asked())


def test_each_session_has_its_own_token_in_the_one_document() -> None:
    page = made("one")
    alices, bobs, nobodys = (page.document(around(token)) for token in ("a" * 64, "b" * 64, ""))
    assert alices == page_html(page.page, Parameters(), page.answer, around("a" * 64)).encode()
    assert b"a" * 64 in alices
    assert alices.replace(b"a" * 64, b"b" * 64) == bobs
    assert nobodys == bobs.replace(b"b" * 64, b"")
    later = page.document(around("b" * 64, "at 2"))
    assert b"at 2" in later
    assert b"at 1" not in later
