"""ALLOW rules, indexed to find whether a DENY denies some of what they allow."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Self

from attrs import frozen

from aclog.authorizer.acl import WILDCARD_PRINCIPAL, AclOperation, StandardAcl
from aclog.usage.suggestion.present_rules import IMPLYING, names_of

_ANYBODY: Final = ""
"""In place of a principal: the rules of all of them."""


class _Key(NamedTuple):
    resource_type: int
    operation: int
    principal: str


@frozen
class AllowingRules:
    """ALLOW rules; hosts are not compared, so that a DENY may seem to meet a rule that it does not meet."""

    _names: Mapping[_Key, tuple[str, ...]]
    """The names of LITERAL rules and the prefixes of others, in order."""
    _prefixes: Mapping[_Key, frozenset[str]]

    @classmethod
    def of(cls, rules: Iterable[StandardAcl]) -> Self:
        """Index rules."""
        names: dict[_Key, set[str]] = {}
        prefixes: dict[_Key, set[str]] = {}
        for rule in rules:
            prefix = names_of(rule).prefix
            for operation in _allowed(rule.operation):
                for principal in (rule.principal, _ANYBODY):
                    key = _Key(rule.resource_type, operation, principal)
                    names.setdefault(key, set()).add(rule.resource_name if prefix is None else prefix)
                    if prefix is not None:
                        prefixes.setdefault(key, set()).add(prefix)
        return cls(
            {key: tuple(sorted(each)) for key, each in names.items()},
            {key: frozenset(each) for key, each in prefixes.items()},
        )

    def meet(self, deny: StandardAcl) -> bool:
        """Return whether a DENY is about the principal, an operation and a name of one of the rules."""
        everybody = deny.principal == WILDCARD_PRINCIPAL
        principals = (_ANYBODY,) if everybody else (deny.principal, WILDCARD_PRINCIPAL)
        operations = _CONCRETE if deny.operation == AclOperation.ALL else (deny.operation,)
        denied = names_of(deny)
        return any(
            self._have(_Key(deny.resource_type, operation, principal), denied.prefix, deny.resource_name)
            for operation in operations
            for principal in principals
        )

    def _have(self, key: _Key, prefix: str | None, name: str) -> bool:
        names, start = self._names.get(key, ()), name if prefix is None else prefix
        at = bisect_left(names, start)
        inside = at < len(names) and (names[at] == start if prefix is None else names[at].startswith(start))
        covering = self._prefixes.get(key, frozenset())
        return inside or any(start[:end] in covering for end in range(len(start) + 1))


_CONCRETE: Final = tuple(each for each in AclOperation if each > AclOperation.ALL)


def _allowed(operation: int) -> Iterator[int]:
    """Yield the operations that an ALLOW of one allows."""
    if operation == AclOperation.ALL:
        yield from _CONCRETE
        return
    yield operation
    yield from (implied for implied, implying in IMPLYING.items() if operation in implying)
