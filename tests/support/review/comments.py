"""The comment of a review as a hosting site renders it: CommonMark with GitHub's tables, and the text that is seen."""

from html.parser import HTMLParser

from attrs import define, field
from markdown_it import MarkdownIt

VOID = frozenset({"br", "hr", "img"})


@define(eq=False)
class Page(HTMLParser):
    """The elements of a page of HTML, and its text."""

    tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = field(factory=list)
    comments: list[str] = field(factory=list)
    text: str = ""
    codes: list[str] = field(factory=list)
    """The texts in code font."""
    open: list[str] = field(factory=list)
    unbalanced: bool = False

    def __attrs_pre_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the start of an element."""
        self.tags.append((tag, tuple(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "code":
            self.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        """Take the end of an element."""
        if not self.open or self.open.pop() != tag:
            self.unbalanced = True

    def handle_data(self, data: str) -> None:
        """Take a text."""
        self.text += data
        if "code" in self.open:
            self.codes[-1] += data

    def handle_comment(self, data: str) -> None:
        """Take a comment."""
        self.comments.append(data)

    def count(self, tag: str) -> int:
        """Return the number of elements."""
        return sum(each == tag for each, _ in self.tags)


def plain_html(markdown: str) -> str:
    """Return Markdown as HTML, with the tables of hosting sites."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)


def render(markdown: str) -> Page:
    """Return Markdown as a page."""
    page = Page()
    page.feed(plain_html(markdown))
    page.close()
    return page


def shown_text(markdown: str) -> str:
    """Return the text that a reader sees."""
    return render(markdown).text
