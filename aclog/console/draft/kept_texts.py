"""Texts that are too large for an address, kept under their digests."""

import threading
from collections import OrderedDict
from hashlib import sha256

from attrs import define, field

_MOST_BYTES = 64 << 20


@define(eq=False, kw_only=True)
class KeptTexts:
    """The newest texts. Safe for any number of threads."""

    most: int = 64
    most_bytes: int = _MOST_BYTES
    _texts: "OrderedDict[str, str]" = field(factory=OrderedDict, init=False, repr=False)
    _bytes: int = field(default=0, init=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False)

    def keep(self, text: str) -> str:
        """Keep a text; return its id, which is the same for the same text."""
        data = text.encode("utf-8", "surrogatepass")
        digest = sha256(data).hexdigest()[:32]
        with self._keeping:
            if digest not in self._texts:
                self._texts[digest] = text
                self._bytes += len(data)
            self._texts.move_to_end(digest)
            while len(self._texts) > 1 and (len(self._texts) > self.most or self._bytes > self.most_bytes):
                _, oldest = self._texts.popitem(last=False)
                self._bytes -= len(oldest.encode("utf-8", "surrogatepass"))
        return digest

    def get(self, digest: str) -> str | None:
        """Return a text; None if it is forgotten, or never was."""
        with self._keeping:
            if digest in self._texts:
                self._texts.move_to_end(digest)
            return self._texts.get(digest)
