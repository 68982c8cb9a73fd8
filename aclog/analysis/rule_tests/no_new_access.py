"""Whether a policy allows nothing that another one denies, but on some resources."""

from collections.abc import Iterator

from attrs import evolve, frozen

from aclog.analysis.answers.rules_about import names_of
from aclog.analysis.difference import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.name_sets import without
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Direction, Region
from aclog.analysis.rule_tests.other_policy import OtherPolicy
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.analysis.rule_tests.region_failure import region_failures
from aclog.analysis.rule_tests.tested_resource import resource_text
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class NoNewAccess:
    """No request is allowed that another policy denies; but for requests on some resources."""

    test: str
    origin: FileOrigin
    than: OtherPolicy
    but: tuple[ResourcePattern, ...] = ()

    @property
    def text(self) -> str:
        """What is expected."""
        but = f", but on {', '.join(map(resource_text, self.but))}" if self.but else ""
        return f"nothing is allowed that {self.than.name} denies{but}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:  # noqa: ARG002  # of Case
        """Return everything."""
        return (Query(),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether nothing new is allowed. Raises MetadataError: what it compares with cannot be read."""
        found = differences(self.than.policy(policy.settings), policy)
        gained = (each.region for each in found if each.direction is Direction.GAINED)
        left = (part for region in gained for part in self._elsewhere(region))
        verb = f"is allowed, and denied by {self.than.name}"
        return Outcome(case=self, failures=region_failures(policy, left, verb=verb))

    def _elsewhere(self, region: Region) -> Iterator[Region]:
        """Yield what of a region is on none of the excepted resources."""
        names = region.names
        for resource in self.but:
            if resource.resource_type == region.resource_type:
                (part,) = names_of(resource)
                names = without(names, part)
        if names:
            yield evolve(region, names=names)
