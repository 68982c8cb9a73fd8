"""The words that docs/style.md bans: `python -m tests.docs.words` prints each place that has one, and returns 1.

It reads prose only: Markdown without code, and the comments, docstrings and sentences of Python files. Identifiers
and strings without a blank are ignored. `--message FILE` checks the subject of a commit message.
"""

import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve, frozen

ROOT = Path(__file__).parents[2]
STYLE = "docs/style.md"
ALLOWED = ROOT / "tests/docs/words.toml"
COVERED = ("*.md", "aclog", "benchmarks/results/README.md", "docs", "tests/README.md")
"""Files, and folders with all Markdown and Python files below them. Add a path once it is clean."""
SINCE = "4ce028047b0e3cde4b4b00734d9feb0ed8c8dc6d"
"""The subjects of commits after this one are checked, where the repository has it."""

_ROW = re.compile(r"^\| (?P<banned>`[^|\n]*) \| (?P<preferred>[^|\n]+) \| [^|\n]+ \|$", re.MULTILINE)
_FORM = re.compile(r"`([^`]+)`")
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_NO_PROSE = re.compile(r"(`+)(?!`).+?\1|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
"""Code, the targets of links, and comments of HTML."""
_REPLACED = re.compile(r"\{[^{}]*\}")
"""What an f-string evaluates; one token with its text before Python 3.12."""


@frozen(kw_only=True)
class Words:
    """The banned words and phrases, each with the text that replaces it, and one pattern that matches all of them."""

    preferred: dict[str, str]
    pattern: re.Pattern[str]

    @classmethod
    def read(cls, style: str) -> "Words":
        """Return the words in the first column of the table of docs/style.md, each form by itself."""
        rows = [(_FORM.findall(row["banned"]), row["preferred"]) for row in _ROW.finditer(style)]
        preferred = {form: text for forms, text in rows for form in forms}
        longest_first = sorted(preferred, key=len, reverse=True)
        words = "|".join(_form_pattern(form) for form in longest_first if form[0].isalnum())
        others = "|".join(_form_pattern(form) for form in longest_first if not form[0].isalnum())
        return cls(preferred=preferred, pattern=re.compile(rf"(?<![\w-])(?:{words})|{others}", re.IGNORECASE))

    def matches(self, prose: str) -> Iterator[tuple[int, int, str]]:
        """Yield the start, the end and the form of each match; Python's None is no word."""
        for match in self.pattern.finditer(prose):
            if "None" in match[0]:
                continue
            yield match.start(), match.end(), " ".join(match[0].lower().split())


def _form_pattern(form: str) -> str:
    """Return the pattern of a form, also across a line break; it ends with a whole word."""
    return r"\s+".join(map(re.escape, form.split())) + (r"(?![\w-])" if form[-1].isalnum() else "")


@frozen(kw_only=True)
class Exemption:
    """A text in which banned words are allowed, in one file or in all."""

    text: str
    path: str | None = None

    def spans(self, prose: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each occurrence."""
        for match in re.finditer(r"\s+".join(map(re.escape, self.text.split())), prose):
            yield match.span()


@frozen(kw_only=True)
class Finding:
    """A banned word in a file, or in the subject of a commit (`path` is its short id, `line` None)."""

    path: str
    line: int | None
    banned: str
    preferred: str

    def __str__(self) -> str:
        location = self.path if self.line is None else f"{self.path}:{self.line}"
        return f'{location}: "{self.banned}": write {self.preferred}'


def exemptions(text: str) -> list[Exemption]:
    """Return the entries of words.toml. Raises KeyError if one has no text or no reason."""
    entries = tomllib.loads(text)["allowed"]
    assert all(entry["why"] for entry in entries)
    return [Exemption(text=entry["text"], path=entry.get("path")) for entry in entries]


def findings(path: str, text: str, words: Words, exempt: Iterable[Exemption]) -> list[Finding]:
    """Return the banned words in a file, by line. `path` selects how it is read: `.py` is Python, all else Markdown."""
    prose = _python_prose(text) if path.endswith(".py") else _markdown_prose(text)
    spans = [span for each in exempt if each.path in (None, path) for span in each.spans(prose)]
    return [
        Finding(path=path, line=prose.count("\n", 0, start) + 1, banned=form, preferred=words.preferred[form])
        for start, end, form in words.matches(prose)
        if not any(first <= start and end <= last for first, last in spans)
    ]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _markdown_prose(text: str) -> str:
    """Return the text with code blanked; lines and columns stay."""
    text = _FENCE.sub(lambda match: _blank(match[0]), text)
    return "\n\n".join(_NO_PROSE.sub(lambda match: _blank(match[0]), part) for part in text.split("\n\n"))


def _python_prose(text: str) -> str:
    """Return the comments and the strings with a blank; everything else is blanked."""
    lines = [" " * len(line) for line in text.split("\n")]
    middle = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_sentence = token.type in (tokenize.STRING, middle) and re.search(r"\S\s+\S", token.string)
        if token.type != tokenize.COMMENT and not is_sentence:
            continue
        string = token.string
        if token.type == tokenize.STRING and re.match(r"[rR]?[fF]", string):
            string = _REPLACED.sub(lambda match: _blank(match[0]), string)
        (row, column), parts = token.start, string.split("\n")
        for offset, part in enumerate(parts):
            begin = column if offset == 0 else 0
            line = lines[row - 1 + offset].ljust(begin + len(part))
            lines[row - 1 + offset] = line[:begin] + part + line[begin + len(part) :]
    return "\n".join(lines)


def covered_files(covered: Iterable[str] = COVERED) -> Iterator[str]:
    """Yield the files to check, as paths from the root; docs/style.md names banned words in code only."""
    for name in covered:
        path = ROOT / name
        files = (
            sorted(each for kind in ("*.md", "*.py") for each in path.rglob(kind))
            if path.is_dir()
            else sorted(ROOT.glob(name))
        )
        yield from (str(each.relative_to(ROOT)) for each in files if not each.is_symlink())


def commit_subjects() -> Iterator[tuple[str, str]]:
    """Yield the short id and the subject of each commit after `SINCE`; nothing without git, or in a shallow clone."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%h %s", f"{SINCE}..HEAD"]
    try:
        log = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        yield commit, subject


def subject_findings(commit: str, subject: str, words: Words, exempt: Iterable[Exemption]) -> list[Finding]:
    """Return the banned words in the subject of a commit."""
    return [evolve(each, line=None) for each in findings(commit, subject, words, exempt)]


def main(arguments: list[str]) -> int:
    """Print all findings; return 1 if there are any."""
    words, exempt = Words.read((ROOT / STYLE).read_text("utf-8")), exemptions(ALLOWED.read_text("utf-8"))
    if arguments[:1] == ["--message"]:
        subject = Path(arguments[1]).read_text("utf-8").partition("\n")[0]
        every = subject_findings("commit message", subject, words, exempt)
    else:
        every = [each for path in covered_files(arguments or COVERED) for each in _of_file(path, words, exempt)]
        if not arguments:
            every += [each for commit in commit_subjects() for each in subject_findings(*commit, words, exempt)]
    sys.stdout.writelines(f"{each}\n" for each in every)
    if every:
        sys.stdout.write(f"{len(every)} banned words: see {STYLE}; exceptions go to {ALLOWED.relative_to(ROOT)}\n")
    return 1 if every else 0


def _of_file(path: str, words: Words, exempt: list[Exemption]) -> list[Finding]:
    return findings(path, (ROOT / path).read_text("utf-8"), words, exempt)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
