"""Work that gives way to pages, and is done all the same."""

import threading

import pytest

from aclog.console import shared as module
from aclog.console.shared import Precedence


def worker(precedence: Precedence, seen: list[str], begun: threading.Event) -> threading.Thread:
    def work() -> None:
        pause = precedence.give_way()
        for _ in range(3):
            seen.append("a step")
            begun.set()
            pause()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_work_waits_until_the_last_page_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORK_S", 0)
    monkeypatch.setattr(module, "_WAIT_S", 60)
    precedence, seen, begun = Precedence(), [], threading.Event()
    with precedence.page():
        thread = worker(precedence, seen, begun)
        with precedence.page():
            begun.wait(60)
        seen.append("the pages")
    thread.join()
    assert seen == ["a step", "the pages", "a step", "a step"]


def test_work_goes_on_though_pages_are_made_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORK_S", 0)
    precedence, seen = Precedence(), []
    with precedence.page():
        worker(precedence, seen, threading.Event()).join()
    assert len(seen) == 3


def test_work_that_took_no_time_does_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORK_S", 1 << 30)
    monkeypatch.setattr(module, "_WAIT_S", 1 << 30)
    precedence, seen = Precedence(), []
    with precedence.page():
        worker(precedence, seen, threading.Event()).join()
    assert len(seen) == 3
