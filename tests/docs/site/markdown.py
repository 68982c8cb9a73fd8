"""What forges read and zensical's Markdown does not, written so that both mean the same."""

import re

from tests.docs.site.links import outside_code

_CODE = re.compile(r"(`+)(.+?)\1")
_ITEM = re.compile(r"^ {2,3}(?=\S)", re.MULTILINE)


def for_site(text: str) -> str:
    """Return a page for the site: a bar in the code of a table, and lists that follow a paragraph directly."""
    return outside_code(text, lambda part: "\n".join(_lines(part.split("\n"))))


def _lines(lines: list[str]) -> list[str]:
    changed: list[str] = []
    for line in lines:
        if line.startswith("|"):
            line = _CODE.sub(lambda found: found[0].replace("\\|", "|"), line)  # noqa: PLW2901
        starts_list = re.match(r"(- |\d+\. )", line)
        if starts_list and changed and changed[-1].strip() and not re.match(r"(- |\d+\. | )", changed[-1]):
            changed.append("")
        changed.append(line)
    return changed
