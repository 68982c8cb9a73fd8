"""Expressions of Terraform's language: all operators and functions, on all sorts of values, right and wrong ones."""

import json
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

_DATA = Path(__file__).parents[2] / "data" / "terraform"


def _lines(name: str) -> list[str]:
    return [json.loads(line) for line in (_DATA / name).read_text(encoding="utf-8").splitlines()]


VALUES = _lines("values.jsonl")
"""Of every type."""
EXAMPLES = _lines("chosen.jsonl")
"""Expressions written one by one: where the language has corners."""
_STRINGS = [value for value in VALUES if value.startswith('"')]
_NUMBERS = [value for value in VALUES if value[-1].isdigit()]
_LISTS = [value for value in VALUES if value.startswith("[")]
_SETS = [value for value in VALUES if value.startswith("toset")]
_OBJECTS = [value for value in VALUES if value.startswith("{") and "null" not in value]

_ONE = [
    "abs",
    "alltrue",
    "anytrue",
    "base64decode",
    "base64encode",
    "base64sha256",
    "base64sha512",
    "basename",
    "ceil",
    "chomp",
    "coalesce",
    "coalescelist",
    "compact",
    "concat",
    "csvdecode",
    "dirname",
    "distinct",
    "flatten",
    "floor",
    "jsondecode",
    "jsonencode",
    "keys",
    "length",
    "lower",
    "max",
    "md5",
    "merge",
    "min",
    "one",
    "range",
    "reverse",
    "sha1",
    "sha256",
    "sha512",
    "signum",
    "sort",
    "strrev",
    "sum",
    "title",
    "tobool",
    "tolist",
    "tomap",
    "tonumber",
    "toset",
    "tostring",
    "transpose",
    "trimspace",
    "upper",
    "urlencode",
    "values",
    "can",
    "try",
    "setunion",
]
_TWO = [
    "chunklist",
    "coalesce",
    "coalescelist",
    "concat",
    "contains",
    "element",
    "endswith",
    "format",
    "formatlist",
    "indent",
    "index",
    "join",
    "log",
    "lookup",
    "max",
    "merge",
    "min",
    "parseint",
    "pow",
    "range",
    "regex",
    "regexall",
    "setintersection",
    "setproduct",
    "setsubtract",
    "setunion",
    "split",
    "startswith",
    "strcontains",
    "trim",
    "trimprefix",
    "trimsuffix",
    "try",
    "zipmap",
]
_THREE = [
    "lookup",
    "matchkeys",
    "range",
    "replace",
    "slice",
    "substr",
    "coalesce",
    "format",
    "setunion",
    "setproduct",
    "merge",
    "try",
]
_OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"]
"""Functions of one, two and three arguments, and operators."""


def expressions(seed: int, drawn: int) -> list[str]:
    """Return the chosen expressions, every function and operator on values, and as many drawn at random, each once."""
    texts = [*VALUES, *EXAMPLES, *_systematic(seed)]
    draw = random.Random(seed)
    texts += [_drawn(draw, 3) for _ in range(drawn)]
    return list(dict.fromkeys(texts))


def _systematic(seed: int) -> Iterator[str]:
    draw = random.Random(seed + 1)
    for name in _ONE:
        for value in draw.sample(VALUES, 8):
            yield f"{name}({value})"
    for name in _TWO:
        for one, other in draw.sample(list(product(VALUES, VALUES)), 8):
            yield f"{name}({one}, {other})"
    for name in _THREE:
        for _ in range(8):
            yield f"{name}({', '.join(draw.choices(VALUES, k=3))})"
    for operator in _OPERATORS:
        for one, other in draw.sample(list(product(VALUES, VALUES)), 8):
            yield f"{one} {operator} {other}"
    for one, other in draw.sample(list(product(VALUES, VALUES)), 60):
        yield f"{draw.choice(['true', 'false'])} ? {one} : {other}"


_TEXT_FUNCTIONS = ["upper", "lower", "title", "trimspace", "strrev"]
_FOR_VALUES = ["x", "i", "[x]", "{ v = x }", "jsonencode(x)"]
_LIST_FUNCTIONS = ["distinct", "reverse", "flatten", "sort", "tolist", "toset", "compact"]


def _drawn(draw: random.Random, depth: int) -> str:
    """Return an expression that mostly has a value."""
    make = draw.choice([_text, _number, _list, _object])
    if depth > 0 and draw.random() < 0.2:
        return f"{_condition(draw, depth)} ? {make(draw, depth - 1)} : {make(draw, depth - 1)}"
    return make(draw, depth)


def _text(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice(_STRINGS)
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f'"{draw.choice("xyz")}-${{{_text(draw, deeper)}}}.${{{_number(draw, deeper)}}}"',
            lambda: f"{draw.choice(_TEXT_FUNCTIONS)}({_text(draw, deeper)})",
            lambda: f'join("-", {_list(draw, deeper)})',
            lambda: f'replace({_text(draw, deeper)}, "/[a-c]+/", "<$0>")',
            lambda: f'format("%s/%v", {_text(draw, deeper)}, {_list(draw, deeper)})',
            lambda: f"jsonencode({_drawn(draw, deeper)})",
            lambda: f"substr({_text(draw, deeper)}, {draw.randrange(4)}, {draw.randrange(6)})",
            lambda: f"sha1({_text(draw, deeper)})",
        ]
    )()


def _number(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice(_NUMBERS)
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f"({_number(draw, deeper)} {draw.choice('+-*')} {_number(draw, deeper)})",
            lambda: f"length({_list(draw, deeper)})",
            lambda: f"max({_number(draw, deeper)}, {_number(draw, deeper)})",
            lambda: f"floor({_number(draw, deeper)})",
        ]
    )()


def _list(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice([*_LISTS, *_SETS])
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f"[{', '.join(_drawn(draw, deeper - 1) for _ in range(draw.randrange(4)))}]",
            lambda: (
                f"[for i, x in {_list(draw, deeper)} : {draw.choice(['x', 'i', '[x]', '{ v = x }', 'jsonencode(x)'])}]"
            ),
            lambda: f"concat({_list(draw, deeper)}, {_list(draw, deeper)})",
            lambda: f"{draw.choice(_LIST_FUNCTIONS)}({_list(draw, deeper)})",
            lambda: f"keys({_object(draw, deeper)})",
            lambda: f"values({_object(draw, deeper)})",
            lambda: f"setproduct({_list(draw, deeper)}, {_list(draw, deeper)})",
            lambda: f"[for x in {_list(draw, deeper)} : x if {_condition(draw, deeper)}]",
        ]
    )()


def _object(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice(_OBJECTS)
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f"{{ a = {_drawn(draw, deeper)}, b = {_drawn(draw, deeper)} }}",
            lambda: f"merge({_object(draw, deeper)}, {_object(draw, deeper)})",
            lambda: f"{{ for x in {_list(draw, deeper)} : jsonencode(x) => x... }}",
            lambda: f"{{ for k, v in {_object(draw, deeper)} : upper(k) => v }}",
            lambda: f"tomap({_object(draw, deeper)})",
        ]
    )()


def _condition(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice(["true", "false"])
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f"{_drawn(draw, deeper - 1)} == {_drawn(draw, deeper - 1)}",
            lambda: f"{_number(draw, deeper)} < {_number(draw, deeper)}",
            lambda: f"!({_condition(draw, deeper)})",
            lambda: f"contains({_list(draw, deeper)}, {_drawn(draw, deeper - 1)})",
            lambda: f"can({_drawn(draw, deeper - 1)})",
        ]
    )()
