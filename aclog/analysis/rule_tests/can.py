"""What a principal can do: on every name, each of the operations."""

from collections.abc import Iterator

from attrs import evolve, frozen

from aclog.analysis.answers.rules_about import names_of
from aclog.analysis.difference import denied
from aclog.analysis.policy import Policy
from aclog.analysis.regions.hosts import EVERYWHERE
from aclog.analysis.regions.name_sets import common
from aclog.analysis.regions.names import NamePart, Names
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.principals import EVERYONE
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.region_text import operations_text
from aclog.analysis.regions.witness import has_legal_name
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.analysis.rule_tests.region_failure import region_failures
from aclog.analysis.rule_tests.tested_resource import USUAL_NAMES, is_every_name, resource_text
from aclog.authorizer.acl import ResourcePattern, ResourceType
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class Can:
    """Each of some operations is allowed on a name, or on every name that begins with a prefix, from every host."""

    test: str
    origin: FileOrigin
    subject: CaseSubject
    operations: int
    """A mask (aclog.analysis.regions.operations)."""
    resource: ResourcePattern

    @property
    def text(self) -> str:
        """What is expected."""
        what = f"{operations_text(self.operations)} {resource_text(self.resource)}"
        return f"{self.subject.text} can {what}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return what is asked."""
        return (access_query(self.subject, self.operations, self.resource, settings),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether all of it is allowed."""
        (query,) = self.queries(policy.settings)
        lacking = lacking_access(policy, query)
        return Outcome(case=self, failures=region_failures(policy, lacking, verb="is denied"))


def access_query(subject: CaseSubject, operations: int, resource: ResourcePattern, settings: Settings) -> Query:
    """Return the query for some operations on one resource."""
    return Query(
        resources=(resource,), operations=operations, principals=subject.principals(settings), host=subject.host
    )


def lacking_access(policy: Policy, query: Query) -> Iterator[Region]:
    """Yield what is denied of a query, on names that count.

    A name that no topic can have does not count, since no client can lack it, unless nothing else is asked for: a
    mistyped name must not pass. Nor does, where every name is asked for, a longer one that begins with `*`, which no
    rule on `*` covers in Kafka.
    """
    every = {resource.resource_type for resource in query.resources if is_every_name(resource)}
    illegal = tuple(part for resource in query.resources for part in names_of(resource) if _is_illegal(resource))
    for region in denied(policy, query):
        names = _names_that_count(region, every=region.resource_type in every)
        if region.resource_type == ResourceType.TOPIC and illegal:
            names = tuple(dict.fromkeys((*names, *common(region.names, illegal))))
        if names:
            yield evolve(region, names=names)


def _is_illegal(resource: ResourcePattern) -> bool:
    """Return whether it is a topic, or a prefix of topics, that cannot exist."""
    if resource.resource_type != ResourceType.TOPIC:
        return False
    return not any(_legal(part) for part in names_of(resource))


def _legal(part: NamePart) -> bool:
    region = Region(
        resource_type=ResourceType.TOPIC, operations=REQUESTED, principals=EVERYONE, hosts=EVERYWHERE, names=(part,)
    )
    return has_legal_name(region)


def _names_that_count(region: Region, *, every: bool) -> Names:
    if region.resource_type == ResourceType.TOPIC:
        return tuple(part for part in region.names if _legal(part))
    return common(region.names, USUAL_NAMES) if every else region.names
