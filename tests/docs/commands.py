"""The `aclog` command lines in the blocks of a page, each as the words that a shell makes of it."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"(?P<heading>^##? aclog [^\n]+\n\n)?^ *```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL
)
"""With a heading it is a synopsis: how a command is called, with `[]` (tests/cli/test_documentation.py reads those)."""
_SHELL = {"", "bash", "console", "sh", "shell"}
"""Languages of blocks in which a command line may begin with another program."""
_PROMPT, _ITEM = "$ ", "- "
"""What is before a command line: in a shell, and in a list in YAML."""
_QUOTED = re.compile(r"""(["'])(aclog .*?)\1""")
"""A command line in a value of JSON, or in a pipeline of Jenkins."""
_STREAM = re.compile(r"(?<=\s)\d(?=[<>])")
"""The number of a stream that is redirected."""
_SET = re.compile(r"\w+=")
_RUNNERS = {"podman", "runuser", "spark-submit", "sudo", "uvx"}
"""Programs that run what is at the end of their command lines."""


@frozen(kw_only=True)
class CommandLine:
    """Where a command line is, and the words after `aclog`."""

    page: str
    line: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: aclog {shlex.join(self.words)}"


def pages() -> list[Path]:
    """Return the pages for those who use aclog or change it."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the blocks of a page that are no synopsis of a command: number of the first line, language, and text."""
    text = page.read_text("utf-8")
    for block in _BLOCK.finditer(text):
        if not block["heading"]:
            yield text.count("\n", 0, block.start("text")) + 1, block["language"], block["text"]


def command_lines(page: Path) -> list[CommandLine]:
    """Return the command lines in the blocks of a page."""
    name = str(page.relative_to(ROOT))
    return [
        CommandLine(page=name, line=first + line, words=tuple(words))
        for first, language, text in blocks(page)
        for line, words in in_block(language, text)
    ]


def in_block(language: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the command lines of a block: the number of the line, from 0, and the words after `aclog`."""
    if language == "json":
        yield from ((0, words) for words in _servers(json.loads(text)))
    has_prompts = any(line.lstrip().startswith(_PROMPT) for line in text.splitlines())
    for line, typed in _joined(text):
        stripped = typed.strip()
        plain = stripped.removeprefix(_PROMPT).removeprefix(_ITEM)
        is_typed = language in _SHELL and (not has_prompts or stripped.startswith(_PROMPT))
        if plain.startswith("aclog ") or (is_typed and "aclog" in plain):
            lines = [plain]
        else:
            lines = [value[2] for value in _QUOTED.finditer(plain)]
        yield from ((line, words) for each in lines for words in map(_arguments, _commands(each)) if words)


def _servers(value: Any) -> Iterator[list[str]]:
    """Yield the words of each `{"command": "aclog", "args": [...]}` in a value of JSON."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict) and value.get("command") == "aclog":
        yield value["args"]
    for each in below:
        yield from _servers(each)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; what a backslash at the end of a line continues is one."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines()):
        first = first if begun else number
        if line.endswith("\\"):
            begun += line.removesuffix("\\")
        else:
            yield first, begun + line
            begun = ""


def _commands(typed: str) -> Iterator[list[str]]:
    """Yield the simple commands of a line, without comments, redirections and what is set before them."""
    lexer = shlex.shlex(_STREAM.sub("", typed), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    tokens = iter(lexer)
    for token in tokens:
        if token.startswith("#"):
            break
        if not token or not set(token) <= set("|&;()<>"):
            words += [token] if words or not _SET.match(token) else []
        elif set(token) & set("<>"):
            next(tokens, None)
        else:
            yield words
            words = []
    yield words


def _arguments(words: list[str]) -> list[str]:
    """Return the words after `aclog`; none if this is another command, or nothing is after it."""
    if not words:
        return []
    if words[:3:2] == ["python", "aclog"]:
        return words[3:]
    if _is_aclog(words[0]):
        return words[1:]
    places = [number for number, word in enumerate(words) if _is_aclog(word)] if words[0] in _RUNNERS else []
    return words[places[-1] + 1 :] if places else []


def _is_aclog(word: str) -> bool:
    return Path(word).name == "aclog" or word.endswith("aclog/__main__.py")
