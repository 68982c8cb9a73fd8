"""All that somebody can do: what is listed, to the last name, and nothing else."""

from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field, frozen

from aclog.analysis.difference import allowed
from aclog.analysis.engine.host_classes import Partition
from aclog.analysis.engine.host_partition import partition
from aclog.analysis.policy import Policy
from aclog.analysis.regions.names import NamePart
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.principals import Principals, everyone_but, only
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.region_text import operations_text
from aclog.analysis.rows.name_folding import fold
from aclog.analysis.rule_tests.access_sets import AccessSet
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.listed_access import ListedAccess
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.analysis.rule_tests.region_failure import region_failures
from aclog.authorizer.acl import ResourceType
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class CanOnly:
    """Exactly the listed requests are allowed, names that no topic can have included; to each of several principals."""

    test: str
    origin: FileOrigin
    subject: CaseSubject
    listed: tuple[ListedAccess, ...]

    @property
    def text(self) -> str:
        """What is expected."""
        if not self.listed:
            return f"{self.subject.text} can do nothing{self.subject.place}"
        first, *rest = self.listed
        what = f"{operations_text(first.operations)} {first.text}{f' and {len(rest):,} more' if rest else ''}"
        return f"{self.subject.text} can only {what}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return everything by the principals."""
        return (Query(principals=self.subject.principals(settings), host=self.subject.host),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether that is exactly what is allowed."""
        (query,) = self.queries(policy.settings)
        comparison = _Comparison(query=query, regions=list(allowed(policy, query)), listed=self.listed)
        more, less = comparison.beyond()
        return Outcome(
            case=self,
            failures=(
                *region_failures(policy, more, verb="is allowed, and not listed"),
                *region_failures(policy, less, verb="is denied"),
            ),
        )


@define(eq=False, kw_only=True)
class _Comparison:
    """What is allowed, and what is listed."""

    query: Query
    regions: Sequence[Region]
    listed: Sequence[ListedAccess]
    _hosts: Partition = field(init=False)

    def __attrs_post_init__(self) -> None:
        texts = {text for region in self.regions for text in (*region.hosts.entries, *region.hosts.except_addresses)}
        texts |= {text for each in self.listed for text in (*each.hosts.entries, *each.hosts.but)}
        self._hosts = partition({*texts, *([self.query.host] if self.query.host else [])}, cidr=True)

    def beyond(self) -> tuple[list[Region], list[Region]]:
        """Return what is allowed and not listed, and what is listed and not allowed."""
        listed = self._listed()
        more: list[Region] = []
        less: list[Region] = []
        for principals, regions in groups(self.query.principals, self.regions):
            found = AccessSet()
            for region in regions:
                classes = self._hosts.classes_of(region.hosts)
                for operation in operations_of(region.operations):
                    found.add(region.resource_type, operation, region.names, classes)
            more += self._regions(principals, found, listed)
            less += self._regions(principals, listed, found)
        return more, less

    def _listed(self) -> AccessSet:
        host, found = self.query.host, AccessSet()
        asked = (1 << self._hosts.count) - 1 if host is None else self._hosts.matched(host, cidr=True)
        for each in self.listed:
            classes = each.hosts.classes_in(self._hosts) & asked
            names = each.names
            for operation in operations_of(each.operations):
                found.add(each.resource.resource_type, operation, names, classes)
        return found

    def _regions(self, principals: Principals, one: AccessSet, other: AccessSet) -> Iterator[Region]:
        operations: dict[tuple[int, NamePart, int], int] = {}
        for kind, operation, (part, classes) in one.beyond(other):
            place = (kind, part, classes)
            operations[place] = operations.get(place, 0) | 1 << operation
        names: dict[tuple[int, int, int], list[NamePart]] = {}
        for (kind, part, classes), mask in operations.items():
            names.setdefault((kind, mask, classes), []).append(part)
        for (kind, mask, classes), parts in names.items():
            for hosts in self._hosts.hosts(classes):
                yield Region(
                    resource_type=ResourceType(kind),
                    operations=mask,
                    principals=principals,
                    hosts=hosts,
                    names=fold(parts),
                )


def groups(asked: Principals, regions: Iterable[Region]) -> Iterator[tuple[Principals, tuple[Region, ...]]]:
    """Yield principals that share their regions, with these; each principal that is asked about is in one group."""
    of_everyone: list[tuple[int, Region]] = []
    of_one: dict[str, dict[int, Region]] = {} if asked.complement else {each: {} for each in asked.named}
    for number, region in enumerate(regions):
        if region.principals.complement:
            of_everyone.append((number, region))
            for each in region.principals.named:
                if each in asked:
                    of_one.setdefault(each, {})
        else:
            for each in region.principals.named:
                of_one.setdefault(each, {})[number] = region
    members: dict[tuple[int, ...], list[str]] = {}
    found: dict[tuple[int, ...], tuple[Region, ...]] = {}
    for principal, own in of_one.items():
        theirs = own | {number: region for number, region in of_everyone if principal in region.principals}
        key = tuple(sorted(theirs))
        members.setdefault(key, []).append(principal)
        found[key] = tuple(theirs[number] for number in key)
    rest = tuple(number for number, _ in of_everyone)
    if asked.complement:
        apart = {each for key, those in members.items() if key != rest for each in those}
        yield everyone_but(*asked.named, *apart), tuple(region for _, region in of_everyone)
    for key, those in members.items():
        if key != rest or not asked.complement:
            yield only(*those), found[key]
