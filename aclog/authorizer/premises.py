"""Premises: what an answer rests on and could not be read, such as the settings of a live cluster."""

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

# Premises: what an answer rests on and could not be read, what each could change, and what settles it.


UNKNOWN = " is unknown: "
"""What the note of every premise has, and no other note of a command."""


@frozen(kw_only=True)
class Premise:
    """One unknown premise."""

    name: str
    """What is unknown, such as `super.users`."""
    problem: str
    """Why it is unknown, and on which nodes; a clause."""
    unless: str
    """With what the answer would be another one; a clause, such as `the principal is a super user`."""
    settled_by: str
    """What to give so that it is known, such as `--super-users USERS`."""
    allows: bool = True
    """Whether it could allow what is denied without it."""
    denies: bool = False
    """Whether it could deny what is allowed without it."""

    def note(self) -> str:
        """Return the premise as a sentence for stderr."""
        turned = {
            (True, False): "what is DENIED may be allowed",
            (False, True): "what is ALLOWED may be denied",
            (True, True): "any decision may be another one",
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
    """All unknown premises of an answer; none if everything that decides is known."""

    unknown: tuple[Premise, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unknown)

    @property
    def names(self) -> tuple[str, ...]:
        """What is unknown."""
        return tuple(premise.name for premise in self.unknown)

    def turning(self, *, allowed: bool) -> Self:
        """Return those that could turn a request that is allowed, or one that is denied, to the opposite."""
        return type(self)(tuple(each for each in self.unknown if (each.denies if allowed else each.allows)))

    def also(self, more: Self) -> Self:
        """Return these and more of them, each once."""
        return type(self)(tuple(dict.fromkeys((*self.unknown, *more.unknown)))) if more else self

    def without(self, names: AbstractSet[str]) -> Self:
        """Return those that have none of these names."""
        return type(self)(tuple(each for each in self.unknown if each.name not in names))

    def bearing_on(self, *, allowed: bool, has_candidate: bool) -> Self:
        """Return those that could turn one decision; `has_candidate`: whether an ACL covers its resource."""
        turning = self.turning(allowed=allowed)
        return turning.without({ALLOW_EVERYONE_CONFIG}) if has_candidate else turning

    def decided(self, decision: str) -> str:
        """Return a decision with what could turn it: `DENIED unless ...`; `self`: those that bear on it."""
        return f"{decision} unless {self.unless()}" if self.unknown else decision

    def unless(self) -> str:
        """Return with what an answer would be another one, and what settles that, as a clause; empty if nothing."""
        return " or ".join(f"{each.unless} ({each.settled_by})" for each in self.unknown)

    def settled_by(self) -> str:
        """Return all that settles them, as a list in a sentence."""
        return " and ".join(each.settled_by for each in self.unknown)

    def to_dicts(self) -> list[Row]:
        """Return them for JSON."""
        return [premise.to_dict() for premise in self.unknown]

    def key(self) -> dict[str, list[Row]]:
        """Return the key of an object in JSON: left out if everything is known."""
        return {"premises": self.to_dicts()} if self.unknown else {}


ALL_KNOWN = Premises()


# What the nodes of a running cluster answer of the settings of their authorizer, and which premises stay unknown.


SETTLED = frozenset({SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG})
"""The properties whose values flags can give."""
READ_CONFIGS = (*sorted(SETTLED), AUTHORIZER_CLASS_NAME_CONFIG)
"""The properties that decide besides the ACLs."""

KNOWN_AUTHORIZERS = frozenset(
    {KAFKAS_STANDARD_AUTHORIZER, "aclog.authorizer.standard.StandardAuthorizer", *ACL_AUTHORIZERS}
)
"""Those whose properties, with their defaults, and whose decisions are known."""

_SETTLED_BY_FILE = "--acls FILE, which asks what Kafka's StandardAuthorizer decides by the same ACLs"
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
    except ConfigError:  # a value that another authorizer reads in another way
        return False


def _is_closed(value: str) -> bool:
    return not parse_allow_everyone(value)


_DEFAULTS: Mapping[str, Callable[[str], bool]] = {
    SUPER_USERS_CONFIG: _is_no_super_user,
    ALLOW_EVERYONE_CONFIG: _is_closed,
}
"""Whether a value is as if the property were not set."""


@frozen(kw_only=True)
class NodeSettings:
    """What one node answers, or why it does not."""

    node: str
    """Such as `broker 1`."""
    values: Mapping[str, str | None] = field(factory=dict)
    """Of the properties of `READ_CONFIGS` that are set; None for a value that the node hides."""
    problem: str | None = None
    """Why nothing is known of the node; a clause."""
    may_lack_authorizer: bool = False
    """Whether nothing is known of the node, and those of its cluster that answer have no authorizer."""

    @property
    def is_read(self) -> bool:
        """Whether it answered."""
        return self.problem is None

    @property
    def authorizer(self) -> str | None:
        """The class of its authorizer, empty for none; None if it is hidden, or the node did not answer."""
        if not self.is_read:
            return None
        name = self.values.get(AUTHORIZER_CLASS_NAME_CONFIG, "")
        return None if name is None else name.strip()


@frozen(kw_only=True)
class ClusterSettings:
    """What the nodes answer that decide requests of clients."""

    nodes: tuple[NodeSettings, ...] = field(validator=min_len(1))
    serves_acls: bool = False
    """Whether one of the nodes has described ACLs, which takes an authorizer."""

    @property
    def has_no_authorizer(self) -> bool:
        """Whether every node answers that it has none: then each allows everything."""
        return self._names_none and not self.serves_acls

    @property
    def _names_none(self) -> bool:
        return all(node.authorizer == "" for node in self.nodes)

    def premises(self, names: AbstractSet[str]) -> Premises:
        """Return what stays unknown if the values of the properties in `names` are given."""
        properties = ((name, is_default) for name, is_default in _DEFAULTS.items() if name not in names)
        unknown = [self._property(name, is_default) for name, is_default in properties]
        return Premises(tuple(each for each in (*unknown, self._class()) if each is not None))

    def _property(self, name: str, is_default: Callable[[str], bool]) -> Premise | None:
        """Return a property as a premise; None if it is as Kafka's default everywhere."""
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
                problems.setdefault(f"on {{}} it is {value!r}, which no flag or context says", []).append(node.node)
        if not problems:
            return None
        return Premise(
            name=name,
            problem="; ".join(text.replace("{}", _listed(nodes), 1) for text, nodes in problems.items()),
            unless=_UNLESS[name],
            settled_by=_flag(name, values.pop()) if len(values) == len(problems) == 1 else _FLAGS[name],
        )

    def _class(self) -> Premise | None:
        """Return the class of the authorizer as a premise; None if each that is read has a known one."""
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
