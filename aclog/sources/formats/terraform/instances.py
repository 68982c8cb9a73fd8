"""Instances of resources and modules: `count` and `for_each`."""

from collections.abc import Mapping

from attrs import field, frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.terraform.evaluation import evaluate
from aclog.sources.formats.terraform.hcl.syntax import Attribute, Block
from aclog.sources.formats.terraform.scope import Scope
from aclog.sources.formats.terraform.values.conversion import convert
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.types import MAPPINGS, NUMBER, Kind
from aclog.sources.formats.terraform.values.value import Unknown, Value, number, object_value, string

Key = str | int | None
"""Of an instance: a key of for_each, an index of count, None without either."""

_MOST = 100_000


@frozen
class Instances:
    """The instances that a block makes: the local names of each by its key."""

    repeated: str | None
    """`count`, `for_each`, or None."""
    locals: Mapping[Key, Mapping[str, Value]] = field(factory=dict)
    unknown: Unknown | None = None
    """What is unknown about how many there are."""
    where: str = ""
    """`FILE:LINE` of count or for_each."""

    def known(self) -> "Mapping[Key, Mapping[str, Value]]":
        """Return the instances. Raises ConfigError: how many there are is unknown."""
        if self.unknown is not None:
            raise ConfigError(f"{self.where}: {self.repeated} depends on {self.unknown}")
        return self.locals


def instances_of(block: Block, scope: Scope) -> Instances:
    """Return the instances of a resource or a module call.

    Raises:
        ConfigError: count or for_each is not of the type that it must be.

    """
    for inner in block.body.of_type("lifecycle"):
        enabled = inner.body.attributes.get("enabled")
        if enabled is not None:
            raise ConfigError(f"{enabled.file}:{enabled.line}: lifecycle.enabled is not understood: use count")
    count, for_each = block.body.attributes.get("count"), block.body.attributes.get("for_each")
    if count is not None and for_each is not None:
        raise ConfigError(f"{for_each.file}:{for_each.line}: count and for_each exclude each other")
    if count is not None:
        return _counted(count, scope)
    if for_each is not None:
        return _for_each(for_each, scope)
    return Instances(None, {None: {}})


def _counted(attribute: Attribute, scope: Scope) -> Instances:
    where = f"{attribute.file}:{attribute.line}"
    value = evaluate(attribute.value, scope)
    if value.unknown is not None:
        return Instances("count", unknown=value.unknown, where=where)
    try:
        times = convert(value, NUMBER).payload
    except ValueFault as fault:
        raise ConfigError(f"{where}: count: {fault}") from fault
    if not isinstance(times, int) or not 0 <= times <= _MOST:
        raise ConfigError(f"{where}: count must be a whole number from 0 to {_MOST:,}")
    return Instances("count", {n: {"count": object_value({"index": number(n)})} for n in range(times)}, where=where)


def _for_each(attribute: Attribute, scope: Scope) -> Instances:
    where = f"{attribute.file}:{attribute.line}"
    value = evaluate(attribute.value, scope)
    if value.unknown is not None:
        return Instances("for_each", unknown=value.unknown, where=where)
    if value.is_null:
        raise ConfigError(f"{where}: for_each is null: expected a map or a set of strings")
    if value.type.kind in MAPPINGS:
        pairs = dict(value.entries)
    elif value.type.kind is Kind.SET and all(isinstance(item.payload, str) for item in value.items):
        pairs = {item.text: item for item in value.items}
    else:
        raise ConfigError(f"{where}: for_each is a {value.type}: expected a map or a set of strings (toset)")
    made: dict[Key, Mapping[str, Value]] = {
        key: {"each": object_value({"key": string(key), "value": item})} for key, item in pairs.items()
    }
    return Instances("for_each", made, where=where)
