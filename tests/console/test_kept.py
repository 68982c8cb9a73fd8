"""Values that are made once, and given up in the order in which nobody asked for them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from aclog.console.shared import Cache


def test_a_value_is_made_once_however_many_ask():
    kept, calls, begun = Cache(4), [], threading.Barrier(8)

    def make():
        calls.append(1)
        return object()

    def ask(_):
        begun.wait(30)
        return kept.get("key", make)

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ask, range(8)))
    assert (len(found), len(calls)) == (1, 1)


def test_what_nobody_asked_for_is_given_up():
    kept = Cache(2)
    for key in ("a", "b", "a", "c"):
        kept.get(key, lambda: key)  # noqa: B023 - called at once
    assert [key for key in "abc" if kept.has(key)] == ["a", "c"]


def test_what_failed_is_made_again():
    kept = Cache(2)
    with pytest.raises(ZeroDivisionError):
        kept.get("key", lambda: 1 // 0)
    assert not kept.has("key")
    assert kept.get("key", lambda: 5) == 5
