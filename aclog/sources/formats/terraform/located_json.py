"""JSON whose objects know their lines: by the standard library's decoder, and one pass over the text beside it."""

import json
import re
from bisect import bisect_right

from aclog.metalog.errors import ConfigError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?|[{}]', re.DOTALL)


class Digits(str):
    """A number as it is written."""

    __slots__ = ()


class LocatedObject(dict[str, object]):
    """An object; each member has a line, and it has that on which it begins."""

    __slots__ = ("_lines", "line")

    def __init__(self, members: list[tuple[str, object]], line: int, lines: list[int]) -> None:
        """Hold members, in order, with their lines."""
        super().__init__(members)
        self.line = line
        self._lines = lines

    def line_of(self, key: str) -> int:
        """Return the line of a member."""
        return self._lines[list(self).index(key)]


def parse_located(content: bytes, name: str) -> object:
    """Return what JSON says; numbers as Digits.

    Raises:
        ConfigError: not JSON, or a key that stands twice in an object, with the line.

    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: byte {error.start} is not UTF-8") from error
    closings = iter(_closings(text))

    def _make(members: list[tuple[str, object]]) -> LocatedObject:
        line, lines = next(closings)
        made = LocatedObject(members, line, lines)
        if len(made) < len(members):
            seen: set[str] = set()
            for (key, _), at in zip(members, lines, strict=True):
                if key in seen:
                    raise ConfigError(f"{name}:{at}: the key {key[:60]!r} stands twice")
                seen.add(key)
        return made

    def _refuse(word: str) -> None:
        raise ConfigError(f"{name}: not JSON: {word}")

    try:
        return json.loads(text, object_pairs_hook=_make, parse_int=Digits, parse_float=Digits, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{name}:{error.lineno}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deeply") from error


def _closings(text: str) -> list[tuple[int, list[int]]]:
    """Return for each object, in the order in which they end, the line on which it begins, and those of its keys."""
    ends = [found.start() for found in re.finditer("\n", text)]
    opened: list[tuple[int, list[int]]] = []
    closed = []
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == "{":
            opened.append((bisect_right(ends, token.start()) + 1, []))
        elif word == "}":
            if opened:
                closed.append(opened.pop())
        elif token[1] is not None and opened:
            opened[-1][1].append(bisect_right(ends, token.start()) + 1)
    return closed
