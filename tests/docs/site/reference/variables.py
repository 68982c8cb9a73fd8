"""The page of environment variables: those that the sources name, and the pages that say what they do."""

import re
from functools import cache

from tests.docs.site.places import ROOT, page_place, page_sources
from tests.docs.site.reference.tables import table

_VARIABLE = re.compile(r"[\"'`$]((?:ACLOG_[A-Z_]+|NO_COLOR|PAGER))\b")


@cache
def variables() -> tuple[str, ...]:
    """Return the variables that aclog's sources name."""
    sources = (path.read_text("utf-8") for path in sorted((ROOT / "aclog").rglob("*.py")))
    return tuple(sorted({name for source in sources for name in _VARIABLE.findall(source)}))


def variables_page() -> str:
    """Return the page."""
    texts = {source: (ROOT / source).read_text("utf-8") for source in page_sources() if source.endswith(".md")}
    rows = []
    for name in variables():
        found = [
            source for source, text in texts.items() if re.search(rf"\b{name}\b", text) and "CHANGELOG" not in source
        ]
        links = (f"[{source.removeprefix('docs/').removesuffix('.md')}](../{page_place(source)})" for source in found)
        rows.append((f"`{name}`", ", ".join(links)))
    described = table(("variable", "described in"), rows)
    return f"# Environment variables\n\nWhat aclog reads, and the pages that say what it does.\n\n{described}"
