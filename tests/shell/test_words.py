import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.shell.command import argument_word, parse_line, quoted, split_line
from aclog.shell.walk import parse_glob

TEXTS = st.text(st.one_of(st.sampled_from("'\"\\ \t*?{},ab/%"), st.characters(exclude_categories=())), max_size=12)


def texts(line):
    return [word.text for word in parse_line(line)]


def test_blanks_part_words():
    assert texts("  ls   /acl\t/image ") == ["ls", "/acl", "/image"]
    assert texts("") == []
    assert texts(" \t ") == []


def test_quotes_of_both_kinds_and_backslashes():
    assert texts("cat 'a b' \"c d\" e\\ f") == ["cat", "a b", "c d", "e f"]
    assert texts("a'b'\"c\"d") == ["abcd"]
    assert texts("''") == [""]
    assert texts("'it\\'s'") == ["it's"]
    assert texts('"a\\"b"') == ['a"b']
    assert texts("a\\") == ["a\\"]


def test_quotes_keep_glob_characters_plain():
    (word,) = parse_line("'User:*'")
    assert word.text == "User:*"
    assert parse_glob(word.glob).plain == "User:*"
    assert parse_glob(word.glob).pattern is None
    (bare,) = parse_line("User:*")
    assert parse_glob(bare.glob).matches("User:alice")
    (half,) = parse_line("'*'*")
    assert parse_glob(half.glob).matches("*x")
    assert not parse_glob(half.glob).matches("x*")


def test_a_word_of_a_process_has_active_globs():
    assert parse_glob(argument_word("a*").glob).pattern is not None


def test_an_unclosed_quote_is_said():
    with pytest.raises(ConfigError, match="unclosed '"):
        parse_line("cat 'a b")


@given(st.lists(TEXTS, max_size=4))
@settings(deadline=None)
def test_quoted_words_come_back(words):
    assert texts(" ".join(map(quoted, words))) == words


@given(TEXTS)
@settings(deadline=None)
def test_a_quoted_word_is_a_plain_name(text):
    (word,) = parse_line(quoted(text))
    assert parse_glob(word.glob).pattern is None
    assert parse_glob(word.glob).plain == text


@given(TEXTS)
@settings(deadline=None)
def test_every_beginning_of_a_line_can_be_completed(line):
    split = split_line(line)
    assert 0 <= split.last_start <= len(line)
    if split.words and split.last_start < len(line):
        assert split_line(line[split.last_start :]).words == split.words[-1:]


def test_a_very_long_line():
    line = "x" * 1_000_000 + " '" + "*" * 1_000_000 + "'"
    first, second = parse_line(line)
    assert (len(first.text), len(second.text), len(second.glob)) == (1_000_000, 1_000_000, 2_000_000)
