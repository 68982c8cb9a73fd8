"""Texts that are looked through all at once: in one pass over a joined text, where few of them have what is wanted."""

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Int64s

_END = "\n\n"
"""Between two texts."""
_FEW = 3
"""Up to one match for so many texts, matches are looked for one by one; otherwise the texts are looked through."""


@frozen(eq=False)
class Haystack:
    """Texts in lower case, by their places."""

    _texts: Sequence[str]
    _joined: str
    _starts: Int64s
    """Of each text in the joined one, in characters."""

    @staticmethod
    def of(texts: Sequence[str]) -> "Haystack":
        """Return the haystack of texts in lower case."""
        sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + len(_END)
        return Haystack(texts, _END.join(texts), np.cumsum(sizes) - sizes)

    def places(self, wanted: str) -> list[int]:
        """Return the places, in order, of the texts that have a text in them, given in lower case."""
        if _END[0] in wanted or not wanted or self._joined.count(wanted) * _FEW > len(self._texts):
            return [place for place, text in enumerate(self._texts) if wanted in text]
        found, at, size, find = list[int](), 0, len(wanted), self._joined.find
        while (at := find(wanted, at)) >= 0:
            found.append(at)
            at += size  # matches that overlap are in one text: no more are found than were counted
        places: list[int] = np.unique(np.searchsorted(self._starts, np.array(found, np.int64), "right") - 1).tolist()
        return places
