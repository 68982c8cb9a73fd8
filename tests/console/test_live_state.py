"""The past that a state source knows, asked for by texts."""

import threading
from datetime import UTC, datetime, timedelta

from aclog.console.live import LiveState
from aclog.snapshots.image import Image
from tests.support.processes.waiting import SECONDS


class Counting:
    """A source that tells which moments it was asked for."""

    def __init__(self):
        self.asked = []

    def image_at(self, moment):
        self.asked.append(moment)
        return Image.EMPTY


def live():
    return LiveState(source=Counting(), seconds=60, tell=lambda why: None)


def test_a_moment_that_is_settled_is_read_once():
    state = live()
    for text in ("7", " 7", "2026-01-02", "2026-01-02T00:00:00Z", "7"):
        state.past(text)
    assert state.source.asked == [7, datetime(2026, 1, 2, tzinfo=UTC)]


def test_what_counts_from_now_is_never_answered_from_before():
    state = live()
    coming = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    for text in ("now", "now", coming, coming, "1 second ago", "1 second ago"):
        state.past(text)
    assert len(state.source.asked) == 6
    assert state.past("latest") is None


class HoldingSource:
    """A source whose past is read until a test lets it go."""

    name, log = "holding", None

    def __init__(self):
        self.is_asked, self.let_go, self.read = threading.Event(), threading.Event(), 0

    def image(self):
        self.read += 1
        return Image.EMPTY

    def image_at(self, moment):
        self.is_asked.set()
        assert self.let_go.wait(SECONDS)
        return Image.EMPTY

    def freshness(self):
        return None

    def close(self):
        pass


def test_the_newest_state_is_read_while_somebody_reads_the_past():
    state = LiveState(source=HoldingSource(), seconds=60, tell=lambda why: None)
    asking = threading.Thread(target=state.past, args=("7",))
    asking.start()
    assert state.source.is_asked.wait(SECONDS)
    looking = threading.Thread(target=state._look)
    looking.start()
    looking.join(SECONDS)
    is_read = not looking.is_alive()
    state.source.let_go.set()
    asking.join()
    looking.join()
    assert is_read
    assert state.newest is not None
