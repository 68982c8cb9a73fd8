"""The syntax tree of Terraform's language. Every part knows its line, from 1."""

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from aclog.sources.formats.terraform.values.value import Value


@frozen
class Literal:
    """A number, a bool, null, or a string without templates."""

    line: int
    value: Value


@frozen
class Template:
    """A string with interpolations and directives: the texts of its parts, joined."""

    line: int
    parts: "tuple[Expression, ...]"


@frozen
class TemplateLoop:
    """`%{ for ... }`: the text of its body for each element, joined."""

    line: int
    names: tuple[str | None, str]
    collection: "Expression"
    body: "Expression"


@frozen
class GetAttribute:
    """`.name`, one step of a traversal."""

    line: int
    name: str


@frozen
class GetIndex:
    """`[key]`, one step of a traversal."""

    line: int
    key: "Expression"


Step: TypeAlias = GetAttribute | GetIndex


@frozen
class Traversal:
    """`root.name[key]...`, which begins with a name."""

    line: int
    root: str
    steps: tuple[Step, ...]


@frozen
class Relative:
    """Steps from the value of any other expression."""

    line: int
    source: "Expression"
    steps: tuple[Step, ...]


ITEM = "*"
"""The name of the element at hand in the `each` of a splat."""


@frozen
class Splat:
    """`source[*]...` or `source.*...`: what follows, for each element."""

    line: int
    source: "Expression"
    each: "Expression"


@frozen
class Call:
    """A call of a function; `expand`: the last argument is a sequence of arguments."""

    line: int
    name: str
    arguments: "tuple[Expression, ...]"
    expand: bool


@frozen
class Conditional:
    """`condition ? yes : no`."""

    line: int
    condition: "Expression"
    yes: "Expression"
    no: "Expression"


@frozen
class Binary:
    """An operator between two operands."""

    line: int
    operator: str
    left: "Expression"
    right: "Expression"


@frozen
class Unary:
    """`-` or `!` and its operand."""

    line: int
    operator: str
    operand: "Expression"


@frozen
class TupleOf:
    """`[a, b]`."""

    line: int
    items: "tuple[Expression, ...]"


@frozen
class ObjectOf:
    """`{a = b}`; keys are expressions."""

    line: int
    items: "tuple[tuple[Expression, Expression], ...]"


@frozen
class For:
    """`[for ...]`, or `{for ...}` if it has a key; `group`: values of the same key are collected."""

    line: int
    names: tuple[str | None, str]
    """Of the key, if it is wanted, and of the element."""
    collection: "Expression"
    key: "Expression | None"
    value: "Expression"
    condition: "Expression | None"
    group: bool


Expression: TypeAlias = (
    Literal
    | Template
    | TemplateLoop
    | Traversal
    | Relative
    | Splat
    | Call
    | Conditional
    | Binary
    | Unary
    | TupleOf
    | ObjectOf
    | For
)


@frozen
class Attribute:
    """`name = expression`."""

    file: str
    line: int
    name: str
    value: Expression


@frozen
class Block:
    """`type "label" { ... }`."""

    file: str
    line: int
    type: str
    labels: tuple[str, ...]
    body: "Body"


@frozen
class Body:
    """The attributes and blocks of a file or a block."""

    attributes: Mapping[str, Attribute]
    blocks: tuple[Block, ...]

    def of_type(self, kind: str) -> list[Block]:
        """Return the blocks of a type."""
        return [block for block in self.blocks if block.type == kind]
