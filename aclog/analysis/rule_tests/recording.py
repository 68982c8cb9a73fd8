"""What a policy decides today, as tests: who can only do what, so that any other decision fails one of them."""

from collections.abc import Iterable, Iterator, Sequence

from attrs import define, evolve, field, frozen

from aclog.analysis.difference import allowed, differences
from aclog.analysis.engine.host_classes import Partition
from aclog.analysis.engine.host_partition import partition
from aclog.analysis.policy import Policy
from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import NamePart, Subtree
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.principals import everyone_but
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region
from aclog.analysis.rows.name_folding import fold
from aclog.analysis.rule_tests.can_only import groups
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.listed_access import ANY_HOST, ListedAccess, ListedHosts
from aclog.analysis.rule_tests.recorded_names import listed_names
from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, ResourceType

_LONG = 50
"""Exceptions of a subtree that is listed as it is: without another part that would fill some of them."""


@frozen(kw_only=True)
class RecordedAccess:
    """One principal, or everybody else, and all that it can do."""

    subject: CaseSubject
    listed: tuple[ListedAccess, ...]


def recorded(policy: Policy) -> Iterator[RecordedAccess]:
    """Yield who can only do what: each principal that does not fare as everybody else does, then everybody else.

    Together they say of every request how it is decided, super users aside: those pass whatever the rules say.
    """
    asked = everyone_but(*policy.settings.super_users)
    regions = list(_allowed_regions(policy, Query(principals=asked)))
    hosts = _hosts_of_rules(policy)
    rest, *others = groups(asked, regions)
    apart = sorted((each, theirs) for named, theirs in others for each in named.named)
    known: dict[tuple[int, ...], tuple[ListedAccess, ...]] = {}
    for principal, theirs in apart:
        listed = known.get(tuple(map(id, theirs)))
        if listed is None:
            texts = hosts.get(principal, set()) | hosts.get(WILDCARD_PRINCIPAL, set())
            listed = known[tuple(map(id, theirs))] = _listed(theirs, texts)
        yield RecordedAccess(subject=CaseSubject(principal=principal), listed=listed)
    everybody_else = CaseSubject(principal=WILDCARD_PRINCIPAL, but=tuple(each for each, _ in apart))
    yield RecordedAccess(subject=everybody_else, listed=_listed(rest[1], hosts.get(WILDCARD_PRINCIPAL, set())))


def _allowed_regions(policy: Policy, query: Query) -> Iterator[Region]:
    """Yield what is allowed; what no rule covers apart from the rest, so that it is the same region for everybody."""
    if not policy.settings.allow_everyone:
        yield from allowed(policy, query)
        return
    strict = Policy(policy.acls, evolve(policy.settings, allow_everyone=False))
    yield from allowed(strict, query)
    yield from (each.region for each in differences(strict, policy, query=query))


def _hosts_of_rules(policy: Policy) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for rule in policy.acls:
        if rule.acl.host != WILDCARD:
            found.setdefault(rule.acl.principal, set()).add(rule.acl.host)
    return found


def _listed(regions: Sequence[Region], texts: Iterable[str]) -> tuple[ListedAccess, ...]:
    listing = _Listing(regions=regions, texts=sorted(texts))
    return tuple(listing.access())


@define(eq=False, kw_only=True)
class _Listing:
    """The regions of one subject, in the making of a list."""

    regions: Sequence[Region]
    texts: Sequence[str]
    """The hosts of rules: sets of hosts are said in their terms where they can be."""
    _classes: Partition = field(init=False)

    def __attrs_post_init__(self) -> None:
        every = {text for each in self.regions for text in (*each.hosts.entries, *each.hosts.except_addresses)}
        self._classes = partition({*every, *self.texts}, cidr=any("/" in text for text in every))

    def access(self) -> Iterator[ListedAccess]:
        """Yield what is allowed, by type and name."""
        operations: dict[tuple[int, NamePart, int], int] = {}
        for kind, operation, part, classes in self._parts():
            place = (kind, part, classes)
            operations[place] = operations.get(place, 0) | 1 << operation
        names: dict[tuple[int, int, int], list[NamePart]] = {}
        for (kind, part, classes), mask in operations.items():
            names.setdefault((kind, classes, mask), []).append(part)
        for (kind, classes, mask), parts in sorted(names.items(), key=lambda item: item[0]):
            listed = list(listed_names(ResourceType(kind), parts))
            for hosts in self._hosts(classes):
                for resource, but in listed:
                    yield ListedAccess(operations=mask, resource=resource, but=but, hosts=hosts)

    def _parts(self) -> Iterator[tuple[int, int, NamePart, int]]:
        """Yield resource type, operation, names and the classes of hosts from which they are allowed."""
        of_class: dict[tuple[int, ...], int] = {}
        masks = [self._classes.classes_of(region.hosts) for region in self.regions]
        for number in range(self._classes.count):
            key = tuple(n for n, mask in enumerate(masks) if mask >> number & 1)
            of_class[key] = of_class.get(key, 0) | 1 << number
        found: dict[tuple[int, int, NamePart], int] = {}
        for key, classes in of_class.items():
            names: dict[tuple[int, int], list[NamePart]] = {}
            for region in (self.regions[number] for number in key):
                for operation in operations_of(region.operations):
                    names.setdefault((region.resource_type, operation), []).extend(region.names)
            for of_type, parts in names.items():
                # What no rule covers has as many exceptions as there are names: once for all operations is enough.
                apart = [part for part in parts if _is_long(part)]
                for part in (*apart, *fold(part for part in parts if not _is_long(part))):
                    place = (*of_type, part)
                    found[place] = found.get(place, 0) | classes
        yield from ((*place, classes) for place, classes in found.items())

    def _hosts(self, classes: int) -> Iterator[ListedHosts]:
        """Yield the hosts of some classes: by the hosts of rules if these can tell, else by as few as there are."""
        every = (1 << self._classes.count) - 1
        if classes == every:
            yield ANY_HOST
            return
        for among in (classes, every):
            entries = self._largest(among, meeting=classes)
            for base in (entries, ()):
                held = ListedHosts(entries=base).classes_in(self._classes)
                found = ListedHosts(entries=base, but=self._largest(held & ~classes))
                if found.classes_in(self._classes) == classes:
                    yield found
                    return
        yield from map(_as_listed, self._classes.hosts(classes))

    def _largest(self, among: int, meeting: int | None = None) -> tuple[str, ...]:
        """Return the hosts of rules that lie in some classes, but for those within another one."""
        found: list[str] = []
        held = 0
        matched = ((self._classes.matched(text, cidr=True), text) for text in self.texts)
        for mask, text in sorted(matched, key=lambda pair: (-pair[0].bit_count(), pair[1])):
            fits = mask and not mask & ~among and (meeting is None or mask & meeting)
            if fits and mask & ~held:
                found.append(text)
                held |= mask
        return tuple(sorted(found))


def _as_listed(hosts: Hosts) -> ListedHosts:
    if hosts.complement:
        return ListedHosts(but=hosts.entries)
    return ListedHosts(entries=hosts.entries, but=hosts.except_addresses)


def _is_long(part: NamePart) -> bool:
    return isinstance(part, Subtree) and len(part.except_prefixes) + len(part.except_literals) > _LONG
