r"""A command line as bash holds it while it is typed: its words without quotes, and what stands for the last one.

Bash gives a completion function the line and the part of the last word after its last break character (`:` and `=` are
two of them): what is completed must begin there.
"""

from attrs import frozen

_SPECIAL = frozenset(" \t\\'\"`$&|;()<>*?[]#~!{}^%")
"""Characters before which an unquoted name needs a backslash. `%` and `^` mean something only elsewhere; it is safe."""
_SPECIAL_IN_DOUBLE = frozenset('\\"$`')


@frozen(kw_only=True)
class TypedLine:
    """The words of a line; the last one is being typed, and may be empty."""

    words: tuple[str, ...]
    raw: str
    """The last word as it was typed, with its quotes."""
    quote: str
    """The quote that is open in it, or none."""

    @property
    def word(self) -> str:
        """The last word without its quotes."""
        return self.words[-1]


def parse_line(line: str) -> TypedLine:
    """Return the words of a line, as far as quotes and backslashes make them; nothing in it is expanded."""
    words: list[str] = []
    start, quote, word, begun = 0, "", [], False
    position = 0
    while position < len(line):
        character = line[position]
        if quote:
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"' and line[position + 1 : position + 2] in {*'\\"$`'}:
                position += 1
                word.append(line[position])
            else:
                word.append(character)
        elif character in " \t\n":
            if begun:
                words.append("".join(word))
            word, begun, start = [], False, position + 1
        else:
            begun = True
            if character in "'\"":
                quote = character
            elif character == "\\":
                position += 1
                word.append(line[position : position + 1])
            else:
                word.append(character)
        position += 1
    return TypedLine(words=(*words, "".join(word)), raw=line[start:], quote=quote)


def to_type(value: str, line: TypedLine, tail: str) -> str | None:
    """Return what bash puts in the place of `tail`, the end of the last word, so that the word becomes `value`.

    None if that cannot be typed in the open quote.
    """
    head = parse_line(line.raw[: len(line.raw) - len(tail)] if line.raw.endswith(tail) else "")
    rest = value[len(head.word) :]
    if line.quote == "'":
        return None if "'" in rest else rest
    if line.quote == '"':
        if "!" in rest:  # of the history: a backslash before it would stay
            return None
        return "".join("\\" * (each in _SPECIAL_IN_DOUBLE) + each for each in rest)
    return "".join("\\" * (each in _SPECIAL) + each for each in rest)
