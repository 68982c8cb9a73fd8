"""Colors of output on a terminal: verdicts, severities, names, commands; and locations as hyperlinks (OSC 8).

Only text whose control characters are already escaped is colored, so a name can add no code of its own. Separate from
aclog.terminal.output, which every command imports: only a terminal needs this.
"""

import os
import re
import socket
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import click

GOOD, BAD, CHANGED, UNCLEAR, QUIET = "green", "red", "cyan", "yellow", "bright_black"

WORDS = {
    **dict.fromkeys(("ALLOWED", "ALLOW", "PROVED", "GAINED", "ADDED", "NEEDED", "MENDED", "ok", "passed"), GOOD),
    **dict.fromkeys(("DENIED", "DENY", "REFUTED", "LOST", "REMOVED", "BROKEN", "error", "failed", "FAILED"), BAD),
    **dict.fromkeys(("UNKNOWN", "warning", "NOT_JUDGED", "NEVER_NEEDED", "NEVER_MATCHED", "HOLE", "UNREAD"), UNCLEAR),
    **dict.fromkeys(("CHANGED", "info"), CHANGED),
}
"""Colors of verdicts, changes and severities."""

_VERDICT = re.compile(
    r"^(?P<before>\s*(?:- |\+ )?)(?P<word>ALLOWED|DENIED|PROVED|REFUTED|UNKNOWN|GAINED|LOST|BROKEN|MENDED|"
    r"(?:error|warning|info)(?= \[\d\d )|(?:ok|failed)(?=  ))(?![\w-])"
)
"""At the beginning of a line, where no name is: a principal could have any other word."""
_COMMAND = re.compile(r"^(?P<before>\s*)(?P<words>aclog [a-z].*)$")
_RULE = re.compile(r"\b(?P<word>ALLOW|DENY)(?= [A-Z]\w*:)")
_PRINCIPAL = re.compile(r"(?<![\w'\\/])User:[^\s,;'\"()]*[^\s,;'\"():.]")
_LOCATION = re.compile(r"(?<![\w/.:'-])(?P<path>[\w./-]*\w\.\w+):(?P<line>[1-9]\d*)(?![\w:])")

_LINKLESS = {"dumb", "linux", ""}
"""Terminals that print the codes of a hyperlink as text."""


def painted(line: str, *, links: bool) -> str:
    """Return a line of text, without control characters, with colors, and with `links` at locations that exist."""
    if command := _COMMAND.match(line):
        return f"{command['before']}{click.style(command['words'], fg=CHANGED)}"
    parts: list[tuple[int, int, str]] = []
    if verdict := _VERDICT.match(line):
        parts.append((*verdict.span("word"), click.style(verdict["word"], fg=WORDS[verdict["word"]], bold=True)))
    parts += [(*each.span(), click.style(each[0], fg=WORDS[each[0]])) for each in _RULE.finditer(line)]
    parts += [(*each.span(), click.style(each[0], bold=True)) for each in _PRINCIPAL.finditer(line)]
    if links:
        parts += [(*each.span(), link) for each in _LOCATION.finditer(line) if (link := _link(each[0], each["path"]))]
    return _replaced(line, parts)


def _replaced(line: str, parts: list[tuple[int, int, str]]) -> str:
    """Return the line with other texts at some places; of two at one place the first one."""
    pieces, end = [], 0
    for begin, stop, text in sorted(parts):
        if begin >= end:
            pieces += [line[end:begin], text]
            end = stop
    return "".join((*pieces, line[end:]))


def painted_cell(key: str, text: str, *, is_head: bool) -> str:
    """Return a cell of the column of a key; a column of names has no verdicts."""
    if is_head:
        return click.style(text, bold=True)
    if key in _OF_NAMES:
        return click.style(text, bold=True) if key == "principal" else text
    color = WORDS.get(text)
    return text if color is None else click.style(text, fg=color)


_OF_NAMES = frozenset(
    {"principal", "name", "resourceName", "topic", "group", "host", "rule", "file", "text", "message"}
)


def has_links() -> bool:
    """Return whether the terminal of this process takes hyperlinks."""
    return os.environ.get("TERM", "") not in _LINKLESS


def _link(text: str, path: str) -> str | None:
    """Return a hyperlink to a file, if it exists; the text names what it opens."""
    address = _address(path, Path.cwd())
    return None if address is None else f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


@lru_cache(1 << 10)
def _address(path: str, directory: Path) -> str | None:
    """Return the address of a file below a directory, if it exists: many lines name the same one."""
    try:
        file = (directory / path).resolve()
        if not file.is_file():
            return None
    except (OSError, ValueError):
        return None
    return f"file://{quote(socket.gethostname())}{quote(str(file))}"
