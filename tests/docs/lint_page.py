"""The catalogue of docs/lint.md: `python -m tests.docs.lint_page` writes a section for each lint from its class."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from aclog.analysis.lint.finding import Lint
from aclog.analysis.lint_report import LINTS

PAGE = Path(__file__).parents[2] / "docs" / "lint.md"
CATALOGUE = re.compile(r"^## 01 .*\Z", re.DOTALL | re.MULTILINE)
WIDTH = 150


def catalogue() -> str:
    """The sections of all lints."""
    return "\n".join(line for lint in LINTS for line in section(lint))


def section(lint: Lint) -> Iterator[str]:
    """The lines of a lint's section, with a blank line after each paragraph."""
    kind = "exact" if lint.exact else "heuristic"
    needs = f"; needs {_as_code(lint.needs)}" if lint.needs else ""
    title = lint.title[:1].upper() + lint.title[1:]
    paragraphs = [
        f"{lint.severity.value}, {kind}{needs}. {title}. {lint.rationale}",
        *(lint.details.split("\n\n") if lint.details else ()),
        f"Example: {lint.example}",
        f"Fix: {lint.fix} {lint.fix_details}",
    ]
    for paragraph in (f"## {lint.id} {lint.name}", *paragraphs):
        yield from (paragraph if paragraph.startswith("- ") else _wrapped(paragraph), "")


def _as_code(flags: str) -> str:
    """Return a text with its flags as code."""
    return re.sub(r"--[\w-]+", r"`\g<0>`", flags)


def _wrapped(paragraph: str) -> str:
    return fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)


def written(page: str) -> str:
    """The page with the sections as the classes have them now."""
    return CATALOGUE.sub(lambda _: catalogue(), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
