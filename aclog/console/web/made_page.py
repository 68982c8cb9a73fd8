"""A page that was made, and its document for whoever asks for it."""

from secrets import token_hex

from attrs import define, evolve, field

from aclog.console.pages.asked import Asked
from aclog.console.pages.page import Page
from aclog.console.web.rendering import Around, answer_html, page_html


@define(eq=False, kw_only=True)
class MadePage:
    """A page and its answer as HTML. What stands around it differs from viewer to viewer; the last one is kept."""

    page: Page
    asked: Asked
    status: int
    answer: str
    """As HTML; empty where no HTML was wanted."""
    _around: Around | None = field(default=None, init=False)
    _pieces: list[bytes] = field(factory=list, init=False)
    """The document with `_around`, cut where the token of a session goes."""

    @classmethod
    def of(cls, page: Page, asked: Asked, status: int, *, wants_html: bool = True) -> "MadePage":
        """Return a page, made."""
        answer = answer_html(page, asked) if wants_html else ""
        return cls(page=page, asked=asked, status=status, answer=answer)

    def document(self, around: Around) -> bytes:
        """Return the page as a document."""
        if self._around is None or self._around != evolve(around, csrf_token=self._around.csrf_token):
            slot = token_hex(16)  # nobody can have put into a page what is drawn after it was made
            self._around = evolve(around, csrf_token=slot)
            document = page_html(self.page, self.asked, self.answer, self._around).encode()
            self._pieces = document.split(slot.encode())
        return around.csrf_token.encode().join(self._pieces)
