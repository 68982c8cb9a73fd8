"""Links of a page, changed from the repository's places to the site's."""

import posixpath
import re
from collections.abc import Callable

from attrs import frozen

from tests.docs.address import address
from tests.docs.site.places import ROOT, page_place

_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_FORGE = address()
"""Where a file is shown that is no page of the site."""


class BrokenLinkError(Exception):
    """A link to a file that the repository does not have."""


@frozen(kw_only=True)
class Links:
    """The links of one page: `source` is the page in the repository, `place` the one in the site, both relative."""

    source: str
    place: str

    def rewritten(self, text: str) -> str:
        """Return the page with links that work in the site; blocks of code stay as they are.

        Raises:
            BrokenLinkError: a link to nothing.

        """
        return outside_code(text, lambda part: _LINK.sub(lambda found: self._target(found[1]), part))

    def _target(self, link: str) -> str:
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            return link
        target = posixpath.normpath(posixpath.join(posixpath.dirname(self.source), path)) if path else self.source
        if target.startswith("..") or not (ROOT / target).exists():
            raise BrokenLinkError(f"{self.source}: {link}: no such file")
        place = page_place(target)
        if place is None:
            return f"{_FORGE}/{'tree' if (ROOT / target).is_dir() else 'blob'}/main/{target}"
        relative = "" if place == self.place else posixpath.relpath(place, posixpath.dirname(self.place) or ".")
        return relative + (f"#{anchor}" if anchor else "")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text with its parts outside fenced code changed."""
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])
