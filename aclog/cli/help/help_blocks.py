"""The text of a help in its parts: paragraphs, headings, and examples that keep their lines."""

from collections.abc import Iterator
from enum import Enum
from textwrap import dedent

from attrs import frozen


class BlockKind(Enum):
    """What a part is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    EXAMPLE = "example"


@frozen(kw_only=True)
class Block:
    """A part in rich's markup; a paragraph is one line, however long."""

    kind: BlockKind
    text: str


def help_blocks(text: str) -> Iterator[Block]:
    """Yield the parts of a help after its first paragraph, in order. Only what is marked as bold, alone, is a heading.

    What follows the first paragraph directly is under the heading "Description".
    """
    parts = text.split("\n\n")[1:]
    if parts and not parts[0].startswith("[bold]"):
        parts.insert(0, "[bold]Description[/]")
    for part in parts:
        if part.startswith("[bold]") and part.endswith("[/]"):
            yield Block(kind=BlockKind.HEADING, text=part.removeprefix("[bold]").removesuffix("[/]"))
        elif part.startswith(" "):
            yield Block(kind=BlockKind.EXAMPLE, text=dedent(part).rstrip())
        elif part.strip():
            yield Block(kind=BlockKind.PARAGRAPH, text=" ".join(part.split()))
