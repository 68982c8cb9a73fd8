"""Who can do something: exactly some principals, super users aside."""

from collections.abc import Sequence

from attrs import evolve, frozen

from aclog.analysis.difference import allowed
from aclog.analysis.policy import Policy
from aclog.analysis.regions.principals import everyone_but, only
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.region_text import operations_text
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.analysis.rule_tests.region_failure import region_failures
from aclog.analysis.rule_tests.tested_resource import resource_text
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, ResourcePattern
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class WhoCan:
    """These principals and no others, super users aside, are allowed any of the operations on any of the names.

    `User:*` stands for everybody that no rule names; `not User:bob` for one who is allowed none of it then.
    """

    test: str
    origin: FileOrigin
    operations: int
    """A mask (aclog.analysis.regions.operations)."""
    resource: ResourcePattern
    expected: tuple[str, ...]
    host: str | None = None
    """In the form of `host_address`; None for any host."""

    @property
    def text(self) -> str:
        """What is expected."""
        who = ", ".join(self.expected) or "nobody"
        place = "" if self.host is None else f" from {self.host}"
        return f"exactly {who} can {operations_text(self.operations)} {resource_text(self.resource)}{place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return what is asked."""
        principals = everyone_but(*settings.super_users)
        return (Query(resources=(self.resource,), operations=self.operations, principals=principals, host=self.host),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether exactly the expected principals can."""
        (query,) = self.queries(policy.settings)
        regions = list(allowed(policy, query))
        found, expected = who(regions, policy.settings), set(self.expected) - policy.settings.super_users
        failures: list[Failure] = []
        for more in sorted(found - expected):
            failures += _allowed_too(policy, regions, more)
        failures += (_not_so(less) for less in sorted(expected - found))
        return Outcome(case=self, failures=tuple(failures))


def who(regions: Sequence[Region], settings: Settings) -> set[str]:
    """Return the principals of regions that are allowed, as `WhoCan` names them."""
    named = {each for region in regions if not region.principals.complement for each in region.principals.named}
    rest = [set(region.principals.named) for region in regions if region.principals.complement]
    if not rest:
        return named
    excepted = set[str].intersection(*rest) - named - settings.super_users
    return {WILDCARD_PRINCIPAL, *(f"not {each}" for each in excepted)}


def _allowed_too(policy: Policy, regions: Sequence[Region], principal: str) -> tuple[Failure, ...]:
    if principal.startswith("not "):
        return (Failure(found=f"{principal.removeprefix('not ')} cannot"),)
    if principal == WILDCARD_PRINCIPAL:
        theirs = [region for region in regions if region.principals.complement]
    else:
        theirs = [_of(region, principal) for region in regions if principal in region.principals]
    return region_failures(policy, theirs, verb="is allowed")


def _of(region: Region, principal: str) -> Region:
    return evolve(region, principals=only(principal))


def _not_so(principal: str) -> Failure:
    if principal.startswith("not "):
        return Failure(found=f"{principal.removeprefix('not ')} can, or nobody can")
    everybody = principal == WILDCARD_PRINCIPAL
    return Failure(found=f"{'a principal that nothing names' if everybody else principal} cannot")
