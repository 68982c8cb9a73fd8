"""Bodies that are held at once: of all senders, and of one."""

import pytest

from aclog.console.http import BodyBudget, BusyError


def test_one_sender_takes_at_most_half() -> None:
    budget = BodyBudget(100)
    with budget.share("one") as first, budget.share("one") as second, budget.share("other") as other:
        first.take(30)
        second.take(20)
        with pytest.raises(BusyError):
            second.take(1)
        other.take(50)
        assert budget.remaining == 0
        with budget.share("third") as third, pytest.raises(BusyError):
            third.take(1)
    assert budget.remaining == 100
    assert budget._of == {}


def test_what_was_refused_is_not_counted() -> None:
    budget = BodyBudget(100)
    with budget.share("one") as share:
        with pytest.raises(BusyError):
            share.take(51)
        share.take(50)
        assert share.size == 50
    assert budget.remaining == 100
