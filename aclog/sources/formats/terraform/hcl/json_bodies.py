"""Terraform's language in JSON (`.tf.json`, `.tfvars.json`): the same syntax tree."""

from collections.abc import Iterator

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.terraform.hcl.bodies import read_expression, read_template
from aclog.sources.formats.terraform.hcl.syntax import (
    Attribute,
    Block,
    Body,
    Expression,
    Literal,
    ObjectOf,
    TupleOf,
)
from aclog.sources.formats.terraform.located_json import Digits, LocatedObject, parse_located
from aclog.sources.formats.terraform.values.numbers import parse_number
from aclog.sources.formats.terraform.values.value import NULL, boolean, number, string

_LABELS = {"variable": 1, "output": 1, "module": 1, "resource": 2, "data": 2, "ephemeral": 2, "provider": 1}


def read_json_body(content: bytes, name: str) -> Body:
    """Return the body of a `.tf.json` file. Raises ConfigError: not JSON, or not of this form, with the line."""
    blocks: list[Block] = []
    for top in _objects(parse_located(content, name), name, 1):
        for kind, value in top.items():
            if kind != "//":
                blocks.extend(_blocks(name, top.line_of(kind), (kind,), value))
    return Body({}, tuple(blocks))


def read_json_values(content: bytes, name: str) -> dict[str, Attribute]:
    """Return the attributes of a `.tfvars.json` file. Raises ConfigError: not JSON, or not an object."""
    top = parse_located(content, name)
    if not isinstance(top, LocatedObject):
        raise ConfigError(f"{name}:1: an object is expected")
    return {
        key: Attribute(name, top.line_of(key), key, _expression(value, name, top.line_of(key), templates=False))
        for key, value in top.items()
    }


def _blocks(file: str, line: int, header: tuple[str, ...], value: object) -> Iterator[Block]:
    missing = _LABELS.get(header[0], 0) - len(header) + 1
    for each in _objects(value, file, line):
        if missing > 0:
            for label, inner in each.items():
                if label != "//":
                    yield from _blocks(file, each.line_of(label), (*header, label), inner)
            continue
        yield Block(file, line, header[0], header[1:], _body(each, file, header[0]))


def _body(value: LocatedObject, file: str, kind: str) -> Body:
    attributes = {}
    for key, item in value.items():
        if key == "//":
            continue
        line = value.line_of(key)
        if kind == "variable" and key == "type" and isinstance(item, str):
            expression = read_expression(item, file, line)
        else:
            is_template = (kind, key) not in (("module", "source"), ("variable", "default"))
            expression = _expression(item, file, line, templates=is_template)
        attributes[key] = Attribute(file, line, key, expression)
    return Body(attributes, ())


def _objects(value: object, file: str, line: int) -> list[LocatedObject]:
    """Return an object, or the objects of an array."""
    items = value if isinstance(value, list) else [value]
    objects = [item for item in items if isinstance(item, LocatedObject)]
    if len(objects) < len(items):
        raise ConfigError(f"{file}:{line}: an object is expected")
    return objects


def _expression(value: object, file: str, line: int, *, templates: bool) -> Expression:
    if value is None:
        return Literal(line, NULL)
    if isinstance(value, bool):
        return Literal(line, boolean(value))
    if isinstance(value, Digits):
        parsed = parse_number(value)
        if parsed is None:
            raise ConfigError(f"{file}:{line}: a number that is too large")
        return Literal(line, number(parsed))
    if isinstance(value, str):
        return _text(value, file, line, templates=templates)
    if isinstance(value, LocatedObject):
        items = [
            (
                _text(key, file, value.line_of(key), templates=templates),
                _expression(item, file, value.line_of(key), templates=templates),
            )
            for key, item in value.items()
            if key != "//"
        ]
        return ObjectOf(line, tuple(items))
    if isinstance(value, list):
        return TupleOf(line, tuple(_expression(item, file, line, templates=templates) for item in value))
    raise ConfigError(f"{file}:{line}: not understood")


def _text(text: str, file: str, line: int, *, templates: bool) -> Expression:
    if not templates or ("${" not in text and "%{" not in text):
        return Literal(line, string(text))
    return read_template(text, file, line)
