import re
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.shell.walk import parse_glob


def expand(glob):
    """Return every expansion of the groups of a well-formed glob."""
    parts = re.split(r"\{([^{}]*)\}", glob)
    return ["".join(chosen) for chosen in product(*(p.split(",") if i % 2 else [p] for i, p in enumerate(parts)))]


def naive(glob, name):
    """Return whether a glob without groups matches, by definition."""
    if not glob:
        return not name
    if glob[0] == "*":
        return any(naive(glob[1:], name[i:]) for i in range(len(name) + 1))
    return bool(name) and glob[0] in {"?", name[0]} and naive(glob[1:], name[1:])


LETTERS = st.text("ab.+", max_size=6)
PLAIN_GLOBS = st.text("ab.+*?", max_size=5)
GLOBS = st.lists(
    st.one_of(PLAIN_GLOBS, st.lists(PLAIN_GLOBS, min_size=1, max_size=3).map(lambda a: "{" + ",".join(a) + "}")),
    max_size=3,
).map("".join)


@given(GLOBS, LETTERS)
@settings(deadline=None)
def test_a_glob_means_what_its_definition_says(glob, name):
    assert parse_glob(glob).matches(name) == any(naive(alternative, name) for alternative in expand(glob))


@given(GLOBS, LETTERS)
@settings(deadline=None)
def test_whatever_matches_begins_with_the_plain_part(glob, name):
    parsed = parse_glob(glob)
    if parsed.matches(name):
        assert name.startswith(parsed.plain)


@given(st.text(max_size=8), st.text(max_size=8))
@settings(deadline=None)
def test_escaped_characters_are_plain(before, name):
    parsed = parse_glob("".join("\\" + c for c in before))
    assert parsed.pattern is None
    assert parsed.plain == before
    assert parsed.matches(name) == (name == before)


def test_malformed_groups_are_plain_names():
    for component in ("{a", "{a,b", "{a,{b}}", "{{a}}"):
        parsed = parse_glob(component)
        assert parsed.pattern is None, component
        assert parsed.matches(component)
    assert parse_glob("a}").matches("a}")
    assert parse_glob("a,b").matches("a,b")


def test_groups_may_hold_stars_and_nothing():
    assert parse_glob("{a*,b}c").matches("axxc")
    assert parse_glob("{a*,b}c").matches("bc")
    assert parse_glob("{,a}").matches("")
    assert not parse_glob("{b,c}").matches("a")


def test_a_question_mark_is_one_character_of_any_plane():
    assert parse_glob("?").matches("😀")
    assert not parse_glob("?").matches("")


def test_a_hostile_name_takes_no_longer_than_its_length():
    name = "a" * 32767
    assert not parse_glob("*a*a*a*a*a*a*a*a*b").matches(name)
    assert parse_glob("*a*a*a*a*a*a*a*a*").matches(name)
    assert not parse_glob("{*a,*aa}{*a,*aa}{*a,*aa}*?b").matches(name)


def test_groups_that_multiply_too_far_are_a_plain_name():
    component = "{a,b}" * 9
    assert parse_glob("{a,b}" * 8).pattern is not None
    assert parse_glob(component).pattern is None
    assert parse_glob(component).matches(component)
