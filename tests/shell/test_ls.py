from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.shell.commands import display_width, in_columns

NAMES = st.lists(st.text("ab注é", min_size=1, max_size=12), min_size=1, max_size=40)


@given(NAMES, st.integers(1, 100))
@settings(deadline=None)
def test_every_name_once_down_the_columns_and_never_too_wide(names, width):
    lines = in_columns(names, width)
    rows = [line.split() for line in lines]
    longest = max(map(len, rows))
    assert [row[i] for i in range(longest) for row in rows if i < len(row)] == names
    if longest > 1:
        assert max(map(display_width, lines)) <= width


def test_a_wide_screen_takes_them_all_in_one_line():
    assert in_columns(["a", "bb", "c"], 80) == ["a  bb  c"]
    assert in_columns(["a", "bb", "c"], 6) == ["a   c", "bb"]
    assert in_columns(["a", "bb", "c"], 2) == ["a", "bb", "c"]
    assert in_columns([], 80) == []


def test_wide_characters_count_twice():
    assert display_width("注文a") == 5
    assert display_width("e\u0301") == 1
