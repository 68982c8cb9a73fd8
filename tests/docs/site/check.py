"""`python -m tests.docs.site.check`: whether the built site is whole, and needs no other host."""

import posixpath
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from attrs import define, field

from tests.docs.site.places import ROOT

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser loads by itself; a link is only followed by a reader."""
_NOT_LOADED = {"canonical", "prev", "next", "alternate"}


@define
class Page(HTMLParser):
    """The links, the marks and the loaded addresses of a page."""

    marks: set[str] = field(factory=set)
    links: list[str] = field(factory=list)
    loaded: list[str] = field(factory=list)

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        values = dict(attrs)
        if values.get("id"):
            self.marks.add(str(values["id"]))
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        address = values.get(_LOADED.get(tag, ""))
        if address and values.get("rel") not in _NOT_LOADED:
            self.loaded.append(address)


def faults(site: Path) -> list[str]:
    """Return what is wrong with a site, a line each."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(path.read_text("utf-8"))
        pages[str(path.relative_to(site))] = page
    found = [] if pages else [f"{site}: no page"]
    for name, page in pages.items():
        found += [f"{name}: loads {address}" for address in page.loaded if urlsplit(address).netloc]
        if name != "404.html":  # its links are from the root of a server
            found += [fault for link in (*page.links, *page.loaded) if (fault := _fault(site, pages, name, link))]
    for path in sorted(site.rglob("*.css")):
        text = path.read_text("utf-8")
        found += (
            [f"{path.relative_to(site)}: loads from another host"] if "url(http" in text or "url(//" in text else []
        )
    return found


def _fault(site: Path, pages: dict[str, Page], name: str, link: str) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
    if (site / target).is_dir():
        target = posixpath.join(target, "index.html")
    if not (site / target).is_file():
        return f"{name}: {link}: no such file"
    if (
        parts.fragment
        and target in pages
        and unquote(parts.fragment) not in pages[target].marks | {"__search", "__drawer"}
    ):
        return f"{name}: {link}: no such mark"
    return None


if __name__ == "__main__":
    wrong = faults(ROOT / "build/site")
    sys.stderr.write("".join(f"{fault}\n" for fault in wrong))
    sys.exit(bool(wrong))
