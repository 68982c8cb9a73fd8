"""What is remembered of masks, and by generations: bounded, never lost at once, never wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer import standard as answers_module
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.layout import ALL_OPERATIONS, Generations
from aclog.authorizer.interface import InvalidRequestError
from aclog.authorizer.standard import SAMPLE, Answers
from tests.support.builders.acls import acl
from tests.support.builders.images import with_ids

TOPIC = ResourceType.TOPIC


@pytest.fixture
def computed(monkeypatch):
    """The names whose masks were computed."""
    found, real = [], AclIndex.mask

    def mask(index, subject, resource_type, name, documented):
        found.append(name)
        return real(index, subject, resource_type, name, documented)

    monkeypatch.setattr(AclIndex, "mask", mask)
    return found


def answers(limit, monkeypatch, *, allow_everyone=False):
    monkeypatch.setattr(answers_module, "LIMIT", limit)
    rules = [acl("t", principal="User:a"), acl("p", principal="User:a", pattern_type=PatternType.PREFIXED)]
    return Answers(AclsImage.from_acls(with_ids(rules)), allow_everyone)


def ask(found, name, principal="User:a"):
    return found.mask(principal, "h", TOPIC, name)


def entries(masks):
    return sum(len(names) for hosts in masks.values() for types in hosts.values() for names in types.values())


def test_one_mask_answers_for_all_operations(computed, monkeypatch):
    found = answers(100, monkeypatch)
    first = ask(found, "t")
    assert first == ask(found, "t") != 0
    assert ask(found, "x") == ask(found, "x") == 0
    assert computed == ["t", "x"]
    for principal in ("nobody", "User:*"):
        for _ in range(2):
            with pytest.raises(InvalidRequestError):
                ask(found, "t", principal)


def test_what_is_in_use_is_never_lost(computed, monkeypatch):
    found = answers(50, monkeypatch)
    for number in range(1000):
        rounds(found, ["t"], 4)
        ask(found, f"x{number}")
        assert entries(found._young) <= 50
        assert entries(found._old) <= 50
    assert computed.count("t") == 1


def rounds(found, names, count):
    for _ in range(count):
        for name in names:
            ask(found, name)


def test_what_does_not_pay_is_not_remembered_but_for_a_sample(computed, monkeypatch):
    found = answers(6400, monkeypatch)
    names = [f"x{number}" for number in range(20_000)]
    rounds(found, names, 2)
    assert entries(found._young) + entries(found._old) <= 2 * 6400 // SAMPLE
    assert len(computed) > 39_000


def test_what_pays_later_is_remembered_then(computed, monkeypatch):
    found = answers(6400, monkeypatch)
    rounds(found, [f"x{number}" for number in range(20_000)], 1)
    names = [f"y{number}" for number in range(3000)]
    rounds(found, names, 20)
    computed.clear()
    rounds(found, names, 5)
    assert not computed


def test_a_small_set_is_remembered_from_the_start(computed, monkeypatch):
    found = answers(6400, monkeypatch)
    rounds(found, [f"x{number}" for number in range(500)], 10)
    assert len(computed) == 500


def test_long_names_are_not_remembered(monkeypatch):
    found = answers(1000, monkeypatch)
    ask(found, "x" * 250)
    ask(found, "x" * 249)
    assert entries(found._young) == 1


def test_with_allow_everyone_a_name_without_rules_allows_everything(monkeypatch):
    found = answers(1000, monkeypatch, allow_everyone=True)
    for _ in range(2):
        assert ask(found, "x") == ask(found, "x", "User:b") == ALL_OPERATIONS
        assert ask(found, "t", "User:b") == ask(found, "px", "User:b") == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=200), st.integers(1, 8))
def test_generations(steps, limit):
    memory, last = Generations[int, int](limit), dict[int, int]()
    for now, (write, key) in enumerate(steps):
        if write:
            memory.put(key, key * key)
        found = memory.get(key)
        assert found in (None, key * key)
        assert len(memory.young) <= limit
        assert len(memory.old) <= limit
        if found is None:
            assert key not in last or len({k for k, when in last.items() if when > last[key]}) >= limit - 1
        else:
            last[key] = now
