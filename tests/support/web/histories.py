"""Consoles on logs in files, followed until all of their history is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aclog.authorizer.settings import Settings
from aclog.console.live import FollowedApplies, KnownHistory, LiveHistory, LiveState
from aclog.console.pages.page import CommandLine
from aclog.console.pages.states import Console, History, States
from aclog.snapshots.image import StateSource
from aclog.sources.logs import LogSource
from tests.support.processes.waiting import wait_until


@contextmanager
def live_history(source: StateSource, **options: int) -> Iterator[LiveHistory]:
    """The history of a source, with its state; `options` are those of LiveHistory."""
    assert source.log is not None
    live = LiveState(source=source, seconds=0.02, tell=lambda _: None)
    history = LiveHistory(live=live, log=source.log, **options)
    live.start()
    history.start()
    try:
        yield history
    finally:
        history.stop()
        live.stop()


def whole(history: LiveHistory) -> KnownHistory:
    """What is known when nothing older is being read any more."""
    wait_until(lambda: history.current is not None and not history.current.is_reading)
    assert history.current is not None
    return history.current


@contextmanager
def console_on(directory: Path, settings: Settings | None = None, **options: int) -> Iterator[Console]:
    """A console on a log; its history is being read."""
    effective = settings or Settings()
    with live_history(LogSource(directory, lambda _: None), **options) as history:
        wait_until(lambda: history.current is not None)
        yield Console(
            name="a log",
            states=States(live=history.live, settings=effective),
            command=CommandLine(source=("--log", "DIR")),
            history=History(live=history, settings=effective, applies=FollowedApplies(directory)),
        )
