"""Suppressions as comments in files of rules: `# aclog: ignore 08 kept for old clients until 2027-01-31`."""

import re
from collections.abc import Iterator, Sequence
from datetime import date

from aclog.analysis.lint.catalogue import parse_lints
from aclog.analysis.lint_report.suppression import Suppression
from aclog.metalog.errors import ConfigError
from aclog.sources.acls_source import AclsSource
from aclog.sources.formats.file_tree import DirectoryTree, FileTree
from aclog.sources.git.git_place import parse_git_place
from aclog.sources.git.git_tree import GitTree
from aclog.sources.text_lines import STDIN

_MARK = b"aclog: ignore"
_COMMENT = re.compile(r".*?(?:#|//)\s*aclog: ignore(?P<told>\s.*|)$")
_TOLD = re.compile(
    r"\s+(?P<lints>[\w-]+(?:\s*,\s*[\w-]+)*)(?P<reason>.*?)(?:\s+until\s+(?P<until>\d{4}-\d\d-\d\d))?\s*(?:\*/)?\s*"
)
_MOST, _LONGEST = 1000, 2000
"""Comments in a file, and characters of a line with one: a file may come from a stranger."""


def inline_suppressions(source: AclsSource) -> Iterator[Suppression]:
    """Yield those in the files of a source.

    Each is about the rules of its own line, or if it stands alone, of the next one that is neither blank nor a comment;
    and of the lines after that one which are indented deeper, such as the body of a block.

    Raises:
        ConfigError: one without a lint or without a reason, with file and line; OSError: a file cannot be read.

    """
    if source.is_ref:
        with GitTree(place=parse_git_place(source.path)) as tree:
            yield from _of_tree(tree)
    elif source.path != STDIN:
        yield from _of_tree(DirectoryTree(source.path))


def _of_tree(tree: FileTree) -> Iterator[Suppression]:
    for path in tree.paths():
        content = tree.read(path)
        if _MARK in content:
            yield from _of_text(content.decode(errors="replace"), tree.display(path))


def _of_text(text: str, file: str) -> Iterator[Suppression]:
    lines = [line.rstrip("\r") for line in text.split("\n")]
    depths = [_depth(line) for line in lines]
    found = 0
    for at, line in enumerate(lines):
        comment = _comment(line, f"{file}:{at + 1}")
        if comment is None:
            continue
        found += 1
        if found > _MOST:
            raise ConfigError(f"{file}:{at + 1}: more than {_MOST:,} comments `aclog: ignore` in one file")
        first = _next_statement(depths, at)
        yield _suppression(comment["told"], file, at + 1, (first + 1, _last(depths, first) + 1))


def _comment(line: str, where: str) -> re.Match[str] | None:
    if "aclog: ignore" not in line:
        return None
    if len(line) > _LONGEST:
        raise ConfigError(f"{where}: aclog: ignore in a line longer than {_LONGEST:,} characters")
    return _COMMENT.fullmatch(line)


def _depth(line: str) -> int | None:
    """Return how deep a line is indented; None if it is blank, or a comment alone."""
    stripped = line.lstrip()
    return None if not stripped or stripped.startswith(("#", "//")) else len(line) - len(stripped)


def _next_statement(depths: Sequence[int | None], at: int) -> int:
    """Return the first line from one on that is neither blank nor a comment; the last line if there is none."""
    return next((each for each in range(at, len(depths)) if depths[each] is not None), len(depths) - 1)


def _last(depths: Sequence[int | None], first: int) -> int:
    """Return the last line of a statement: of those after its first that are indented deeper."""
    depth, last = depths[first] or 0, first
    for at in range(first + 1, len(depths)):
        found = depths[at]
        if found is not None:
            if found <= depth:
                break
            last = at
    return last


def _suppression(told: str, file: str, number: int, about: tuple[int, int]) -> Suppression:
    where = f"{file}:{number}"
    found = _TOLD.fullmatch(told)
    if found is None:
        raise ConfigError(f"{where}: expected `aclog: ignore ID[,ID...] REASON [until YYYY-MM-DD]`")
    reason = found["reason"].strip(" \t:-")
    if not reason:
        raise ConfigError(f"{where}: aclog: ignore: expected a reason after the lint: why this finding is accepted")
    try:
        lints = parse_lints(found["lints"].split(","))
        expires = None if found["until"] is None else date.fromisoformat(found["until"])
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{where}: aclog: ignore: {error}") from error
    return Suppression(lints=lints, lines=(file, *about), reason=reason, expires=expires, where=where)
