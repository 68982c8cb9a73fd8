"""Who holds an intent: the principals and hosts that are allowed all that it needs."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import and_, or_
from typing import TypeAlias

from attrs import define, field, frozen

from aclog.analysis.answers.intents import Need
from aclog.analysis.answers.rules_about import names_of
from aclog.analysis.difference import allowed
from aclog.analysis.engine.host_classes import Partition
from aclog.analysis.engine.host_partition import partition
from aclog.analysis.policy import Policy
from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.name_sets import common, covers_all
from aclog.analysis.regions.names import Names
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.principals import EVERYONE, Principals, everyone_but, only
from aclog.analysis.regions.region import Region

_Place: TypeAlias = tuple[int, Names]
"""Host classes as a mask, and the names on which all operations of a need are allowed from there."""


@frozen(kw_only=True)
class Holder:
    """Principals and hosts for which an intent holds: each of these may do all of it, from each of the hosts."""

    principals: Principals
    hosts: tuple[Hosts, ...]
    """Disjoint."""
    grants: tuple[tuple[Region, ...], ...]
    """By need: the resources that meet it."""


def holders(
    policy: Policy, needs: Sequence[Need], *, principals: Principals = EVERYONE, host: str | None = None
) -> Iterator[Holder]:
    """Yield all who hold an intent, in a stable order; each principal and host once."""
    found = _allowed_of_each(policy, needs, principals, host)
    if found is None:
        return
    search = _Search(needs=needs, regions=found, cidr=policy.settings.cidr)
    groups: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for principal in search.named():
        groups.setdefault(search.regions_of(principal), []).append(principal)
    others = search.regions_of(None)
    # Principals that share their regions with everybody else are not named, so that a group is as short as it can be.
    groups.setdefault(others, [])
    for key, members in groups.items():
        if key == others:
            named = {each for other, rest in groups.items() if other != key for each in rest}
            yield from search.holder(everyone_but(*named), key)
        else:
            yield from search.holder(only(*members), key)


def _allowed_of_each(
    policy: Policy, needs: Sequence[Need], principals: Principals, host: str | None
) -> list[list[Region]] | None:
    """Return what is allowed of each need, to those at least who are allowed something of all; None if nobody is."""
    found: dict[int, list[Region]] = {}
    # Needs on few names first: often few principals are left for those on any name.
    for number in sorted(range(len(needs)), key=lambda number: any(not each.name for each in needs[number].patterns)):
        regions = list(allowed(policy, needs[number].query(principals, host)))
        if not regions:
            return None
        found[number] = regions
        if not any(region.principals.complement for region in regions):
            principals = only(*(each for region in regions for each in region.principals.named))
    return [found[number] for number in range(len(needs))]


@define(eq=False, kw_only=True)
class _Search:
    needs: Sequence[Need]
    regions: Sequence[Sequence[Region]]
    """By need: what is allowed of it."""
    cidr: bool
    _classes: Partition = field(init=False)

    def __attrs_post_init__(self) -> None:
        every = (region.hosts for regions in self.regions for region in regions)
        texts = {text for hosts in every for text in (*hosts.entries, *hosts.except_addresses)}
        self._classes = partition(texts, cidr=self.cidr)

    def named(self) -> list[str]:
        return sorted({each for regions in self.regions for region in regions for each in region.principals.named})

    def regions_of(self, principal: str | None) -> tuple[tuple[int, ...], ...]:
        """Return by need the numbers of a principal's regions; None is a principal that none of them names."""
        return tuple(
            tuple(n for n, region in enumerate(regions) if _has(region.principals, principal))
            for regions in self.regions
        )

    def holder(self, principals: Principals, key: Sequence[Sequence[int]]) -> Iterator[Holder]:
        """Yield the holder that some principals with these regions are, if they are one."""
        places = [
            self._places(need, [regions[number] for number in numbers])
            for need, regions, numbers in zip(self.needs, self.regions, key, strict=True)
        ]
        hosts = reduce(and_, (reduce(or_, (mask for mask, _ in each), 0) for each in places))
        if not hosts:
            return
        grants = tuple(
            tuple(self._grants(need, principals, each, hosts)) for need, each in zip(self.needs, places, strict=True)
        )
        yield Holder(principals=principals, hosts=tuple(self._classes.hosts(hosts)), grants=grants)

    def _grants(self, need: Need, principals: Principals, places: Iterable[_Place], hosts: int) -> Iterator[Region]:
        for mask, names in places:
            for each in self._classes.hosts(mask & hosts):
                yield Region(
                    resource_type=need.resource_type,
                    operations=need.operations,
                    principals=principals,
                    hosts=each,
                    names=names,
                )

    def _places(self, need: Need, regions: Sequence[Region]) -> list[_Place]:
        """Return where all operations of a need are allowed, by these regions of what is allowed of it."""
        whole: list[_Place] = []
        partial: list[Region] = []
        for region in regions:
            if region.operations == need.operations:
                whole.append((self._classes.classes_of(region.hosts), region.names))
            else:
                partial.append(region)
        whole += self._joined(need, [*partial, *(r for r in regions if r.operations == need.operations and partial)])
        return self._with_every(need, whole) if need.every else list(dict.fromkeys(whole))

    def _joined(self, need: Need, regions: Sequence[Region]) -> Iterator[_Place]:
        """Yield where each operation is allowed by one of the regions."""
        places: list[_Place] | None = None
        for operation in operations_of(need.operations):
            of_one = [(self._classes.classes_of(r.hosts), r.names) for r in regions if r.operations >> operation & 1]
            if places is None:
                places = of_one
            else:
                met = ((mask & other, common(names, more)) for mask, names in places for other, more in of_one)
                places = list(dict.fromkeys(place for place in met if all(place)))
        yield from places or ()

    def _with_every(self, need: Need, places: Sequence[_Place]) -> list[_Place]:
        """Return the hosts from which every name of the need's patterns is allowed."""
        found = 0
        for number in range(self._classes.count):
            names = tuple(part for mask, names in places if mask >> number & 1 for part in names)
            if names and all(covers_all(names, pattern.name) for pattern in need.patterns):
                found |= 1 << number
        every = tuple(part for pattern in need.patterns for part in names_of(pattern))
        return [(found, every)] if found else []


def _has(principals: Principals, principal: str | None) -> bool:
    return principals.complement if principal is None else principal in principals
