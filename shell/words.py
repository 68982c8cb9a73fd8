"""A command line taken apart into words: blanks part them, quotes and backslashes keep characters as they are.

The rules are those of Kafka's shell (jline): `'` and `"` are alike, and a backslash keeps the character after it,
inside quotes too. Unlike there, a quoted character is never part of a glob: `'User:*'` is that very principal.
"""

import re

from attrs import frozen

from metalog.errors import ConfigError

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
    text, glob, quote, start, position = "", "", "", -1, 0
    while position < len(line):
        character = line[position]
        if not quote and character.isspace():
            if start >= 0:
                words.append(Word(text=text, glob=glob))
            text, glob, start, position = "", "", -1, position + 1
            continue
        if start < 0:
            start = position
        if character == "\\" and position + 1 < len(line):
            position += 1
            text, glob = text + line[position], glob + _protected(line[position])
        elif quote and character == quote:
            quote = ""
        elif not quote and character in _QUOTES:
            quote = character
        else:
            text, glob = text + character, glob + (_protected(character) if quote else character)
        position += 1
    if start >= 0:
        words.append(Word(text=text, glob=glob))
    return Split(words=tuple(words), last_start=start if start >= 0 else len(line), open_quote=quote)


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


def _protected(character: str) -> str:
    return "\\" + character if character in _GLOB_CHARACTERS else character
