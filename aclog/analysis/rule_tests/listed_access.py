"""What a test lists as all that somebody can do: names of a type, and hosts of clients."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from attrs import field, frozen

from aclog.analysis.answers.rules_about import names_of
from aclog.analysis.engine.host_classes import Partition
from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree
from aclog.analysis.rule_tests.tested_resource import USUAL_NAMES, is_every_name, resource_text
from aclog.authorizer.acl import PatternType, ResourcePattern


@frozen(kw_only=True)
class ListedHosts:
    """Addresses and CIDR ranges, less some; without any: every address, less those."""

    entries: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def classes_in(self, partition: Partition) -> int:
        """Return the classes of a partition by (at least) these texts."""
        every = (1 << partition.count) - 1
        found = _joined(partition, self.entries) if self.entries else every
        return found & ~_joined(partition, self.but)

    @property
    def text(self) -> str:
        """The end of a sentence; empty for every host."""
        from_ = f" from {', '.join(self.entries)}" if self.entries else ""
        return f"{from_ or ' from any host'} but {', '.join(self.but)}" if self.but else from_


ANY_HOST = ListedHosts()


@frozen(kw_only=True)
class ListedAccess:
    """Operations on names of one type, less some of them, from hosts."""

    operations: int
    """A mask (aclog.analysis.regions.operations)."""
    resource: ResourcePattern
    """`topic:*` stands for what an ACL on `*` covers: every name but longer ones that begin with `*`."""
    but: tuple[ResourcePattern, ...] = ()
    hosts: ListedHosts = field(default=ANY_HOST)

    @property
    def names(self) -> Names:
        """The names."""
        names: Names = names_of(self.resource)
        if is_every_name(self.resource):
            names = USUAL_NAMES
        prefixes = {each.name for each in self.but if each.pattern_type != PatternType.LITERAL}
        literals = {each.name for each in self.but if each.pattern_type == PatternType.LITERAL}
        parts = (_less(part, prefixes, literals) for part in names)
        return tuple(part for part in parts if part is not None)

    @property
    def text(self) -> str:
        """Such as `topic:bill.* but topic:bill.pii.* from 10.0.0.9`, without the operations."""
        but = f" but {', '.join(map(resource_text, self.but))}" if self.but else ""
        return f"{resource_text(self.resource)}{but}{self.hosts.text}"


def _less(part: NamePart, prefixes: set[str], literals: set[str]) -> NamePart | None:
    """Return a part without some names; thousands of them are left out where all uncovered names are allowed."""
    if isinstance(part, Literal):
        return None if part.name in literals or _is_below(part.name, prefixes) else part
    if _is_below(part.prefix, prefixes):
        return None
    begins = {*part.except_prefixes, *(each for each in prefixes if each.startswith(part.prefix))}
    singles = {*part.except_literals, *(each for each in literals if each.startswith(part.prefix))}
    return Subtree(
        prefix=part.prefix,
        except_prefixes=tuple(sorted(each for each in begins if not _is_below(each[:-1], begins))),
        except_literals=tuple(sorted(each for each in singles if not _is_below(each, begins))),
    )


def _is_below(name: str, prefixes: set[str]) -> bool:
    return any(name[:end] in prefixes for end in range(len(name) + 1))


def _joined(partition: Partition, texts: Iterable[str]) -> int:
    return reduce(or_, (partition.matched(each, cidr=True) for each in texts), 0)
