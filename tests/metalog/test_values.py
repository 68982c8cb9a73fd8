"""Classes of aclog.metalog.values beside the same classes of attrs."""

import copy
import pickle
import re
from pathlib import Path
from threading import Barrier, Thread

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog import values
from tests.support.runs.profiles import examples


def _classes(decorators):
    """Return a class of each kind, in an order that both kinds of decorators have."""

    @decorators.frozen(kw_only=True)
    class Fields:
        a: int
        _b: int = attrs.field(default=0, repr=False)
        c: int = attrs.field(default=0, eq=False)
        d: tuple[int, ...] = attrs.field(default=(), repr=len, eq=frozenset)

    @decorators.frozen
    class Below(Fields):
        e: int = 0

    @decorators.define(kw_only=True)
    class Mutable:
        a: int
        b: int = 0

    @decorators.frozen(kw_only=True, cache_hash=True)
    class Cached:
        a: int

    @decorators.frozen(kw_only=True, order=True)
    class Ordered:
        a: int

    @decorators.frozen(kw_only=True, eq=False, repr=False)
    class Plain:
        a: int

    @decorators.frozen(kw_only=True)
    class Own:
        a: int

        def __eq__(self, other):
            return isinstance(other, type(self)) and self.a % 2 == other.a % 2

        def __hash__(self):
            return self.a % 2

        def __repr__(self):
            return "own"

    @decorators.frozen(slots=False, kw_only=True)
    class Unslotted:
        a: int

    return Fields, Below, Mutable, Cached, Ordered, Plain, Own, Unslotted


OURS, THEIRS = _classes(values), _classes(attrs)
NUMBERS = st.integers(-2, 2)


def _arguments(cls, numbers):
    given_fields = {each.alias: numbers[at % len(numbers)] for at, each in enumerate(attrs.fields(cls))}
    return given_fields | ({"d": tuple(numbers)} if "d" in given_fields else {})


def _answers(cls, one, other):
    """Return what a class has for two lists of numbers: its texts, its equality and what its hashes agree on."""
    a, b = cls(**_arguments(cls, one)), cls(**_arguments(cls, other))
    hashes = None if cls.__hash__ is None else (hash(a) == hash(b), len({a, b, a}))
    text = None if "Plain" in cls.__name__ else (repr(a), repr(b))
    orders = (a < b) if cls.__name__ == "Ordered" else None
    return text, a == b, a != b, a == copy.copy(a), a == 1, hashes, orders, cls.__name__, cls.__match_args__


@pytest.mark.parametrize("at", range(len(THEIRS)))
@settings(max_examples=examples(200))
@given(st.lists(NUMBERS, min_size=1, max_size=5), st.lists(NUMBERS, min_size=1, max_size=5))
def test_a_class_answers_as_one_of_attrs(at, one, other):
    assert _answers(OURS[at], one, other) == _answers(THEIRS[at], one, other)


@pytest.mark.parametrize("first", ["__eq__", "__hash__", "__repr__"])
def test_the_first_call_of_any_method_gives_the_class_all(first):
    cls = _classes(values)[0]
    before = {name: vars(cls)[name] for name in ("__eq__", "__hash__", "__repr__")}
    value = cls(a=1)
    getattr(value, first)(*([value] if first == "__eq__" else []))
    assert not any(vars(cls)[name] is each for name, each in before.items())
    assert value == cls(a=1)
    assert hash(value) == hash(cls(a=1))
    assert repr(value) == repr(THEIRS[0](a=1))


def test_equality_is_between_values_of_one_class():
    fields, below, *_ = _classes(values)
    assert fields(a=1) != below(a=1)
    assert below(a=1, e=2) == below(a=1, e=2)
    assert below(a=1, e=2) != below(a=1, e=3)


def test_a_mutable_class_has_no_hash():
    mutable = _classes(values)[2]
    with pytest.raises(TypeError, match="unhashable"):
        hash(mutable(a=1))


def test_an_overriding_method_may_call_the_one_it_overrides():
    @values.frozen
    class Above:
        a: int

    class Below(Above):
        def __eq__(self, other):
            return super().__eq__(other)

        __hash__ = Above.__hash__

    assert Below(1) == Below(1)
    assert Below(1) != Below(2)
    assert hash(Below(1)) == hash(Below(1))


def test_threads_that_compare_first_at_once():
    cls, start, equal = _classes(values)[0], Barrier(4), []

    def compare():
        start.wait()
        equal.append((cls(a=1) == cls(a=1), len({cls(a=1), cls(a=1)})))

    threads = [Thread(target=compare) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert equal == [(True, 1)] * 4


@values.frozen
class Pickled:
    a: int


def test_a_value_survives_a_pickle():
    assert pickle.loads(pickle.dumps(Pickled(1))) == Pickled(1)


def test_the_package_takes_its_values_from_here():
    package = Path(values.__file__).parents[1]
    imports = re.compile(r"^from attrs import .*\b(define|frozen)\b", re.MULTILINE)
    own = Path(values.__file__)
    others = [path for path in package.rglob("*.py") if path != own and imports.search(path.read_text("utf-8"))]
    assert others == []


def test_fields_whose_names_differ_in_an_underscore():
    @values.define
    class Both:
        _nonce: int
        nonce: int = attrs.field(default=2, init=False)

    assert repr(Both(1)).endswith("Both(_nonce=1, nonce=2)")
    assert Both(1) == Both(1)
