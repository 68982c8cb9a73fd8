"""Templates: text with `${ }` and `%{ }`, in quotes, in heredocs and in files."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from attrs import define, evolve, frozen

from aclog.sources.formats.terraform.hcl.syntax import (
    Conditional,
    Expression,
    Literal,
    Template,
    TemplateLoop,
)
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.value import string


@frozen
class Text:
    """Literal text, without escapes; in a heredoc up to the end of a line."""

    line: int
    text: str


@frozen
class Marker:
    """`${ }` or `%{ }`, and whether it strips the space before and after it."""

    line: int
    word: str
    """`value`, `if`, `else`, `endif`, `for` or `endfor`."""
    strips_before: bool
    strips_after: bool
    expression: Expression | None = None
    names: tuple[str | None, str] = (None, "")


Piece = Text | Marker


def stripped(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces, with the space removed that `~` strips: within the adjacent piece of text only."""
    result = list(pieces)
    for index, (before, after) in enumerate(pairwise(pieces)):
        if isinstance(before, Marker) and before.strips_after and isinstance(after, Text):
            result[index + 1] = evolve(after, text=after.text.lstrip())
        kept = result[index]
        if isinstance(kept, Text) and isinstance(after, Marker) and after.strips_before:
            result[index] = evolve(kept, text=kept.text.rstrip())
    return result


def unindented(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of a `<<-` heredoc without the indentation that all its lines share, blank ones aside."""
    result, widths, begins = list(pieces), list[int](), True
    adjust = []
    for index, piece in enumerate(pieces):
        if begins:
            begins = False
            if isinstance(piece, Marker):
                widths.append(0)
            elif piece.text.strip() or not piece.text.endswith("\n"):
                widths.append(len(piece.text) - len(piece.text.lstrip()))
                adjust.append(index)
        begins = begins or (isinstance(piece, Text) and piece.text.endswith("\n"))
    for index in adjust:
        piece = result[index]
        if isinstance(piece, Text):
            result[index] = evolve(piece, text=piece.text[min(widths) :])
    return result


def template_of(pieces: Sequence[Piece], line: int) -> Expression:
    """Return the template that the pieces make: of a single `${ }` its very value, else a string.

    Raises:
        ValueFault: a directive that does not fit where it stands.

    """
    parts, _ = _Reader(iter(pieces)).until(())
    if not parts:
        return Literal(line, string(""))
    only = parts[0]
    is_alone = len(parts) == 1 and len(pieces) == 1
    if is_alone and (isinstance(only, Literal) or isinstance(pieces[0], Marker)):
        return only
    return Template(line, tuple(parts))


@define
class _Reader:
    """Reads pieces in order; owned by template_of."""

    pieces: Iterator[Piece]

    def until(self, ends: tuple[str, ...]) -> tuple[list[Expression], Marker | None]:
        """Return the parts before one of the directives, and it; at the end of the template None."""
        parts: list[Expression] = []
        for piece in self.pieces:
            if isinstance(piece, Text):
                if piece.text:
                    parts.append(Literal(piece.line, string(piece.text)))
            elif piece.word == "value":
                parts.append(_expression(piece))
            elif piece.word == "if":
                parts.append(self._if(piece))
            elif piece.word == "for":
                parts.append(self._for(piece))
            elif piece.word in ends:
                return parts, piece
            else:
                raise ValueFault(f"%{{ {piece.word} }} has no beginning")
        if ends:
            raise ValueFault(f"%{{ {ends[-1]} }} is missing in a template")
        return parts, None

    def _if(self, marker: Marker) -> Expression:
        yes, end = self.until(("else", "endif"))
        no: list[Expression] = []
        if end is not None and end.word == "else":
            no, _ = self.until(("endif",))
        line = marker.line
        return Conditional(line, _expression(marker), Template(line, tuple(yes)), Template(line, tuple(no)))

    def _for(self, marker: Marker) -> Expression:
        body, _ = self.until(("endfor",))
        return TemplateLoop(marker.line, marker.names, _expression(marker), Template(marker.line, tuple(body)))


def _expression(marker: Marker) -> Expression:
    if marker.expression is None:
        raise ValueFault(f"%{{ {marker.word} }} has no expression")
    return marker.expression
