"""The lint of rules that close a resource which was open to all (allow.everyone.if.no.acl.found)."""

from collections.abc import Iterator, Sequence
from itertools import islice

from attrs import define, field

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, finding
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import noun
from aclog.analysis.regions.region import Request
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, AclOperation, StandardAcl, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import AclIndex

_SHOWN = 20
"""A finding names no more rules than this."""


def closes_open_resource(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield for each resource whose rules are all for others than somebody who used it these rules (22)."""
    settings = table.settings
    if not settings.allow_everyone:
        return
    acls = AclsImage(AclIndex(table.base), documented=settings.documented, cidr=settings.cidr)
    resources: dict[tuple[int, str], _Resource] = {}
    for access in context.accesses:
        if access.principal not in settings.super_users:
            key = access.resource_type, access.resource_name
            if key not in resources:
                resources[key] = _Resource.of(acls, *key)
            resources[key].add(access)
    for resource in resources.values():
        if resource.refused:
            yield finding("22", resource.rules, Told(_lost(resource.refused)))


@define(eq=False, kw_only=True)
class _Resource:
    """A resource that was used, and who is refused there now."""

    rules: Sequence[StandardAcl]
    """Some that cover it."""
    _principals: frozenset[str]
    """Those of all rules that cover it."""
    refused: dict[Request, None] = field(factory=dict, init=False)

    @classmethod
    def of(cls, acls: AclsImage, kind: int, name: str) -> "_Resource":
        """Return a resource with the rules that cover it."""
        principals: set[str] = set()
        covering = acls.candidates(kind, name)
        rules = []
        for rule in islice(covering, _SHOWN):
            rules.append(rule.acl)
            principals.add(rule.acl.principal)
        principals.update(rule.acl.principal for rule in covering)
        return cls(rules=rules, principals=frozenset(principals))

    def add(self, access: Request) -> None:
        """Add an access: it is refused if rules cover the resource, and none is for its principal."""
        if self.rules and self._principals.isdisjoint((access.principal, WILDCARD_PRINCIPAL)):
            self.refused[access] = None


def _lost(refused: dict[Request, None]) -> str:
    first = next(iter(refused))
    operation = code_name(AclOperation, first.operation)
    kind = noun(first.resource_type)
    others = len({access.principal for access in refused}) - 1
    more = f", and {others:,} other principals" if others else ""
    return f"{first.principal}{more} used the {kind} {first.resource_name!r} ({operation}), and is refused now"
