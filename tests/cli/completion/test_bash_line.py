"""What bash is told to insert becomes, with what stands before it, exactly the word that is meant."""

import string
from subprocess import run

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.cli.completion import parse_line, to_type
from tests.support.runs.profiles import examples

NAMES = st.text(alphabet=string.printable.replace("\n", "").replace("\r", "") + "é注😀", min_size=1)


@pytest.mark.parametrize(
    ("line", "words", "raw"),
    [
        ("aclog ", ["aclog", ""], ""),
        ("aclog  acls   li", ["aclog", "acls", "li"], "li"),
        ("aclog --topic 'na me", ["aclog", "--topic", "na me"], "'na me"),
        ('aclog "a b" --topic=x', ["aclog", "a b", "--topic=x"], "--topic=x"),
        (r"aclog a\ b\:c", ["aclog", "a b:c"], r"a\ b\:c"),
        ("aclog '' x", ["aclog", "", "x"], "x"),
        ("aclog a\\", ["aclog", "a"], "a\\"),
    ],
)
def test_words(line: str, words: list[str], raw: str) -> None:
    typed = parse_line(line)
    assert list(typed.words) == words
    assert typed.raw == raw


@settings(max_examples=examples(50))
@given(name=NAMES, cut=st.integers(min_value=0, max_value=30), quote=st.sampled_from(["", "'", '"']))
def test_the_word_becomes_the_name(name: str, cut: int, quote: str) -> None:
    begun = "".join(each for each in name[:cut] if each.isalnum())
    value = begun + name
    typed = parse_line(f"aclog --topic {quote}{begun}")
    text = to_type(value, typed, begun)
    if text is None:
        assert ("'" if quote == "'" else "!") in value
        return
    script = f"printf %s {quote}{text}{quote}"
    assert run(["bash", "--norc", "-c", script], capture_output=True, check=True).stdout.decode() == value


@pytest.mark.parametrize("tail", ["al", ""])
def test_only_what_follows_the_last_break_is_replaced(tail: str) -> None:
    assert to_type("User:alice", parse_line(f"aclog --principal User:{tail}"), tail) == "alice"
