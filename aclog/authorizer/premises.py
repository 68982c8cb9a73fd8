"""Premises: inputs of an answer that could not be read, such as the settings of a live cluster."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Self

from attrs import field, frozen
from attrs.validators import min_len

from aclog.authorizer.acl import shell_word
from aclog.authorizer.audit import Row
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, parse_allow_everyone, parse_super_users
from aclog.authorizer.standard import ACL_AUTHORIZERS, AUTHORIZER_CLASS_NAME_CONFIG, KAFKAS_STANDARD_AUTHORIZER
from aclog.metalog.errors import ConfigError

# Premises: unknown inputs of an answer, with their possible effects, and the flags that settle them.


UNKNOWN = " is unknown: "
"""Occurs in the note of every premise, and in no other note of a command."""


@frozen(kw_only=True)
class Premise:
    """One unknown premise."""

    name: str
    """The unknown input, such as `super.users`."""
    problem: str
    """The reason why it is unknown, and the nodes; a clause."""
    unless: str
    """The condition under which the answer would change; a clause, such as `the principal is a super user`."""
    settled_by: str
    """The flag that settles it, such as `--super-users USERS`."""
    allows: bool = True
    """Whether it could allow requests that are denied without it."""
    denies: bool = False
    """Whether it could deny requests that are allowed without it."""

    def note(self) -> str:
        """Return the premise as a sentence for stderr."""
        turned = {
            (True, False): "DENIED requests may be allowed",
            (False, True): "ALLOWED requests may be denied",
            (True, True): "any decision may differ",
        }[self.allows, self.denies]
        return f"{self.name}{UNKNOWN}{self.problem}: {turned}; known with {self.settled_by}"

    def to_dict(self) -> Row:
        """Return the premise for JSON; scripts depend on the keys."""
        return {
            "name": self.name,
            "problem": self.problem,
            "couldAllow": self.allows,
            "couldDeny": self.denies,
            "settledBy": self.settled_by,
        }


@frozen
class Premises:
    """All unknown premises of an answer; empty if every input is known."""

    unknown: tuple[Premise, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unknown)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the unknown inputs."""
        return tuple(premise.name for premise in self.unknown)

    def turning(self, *, allowed: bool) -> Self:
        """Return those that could reverse an allowed, or a denied, request."""
        return type(self)(tuple(each for each in self.unknown if (each.denies if allowed else each.allows)))

    def also(self, more: Self) -> Self:
        """Return these and others, each once."""
        return type(self)(tuple(dict.fromkeys((*self.unknown, *more.unknown)))) if more else self

    def without(self, names: AbstractSet[str]) -> Self:
        """Return those without one of these names."""
        return type(self)(tuple(each for each in self.unknown if each.name not in names))

    def bearing_on(self, *, allowed: bool, has_candidate: bool) -> Self:
        """Return those that could change one decision; `has_candidate`: whether an ACL covers its resource."""
        turning = self.turning(allowed=allowed)
        return turning.without({ALLOW_EVERYONE_CONFIG}) if has_candidate else turning

    def decided(self, decision: str) -> str:
        """Return a decision with its conditions: `DENIED unless ...`; `self`: the premises that affect it."""
        return f"{decision} unless {self.unless()}" if self.unknown else decision

    def unless(self) -> str:
        """Return the conditions under which an answer would change, with their flags, as a clause; empty if none."""
        return " or ".join(f"{each.unless} ({each.settled_by})" for each in self.unknown)

    def settled_by(self) -> str:
        """Return all flags that settle the premises, as a list in a sentence."""
        return " and ".join(each.settled_by for each in self.unknown)

    def to_dicts(self) -> list[Row]:
        """Return them for JSON."""
        return [premise.to_dict() for premise in self.unknown]

    def key(self) -> dict[str, list[Row]]:
        """Return the JSON key with the premises; empty without any."""
        return {"premises": self.to_dicts()} if self.unknown else {}


ALL_KNOWN = Premises()


# The authorizer settings that the nodes of a running cluster return, and the premises that stay unknown.


SETTLED = frozenset({SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG})
"""The properties whose values flags can provide."""
READ_CONFIGS = (*sorted(SETTLED), AUTHORIZER_CLASS_NAME_CONFIG)
"""The properties that affect decisions, besides ACLs."""

KNOWN_AUTHORIZERS = frozenset(
    {KAFKAS_STANDARD_AUTHORIZER, "aclog.authorizer.standard.StandardAuthorizer", *ACL_AUTHORIZERS}
)
"""The authorizer classes whose properties, defaults and decisions are known."""

_SETTLED_BY_FILE = "--acls FILE, which decides as Kafka's StandardAuthorizer with the same ACLs"
_LISTED = 5
"""How many nodes a premise names."""
_FLAGS = {
    SUPER_USERS_CONFIG: "--super-users USERS",
    ALLOW_EVERYONE_CONFIG: "--allow-everyone-if-no-acl-found or --no-allow-everyone-if-no-acl-found",
}
_UNLESS = {
    SUPER_USERS_CONFIG: "the principal is a super user",
    ALLOW_EVERYONE_CONFIG: "a resource without ACLs is open to everyone",
}


def _is_no_super_user(value: str) -> bool:
    try:
        return not parse_super_users(value)
    except ConfigError:  # a value with another meaning to another authorizer
        return False


def _is_closed(value: str) -> bool:
    return not parse_allow_everyone(value)


_DEFAULTS: Mapping[str, Callable[[str], bool]] = {
    SUPER_USERS_CONFIG: _is_no_super_user,
    ALLOW_EVERYONE_CONFIG: _is_closed,
}
"""Whether a value is equivalent to an unset property."""


@frozen(kw_only=True)
class NodeSettings:
    """The settings of one node, or the reason why they are unknown."""

    node: str
    """Such as `broker 1`."""
    values: Mapping[str, str | None] = field(factory=dict)
    """Of the properties of `READ_CONFIGS` that are set; None for a value that the node hides."""
    problem: str | None = None
    """The reason why the node's settings are unknown; a clause."""
    may_lack_authorizer: bool = False
    """Whether the settings are unknown, and the other nodes of the cluster have no authorizer."""

    @property
    def is_read(self) -> bool:
        """Whether the node's settings were read."""
        return self.problem is None

    @property
    def authorizer(self) -> str | None:
        """The class of its authorizer, empty for none; None if it is hidden, or was not read."""
        if not self.is_read:
            return None
        name = self.values.get(AUTHORIZER_CLASS_NAME_CONFIG, "")
        return None if name is None else name.strip()


@frozen(kw_only=True)
class ClusterSettings:
    """The settings of the nodes that decide requests of clients."""

    nodes: tuple[NodeSettings, ...] = field(validator=min_len(1))
    serves_acls: bool = False
    """Whether one of the nodes has described ACLs, which requires an authorizer."""

    @property
    def has_no_authorizer(self) -> bool:
        """Whether every node has no authorizer, and so allows everything."""
        return self._names_none and not self.serves_acls

    @property
    def _names_none(self) -> bool:
        return all(node.authorizer == "" for node in self.nodes)

    def premises(self, names: AbstractSet[str]) -> Premises:
        """Return the unknown premises if the values of the properties in `names` are given."""
        properties = ((name, is_default) for name, is_default in _DEFAULTS.items() if name not in names)
        unknown = [self._property(name, is_default) for name, is_default in properties]
        return Premises(tuple(each for each in (*unknown, self._class()) if each is not None))

    def _property(self, name: str, is_default: Callable[[str], bool]) -> Premise | None:
        """Return a property as a premise; None if it has Kafka's default on every node."""
        problems: dict[str, list[str]] = {}
        values: set[str] = set()
        for node in self.nodes:
            value = node.values.get(name, "")
            if node.problem is not None:
                problems.setdefault(f"it cannot be read on {{}}: {node.problem}", []).append(node.node)
            elif value is None:
                problems.setdefault("it is set on {}, where the value is hidden", []).append(node.node)
            elif not is_default(value):
                values.add(value)
                problems.setdefault(f"on {{}} it is {value!r}, which no flag or context sets", []).append(node.node)
        if not problems:
            return None
        return Premise(
            name=name,
            problem="; ".join(text.replace("{}", _listed(nodes), 1) for text, nodes in problems.items()),
            unless=_UNLESS[name],
            settled_by=_flag(name, values.pop()) if len(values) == len(problems) == 1 else _FLAGS[name],
        )

    def _class(self) -> Premise | None:
        """Return the class of the authorizer as a premise; None if every node that was read has a known class."""
        is_named = not self._names_none  # a service may hide the property
        lacking = (node for node in self.nodes if node.may_lack_authorizer or (is_named and node.authorizer == ""))
        missing = [node.node for node in lacking]
        others = dict.fromkeys(_strangers(self.nodes))
        if not missing and not others:
            return None
        parts = [f"{_listed([node])} has {name}" for node, name in others]
        if missing:
            parts.append(f"{_listed(missing)} may have none, and then everything is allowed")
        return Premise(
            name=AUTHORIZER_CLASS_NAME_CONFIG,
            problem="; ".join(parts),
            unless="another authorizer decides otherwise" if others else "there is no authorizer",
            settled_by=_SETTLED_BY_FILE,
            denies=bool(others),
        )


def _strangers(nodes: tuple[NodeSettings, ...]) -> Iterator[tuple[str, str]]:
    """Yield the nodes whose authorizer is not one of Kafka's, and its class."""
    for node in nodes:
        if node.is_read and node.authorizer is None:
            yield node.node, "one whose class is hidden"
        elif node.authorizer and node.authorizer not in KNOWN_AUTHORIZERS:
            yield node.node, node.authorizer


def _flag(name: str, value: str) -> str:
    if name == SUPER_USERS_CONFIG:
        return f"--super-users {shell_word(value) or 'USERS'}"
    return "--allow-everyone-if-no-acl-found"


def _listed(nodes: list[str]) -> str:
    """Return names such as `broker 1` as `brokers 1, 2`; the first ones of many."""
    kinds: dict[str, list[str]] = {}
    for node in nodes:
        kind, _, number = node.rpartition(" ")
        kinds.setdefault(kind, []).append(number)
    return " and ".join(_of_kind(kind, numbers) for kind, numbers in kinds.items())


def _of_kind(kind: str, numbers: list[str]) -> str:
    if len(numbers) == 1:
        return f"{kind} {numbers[0]}"
    more = f" and {len(numbers) - _LISTED} more" if len(numbers) > _LISTED else ""
    return f"{kind}s {', '.join(numbers[:_LISTED])}{more}"
