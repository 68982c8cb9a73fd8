"""A stand-in for the engine: differences by trying every representative cell. No ranges of addresses (CIDR)."""

from collections import defaultdict
from collections.abc import Iterator

from aclog.analysis.policy import Policy
from aclog.analysis.regions import (
    Difference,
    Direction,
    Hosts,
    Literal,
    NamePart,
    Principals,
    Region,
    Subtree,
    everyone_but,
    only,
)
from aclog.authorizer.codes import PatternType, ResourceType
from tests.support.analysis.cells import CLUSTER, STRANGERS, TYPES, Cells
from tests.support.analysis.model import PolicyModel


def brute_force(old: Policy, new: Policy) -> Iterator[Difference]:
    """Yield the exact differences, one name class after another; as many as there are."""
    if old.settings.cidr or new.settings.cidr:
        raise NotImplementedError("the stand-in knows no ranges")
    cells = Cells.of(old, new)
    before, after = PolicyModel(old), PolicyModel(new)
    principals, hosts = cells.principals(), cells.hosts()
    fresh_hosts = [host for host in hosts if host not in cells.named_hosts]
    for kind in TYPES:
        for part, name in _parts(cells, kind, old, new):
            changed: dict[tuple[Direction, int], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
            for principal in principals:
                for host in hosts:
                    was = before.allowed(principal, host, kind, name)
                    is_ = after.allowed(principal, host, kind, name)
                    for direction, mask in ((Direction.GAINED, is_ & ~was), (Direction.LOST, was & ~is_)):
                        if mask:
                            changed[direction, mask][principal].add(host)
            for (direction, mask), of_principal in changed.items():
                together: dict[frozenset[str], set[str]] = defaultdict(set)
                for principal, from_hosts in of_principal.items():
                    together[frozenset(from_hosts)].add(principal)
                for from_hosts, who in together.items():
                    region = Region(
                        resource_type=ResourceType(kind),
                        operations=mask,
                        principals=_principals(who, principals),
                        hosts=_hosts(from_hosts, hosts, fresh_hosts),
                        names=(part,),
                    )
                    yield Difference(direction=direction, region=region)


def _principals(who: set[str], everybody: list[str]) -> Principals:
    if who >= set(STRANGERS):
        return everyone_but(*(each for each in everybody if each not in who))
    return only(*who)


def _hosts(hosts: frozenset[str], everywhere: list[str], fresh: list[str]) -> Hosts:
    if hosts >= set(fresh):
        return Hosts(entries=tuple(host for host in everywhere if host not in hosts), complement=True)
    return Hosts(entries=tuple(sorted(hosts)))


def _parts(cells: Cells, kind: int, old: Policy, new: Policy) -> Iterator[tuple[NamePart, str]]:
    """Yield every class of names of a type, with a member: disjoint, and all names together."""
    if kind == CLUSTER:
        yield Literal(name="kafka-cluster"), "kafka-cluster"
        return
    single = {"*"}
    prefixes = {"", "*"}
    for policy in (old, new):
        for entry in policy.acls:
            if entry.acl.resource_type == kind:
                literal = entry.acl.pattern_type == PatternType.LITERAL
                (single if literal else prefixes).add(entry.acl.resource_name)
    single.discard("")
    for name in sorted(single):
        yield Literal(name=name), name
    names = set(cells.names(kind))
    for prefix in sorted(prefixes):
        deeper = tuple(sorted(other for other in prefixes if other != prefix and other.startswith(prefix)))
        part = Subtree(
            prefix=prefix,
            except_prefixes=tuple(p for p in deeper if not any(p != q and p.startswith(q) for q in deeper)),
            except_literals=tuple(sorted(name for name in single if name.startswith(prefix))),
        )
        yield part, next(name for name in sorted(names) if name in part)
