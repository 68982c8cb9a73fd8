"""Type constraints of variables: `list(object({ name = string, host = optional(string, "*") }))`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from attrs import field, frozen

from aclog.sources.formats.terraform.evaluation import Scope, evaluate
from aclog.sources.formats.terraform.hcl import Call, Expression, Literal, ObjectOf, Traversal, TupleOf
from aclog.sources.formats.terraform.values import (
    BOOL,
    DYNAMIC,
    NUMBER,
    SEQUENCES,
    STRING,
    Kind,
    Type,
    Value,
    ValueFault,
    convert,
    list_of,
    map_of,
    object_value,
    set_of,
    tuple_value,
    with_sensitivity,
)

_PRIMITIVES: Mapping[str, Type] = MappingProxyType({"string": STRING, "number": NUMBER, "bool": BOOL, "any": DYNAMIC})
_COLLECTIONS: Mapping[str, Callable[[Type], Type]] = MappingProxyType({"list": list_of, "set": set_of, "map": map_of})


@frozen
class Defaults:
    """Default values of optional attributes, however deep they are in a type."""

    values: Mapping[str, Value] = field(factory=dict)
    """The defaults of this object's attributes."""
    attributes: "Mapping[str, Defaults]" = field(factory=dict)
    elements: "tuple[Defaults | None, ...]" = ()
    """The defaults of a tuple's parts, or of all elements of a collection."""

    def fill(self, value: Value) -> Value:
        """Return the value with the defaults for missing and null attributes."""
        if value.is_null or value.unknown is not None:
            return value
        if self.values or self.attributes:
            return self._fill_object(value)
        if self.elements and isinstance(value.payload, Mapping):
            return object_value({name: self._element(0).fill(item) for name, item in value.entries.items()})
        if self.elements and value.type.kind in SEQUENCES:
            last = len(self.elements) - 1
            filled = [self._element(min(n, last)).fill(item) for n, item in enumerate(value.items)]
            return with_sensitivity(tuple_value(filled), value)
        return value

    def _element(self, position: int) -> "Defaults":
        return self.elements[position] or NO_DEFAULTS

    def _fill_object(self, value: Value) -> Value:
        if not isinstance(value.payload, Mapping):
            return value
        entries = dict(value.entries)
        for name, default in self.values.items():
            if name not in entries or entries[name].is_null:
                entries[name] = default
        for name, inner in self.attributes.items():
            if name in entries:
                entries[name] = inner.fill(entries[name])
        return with_sensitivity(object_value(entries), value)


NO_DEFAULTS = Defaults()


@frozen
class Constraint:
    """The constraint of a variable."""

    type: Type = DYNAMIC
    defaults: Defaults = NO_DEFAULTS

    def apply(self, value: Value) -> Value:
        """Return the value as the variable holds it. Raises ValueFault: it cannot be converted."""
        return convert(self.defaults.fill(value), self.type)


def constraint_of(expression: Expression, scope: Scope) -> Constraint:
    """Return the constraint that an expression states.

    Raises:
        ConfigError: it is no type.

    """
    if isinstance(expression, Literal) and isinstance(expression.value.payload, str):
        return _named(expression.value.payload, expression.line, scope)  # `type = "string"`, as before 0.12
    if isinstance(expression, Traversal) and not expression.steps:
        return _named(expression.root, expression.line, scope)
    if isinstance(expression, Call) and len(expression.arguments) == 1:
        argument = expression.arguments[0]
        if expression.name in _COLLECTIONS:
            inner = constraint_of(argument, scope)
            defaults = Defaults(elements=(inner.defaults,)) if inner.defaults != NO_DEFAULTS else NO_DEFAULTS
            return Constraint(_COLLECTIONS[expression.name](inner.type), defaults)
        if expression.name == "object" and isinstance(argument, ObjectOf):
            return _object(argument, scope)
        if expression.name == "tuple" and isinstance(argument, TupleOf):
            parts = [constraint_of(item, scope) for item in argument.items]
            kind = Type(Kind.TUPLE, elements=tuple(part.type for part in parts))
            return Constraint(kind, Defaults(elements=tuple(part.defaults for part in parts)))
    raise scope.refusal(expression.line, "not a type: expected such as string, list(string) or object({ ... })")


def _named(name: str, line: int, scope: Scope) -> Constraint:
    if name in _PRIMITIVES:
        return Constraint(_PRIMITIVES[name])
    if name in _COLLECTIONS:
        return Constraint(_COLLECTIONS[name](DYNAMIC))
    raise scope.refusal(line, f"{name} is not a type: expected such as string, list(string) or object({{ ... }})")


def _object(expression: ObjectOf, scope: Scope) -> Constraint:
    types: dict[str, Type] = {}
    optional: set[str] = set()
    values: dict[str, Value] = {}
    inner: dict[str, Defaults] = {}
    for key, item in expression.items:
        name = evaluate(key, scope).text
        if name in types:
            raise scope.refusal(key.line, f"duplicate attribute {name} in an object type")
        stated, default = item, None
        if isinstance(item, Call) and item.name == "optional" and 1 <= len(item.arguments) <= 2:
            optional.add(name)
            stated, *rest = item.arguments
            default = rest[0] if rest else None
        part = constraint_of(stated, scope)
        types[name] = part.type
        if part.defaults != NO_DEFAULTS:
            inner[name] = part.defaults
        if default is not None:
            try:
                values[name] = part.apply(evaluate(default, scope))
            except ValueFault as fault:
                raise scope.refusal(default.line, f"the default of {name}: {fault}") from fault
    kind = Type(Kind.OBJECT, attributes={name: types[name] for name in sorted(types)}, optional=frozenset(optional))
    return Constraint(kind, Defaults(values, inner) if values or inner else NO_DEFAULTS)
