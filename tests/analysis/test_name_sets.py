"""Sets of names: what two have in common, and what one has without another."""

from aclog.analysis.regions import Literal, Subtree, common, without


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
