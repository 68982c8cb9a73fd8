"""Tests of accesses that were made: each is decided as today, folded to the names that are allowed together."""

from collections.abc import Iterable, Iterator

from attrs import define, field

from aclog.analysis.deciding import is_allowed
from aclog.analysis.difference import allowed
from aclog.analysis.policy import Policy
from aclog.analysis.regions.names import Literal, NamePart, Subtree
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.principals import only
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region, Request
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.recorded_objects import TestObject, by_operation, test_object
from aclog.analysis.rule_tests.tested_resource import resource_text
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, PatternType, ResourcePattern, ResourceType

_FOLDED = 3
"""So many accessed names below a prefix that is allowed as a whole are written as the prefix."""


def tests_of_accesses(policy: Policy, accesses: Iterable[Request]) -> Iterator[TestObject]:
    """Yield tests that each access is decided as the policy decides it: by principal, and by host where that counts."""
    of_principal: dict[str, list[Request]] = {}
    for each in accesses:
        if ":" in each.principal and each.principal != WILDCARD_PRINCIPAL and each.resource_name:
            of_principal.setdefault(each.principal, []).append(each)
    for principal, requests in sorted(of_principal.items()):
        yield from _Principal.of(policy, principal).tests(requests)


@define(eq=False, kw_only=True)
class _Principal:
    """What one principal is allowed."""

    policy: Policy
    principal: str
    _everywhere: dict[tuple[int, int], dict[str, list[NamePart]]] = field(factory=dict, init=False)
    """From every host, by resource type and operation, and by the beginning of the names."""
    _somewhere: dict[tuple[int, int], dict[str, list[NamePart]]] = field(factory=dict, init=False)

    @staticmethod
    def of(policy: Policy, principal: str) -> "_Principal":
        """Read what a principal is allowed."""
        made = _Principal(policy=policy, principal=principal)
        for region in allowed(policy, Query(principals=only(principal))):
            made._add(region)
        return made

    def tests(self, requests: Iterable[Request]) -> Iterator[TestObject]:
        """Yield the tests of some accesses of the principal."""
        can: dict[str | None, set[tuple[int, int, str]]] = {}
        cannot: dict[str | None, set[tuple[int, int, str]]] = {}
        for each in requests:
            place = (each.resource_type, each.operation)
            asked = (*place, each.resource_name)
            if is_allowed(self.policy, each):
                everywhere = self._part(self._everywhere, place, each.resource_name) is not None
                can.setdefault(None if everywhere else each.host, set()).add(asked)
            else:
                nowhere = self._part(self._somewhere, place, each.resource_name) is None
                cannot.setdefault(None if nowhere else each.host, set()).add(asked)
        for host in sorted({*can, *cannot}, key=lambda each: each or ""):
            expected: TestObject = {}
            if host in can:
                expected["can"] = by_operation(self._folded(can[host], fold=host is None))
            if host in cannot:
                expected["cannot"] = by_operation(self._folded(cannot[host], fold=False))
            name = self.principal if host is None else f"{self.principal} from {host}"
            yield test_object(name, CaseSubject(principal=self.principal, host=host), expected)

    def _add(self, region: Region) -> None:
        everywhere = region.hosts.complement and not region.hosts.entries
        for operation in operations_of(region.operations):
            for part in region.names:
                begin = part.name if isinstance(part, Literal) else part.prefix
                for places in (self._somewhere, *((self._everywhere,) if everywhere else ())):
                    places.setdefault((region.resource_type, operation), {}).setdefault(begin, []).append(part)

    def _part(
        self, places: dict[tuple[int, int], dict[str, list[NamePart]]], place: tuple[int, int], name: str
    ) -> NamePart | None:
        """Return the widest of the parts that hold a name."""
        begins = places.get(place, {})
        found = (part for end in range(len(name) + 1) for part in begins.get(name[:end], ()) if name in part)
        return next(found, None)

    def _folded(self, asked: Iterable[tuple[int, int, str]], *, fold: bool) -> Iterator[tuple[int, object]]:
        names: dict[tuple[int, int, str], list[str]] = {}
        for kind, operation, name in asked:
            part = self._part(self._everywhere, (kind, operation), name) if fold else None
            whole = isinstance(part, Subtree) and part == Subtree(prefix=part.prefix) and bool(part.prefix)
            begin = part.prefix if whole and isinstance(part, Subtree) else ""
            names.setdefault((kind, operation, begin), []).append(name)
        for (kind, operation, begin), members in sorted(names.items()):
            folds = bool(begin) and len(members) >= _FOLDED
            for name in [begin] if folds else sorted(members):
                pattern = PatternType.PREFIXED if folds else PatternType.LITERAL
                resource = ResourcePattern(resource_type=ResourceType(kind), name=name, pattern_type=pattern)
                yield 1 << operation, resource_text(resource)
