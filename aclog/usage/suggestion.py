"""Suggestions: the fewest ACLs that keep the used access, with a proof."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from heapq import heapify, heappop, heapreplace
from itertools import chain
from re import compile as pattern_of
from typing import Final, Self, TypeAlias

import numpy as np
from attrs import evolve, field

from aclog.analysis.intents import Intent, needs_of
from aclog.authorizer.acl import StandardAcl, acl_text, code_name, is_cidr, make_acl, parse_cidr
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index.layout import changes, rule_mask
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.values import define, frozen
from aclog.usage.decisions.access_columns import AccessColumns
from aclog.usage.decisions.decisions import ParsedAccess
from aclog.usage.needs import Evidence, Needs, grouped
from aclog.usage.window import UnreadAccesses

# The intents of grants.


_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_READ, _WRITE = AclOperation.READ, AclOperation.WRITE
_IMPLIED: Final = 1 << AclOperation.DESCRIBE | 1 << AclOperation.DESCRIBE_CONFIGS
"""Operations that others imply: alone they do not indicate an intent."""


@define(eq=False)
class _Used:
    """The used access of one principal."""

    operations: dict[int, int] = field(factory=dict)
    """By resource type: a mask."""
    names: dict[tuple[int, int], set[str]] = field(factory=dict)
    """By resource type and operation."""

    def has(self, kind: int, operations: int) -> bool:
        """Return whether all of these operations, except implied ones, were used on the type."""
        needed = operations & ~_IMPLIED
        return self.operations.get(kind, 0) & needed == needed

    def streams(self) -> bool:
        """Return whether an internal topic of a Streams application was read and written: `<group>-...`."""
        both = self.names.get((_TOPIC, _READ), set()) & self.names.get((_TOPIC, _WRITE), set())
        groups = tuple(f"{group}-" for group in self.names.get((_GROUP, _READ), ()))
        return bool(groups) and any(name.startswith(groups) for name in both)


@define(eq=False)
class Intents:
    """Determines the intents of grants."""

    _by_principal: Mapping[str, tuple[Intent, ...]]
    """By principal."""

    @classmethod
    def of(cls, accesses: AccessColumns) -> "Intents":
        """Determine the intents of principals from their accesses."""
        requests, kinds, used = accesses.requests, accesses.types(), dict[int, _Used]()
        for key in np.unique((requests.principal_of.astype(np.int64) << 8 | kinds) << 8 | accesses.operations).tolist():
            mine = used.setdefault(key >> 16, _Used())
            kind, operation = key >> 8 & 0xFF, key & 0xFF
            mine.operations[kind] = mine.operations.get(kind, 0) | 1 << operation
        streaming = np.zeros(len(requests.principals), np.bool_)
        streaming[[who for who, mine in used.items() if _has_operations(Intent.STREAM, mine)]] = True
        both = (kinds == _TOPIC) & ((accesses.operations == _READ) | (accesses.operations == _WRITE))
        of_streams = both | (kinds == _GROUP) & (accesses.operations == _READ)
        for row in np.flatnonzero(streaming[requests.principal_of] & of_streams).tolist():
            place = int(requests.name_of[row])
            key = requests.types[place], int(accesses.operations[row])
            used[int(requests.principal_of[row])].names.setdefault(key, set()).add(requests.names[place])
        return cls({requests.principals[who]: tuple(i for i in Intent if _has(i, mine)) for who, mine in used.items()})

    def behind(self, acl: StandardAcl) -> tuple[Intent, ...]:
        """Return the intents of the principal that need an ACL's operation on its type of resource."""
        if 1 << acl.operation & _IMPLIED:
            return ()
        kind, bit = acl.resource_type, 1 << acl.operation
        intents = (i for i in self._by_principal.get(acl.principal, ()) if _operations(i).get(kind, 0) & bit)
        return tuple(intents)


def _has(intent: Intent, used: _Used) -> bool:
    if intent is Intent.STREAM:
        return _has_operations(intent, used) and used.streams()
    if intent is Intent.ADMIN:
        needed = _operations(intent)[_TOPIC] & ~_IMPLIED
        return bool(used.operations.get(_TOPIC, 0) & needed)
    return _has_operations(intent, used)


def _has_operations(intent: Intent, used: _Used) -> bool:
    return all(used.has(kind, operations) for kind, operations in _operations(intent).items())


@cache
def _operations(intent: Intent) -> Mapping[int, int]:
    """Return the operations of an intent by resource type."""
    if intent is Intent.STREAM:
        return {_TOPIC: 1 << _READ | 1 << _WRITE, _GROUP: 1 << _READ}
    operations: dict[int, int] = {}
    for need in needs_of(intent, ()):
        operations[need.resource_type] = operations.get(need.resource_type, 0) | need.operations
    return operations


# Names with a common prefix, where one prefixed ACL could replace several.


_SEPARATOR = pattern_of(r"[._:/-]")
"""The separators that Kafka's users put into names."""


@frozen(kw_only=True)
class NameGroup:
    """Some names, and their longest common prefix that ends in a separator."""

    prefix: str
    names: tuple[str, ...]


def groups_below(names: Iterable[str], prefix: str, least: int) -> Iterator[NameGroup]:
    """Yield the groups of at least `least` names with the same continuation of a prefix up to the next separator.

    All names begin with `prefix`, which is empty or ends in a separator.
    """
    by_head: dict[str, list[str]] = {}
    for name in sorted(names):
        end = _SEPARATOR.search(name, len(prefix))
        if end is not None:
            by_head.setdefault(name[: end.end()], []).append(name)
    for head, members in by_head.items():
        if len(members) >= least:
            yield NameGroup(prefix=_longest(head, members), names=tuple(members))


def _longest(head: str, names: list[str]) -> str:
    # sorted, so a common prefix of the first and the last is common to all
    first, last = names[0], names[-1]
    differs = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    shared = first[: min(len(first), len(last)) if differs is None else differs]
    return head + shared[len(head) : max((end.end() for end in _SEPARATOR.finditer(shared)), default=0)]


# ACLs by coverage: those that apply to a name, to all names with a prefix, or to some such names.


_LITERAL, _PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
_Pattern = tuple[int, int, str]
"""Resource type, pattern type, name."""


@define(eq=False)
class RuleIndex:
    """ACLs by pattern and principal."""

    settings: Settings
    _rules: dict[_Pattern, dict[str, list[StandardAcl]]] = field(factory=dict, init=False)
    _lengths: dict[int, list[int]] = field(factory=dict, init=False)
    """By resource type: the negated lengths of prefixes, ascending."""
    _names: dict[int, list[tuple[str, int]]] = field(factory=dict, init=False)
    """By resource type: names and pattern types, sorted."""

    @classmethod
    def of(cls, rules: Iterable[StandardAcl], settings: Settings) -> "RuleIndex":
        """Index ACLs; one with a principal without a colon counts as for everyone, since Kafka throws on it."""
        index = cls(settings)
        for rule in rules:
            index._put(rule)
        for kind, pattern_type, name in index._rules:
            index._names.setdefault(kind, []).append((name, pattern_type))
        for names in index._names.values():
            names.sort()
        return index

    @property
    def is_empty(self) -> bool:
        """Whether there is no ACL."""
        return not self._rules

    def add(self, rule: StandardAcl) -> None:
        """Add a rule."""
        pattern = (rule.resource_name, rule.pattern_type)
        if (rule.resource_type, rule.pattern_type, rule.resource_name) not in self._rules:
            insort(self._names.setdefault(rule.resource_type, []), pattern)
        self._put(rule)

    def _put(self, rule: StandardAcl) -> None:
        pattern = (rule.resource_type, rule.pattern_type, rule.resource_name)
        principal = rule.principal if ":" in rule.principal else WILDCARD_PRINCIPAL
        self._rules.setdefault(pattern, {}).setdefault(principal, []).append(rule)
        if rule.pattern_type == _PREFIXED:
            lengths, length = self._lengths.setdefault(rule.resource_type, []), -len(rule.resource_name)
            at = bisect_left(lengths, length)
            if at == len(lengths) or lengths[at] != length:
                lengths.insert(at, length)

    def on_name(self, kind: int, name: str, principal: str | None) -> Iterator[StandardAcl]:
        """Yield a principal's ACLs (None: any principal's) that cover a name, the narrowest pattern first."""
        return chain(self._of((kind, _LITERAL, name), principal), self.on_all(kind, name, principal, but_name=name))

    def on_all(
        self, kind: int, prefix: str, principal: str | None, *, but_name: str | None = None
    ) -> Iterator[StandardAcl]:
        """Yield those that cover all names with a prefix, the longest prefix first."""
        lengths, rules = self._lengths.get(kind, []), self._rules
        for length in lengths[bisect_left(lengths, -len(prefix)) :]:
            pattern = (kind, _PREFIXED, prefix[:-length])
            if pattern in rules:
                yield from self._of(pattern, principal)
        if (
            but_name != WILDCARD
            and (self.settings.documented or not prefix.startswith(WILDCARD))
            and (prefix or but_name is not None)
        ):
            yield from self._of((kind, _LITERAL, WILDCARD), principal)

    def on_some(self, kind: int, prefix: str, principal: str | None) -> Iterator[StandardAcl]:
        """Yield those that cover some of these names, but not all: whose patterns are under the prefix."""
        names = self._names.get(kind, [])
        for at in range(bisect_left(names, (prefix, 0)), len(names)):
            name, pattern_type = names[at]
            if not name.startswith(prefix):
                return
            if (name, pattern_type) != (prefix, _PREFIXED):
                yield from self._of((kind, pattern_type, name), principal)

    def touching(self, rule: StandardAcl) -> Iterator[StandardAcl]:
        """Yield at least the ACLs that may apply to a request to which another ACL applies."""
        kind, name = rule.resource_type, rule.resource_name
        who = None if rule.principal == WILDCARD_PRINCIPAL else rule.principal
        rules: Iterator[StandardAcl]
        if rule.pattern_type == _PREFIXED:
            rules = chain(self.on_all(kind, name, who), self.on_some(kind, name, who))
        elif name == WILDCARD:
            rules = chain(self.on_all(kind, "", who), self.on_some(kind, "", who))
        else:
            rules = self.on_name(kind, name, who)
        return (each for each in rules if overrules(each, rule, self.settings))

    def _of(self, pattern: _Pattern, principal: str | None) -> Iterable[StandardAcl]:
        by_principal = self._rules.get(pattern)
        if by_principal is None:
            return ()
        if principal is None:
            return chain.from_iterable(by_principal.values())
        mine = by_principal.get(principal, ())
        if principal == WILDCARD_PRINCIPAL:
            return mine
        of_everyone = by_principal.get(WILDCARD_PRINCIPAL)
        return mine if of_everyone is None else chain(mine, of_everyone)


def is_allow(rule: StandardAcl) -> bool:
    """Return whether an ACL allows; if its principal has no colon, Kafka's authorizer throws on it."""
    return rule.permission_type == AclPermissionType.ALLOW and ":" in rule.principal


def allows(rule: StandardAcl, operation: int) -> bool:
    """Return whether an ALLOW covers an operation; READ implies DESCRIBE, and so on."""
    return bool(rule_mask(rule.operation, AclPermissionType.ALLOW) >> operation & 1)


def overrules(deny: StandardAcl, rule: StandardAcl, settings: Settings) -> bool:
    """Return whether a DENY covers an operation of an ALLOW, from a host that both may match."""
    if ":" not in deny.principal:
        return True  # Kafka throws, for any host
    reach = rule_mask(rule.operation, AclPermissionType.ALLOW)
    meet = hosts_meet(rule.host, deny.host, settings)
    return meet and bool(rule_mask(deny.operation, AclPermissionType.DENY) >> 16 & reach)


def host_covers(rule_host: str, host: str, settings: Settings) -> bool:
    """Return whether the host of an ACL covers an address, or the host of another ACL."""
    if rule_host in (WILDCARD, host):
        return True
    return settings.cidr and "/" in rule_host and "/" not in host and _in_range(rule_host, host)


def hosts_meet(one: str, other: str, settings: Settings) -> bool:
    """Return whether two hosts of ACLs may have an address in common."""
    if settings.cidr and "/" in one and "/" in other:
        return True
    return host_covers(one, other, settings) or host_covers(other, one, settings)


@lru_cache(1 << 16)
def _in_range(text: str, host: str) -> bool:
    try:
        return parse_cidr(text).contains(host)
    except ConfigError:
        return False


# Grants: suggested ACLs with the accesses that justify them.


@frozen(kw_only=True)
class Grant:
    """An ALLOW, and its justification."""

    acl: StandardAcl
    evidence: Evidence
    names: frozenset[str]
    """The names that were used through it."""
    replaces: frozenset[StandardAcl]
    """The present ACLs that allowed these accesses."""
    why: str = ""

    def with_all_of(self, others: Iterable["Grant"]) -> "Grant":
        """Return the grant with the justifications of others added."""
        grants = [self, *others]
        return evolve(
            self,
            evidence=Evidence.sum_of(each.evidence for each in grants),
            names=frozenset[str]().union(*(each.names for each in grants)),
            replaces=frozenset[StandardAcl]().union(*(each.replaces for each in grants)),
        )


_FIRST: Final = np.zeros(1, np.int64)


def literal_grants(needs: Needs, rows: Int64s, present: RuleIndex) -> Iterator[Grant]:
    """Yield a literal grant of some needs: from any host if the present ACLs allow that, otherwise from their hosts.

    Every need is covered by a present ALLOW.
    """
    requests, settings = needs.accesses.requests, present.settings
    place, who = requests.name_of[rows].astype(np.int64), requests.principal_of[rows].astype(np.int64)
    operation = needs.accesses.operations[rows]
    group_of = grouped(grouped(who << 32 | place) << 8 | operation)
    order = np.argsort(group_of, kind="stable")
    starts = changes(group_of[order])
    evidences = needs.evidence.take(rows[order]).sums(starts).objects()
    columns = (each[order[starts]].tolist() for each in (who, place, operation))
    host_of = requests.host_of[rows[order]].tolist()
    ends = np.append(starts[1:], len(rows))[: len(starts)].tolist()
    on_places: dict[tuple[int, int], list[StandardAcl]] = {}
    for start, end, evidence, *key in zip(starts.tolist(), ends, evidences, *columns, strict=True):
        principal, kind, name = requests.principals[key[0]], requests.types[key[1]], requests.names[key[1]]
        rules = on_places.get((key[0], key[1]))
        if rules is None:
            rules = on_places[key[0], key[1]] = list(present.on_name(kind, name, principal))
        covering = [rule for rule in rules if allows(rule, key[2])]
        names = frozenset((name,))
        if len(covering) == 1:  # nearly always: it covers every host that was used
            rule = covering[0]
            pattern = _pattern(kind, name, covering, rule.host, settings)
            acl = make_acl(kind, pattern[1], pattern[0], principal, rule.host, key[2], AclPermissionType.ALLOW)
            yield Grant(acl=acl, evidence=evidence, names=names, replaces=frozenset(covering))
            continue
        position = {requests.hosts[each]: at for at, each in enumerate(host_of[start:end], start)}
        for host, used in _hosts(covering, position, settings):
            behind = list(_behind(covering, used, settings))
            pattern = _pattern(kind, name, behind, host, settings)
            acl = make_acl(kind, pattern[1], pattern[0], principal, host, key[2], AclPermissionType.ALLOW)
            part = evidence
            if len(used) < len(position):
                at = rows[order[[position[each] for each in used]]]
                part = needs.evidence.take(at).sums(_FIRST).one(0)
            yield Grant(acl=acl, evidence=part, names=names, replaces=frozenset(behind))


def _behind(covering: Iterable[StandardAcl], used: Collection[str], settings: Settings) -> Iterator[StandardAcl]:
    """Yield the ACLs whose hosts cover a used address."""
    addresses = frozenset(used)
    for rule in covering:
        is_named = rule.host == WILDCARD or rule.host in addresses
        if is_named or (settings.cidr and "/" in rule.host and _of_host(rule.host, addresses, settings)):
            yield rule


def _hosts(
    covering: Iterable[StandardAcl], used: Collection[str], settings: Settings
) -> Iterator[tuple[str, list[str]]]:
    """Yield the fewest hosts of present ACLs that cover the used addresses, and the addresses that each covers.

    The next host is always the one that covers the most of the remaining addresses; of several, the first by name.
    """
    hosts = sorted({rule.host for rule in covering})
    if WILDCARD in hosts:
        yield WILDCARD, list(used)
        return
    remaining = dict.fromkeys(used)
    covered = [_of_host(host, remaining, settings) for host in hosts]
    # numbers of addresses only decrease: one that is up to date and the largest stays so
    heap = [(-len(addresses), at) for at, addresses in enumerate(covered) if addresses]
    heapify(heap)
    while remaining:
        size, at = heap[0]
        covered[at] = [address for address in covered[at] if address in remaining]
        if len(covered[at]) < -size:
            heapreplace(heap, (-len(covered[at]), at))
            continue
        heappop(heap)
        yield hosts[at], covered[at]
        for address in covered[at]:
            del remaining[address]


def _of_host(host: str, addresses: Collection[str], settings: Settings) -> list[str]:
    if settings.cidr and "/" in host:
        return [each for each in addresses if host_covers(host, each, settings)]
    return [host] if host in addresses else []


def _pattern(kind: int, name: str, behind: Iterable[StandardAcl], host: str, settings: Settings) -> tuple[int, str]:
    """Return the narrowest pattern for a name: the name itself, unless no ACL can cover it alone."""
    can_be_named = name == CLUSTER_NAME if kind == ResourceType.CLUSTER else name not in {"", WILDCARD}
    if can_be_named:
        return PatternType.LITERAL, name
    rule = next(rule for rule in behind if host_covers(rule.host, host, settings))
    return rule.pattern_type, rule.resource_name


def without_covered(grants: Iterable[Grant], settings: Settings) -> list[Grant]:
    """Remove grants that another one covers, which then takes over their accesses.

    Grants on one pattern for one principal, host and operation become one.
    """
    by_acl: dict[StandardAcl, list[Grant]] = {}
    for grant in grants:
        by_acl.setdefault(grant.acl, []).append(grant)
    over = _over(by_acl, settings)
    by_top: dict[StandardAcl, list[Grant]] = {}
    for acl, group in by_acl.items():
        top = acl
        while (wider := over.get(top)) is not None:
            top = wider
        by_top.setdefault(top, []).extend(group)
    return [_one(acl, group) for acl, group in by_top.items()]


def _over(acls: Collection[StandardAcl], settings: Settings) -> dict[StandardAcl, StandardAcl]:
    """Return a wider ACL among some for each that has one."""
    # most share their principal and name with no other and with no pattern: nothing is wider
    counts = Counter((acl.principal, acl.resource_type, acl.resource_name) for acl in acls)
    wide = {acl.principal for acl in acls if acl.pattern_type != _LITERAL or acl.resource_name == WILDCARD}
    several = [
        acl for acl in acls if counts[acl.principal, acl.resource_type, acl.resource_name] > 1 or acl.principal in wide
    ]
    # by host: one client with n hosts has n ACLs on a name, and none covers another
    by_host: dict[str, list[StandardAcl]] = {}
    for acl in several:
        by_host.setdefault(acl.host, []).append(acl)
    indexes = {host: RuleIndex.of(rules, settings) for host, rules in by_host.items()}
    ranges = [host for host in indexes if settings.cidr and "/" in host]
    position = {acl: at for at, acl in enumerate(several)}
    over: dict[StandardAcl, StandardAcl] = {}
    for acl in several:
        hosts = dict.fromkeys((acl.host, WILDCARD, *ranges))
        wider = [_wider(acl, indexes[host]) for host in hosts if host in indexes]
        narrowest = min((each for each in wider if each), key=lambda rule: (_width(rule), position[rule]), default=None)
        if narrowest is not None:
            over[acl] = narrowest
    return over


def _width(rule: StandardAcl) -> tuple[int, int]:
    """Return the sort key of patterns that cover one name, the narrowest first, as RuleIndex yields them."""
    if rule.pattern_type == _PREFIXED:
        return 1, -len(rule.resource_name)
    return (2, 0) if rule.resource_name == WILDCARD else (0, 0)


def _one(acl: StandardAcl, grants: list[Grant]) -> Grant:
    # the grant itself comes first, as it has the justification
    first, *others = sorted(grants, key=lambda grant: grant.acl != acl)
    return first.with_all_of(others) if others else first


def covers(index: RuleIndex, acl: StandardAcl) -> Iterator[StandardAcl]:
    """Yield the ALLOWs of an index that cover an ACL, including the ACL itself."""
    kind, name = acl.resource_type, acl.resource_name
    literal = acl.pattern_type == PatternType.LITERAL
    rules = (index.on_name if literal else index.on_all)(kind, name, acl.principal)
    if literal and name == WILDCARD:  # only LITERAL * covers LITERAL *
        rules = (rule for rule in rules if rule.pattern_type == _LITERAL and rule.resource_name == WILDCARD)
    for rule in rules:
        if allows(rule, acl.operation) and host_covers(rule.host, acl.host, index.settings):
            yield rule


def _wider(acl: StandardAcl, index: RuleIndex) -> StandardAcl | None:
    return next((rule for rule in covers(index, acl) if rule != acl), None)


# Folding: many used names of one principal, host and operation become one prefix, if that is safe.


_OWNED_BY: Mapping[int, str] = {
    ResourceType.TOPIC: "written",
    ResourceType.GROUP: "read with",
    ResourceType.TRANSACTIONAL_ID: "written with",
}

_UNUSED: Final = 1 / 10
"""The most unused names per used one under a prefix; more would grant much unneeded access."""


Refusal: TypeAlias = tuple[StandardAcl, str]
"""A prefix that many names do not become, and the reason as text."""


@frozen(kw_only=True)
class Folded:
    """Grants with safe prefixes, and the reasons against the other possible prefixes."""

    grants: tuple[Grant, ...]
    refused: tuple[Refusal, ...]


@define(eq=False, kw_only=True)
class Folding:
    """Decides which names become a prefix."""

    least: int | None
    """The least number of names that become their prefix; None: never."""
    allowing: RuleIndex
    """The present ALLOWs."""
    denying: RuleIndex
    """All other present rules."""
    names: Mapping[int, Mapping[str, Collection[str]]]
    """By resource type: the names that exist, with their owners."""
    _sorted: dict[int, list[str]] = field(factory=dict, init=False)

    def fold(self, grants: Iterable[Grant]) -> Folded:
        """Fold grants by name."""
        groups: dict[tuple[str, str, int, int], dict[str, Grant]] = {}
        unfolded: list[Grant] = []
        for grant in grants:
            acl = grant.acl
            if self.least is None or acl.pattern_type != PatternType.LITERAL or grant.names != {acl.resource_name}:
                unfolded.append(grant)
                continue
            key = (acl.principal, acl.host, acl.operation, acl.resource_type)
            groups.setdefault(key, {})[acl.resource_name] = grant
        refused: list[Refusal] = []
        for by_name in groups.values():
            unfolded.extend(self._folded(by_name, refused))
        return Folded(grants=tuple(unfolded), refused=tuple(refused))

    def _folded(self, by_name: dict[str, Grant], refused: list[Refusal]) -> Iterator[Grant]:
        assert self.least is not None  # noqa: S101 - else nothing is to be folded
        waiting = list(groups_below(by_name, "", self.least))
        while waiting:
            group = waiting.pop()
            some = by_name[group.names[0]].acl
            prefixed = evolve(some, resource_name=group.prefix, pattern_type=PatternType.PREFIXED)
            reason = self._against(prefixed, group)
            if reason is None:
                first, *others = (by_name.pop(name) for name in group.names)
                yield evolve(first.with_all_of(others), acl=prefixed, why=self._why(prefixed, group))
            else:
                text = f"{len(group.names):,} names are not folded into {acl_text(prefixed)}: {reason}"
                refused.append((prefixed, text))
                waiting.extend(groups_below(group.names, group.prefix, self.least))
        yield from by_name.values()

    def _against(self, prefixed: StandardAcl, group: NameGroup) -> str | None:
        """Return the reason why a prefix is not safe; None if it is."""
        if next(covers(self.allowing, prefixed), None) is None:
            return "the present rules do not allow the whole prefix"
        kind = prefixed.resource_type
        for deny in self.denying.on_some(kind, group.prefix, prefixed.principal):
            if overrules(deny, prefixed, self.denying.settings):
                return f"the present rules deny a part of the prefix: {acl_text(deny)}"
        others = [name for name in self._under(kind, group.prefix) if name not in set(group.names)]
        for name in others:
            owners = self.names[kind][name]
            if owners and prefixed.principal not in owners:
                return f"{name!r} under it is {_OWNED_BY[kind]} only by others"
        if len(others) > len(group.names) * _UNUSED:
            return _unused_text(len(others))
        return None

    def _why(self, prefixed: StandardAcl, group: NameGroup) -> str:
        kind = prefixed.resource_type
        rule = next(covers(self.allowing, prefixed))
        others = len(set(self._under(kind, group.prefix)) - set(group.names))
        what = f"{code_name(AclOperation, prefixed.operation)} was used on {len(group.names):,} names under it"
        owned = f", none of them {_OWNED_BY[kind]} only by others" if others and kind in _OWNED_BY else ""
        more = f"{others:,} more exist there{owned}" if others else "no others exist there"
        return f"{what} ({self.least} or more become a prefix); {more}; already allowed by {acl_text(rule)}"

    def _under(self, kind: int, prefix: str) -> Iterator[str]:
        names = self._sorted.get(kind)
        if names is None:
            names = self._sorted[kind] = sorted(self.names.get(kind, ()))
        for at in range(bisect_left(names, prefix), len(names)):
            if not names[at].startswith(prefix):
                return
            yield names[at]


def _unused_text(others: int) -> str:
    return f"{others:,} other existing name{' under it was' if others == 1 else 's under it were'} not used"


# The suggestion: the fewest ACLs that keep the used access, each with its justification.


FOLD: Final = 5
"""The default least number of used names that become a prefix."""

NOT_JUDGED: Final = "not judged"
"""The beginning of the reason why an ACL stays that unread accesses may have needed."""

_NOTHING: Final = Evidence(accesses=0, first=None, last=None)
_IMPLIED_OPERATIONS: Final = frozenset({AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS})


@frozen(kw_only=True)
class SuggestedRule:
    """A suggested ACL, and its justification."""

    acl: StandardAcl
    evidence: Evidence
    """Of its accesses; empty for an ACL that is kept for another reason."""
    names: int
    """The number of names that were used through it."""
    replaces: tuple[StandardAcl, ...]
    """The present ACLs that allowed these accesses; may include the ACL itself."""
    intents: tuple[Intent, ...]
    why: str


@frozen(kw_only=True)
class Question:
    """The scope of a suggestion."""

    settings: Settings
    fold: int | None = FOLD
    principals: frozenset[str] = frozenset()
    """The principals whose ACLs are replaced; all, if empty. The ACLs of others stay, including those of `User:*`."""
    topics: frozenset[str] = frozenset()
    """Existing topics, besides the used ones."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Accesses that could not be read or decided: the ACLs that they may need stay."""
    ranges_allow: bool = True
    """Whether ALLOWs with ranges are known to allow. False if the deciding Kafka is unknown: `settings` are then those
    of a
    generation with ranges, as DENYs with ranges may deny."""


@frozen(eq=False, kw_only=True)
class Suggestion:
    """The suggested ACLs."""

    rules: tuple[SuggestedRule, ...]
    """Ordered by principal, resource and operation."""
    staying: tuple[StandardAcl, ...]
    """The ACLs of principals outside the scope."""
    refused: tuple[str, ...]
    """Prefixes that were not used for many names, with the reasons, in the same order."""

    @property
    def acls(self) -> list[StandardAcl]:
        """All desired ACLs."""
        return [*(rule.acl for rule in self.rules), *self.staying]


def suggest(needs: Needs, present: Collection[StandardAcl], question: Question) -> Suggestion:
    """Return the fewest ACLs that allow all needs and nothing that the present ACLs deny."""
    scope = Scope.of(present, question, needs.names)
    return scope.suggestion(*scope.granted(needs))


@frozen(eq=False, kw_only=True, slots=False)
class Scope:
    """What turns needs into a suggestion; the same for the needs of all principals."""

    present: tuple[StandardAcl, ...]
    question: Question
    names: Mapping[int, Mapping[str, Collection[str]]]
    """By resource type: the names that exist, with their owners."""
    staying: tuple[StandardAcl, ...]
    """The ACLs of principals outside the question."""
    unjudged: tuple[SuggestedRule, ...]
    """The ACLs that unread accesses may have needed."""

    @classmethod
    def of(
        cls,
        present: Collection[StandardAcl],
        question: Question,
        names: Mapping[int, Mapping[str, frozenset[str]]],
    ) -> Self:
        """Take the present ACLs. `names`: as of Needs, of all accesses."""
        principals = question.principals
        return cls(
            present=tuple(present),
            question=question,
            names=_names(names, question.topics),
            staying=tuple(rule for rule in present if principals and rule.principal not in principals),
            unjudged=tuple(_unjudged(present, question)),
        )

    @cached_property
    def _folding(self) -> Folding:
        settings, present = self.question.settings, self.present
        sure = present if self.question.ranges_allow else [rule for rule in present if not is_cidr(rule.host)]
        return Folding(
            least=self.question.fold,
            allowing=RuleIndex.of(filter(is_allow, sure), settings),
            denying=RuleIndex.of(self._denies, settings),
            names=self.names,
        )

    @property
    def _denies(self) -> list[StandardAcl]:
        return [rule for rule in self.present if not is_allow(rule)]

    def granted(self, needs: Needs) -> tuple[list[SuggestedRule], list[Refusal]]:
        """Return the ACLs that allow needs, and prefixes that names do not become.

        Those of some principals are the same with and without the needs of others, unless one is of `User:*`.
        """
        stay = [*self.staying, *(rule.acl for rule in self.unjudged)]
        grants, refused = _grants(needs, self._folding, stay, self.question.settings)
        intents = Intents.of(needs.accesses)
        return [_granted(grant, intents) for grant in grants], refused

    def suggestion(self, granted: Iterable[SuggestedRule], refused: Iterable[Refusal]) -> Suggestion:
        """Return the suggestion with these ACLs, and what must stay beside them."""
        settings, denies = self.question.settings, self._denies
        suggested = [*self.unjudged, *granted]
        remaining = [*(rule.acl for rule in suggested), *self.staying]
        stays = {rule.acl for rule in self.unjudged}
        suggested += (rule for rule in _denies(denies, remaining, settings) if rule.acl not in stays)
        if settings.allow_everyone:
            others = [*(rule.acl for rule in suggested), *self.staying]
            closing = list(_closed(self.present, others, settings))
            suggested += closing
            acls = {rule.acl for rule in suggested}
            overruling = _denies(denies, [rule.acl for rule in closing], settings)
            suggested += [rule for rule in overruling if rule.acl not in acls]
        acls = set(self.staying)
        rules = sorted((rule for rule in suggested if rule.acl not in acls), key=lambda rule: _order(rule.acl))
        texts = sorted(refused, key=lambda pair: (_order(pair[0]), pair[1]))
        return Suggestion(rules=tuple(rules), staying=self.staying, refused=tuple(text for _, text in texts))


def _unjudged(present: Collection[StandardAcl], question: Question) -> list[SuggestedRule]:
    """Return the present ACLs that unread accesses may have needed, unchanged."""
    rules = list(dict.fromkeys(present))
    if not question.unread or not rules:
        return []
    who, denies = [rule.principal for rule in rules], np.array([not is_allow(rule) for rule in rules])
    by_presence = question.settings.allow_everyone
    concerned = question.unread.concerned(who, denies, by_presence=by_presence)
    counts = question.unread.counts(who, denies, by_presence=by_presence)
    return [
        _unused(rule, f"{NOT_JUDGED}: it may apply to {plural(count, 'access')} that could not be read or decided")
        for rule, stays, count in zip(rules, concerned.tolist(), counts.tolist(), strict=True)
        if stays
    ]


def _names(
    used: Mapping[int, Mapping[str, frozenset[str]]], topics: Iterable[str]
) -> Mapping[int, Mapping[str, Collection[str]]]:
    unowned: Collection[str] = ()
    by_kind = {kind: dict[str, Collection[str]](names) for kind, names in used.items()}
    of_topics = by_kind.setdefault(ResourceType.TOPIC, {})
    for topic in topics:
        of_topics.setdefault(topic, unowned)
    return by_kind


def _grants(
    needs: Needs, folding: Folding, staying: Iterable[StandardAcl], settings: Settings
) -> tuple[list[Grant], list[Refusal]]:
    granted = RuleIndex.of(filter(is_allow, staying), settings)
    remaining = _without_granted(needs, np.arange(len(needs.accesses)), granted)
    implied = np.isin(needs.accesses.operations[remaining], list(_IMPLIED_OPERATIONS))
    first = folding.fold(literal_grants(needs, remaining[~implied], folding.allowing))
    # implied DESCRIBEs can be determined only now
    suggested = RuleIndex.of((grant.acl for grant in first.grants), settings)
    alone = _without_granted(needs, remaining[implied], suggested)
    second = folding.fold(literal_grants(needs, alone, folding.allowing))
    return without_covered([*first.grants, *second.grants], settings), [*first.refused, *second.refused]


def _without_granted(needs: Needs, rows: Int64s, granted: RuleIndex) -> Int64s:
    """Return those of some needs that ACLs do not allow."""
    if granted.is_empty or not len(rows):
        return rows
    accesses = needs.accesses.take(rows).objects()
    return rows[np.fromiter((not _is_granted(need, granted) for need in accesses), np.bool_, len(rows))]


def _is_granted(need: ParsedAccess, rules: RuleIndex) -> bool:
    return any(
        allows(rule, need.operation) and host_covers(rule.host, need.host, rules.settings)
        for rule in rules.on_name(need.resource_type, need.resource_name, need.principal)
    )


def _granted(grant: Grant, intents: Intents) -> SuggestedRule:
    return SuggestedRule(
        acl=grant.acl,
        evidence=grant.evidence,
        names=len(grant.names),
        replaces=tuple(grant.replaces if len(grant.replaces) == 1 else sorted(grant.replaces, key=_order)),
        intents=intents.behind(grant.acl),
        why=grant.why,
    )


def _denies(denies: Iterable[StandardAcl], rules: Iterable[StandardAcl], settings: Settings) -> Iterator[SuggestedRule]:
    """Yield the present DENYs that overrule a part of the kept ACLs."""
    overruling = list(denies)
    index, over = RuleIndex.of(overruling, settings), dict[StandardAcl, StandardAcl]()
    denied = {deny.principal for deny in overruling}
    of_all = WILDCARD_PRINCIPAL in denied or any(":" not in principal for principal in denied)
    for rule in rules:
        if (of_all or rule.principal in denied or rule.principal == WILDCARD_PRINCIPAL) and is_allow(rule):
            for deny in index.touching(rule):
                over.setdefault(deny, rule)
    for deny in over:
        yield _unused(deny, "it overrules a part of the other rules")


def _closed(
    present: Iterable[StandardAcl], others: Iterable[StandardAcl], settings: Settings
) -> Iterator[SuggestedRule]:
    """Yield a present ACL for each pattern that would have none, and would be open with allow.everyone."""
    index = RuleIndex.of(others, settings)
    by_pattern: dict[tuple[int, int, str], list[StandardAcl]] = {}
    for rule in present:
        by_pattern.setdefault((rule.resource_type, rule.pattern_type, rule.resource_name), []).append(rule)
    for (kind, pattern_type, name), rules in sorted(by_pattern.items(), key=_from_wide):
        if not _covered(kind, pattern_type, name, index):
            least = min(rules, key=_reach)
            index.add(least)
            yield _unused(least, "without any rule, its resources would be open with allow.everyone.if.no.acl.found")


def _from_wide(item: tuple[tuple[int, int, str], object]) -> tuple[object, ...]:
    kind, pattern_type, name = item[0]
    is_literal = pattern_type != PatternType.PREFIXED
    return (is_literal and name != WILDCARD, not is_literal, len(name), name, kind)


def _covered(kind: int, pattern_type: int, name: str, index: RuleIndex) -> bool:
    """Return whether all names that a pattern covers have an ACL."""
    if pattern_type == PatternType.PREFIXED:
        rules = index.on_all(kind, name, None)
    else:
        rules = index.on_name(kind, name, None)
        if name == WILDCARD:  # covers all names, while PREFIXED `*` covers few
            rules = (rule for rule in rules if rule.pattern_type == pattern_type)
    return next(rules, None) is not None


def _unused(acl: StandardAcl, why: str) -> SuggestedRule:
    return SuggestedRule(acl=acl, evidence=_NOTHING, names=0, replaces=(acl,), intents=(), why=why)


def _reach(rule: StandardAcl) -> tuple[object, ...]:
    """Return the sort key from the narrowest to the widest ACL."""
    allowing = is_allow(rule)
    wide = (rule.principal == WILDCARD_PRINCIPAL, rule.host == WILDCARD, rule.operation == AclOperation.ALL)
    return (allowing, *(wide if allowing else ()), _order(rule))


def _order(rule: StandardAcl) -> tuple[object, ...]:
    what = (rule.resource_type, rule.resource_name, rule.pattern_type, rule.operation)
    return (rule.principal, *what, rule.permission_type, rule.host)
