"""What decides in a place may have changed since the plan was made: then what it says of moments is wrong."""

from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from attrs import evolve

from aclog.authorizer.settings import Generation, Settings
from aclog.planning.plan import Batching, RefusedError
from tests.support.builders.acls import acl
from tests.support.planning.cases import Case
from tests.support.planning.killed_applies import KilledApply
from tests.support.planning.memory_place import MemoryPlace


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("told", [None, False, True])
def test_a_place_that_was_opened_since_is_refused(tmp_path: Path, planned: bool, told: bool | None) -> None:
    case = Case(
        there=frozenset(), owned=frozenset(), others=frozenset(), goal=frozenset({acl("a"), acl("a", "User:b")}),
        batching=Batching.RULE, settings=Settings(allow_everyone=planned),
    )  # fmt: skip
    source = KilledApply(case=case, home=tmp_path, random=Random(1))
    plan = source.plan()
    settings = None if told is None else Settings(allow_everyone=told)
    with patch.object(MemoryPlace, "settings", lambda _: settings):
        if told and not planned:
            with pytest.raises(RefusedError, match=r"resources without ACLs are open .* create a new plan"):
                source.apply(plan)
            assert source.place.rules == frozenset()
            assert not source.entries()
        else:
            source.apply(plan)
            assert source.place.rules == case.end


@pytest.mark.parametrize("told", [None, False])
@pytest.mark.parametrize("by_place", [False, True])
def test_a_place_that_told_and_does_not_any_more_is_refused(tmp_path: Path, by_place: bool, told: bool | None) -> None:
    """A Kafka hides the value once somebody has set it."""
    case = Case(
        there=frozenset(), owned=frozenset(), others=frozenset(), goal=frozenset({acl("a")}),
        batching=Batching.RULE, settings=Settings(),
    )  # fmt: skip
    source = KilledApply(case=case, home=tmp_path, random=Random(1))
    plan = evolve(source.plan(), settings_by_place=by_place)
    settings = None if told is None else Settings(allow_everyone=told)
    with patch.object(MemoryPlace, "settings", lambda _: settings):
        if by_place and told is None:
            with pytest.raises(RefusedError, match=r"no longer reports .* create a new plan"):
                source.apply(plan)
            assert not source.entries()
        else:
            source.apply(plan)
            assert source.place.rules == case.end


OLD, NEW = Generation.V4_3, Generation.V4_4


@pytest.mark.parametrize(
    ("planned", "levels", "why"),
    [
        (None, {1: 33}, None),
        ((OLD,), {1: 30}, None),
        ((OLD, NEW), {1: 33}, None),
        ((OLD, NEW), {1: 30, 2: 33}, None),
        ((OLD,), {1: 33}, "made for Kafka 4.3, but its brokers run Kafka 4.4"),
        ((NEW,), {1: 30, 2: 33}, "made for Kafka 4.4, but the brokers differ: broker 1 runs Kafka 4.3"),
        ((OLD,), {}, "made for Kafka 4.3, but the version of the brokers"),
    ],
)
def test_a_place_that_was_upgraded_since_is_refused(
    tmp_path: Path, planned: tuple[Generation, ...] | None, levels: dict[int, int], why: str | None
) -> None:
    case = Case(
        there=frozenset(), owned=frozenset(), others=frozenset(), goal=frozenset({acl("a", host="10.0.0.0/8")}),
        batching=Batching.RULE, settings=Settings(),
    )  # fmt: skip
    source = KilledApply(case=case, home=tmp_path, random=Random(1))
    plan = evolve(source.plan(), generations=planned)
    source.place.levels = levels
    if why is None:
        source.apply(plan)
        assert source.place.rules == case.end
        return
    with pytest.raises(RefusedError) as refused:
        source.apply(plan)
    assert why in str(refused.value)
    assert str(refused.value).endswith("create a new plan")
    assert source.place.rules == frozenset()
    assert not source.entries()
