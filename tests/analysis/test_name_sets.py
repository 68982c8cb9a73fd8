"""Sets of names: what two have in common, and what one has without another."""

from functools import reduce
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from aclog.analysis.regions import Literal, NamePart, Subtree, common, contains, less, less_all, without


def test_prefixes_of_one_length_have_nothing_in_common() -> None:
    assert common((Subtree(prefix="a"),), (Subtree(prefix="b"),)) == ()
    assert common((Subtree(prefix="a"),), (Subtree(prefix="a"),)) == (Subtree(prefix="a"),)


def test_exceptions_of_both_count() -> None:
    one = (Subtree(prefix="a", except_prefixes=("a.b",)), Literal(name="z"))
    other = (Subtree(prefix="", except_literals=("a", "z")),)
    assert common(one, other) == (Subtree(prefix="a", except_prefixes=("a.b",), except_literals=("a",)),)


def test_without() -> None:
    names = (Subtree(prefix="a", except_literals=("a.b.c",)), Literal(name="a.b.x"), Literal(name="b"))
    assert without(names, Subtree(prefix="a.b.")) == (Subtree(prefix="a", except_prefixes=("a.b.",)), Literal(name="b"))
    assert without(names, Subtree(prefix="")) == ()


TEXTS = st.text("ab", max_size=4)
LITERALS = st.builds(Literal, name=st.text("ab", min_size=1, max_size=4))


@st.composite
def subtrees(draw: st.DrawFn) -> Subtree:
    prefix = draw(TEXTS)
    part: NamePart | None = Subtree(prefix=prefix)
    for text in draw(st.lists(st.text("ab", min_size=1, max_size=2), max_size=2)):
        other = Literal(name=prefix + text) if draw(st.booleans()) else Subtree(prefix=prefix + text)
        (part,) = without((part,), other)
    return part


PARTS = st.lists(LITERALS | subtrees(), max_size=6)


@given(names=PARTS, others=PARTS)
def test_many_parts_are_left_out_as_one_by_one(names: list[NamePart], others: list[NamePart]) -> None:
    at_once, one_by_one = less_all(tuple(names), others), reduce(less, others, tuple(names))
    examples = ["".join(each) for size in range(1, 6) for each in product("abc", repeat=size)]
    expected = {name for name in examples if contains(tuple(names), name) and not contains(tuple(others), name)}
    assert {name for name in examples if contains(at_once, name)} == expected
    assert {name for name in examples if contains(one_by_one, name)} == expected
    if not any(isinstance(other, Subtree) and other != Subtree(prefix=other.prefix) for other in others):
        assert at_once == one_by_one
