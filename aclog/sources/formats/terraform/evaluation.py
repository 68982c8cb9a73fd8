"""Evaluation of expressions, as HCL's own evaluator does it (hashicorp/hcl)."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from attrs import evolve, field

from aclog.authorizer.symbols import literal_part, symbol_part
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.terraform.collection_functions import Function
from aclog.sources.formats.terraform.hcl import (
    ITEM,
    Binary,
    Call,
    Conditional,
    Expression,
    For,
    GetAttribute,
    Literal,
    ObjectOf,
    Relative,
    Splat,
    Step,
    Template,
    TemplateLoop,
    Traversal,
    TupleOf,
    Unary,
)
from aclog.sources.formats.terraform.values import (
    BOOL,
    DYNAMIC,
    FALSE,
    NULL,
    NUMBER,
    SEQUENCES,
    STRING,
    TRUE,
    EvaluationError,
    Kind,
    Number,
    TooLargeError,
    Type,
    Unknown,
    Value,
    ValueFault,
    as_text,
    boolean,
    bounded_symbol,
    convert,
    elements,
    equal,
    expression_text,
    first_unknown,
    get_attribute,
    get_index,
    is_iterable,
    is_sensitive,
    list_of,
    number,
    object_value,
    rounded,
    string,
    tuple_value,
    unify,
    with_sensitivity,
)

# The scope of an expression: the meaning of its names.


class Names(Protocol):
    """The names of a module: `var`, `local`, `module`, resources."""

    def resolve(self, reference: Traversal, scope: "Scope") -> tuple[Value, int]:
        """Return the value at the beginning of a reference, and how many of its steps led there.

        Raises:
            ConfigError: it refers to nothing that is declared, or to itself.

        """
        ...


MOST_STEPS = 1_000_000
"""The limit for all root modules of a tree: some seconds."""


@define
class Budget:
    """The cost of evaluation, in rounds of loops and their equivalents; owned by the reading of one tree."""

    steps: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether there were too many."""
        return self.steps > MOST_STEPS

    def spend(self, steps: int = 1) -> None:
        """Count steps. Raises TooLargeError: there were too many."""
        self.steps += steps
        if self.is_spent:
            raise TooLargeError(
                f"more than {MOST_STEPS:,} steps to evaluate these files: rounds of loops, instances, long values"
            )

    def spend_on(self, result: Value, *operands: Value) -> None:
        """Count the cost of making a large value, and of scanning large ones. Raises as `spend`."""
        self.spend((result.size >> 4) + (sum([operand.size for operand in operands]) >> 8))


@frozen
class Scope:
    """The names in one expression. Immutable; `with_local` returns another one."""

    file: str
    names: Names
    functions: Mapping[str, Function]
    local: Mapping[str, Value] = field(factory=dict)
    """`each`, `count`, and the variables of `for`."""
    budget: Budget = field(factory=Budget)

    def with_local(self, local: Mapping[str, Value]) -> "Scope":
        """Return a scope with more variables; they hide those of the same name."""
        return Scope(self.file, self.names, self.functions, {**self.local, **local}, self.budget)

    def error(self, line: int, what: str) -> EvaluationError:
        """Return an error at a line: this has no value."""
        return EvaluationError(f"{self.file}:{line}: {what}")

    def refusal(self, line: int, what: str) -> ConfigError:
        """Return an error at a line that `try` does not catch."""
        return ConfigError(f"{self.file}:{line}: {what}")


class NoNames:
    """The scope of expressions without references: types, defaults, files of variables."""

    def resolve(self, reference: Traversal, scope: Scope) -> tuple[Value, int]:
        """Raise ConfigError."""
        raise scope.refusal(reference.line, f"{reference.root}: no reference is possible here")


# Cycle detection: the values being evaluated, to find references that lead back to themselves.


_Result = TypeVar("_Result")
_DEEPEST = 1_000


@define(eq=False)
class Progress:
    """The names whose values are being evaluated, and known values; owned by the evaluation of one root module."""

    budget: Budget
    _open: dict[Hashable, str] = field(factory=dict, init=False)
    _done: dict[Hashable, object] = field(factory=dict, init=False)

    def once(self, key: Hashable, name: str, where: str, find: Callable[[], _Result]) -> _Result:
        """Return the result of `find`, which is called once for each key.

        Raises:
            ConfigError: a cycle; or an error of `find`, which `try` does not catch here.

        """
        if key in self._done:
            return self._done[key]  # type: ignore[return-value]
        with self._opened(key, name, where):
            try:
                result = find()
            except EvaluationError as error:
                raise ConfigError(str(error)) from error
            except TooLargeError as error:
                raise ConfigError(f"{where}: {error}") from error
        self._done[key] = result
        return result

    def is_done(self, key: Hashable) -> bool:
        """Return whether a value was found."""
        return key in self._done

    @contextmanager
    def _opened(self, key: Hashable, name: str, where: str) -> Iterator[None]:
        if key in self._open:
            names = list(self._open.values())
            cycle = names[list(self._open).index(key) :]
            raise ConfigError(f"{where}: a cycle: {' -> '.join([*cycle, name])}")
        if len(self._open) >= _DEEPEST:
            raise ConfigError(f"{where}: references lead to others more than {_DEEPEST:,} deep")
        self._open[key] = name
        try:
            yield
        finally:
            del self._open[key]


# Operators of Terraform's language.


def binary(operator: str, first: Value, second: Value) -> Value:
    """Return the result of an operator on two values. Raises ValueFault: wrong types."""
    if operator in ("==", "!="):
        same = equal(first, second)
        if isinstance(same, Unknown):
            return Value(BOOL, same)
        return boolean(same is (operator == "=="))
    if operator in ("&&", "||"):
        return _logical(operator, convert(first, BOOL), convert(second, BOOL))
    one, other = _operand(first, NUMBER), _operand(second, NUMBER)
    missing = one.unknown or other.unknown
    result_type = BOOL if operator in _COMPARISONS else NUMBER
    if missing is not None:
        return Value(result_type, missing)
    if operator in _COMPARISONS:
        return boolean(_COMPARISONS[operator](one.number, other.number))
    return number(rounded(_ARITHMETIC[operator](one.number, other.number)))


def unary(operator: str, operand: Value) -> Value:
    """Return the result of an operator on a value. Raises ValueFault: wrong type."""
    value = _operand(operand, BOOL if operator == "!" else NUMBER)
    if value.unknown is not None:
        return value
    return boolean(value.payload is False) if operator == "!" else number(-value.number)


def _operand(value: Value, kind: Type) -> Value:
    if value.is_null:
        raise ValueFault(f"an operand is null: expected a {kind}")
    return convert(value, kind)


def _logical(operator: str, first: Value, second: Value) -> Value:
    deciding = operator == "||"
    if deciding in (first.payload, second.payload):
        return boolean(deciding)
    if first.is_null or second.is_null:
        raise ValueFault("an operand is null: expected a bool")
    missing = first.unknown or second.unknown
    return boolean(not deciding) if missing is None else Value(BOOL, missing)


def _divide(one: Number, other: Number) -> Number:
    if other == 0:
        raise ValueFault("a division by zero")
    quotient = Fraction(one) / Fraction(other)
    return quotient.numerator if quotient.denominator == 1 else quotient


def _modulo(one: Number, other: Number) -> Number:
    if other == 0:
        return one  # so go-cty answers
    quotient = Fraction(one) / Fraction(other)
    rest = Fraction(one) - int(quotient) * Fraction(other)
    return rest.numerator if rest.denominator == 1 else rest


_ARITHMETIC: Mapping[str, Callable[[Number, Number], Number]] = MappingProxyType(
    {
        "+": lambda one, other: one + other,
        "-": lambda one, other: one - other,
        "*": lambda one, other: one * other,
        "/": _divide,
        "%": _modulo,
    }
)
_COMPARISONS: Mapping[str, Callable[[Number, Number], bool]] = MappingProxyType(
    {
        "<": lambda one, other: one < other,
        "<=": lambda one, other: one <= other,
        ">": lambda one, other: one > other,
        ">=": lambda one, other: one >= other,
    }
)


# Evaluation of expressions, as HCL's own evaluator does it (hashicorp/hcl/v2/hclsyntax).


def evaluate(expression: Expression, scope: Scope) -> Value:
    """Return the value of an expression.

    Raises:
        EvaluationError: it has none, with file and line.
        ConfigError: an undeclared or unsupported reference.

    """
    return _EVALUATORS[type(expression)](expression, scope)


def follow(value: Value, steps: tuple[Step, ...], scope: Scope) -> Value:
    """Return the value at the end of some steps from a value. Raises EvaluationError: they lead nowhere."""
    for step in steps:
        try:
            if isinstance(step, GetAttribute):
                value = get_attribute(value, step.name)
            else:
                value = get_index(value, evaluate(step.key, scope))
        except ValueFault as fault:
            raise scope.error(step.line, str(fault)) from fault
    return value


def _literal(expression: Literal, scope: Scope) -> Value:  # noqa: ARG001
    return expression.value


def _traversal(expression: Traversal, scope: Scope) -> Value:
    value = scope.local.get(expression.root)
    if value is not None:
        return follow(value, expression.steps, scope)
    value, used = scope.names.resolve(expression, scope)
    return follow(value, expression.steps[used:], scope)


def _relative(expression: Relative, scope: Scope) -> Value:
    return follow(evaluate(expression.source, scope), expression.steps, scope)


def _template(expression: Template, scope: Scope) -> Value:
    texts, missing, has_symbol = list[str](), None, True
    values = [evaluate(part, scope) for part in expression.parts]
    for part, value in zip(expression.parts, values, strict=True):
        if value.unknown is not None:
            missing = missing or value.unknown
            has_symbol = has_symbol and bool(value.symbol)
            continue
        try:
            texts.append(as_text(value))
        except ValueFault as fault:
            raise scope.error(part.line, f"in a template: {fault}") from fault
    if missing is None:
        result = string("".join(texts))
    else:
        result = Value(STRING, missing, symbol=_template_symbol(values) if has_symbol else "")
    scope.budget.spend_on(result)
    return with_sensitivity(result, *values)


def _template_symbol(values: list[Value]) -> str:
    """Return the symbol of a template; empty if it repeats a value that no message may show."""
    if any(value.sensitive and value.unknown is None for value in values):
        return ""
    texts = [literal_part(as_text(value)) if value.unknown is None else value.symbol for value in values]
    return bounded_symbol("".join(texts))


def _template_loop(expression: TemplateLoop, scope: Scope) -> Value:
    collection = _collection(expression.collection, scope)
    if collection.unknown is not None:
        return Value(STRING, collection.unknown, collection.sensitive)
    texts, missing = list[str](), None
    for local in _iterations(expression.names, collection, scope):
        value = evaluate(expression.body, scope.with_local(local))
        if value.unknown is not None:
            missing = missing or value.unknown
        else:
            texts.append(as_text(value))
        collection = with_sensitivity(collection, value)
    return with_sensitivity(string("".join(texts)) if missing is None else Value(STRING, missing), collection)


def _conditional(expression: Conditional, scope: Scope) -> Value:
    """Return the value of the branch taken, as the type that both have in common; errors of the other do not count."""
    branches: list[Value] = []
    errors: list[EvaluationError | None] = []
    for branch in (expression.yes, expression.no):
        try:
            branches.append(evaluate(branch, scope))
            errors.append(None)
        except EvaluationError as error:
            branches.append(Value(DYNAMIC, Unknown("an error")))
            errors.append(error)
    kind = _common_type(*branches)
    if kind is None:
        raise scope.error(expression.line, "the two results of a condition have no type in common")
    condition = evaluate(expression.condition, scope)
    if condition.is_null:
        raise scope.error(expression.condition.line, "a condition is null")
    if condition.unknown is not None:
        return with_sensitivity(Value(kind, condition.unknown), condition)
    try:
        index = 0 if convert(condition, BOOL).payload else 1
        failure = errors[index]
        if failure is not None:
            raise failure
        scope.budget.spend_on(TRUE, *branches)  # to convert it, and to find the type that both have in common
        return with_sensitivity(convert(branches[index], kind), condition)
    except ValueFault as fault:
        raise scope.error(expression.line, f"in a condition: {fault}") from fault


def _common_type(yes: Value, no: Value) -> Any:
    if yes == NULL:
        return no.type
    if no == NULL:
        return yes.type
    if DYNAMIC in (yes.type, no.type):
        return DYNAMIC
    return unify([yes.type, no.type])


def _binary(expression: Binary, scope: Scope) -> Value:
    values: list[Value] = []
    errors: list[EvaluationError] = []
    for operand in (expression.first, expression.second):
        try:
            values.append(evaluate(operand, scope))
        except EvaluationError as error:
            values.append(Value(DYNAMIC, Unknown("an error")))
            errors.append(error)
    try:
        result = binary(expression.operator, *values)
        scope.budget.spend_on(result, *values)
    except ValueFault as fault:
        if errors:
            raise errors[0] from None
        raise scope.error(expression.line, f"{expression.operator}: {fault}") from fault
    # `false && x` is false even if x has no value.
    if errors and result.unknown is not None:
        raise errors[0]
    return with_sensitivity(result, *values)


def _unary(expression: Unary, scope: Scope) -> Value:
    operand = evaluate(expression.operand, scope)
    try:
        return with_sensitivity(unary(expression.operator, operand), operand)
    except ValueFault as fault:
        raise scope.error(expression.line, f"{expression.operator}: {fault}") from fault


def _tuple(expression: TupleOf, scope: Scope) -> Value:
    return tuple_value([evaluate(item, scope) for item in expression.items])


def _object(expression: ObjectOf, scope: Scope) -> Value:
    entries: dict[str, Value] = {}
    missing: Unknown | None = None
    for key_expression, item in expression.items:
        key, value = evaluate(key_expression, scope), evaluate(item, scope)
        if key.unknown is not None:
            missing = missing or key.unknown
            continue
        entries[_key_text(key, key_expression.line, scope)] = with_sensitivity(value, key)
    return object_value(entries) if missing is None else Value(DYNAMIC, missing)


def _key_text(key: Value, line: int, scope: Scope) -> str:
    try:
        return as_text(key)
    except ValueFault as fault:
        raise scope.error(line, f"a key of an object: {fault}") from fault


def _collection(expression: Expression, scope: Scope) -> Value:
    value = evaluate(expression, scope)
    if value.is_null:
        raise scope.error(expression.line, "a loop over null")
    if value.unknown is None and not is_iterable(value):
        raise scope.error(expression.line, f"a loop over a {value.type}, which has no elements")
    return value


def _iterations(names: tuple[str | None, str], collection: Value, scope: Scope) -> Iterator[Mapping[str, Value]]:
    key_name, item_name = names
    for key, item in elements(collection):
        scope.budget.spend()
        element = with_sensitivity(item, collection)
        yield {item_name: element} if key_name is None else {key_name: key, item_name: element}


def _for(expression: For, scope: Scope) -> Value:
    collection = _collection(expression.collection, scope)
    if collection.unknown is not None:
        return Value(DYNAMIC, collection.unknown, collection.sensitive)
    items: list[tuple[str, Value]] = []
    missing: Unknown | None = None
    for local in _iterations(expression.names, collection, scope):
        inner = scope.with_local(local)
        included = _included(expression, inner)
        if isinstance(included, Unknown):
            missing = missing or included
        elif included:
            key = _for_key(expression, inner)
            value = evaluate(expression.value, inner)
            if isinstance(key, Unknown):
                missing = missing or key
            else:
                items.append((key, value))
    if missing is not None:
        return Value(DYNAMIC, missing, collection.sensitive)
    return with_sensitivity(_for_result(expression, items, scope), collection)


def _included(expression: For, scope: Scope) -> bool | Unknown:
    if expression.condition is None:
        return True
    value = evaluate(expression.condition, scope)
    if value.is_null:
        raise scope.error(expression.condition.line, "the condition of a for expression is null")
    if value.unknown is not None:
        return value.unknown
    try:
        return bool(convert(value, BOOL).payload)
    except ValueFault as fault:
        raise scope.error(expression.condition.line, f"the condition of a for expression: {fault}") from fault


def _for_key(expression: For, scope: Scope) -> str | Unknown:
    if expression.key is None:
        return ""
    key = evaluate(expression.key, scope)
    return key.unknown if key.unknown is not None else _key_text(key, expression.key.line, scope)


def _for_result(expression: For, items: list[tuple[str, Value]], scope: Scope) -> Value:
    if expression.key is None:
        return tuple_value(value for _, value in items)
    if expression.group:
        groups: dict[str, list[Value]] = {}
        for key, value in items:
            groups.setdefault(key, []).append(value)
        return object_value({key: tuple_value(values) for key, values in groups.items()})
    entries = dict(items)
    if len(entries) < len(items):
        raise scope.error(expression.line, "two elements of a for expression have the same key: `...` collects them")
    return object_value(entries)


def _splat(expression: Splat, scope: Scope) -> Value:
    source = evaluate(expression.source, scope)
    is_sequence = source.type.kind in SEQUENCES
    if source.is_null:
        if is_sequence:
            raise scope.error(expression.line, "a splat of null")
        return tuple_value([])
    if isinstance(source.payload, Unknown) and (is_sequence or source.type.kind is Kind.DYNAMIC):
        return Value(DYNAMIC, source.unknown, source.sensitive)
    items = source.items if is_sequence else (source,)
    values = [evaluate(expression.each, scope.with_local({ITEM: with_sensitivity(item, source)})) for item in items]
    if source.type.kind in (Kind.LIST, Kind.SET):
        element = values[0].type if values else _empty_element(source, expression)
        return with_sensitivity(Value(list_of(element), tuple(values)), source)
    return with_sensitivity(tuple_value(values), source)


def _empty_element(source: Value, expression: Splat) -> Any:
    kind = source.type.item
    for step in expression.each.steps if isinstance(expression.each, Traversal) else ():
        kind = (kind.attributes.get(step.name) if isinstance(step, GetAttribute) else None) or kind.element or DYNAMIC
    return kind


def _call(expression: Call, scope: Scope) -> Value:
    if expression.name in ("try", "can"):
        return _try(expression, scope)
    function = scope.functions.get(expression.name)
    if function is None:
        raise scope.refusal(expression.line, f"{expression.name}(): no such function, or not supported by aclog")
    arguments = [evaluate(argument, scope) for argument in expression.arguments]
    if expression.expand:
        last = arguments.pop()
        if last.unknown is not None:
            return Value(DYNAMIC, last.unknown, last.sensitive)
        if last.is_null or last.type.kind not in SEQUENCES:
            raise scope.error(
                expression.line, f"{expression.name}(): only a list, set or tuple can be expanded by `...`"
            )
        arguments.extend(with_sensitivity(item, last) for item in last.items)
    try:
        result = function.call(arguments)
    except ValueFault as fault:
        hidden = any(map(is_sensitive, arguments))
        what = "an invalid argument (not shown: it is sensitive)" if hidden else str(fault)
        raise scope.error(expression.line, f"{expression.name}(): {what}") from (None if hidden else fault)
    except EvaluationError:
        raise
    except ConfigError as error:
        raise scope.refusal(expression.line, f"{expression.name}(): {error}") from error
    scope.budget.spend_on(result, *arguments)
    return _as_symbol(expression.name, arguments, result)


def _as_symbol(name: str, arguments: list[Value], result: Value) -> Value:
    """Return an unknown result of a function with the call as its symbol, if its arguments have one."""
    if result.unknown is None or result.symbol:
        return result
    texts = [text for text in map(expression_text, arguments) if text is not None]
    if len(texts) < len(arguments) or not name.isidentifier() or name in _EACH_TIME:
        return result
    return evolve(result, symbol=bounded_symbol(symbol_part(f"{name}({', '.join(texts)})")))


_EACH_TIME = frozenset({"timestamp", "plantimestamp", "uuid", "bcrypt"})
"""Functions whose result differs from call to call."""


def _try(expression: Call, scope: Scope) -> Value:
    """Return the first argument that has a value, or for `can` whether its argument has one."""
    is_can = expression.name == "can"
    if not expression.arguments or (is_can and len(expression.arguments) != 1):
        raise scope.error(expression.line, f"{expression.name}(): wrong number of arguments")
    for argument in expression.arguments:
        try:
            value = evaluate(argument, scope)
        except EvaluationError:
            continue
        missing = first_unknown(value)
        if missing is not None and _may_fail(argument):
            return Value(BOOL if is_can else DYNAMIC, missing)
        return TRUE if is_can else value
    if is_can:
        return FALSE
    raise scope.error(expression.line, "try(): none of its arguments has a value")


def _may_fail(argument: Expression) -> bool:
    """Return whether an unknown value may turn out to have no value here; a mere reference cannot."""
    return not isinstance(argument, Literal | Traversal)


_EVALUATORS: Mapping[type, Callable[[Any, Scope], Value]] = MappingProxyType(
    {
        Literal: _literal,
        Template: _template,
        TemplateLoop: _template_loop,
        Traversal: _traversal,
        Relative: _relative,
        Splat: _splat,
        Call: _call,
        Conditional: _conditional,
        Binary: _binary,
        Unary: _unary,
        TupleOf: _tuple,
        ObjectOf: _object,
        For: _for,
    }
)
