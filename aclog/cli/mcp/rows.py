"""The rows that a command prints, as many of them as fit into an answer; the others are counted."""

import json
from typing import Any

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.terminal.json_text import json_text

MOST_CHARACTERS = 40_000
"""Of the rows of an answer: an assistant reads all of it."""
_LONGEST_LINE = 64 << 20
_LIST_LENGTHS = (100, 20, 5, 1)
_LONGEST_TEXT = 500


@define
class Rows:
    """JSON lines as they arrive; owned by the one question that they answer."""

    skip: int
    """Rows at the beginning that are left out."""
    has_head: bool
    """Whether the first line is about the answer as a whole."""
    head: Any = field(default=None, init=False)
    kept: list[Any] = field(factory=list, init=False)
    total: int = field(default=0, init=False)
    """Rows, without the head."""
    shortened: bool = field(default=False, init=False)
    """Whether a row that is kept lacks some of its items."""
    _room: int = field(default=MOST_CHARACTERS, init=False)
    _rest: bytearray = field(factory=bytearray, init=False)
    _problem: ConfigError | None = field(default=None, init=False)

    @property
    def left_off(self) -> int:
        """The number of rows after those that are kept."""
        return max(self.total - self.skip, 0) - len(self.kept)

    def feed(self, data: bytes) -> None:
        """Take more of the output; what is wrong with it is kept for `end`."""
        try:
            self._feed(data)
        except ConfigError as problem:
            self._problem = self._problem or problem

    def end(self) -> None:
        """Take what is left. Raises ConfigError: the output is no JSON, or a line is too long to be read."""
        if self._problem is not None:
            raise self._problem
        if self._rest:
            self._take(self._rest)
            self._rest = bytearray()

    def _feed(self, data: bytes) -> None:
        if self._problem is not None:
            return
        self._rest += data
        if b"\n" in data:
            *lines, rest = self._rest.split(b"\n")
            self._rest = rest
            for line in lines:
                self._take(line)
        if len(self._rest) > _LONGEST_LINE:
            self._rest = bytearray()
            raise ConfigError(f"a row of the answer is longer than {_LONGEST_LINE} bytes: narrow the question")

    def _take(self, line: bytes | bytearray) -> None:
        if self.has_head and self.head is None:
            self.head = _parsed(line)
            return
        self.total += 1
        if self.total <= self.skip or self.left_off > 1:  # one was left off already: what is kept has no holes
            return
        row, length = _short(_parsed(line), len(line))
        if length > self._room and self.kept:
            return
        self.shortened |= length < len(line)
        self.kept.append(row)
        self._room -= length


def _parsed(line: bytes | bytearray) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise ConfigError("the command printed something else than JSON") from None


def _short(row: Any, length: int) -> tuple[Any, int]:
    """Return a row, with its lists and texts cut if it is too long, and its length in characters."""
    if length <= MOST_CHARACTERS // 2:
        return row, length
    for most in _LIST_LENGTHS:
        cut = _cut(row, most, None)
        length = len(json_text(cut))
        if length <= MOST_CHARACTERS // 2:
            return cut, length
    cut = _cut(row, _LIST_LENGTHS[-1], _LONGEST_TEXT)
    return cut, len(json_text(cut))


def _cut(value: Any, most: int, longest: int | None) -> Any:
    """Return a value of JSON with at most so many items in each list; beside it stands how many are left off."""
    if isinstance(value, list):
        return [_cut(each, most, longest) for each in value[:most]]
    if isinstance(value, str) and longest is not None and len(value) > longest:
        return f"{value[:longest]}... ({len(value)} characters)"
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, each in value.items():
        found[key] = _cut(each, most, longest)
        if isinstance(each, list) and len(each) > most:
            found[f"{key}LeftOff"] = len(each) - most
    return found
