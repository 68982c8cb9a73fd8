"""Notices that a server would repeat for each request."""

from aclog.terminal.notices import FewNotices


def test_so_many_a_minute_are_printed_and_the_others_counted() -> None:
    now, printed = [0.0], list[str]()
    notices = FewNotices(tell=printed.append, most=3, seconds=60.0, clock=lambda: now[0])
    for number in range(10):
        notices(f"note {number}")
    assert printed == ["note 0", "note 1", "note 2"]
    now[0] = 59.9
    notices("late")
    now[0] = 60.0
    notices("later")
    notices("at once")
    assert printed[3:] == [
        "8 notices such as the next one were left out: at most 3 a minute are shown",
        "later",
        "at once",
    ]
    now[0] = 200.0
    notices("alone")
    assert printed[6:] == ["alone"]
