"""A command line taken apart into words: blanks part them, quotes and backslashes keep characters as they are.

The rules are those of Kafka's shell (jline): `'` and `"` are alike, and a backslash keeps the character after it,
inside quotes too. Unlike there, a quoted character is never part of a glob: `'User:*'` is that very principal.
"""

import re

from attrs import frozen

from aclog.metalog.errors import ConfigError

_QUOTES = "'\""
_GLOB_CHARACTERS = "*?{},\\"
_NEEDS_QUOTES = re.compile(r"[\s'\"*?{}\\]")


@frozen(kw_only=True)
class Word:
    """A word: its `text`, and as a `glob`, where a backslash stands before each special character that was quoted."""

    text: str
    glob: str


@frozen(kw_only=True)
class Split:
    """What `split_line` found: the words, and how the last one ends, which completion wants to know.

    `last_start` is where in the line the last word begins, or the line's length if a blank ends the line;
    `open_quote` is the quote that is not closed, or empty.
    """

    words: tuple[Word, ...]
    last_start: int
    open_quote: str


def split_line(line: str) -> Split:
    """Take a line apart; a quote that is not closed lasts to the end of the line, and `open_quote` tells."""
    words: list[Word] = []
    characters: list[tuple[str, bool]] = []  # of the word that is read, each with whether it was kept as it is
    quote, escaped, start = "", False, -1
    for position, character in enumerate(line):
        if start >= 0 and not quote and not escaped and character.isspace():
            words.append(_word(characters))
            characters, start = [], -1
        elif start >= 0 or not character.isspace():
            start = start if start >= 0 else position
            if escaped:
                characters.append((character, True))
                escaped = False
            elif character == "\\" and position + 1 < len(line):
                escaped = True
            elif character in (quote or _QUOTES):
                quote = "" if quote else character
            else:
                characters.append((character, bool(quote)))
    if start >= 0:
        words.append(_word(characters))
    return Split(words=tuple(words), last_start=start if start >= 0 else len(line), open_quote=quote)


def _word(characters: list[tuple[str, bool]]) -> Word:
    text = "".join(character for character, _ in characters)
    glob = "".join("\\" + c if kept and c in _GLOB_CHARACTERS else c for c, kept in characters)
    return Word(text=text, glob=glob)


def parse_line(line: str) -> tuple[Word, ...]:
    """The words of a line that is to be run.

    Raises:
        ConfigError: a quote is not closed.

    """
    split = split_line(line)
    if split.open_quote:
        raise ConfigError(f"unclosed {split.open_quote} in the line")
    return split.words


def argument_word(text: str) -> Word:
    """A word that came as one argument of a process: nothing in it is quoted, so globs are active."""
    return Word(text=text, glob=text)


def quoted(text: str) -> str:
    """The text as one word of a line, with quotes if it needs them, so that `split_line` gives it back."""
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
