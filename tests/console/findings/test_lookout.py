"""When it looks, what it keeps, and that it ends."""

import threading

import pytest

from aclog.console.findings import Kind, LastLook, Lookout, LookResult
from aclog.console.pages.states import Console
from aclog.metalog.errors import ConfigError
from tests.support.builders.acls import acl
from tests.support.web.consoles import console_of, look
from tests.support.web.finders import Clock, HeldFinder, item, watched
from tests.support.web.points import HeldSource, image_of

ONE, TWO = acl("orders"), acl("billing")
FOUND = LookResult(items=(item("08"),))


@pytest.fixture
def source() -> HeldSource:
    return HeldSource(image_of(ONE))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lookout_of(console: Console) -> Lookout:
    assert console.lookout is not None
    return console.lookout


def kept_of(lookout: Lookout, kind: Kind = Kind.LINT) -> LastLook:
    kept = lookout.last_look(kind)
    assert kept is not None
    return kept


def test_it_looks_again_when_the_rules_have_changed_and_not_before_it_has_rested(
    source: HeldSource, clock: Clock
) -> None:
    finder = HeldFinder(FOUND)

    def two_seconds() -> None:
        clock.seconds += 2

    finder.during = two_seconds
    console = watched(console_of(source), {Kind.LINT: finder}, clock=clock)
    lookout = lookout_of(console)
    lookout.round()
    clock.seconds += 60
    lookout.round()
    assert finder.looks == [1], "nothing has changed"
    source.current = image_of(ONE, TWO)
    look(console)
    lookout.round()
    assert finder.looks == [1, 2]
    source.current = image_of(ONE)
    look(console)
    clock.seconds += 19.9
    lookout.round()
    assert finder.looks == [1, 2], "ten times two seconds"
    clock.seconds += 0.2
    lookout.round()
    assert finder.looks == [1, 2, 1]


def test_it_looks_again_when_files_have_changed_or_are_gone(source: HeldSource, clock: Clock) -> None:
    finder = HeldFinder(FOUND, files="a")
    lookout = lookout_of(watched(console_of(source), {Kind.LINT: finder}, clock=clock))
    lookout.round()
    for changed in ("b", OSError("gone"), "b"):
        finder.files = changed
        clock.seconds += 1
        lookout.round()
        lookout.round()
    assert len(finder.looks) == 4


def test_a_failed_look_keeps_what_was_found_and_is_tried_again(source: HeldSource, clock: Clock) -> None:
    finder = HeldFinder(FOUND)
    console = watched(console_of(source), {Kind.LINT: finder}, clock=clock)
    lookout = lookout_of(console)
    lookout.round()
    finder.answer, source.current = ConfigError("no such index"), image_of(ONE, TWO)
    look(console)
    clock.seconds += 1
    lookout.round()
    kept = kept_of(lookout)
    assert kept.error == "no such index"
    assert kept.result is FOUND
    assert lookout.age(kept) == 1
    finder.answer = FOUND
    lookout.round()
    assert len(finder.looks) == 2, "not at once"
    clock.seconds += 10
    lookout.round()
    assert kept_of(lookout).error is None


def test_an_error_of_our_own_is_told_and_ends_nothing(source: HeldSource) -> None:
    finders = {Kind.LINT: HeldFinder(ZeroDivisionError("oh")), Kind.TESTS: HeldFinder(FOUND)}
    lookout = lookout_of(watched(console_of(source), finders))
    lookout.round()
    assert kept_of(lookout).error == "an error of aclog itself: ZeroDivisionError: oh"
    assert kept_of(lookout, Kind.TESTS).result is FOUND


def test_before_there_is_a_state_nobody_looks() -> None:
    finder = HeldFinder(FOUND)
    lookout = lookout_of(watched(console_of(HeldSource(None)), {Kind.LINT: finder}))
    lookout.round()
    assert lookout.last_look(Kind.LINT) is None
    assert not finder.looks


def test_the_state_that_is_looked_at_is_the_one_that_is_told(source: HeldSource) -> None:
    finder = HeldFinder(FOUND)
    console = watched(console_of(source), {Kind.LINT: finder})

    def change() -> None:
        source.current = image_of(ONE, TWO)
        look(console)

    finder.during = change
    lookout = lookout_of(console)
    looked_at = console.states.now()
    lookout.round()
    assert kept_of(lookout).acls is looked_at.image.acls
    assert kept_of(lookout).acls is not console.states.now().image.acls


def test_what_an_earlier_state_had_is_answered_and_follows_the_next_look(source: HeldSource, clock: Clock) -> None:
    finder = HeldFinder(FOUND, before=frozenset({"a"}))
    console = watched(console_of(source), {Kind.LINT: finder}, clock=clock)
    lookout = lookout_of(console)
    lookout.round()
    assert not kept_of(lookout).had
    before = lookout.version
    lookout.ask(console.states.at("0"))
    lookout.round()
    assert kept_of(lookout).had == {0: frozenset({"a"})}
    assert lookout.version > before
    finder.before, source.current = ConfigError("damaged"), image_of(ONE, TWO)
    look(console)
    clock.seconds += 1
    lookout.round()
    assert kept_of(lookout).had == {0: "damaged"}


def test_it_looks_in_a_thread_of_its_own_which_ends(source: HeldSource) -> None:
    looked, threads = threading.Event(), list[str]()

    def note() -> None:
        threads.append(threading.current_thread().name)
        looked.set()

    lookout = lookout_of(watched(console_of(source), {Kind.LINT: HeldFinder(FOUND, during=note)}))
    lookout.start()
    assert looked.wait(30)
    lookout.stop()
    assert threads == ["findings"]
    assert "findings" not in {each.name for each in threading.enumerate()}
