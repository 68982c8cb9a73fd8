"""Splitting of a command line into words, with quotes and backslashes.

The syntax is that of Kafka's shell (jline): `'` and `"` are equivalent, and a backslash escapes the next character,
inside quotes, too. Unlike in Kafka's shell, a quoted character is never part of a glob: `'User:*'` is that very
principal.
"""

import re

from attrs import frozen

from aclog.metalog.errors import ConfigError

_QUOTES = "'\""
_GLOB_CHARACTERS = "*?{},\\"
_NEEDS_QUOTES = re.compile(r"[\s'\"*?{}\\]")


@frozen(kw_only=True)
class Word:
    """A word: its `text`, and the same as a `glob`, in which special characters that were quoted are escaped."""

    text: str
    glob: str


@frozen(kw_only=True)
class Split:
    """The words of a line, and the state at its end, which completion needs.

    `last_start` is the position of the last word, or the line's length if the line ends with a blank; `open_quote` is
    the quote that is not closed, or empty.
    """

    words: tuple[Word, ...]
    last_start: int
    open_quote: str


def split_line(line: str) -> Split:
    """Split a line; a quote that is not closed extends to the end of the line."""
    words: list[Word] = []
    characters: list[tuple[str, bool]] = []  # of the current word, each with whether it was quoted
    quote, escaped, start = "", False, -1
    for position, character in enumerate(line):
        # A word ends at the first blank that is neither quoted nor escaped; `start` is -1 between words.
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
    """Return the words of a line to run.

    Raises:
        ConfigError: a quote is not closed.

    """
    split = split_line(line)
    if split.open_quote:
        raise ConfigError(f"unclosed {split.open_quote} in the line")
    return split.words


def argument_word(text: str) -> Word:
    """Return a process argument as a word: nothing in it is quoted, so globs are active."""
    return Word(text=text, glob=text)


def quoted(text: str) -> str:
    """Return the text as one word of a line, quoted if necessary; `split_line` is the inverse."""
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
