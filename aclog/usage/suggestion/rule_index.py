"""Rules by what they cover: which ones apply to a name, to all names under a prefix, or to some of them."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

from attrs import define, field

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, AclPermissionType, PatternType, StandardAcl
from aclog.authorizer.cidr import parse_cidr
from aclog.authorizer.index.masks import rule_mask
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError

_LITERAL, _PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
_Pattern = tuple[int, int, str]
"""Resource type, pattern type, name."""


@define(eq=False)
class RuleIndex:
    """Rules by pattern and principal."""

    settings: Settings
    _rules: dict[_Pattern, dict[str, list[StandardAcl]]] = field(factory=dict, init=False)
    _lengths: dict[int, set[int]] = field(factory=dict, init=False)
    """By resource type: the lengths of prefixes."""
    _names: dict[int, list[tuple[str, int]]] = field(factory=dict, init=False)
    """By resource type: names and pattern types, sorted."""

    @classmethod
    def of(cls, rules: Iterable[StandardAcl], settings: Settings) -> "RuleIndex":
        """Index rules; one with a principal without a colon counts as for everybody, since Kafka throws on it."""
        index = cls(settings)
        for rule in rules:
            index._put(rule)
        for kind, pattern_type, name in index._rules:
            index._names.setdefault(kind, []).append((name, pattern_type))
        for names in index._names.values():
            names.sort()
        return index

    def add(self, rule: StandardAcl) -> None:
        """Add a rule."""
        pattern = (rule.resource_name, rule.pattern_type)
        if (rule.resource_type, rule.pattern_type, rule.resource_name) not in self._rules:
            insort(self._names.setdefault(rule.resource_type, []), pattern)
        self._put(rule)

    def _put(self, rule: StandardAcl) -> None:
        pattern = (rule.resource_type, rule.pattern_type, rule.resource_name)
        principal = rule.principal if ":" in rule.principal else WILDCARD_PRINCIPAL
        self._rules.setdefault(pattern, {}).setdefault(principal, []).append(rule)
        if rule.pattern_type == _PREFIXED:
            self._lengths.setdefault(rule.resource_type, set()).add(len(rule.resource_name))

    def on_name(self, kind: int, name: str, principal: str | None) -> Iterator[StandardAcl]:
        """Yield the rules about a principal (None: about anybody) that cover a name, the narrowest pattern first."""
        yield from self._of((kind, _LITERAL, name), principal)
        yield from self.on_all(kind, name, principal, but_name=name)

    def on_all(
        self, kind: int, prefix: str, principal: str | None, *, but_name: str | None = None
    ) -> Iterator[StandardAcl]:
        """Yield those that cover all names that begin with a prefix, the longest prefix first."""
        for length in sorted(self._lengths.get(kind, ()), reverse=True):
            if length <= len(prefix):
                yield from self._of((kind, _PREFIXED, prefix[:length]), principal)
        if (
            but_name != WILDCARD
            and (self.settings.documented or not prefix.startswith(WILDCARD))
            and (prefix or but_name is not None)
        ):
            yield from self._of((kind, _LITERAL, WILDCARD), principal)

    def on_some(self, kind: int, prefix: str, principal: str | None) -> Iterator[StandardAcl]:
        """Yield those that cover some of these names, but not all: whose patterns are under the prefix."""
        names = self._names.get(kind, [])
        for at in range(bisect_left(names, (prefix, 0)), len(names)):
            name, pattern_type = names[at]
            if not name.startswith(prefix):
                return
            if (name, pattern_type) != (prefix, _PREFIXED):
                yield from self._of((kind, pattern_type, name), principal)

    def touching(self, rule: StandardAcl) -> Iterator[StandardAcl]:
        """Yield the rules that may apply to a request that another rule applies to; rather one too many."""
        kind, name = rule.resource_type, rule.resource_name
        who = None if rule.principal == WILDCARD_PRINCIPAL else rule.principal
        found: Iterator[StandardAcl]
        if rule.pattern_type == _PREFIXED:
            found = chain(self.on_all(kind, name, who), self.on_some(kind, name, who))
        elif name == WILDCARD:
            found = chain(self.on_all(kind, "", who), self.on_some(kind, "", who))
        else:
            found = self.on_name(kind, name, who)
        return (each for each in found if overrules(each, rule, self.settings))

    def _of(self, pattern: _Pattern, principal: str | None) -> Iterator[StandardAcl]:
        by_principal = self._rules.get(pattern)
        if by_principal is None:
            return
        if principal is None:
            yield from chain.from_iterable(by_principal.values())
            return
        for each in dict.fromkeys((principal, WILDCARD_PRINCIPAL)):
            yield from by_principal.get(each, ())


def is_allow(rule: StandardAcl) -> bool:
    """Return whether a rule allows anything; one whose principal has no colon makes Kafka's authorizer throw."""
    return rule.permission_type == AclPermissionType.ALLOW and ":" in rule.principal


def allows(rule: StandardAcl, operation: int) -> bool:
    """Return whether an ALLOW is about an operation; READ implies DESCRIBE, and so on."""
    return bool(rule_mask(rule.operation, AclPermissionType.ALLOW) >> operation & 1)


def overrules(deny: StandardAcl, rule: StandardAcl, settings: Settings) -> bool:
    """Return whether one denies an operation that an ALLOW is about, from a host that both may be about."""
    if ":" not in deny.principal:
        return True  # Kafka throws, from whichever host
    reach = rule_mask(rule.operation, AclPermissionType.ALLOW)
    meet = hosts_meet(rule.host, deny.host, settings)
    return meet and bool(rule_mask(deny.operation, AclPermissionType.DENY) >> 16 & reach)


def host_covers(rule_host: str, host: str, settings: Settings) -> bool:
    """Return whether the host of a rule covers another: an address, or the host of a rule."""
    if rule_host in (WILDCARD, host):
        return True
    return settings.cidr and "/" in rule_host and "/" not in host and _in_range(rule_host, host)


def hosts_meet(one: str, other: str, settings: Settings) -> bool:
    """Return whether two hosts of rules may have an address in common."""
    if settings.cidr and "/" in one and "/" in other:
        return True
    return host_covers(one, other, settings) or host_covers(other, one, settings)


@lru_cache(1 << 16)
def _in_range(text: str, host: str) -> bool:
    try:
        return parse_cidr(text).contains(host)
    except ConfigError:
        return False
