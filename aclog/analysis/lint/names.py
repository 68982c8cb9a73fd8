"""Lints of single ACLs: resource names, hosts, principals and operations."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from attrs import define, evolve

from aclog.analysis.lint.finding import (
    PLAIN_HOST,
    Consequence,
    Finding,
    Severity,
    finding,
    findings,
    is_allow,
    noun,
    replaced,
    texts_among,
    texts_matching,
    types_of,
    useless,
    verb,
    what,
    who,
)
from aclog.analysis.lint.holders import Responsible
from aclog.analysis.lint.rule_table import LintContext, RuleTable
from aclog.analysis.policy import Policy
from aclog.analysis.regions import LONGEST
from aclog.authorizer.acl import (
    ANONYMOUS_PRINCIPAL,
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourceType,
    StandardAcl,
    cidr_range,
    host_address,
    host_problem,
    is_cidr,
)
from aclog.authorizer.acls_image import AclsImage, RuleChange, changed_acls
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.layout import OPERATIONS, TYPES
from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Bools, Int64s

# Lints of resource names: `*` as a prefix, globs, names that trip Kafka, names that no topic can have.


_GLOB = r"[*?\[\]^$|\\]|^/.*/\Z"
_TRAILING_STAR = re.compile(r"[^*?\[\]^$|\\]+\*")
_BELOW_STAR = r"^[\x00-\x29]"
_NOT_OF_TOPICS = r"[^a-zA-Z0-9._-]"


def prefixed_star(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules on PREFIXED `*` (01)."""
    star = texts_among(table.names, (WILDCARD,)) & ~table.literal_resource

    def _tell(rule: StandardAcl) -> Consequence:
        kind = noun(rule.resource_type)
        lost = f"covers only {kind}s whose name begins with '*': {useless(rule)}"
        return Consequence(lost, replaced(rule, evolve(rule, pattern_type=PatternType.LITERAL)))

    return findings("01", table, star[table.resource_of], _tell)


def glob_in_name(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose name is a glob or a regular expression for people, and a plain text for Kafka (02)."""
    glob = texts_matching(table.names, _GLOB) & ~texts_among(table.names, (WILDCARD,))

    def _tell(rule: StandardAcl) -> Consequence:
        name, kind = rule.resource_name, noun(rule.resource_type)
        if rule.pattern_type == PatternType.LITERAL:
            lost = f"matches only the {kind} literally named {name!r}: {who(rule)}: {verb(rule)} on no other {kind}"
        else:
            lost = f"covers only {kind}s whose name literally begins with {name!r}: {useless(rule)}"
        if not _TRAILING_STAR.fullmatch(name):
            return Consequence(lost)
        replacement = evolve(rule, resource_name=name[:-1], pattern_type=PatternType.PREFIXED)
        return Consequence(lost, replaced(rule, replacement))

    return findings("02", table, glob[table.resource_of], _tell)


def name_below_star(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose name leads Kafka 4.3.1 astray (23): PREFIXED ones do as well as LITERAL ones."""
    below = texts_matching(table.names, _BELOW_STAR) & (table.type_of_resource != ResourceType.CLUSTER)

    def _tell(rule: StandardAcl) -> Consequence:
        name, kind = rule.resource_name, noun(rule.resource_type)
        other = repr(f"{name[0]}...")
        return Consequence(
            f"whoever asks for another {kind} named {other} holds up a broker's request thread, or fails"
        )

    return findings("23", table, below[table.resource_of], _tell)


def illegal_topic_name(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules on names that no topic has, or begins with (24)."""
    literal, lengths = table.literal_resource, _lengths(table.names)
    illegal = texts_matching(table.names, _NOT_OF_TOPICS) | (lengths > LONGEST)
    illegal |= literal & texts_among(table.names, (".", "..", ""))
    illegal &= ~(literal & texts_among(table.names, (WILDCARD,))) & (table.type_of_resource == ResourceType.TOPIC)

    def _tell(rule: StandardAcl) -> Consequence:
        begins = "has the name" if rule.pattern_type == PatternType.LITERAL else "has a name that begins with"
        return Consequence(f"no topic {begins} {rule.resource_name[: LONGEST + 1]!r}: {useless(rule)}")

    return findings("24", table, illegal[table.resource_of], _tell)


def _lengths(texts: Sequence[str]) -> Int64s:
    """Return the number of characters of each text."""
    return np.fromiter(map(len, texts), np.int64, len(texts))


# Hosts of rules that match nobody: neither `*`, nor an address in the form that Kafka compares.


def dead_hosts(table: RuleTable, *, ranges: bool) -> Bools:
    """Return which hosts of a table match nobody where ranges do not count: those that are ranges, or the others."""
    dead = ~texts_matching(table.hosts, PLAIN_HOST)
    for number in np.flatnonzero(dead).tolist():
        host = table.hosts[number]
        dead[number] = host_problem(host, cidr=True) is not None if not ranges else is_cidr(host)
    return dead


def from_nowhere(table: RuleTable) -> Bools:
    """Return which rows match nobody, wherever from; a range counts with `cidr` only."""
    dead = dead_hosts(table, ranges=False)
    if not table.settings.cidr:
        dead |= dead_hosts(table, ranges=True)
    rows: Bools = dead[table.host_of]
    return rows


# Lints of hosts: those that are no address as Kafka compares it.


def host_not_an_address(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose host is neither `*` nor an address, in the form that Kafka compares, nor a range (03)."""
    return findings("03", table, dead_hosts(table, ranges=False)[table.host_of], _tell)


def cidr_host(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose host is a range, unless ranges count (04)."""
    if table.settings.cidr:
        return iter(())
    return findings("04", table, dead_hosts(table, ranges=True)[table.host_of], _tell)


def _tell(rule: StandardAcl) -> Consequence:
    kind = noun(rule.resource_type)
    effect = "gets" if is_allow(rule) else "is denied"
    lost = f"no client's address is {rule.host!r}: {rule.principal} {effect} no {verb(rule)} on any {kind} by it"
    try:
        address = host_address(rule.host)
    except ConfigError:
        return Consequence(lost)
    return Consequence(lost, replaced(rule, evolve(rule, host=address)))


# Lints of principals: no type, a type that nobody has, and names that are nearly those of somebody.


_BLANKS = re.compile(r"\s+")
_BLANK_EDGE = r"(?a:^\s|\s\Z|^[^:]*:\s)"


def principal_without_type(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose principal has no colon (05)."""
    rows = ~texts_matching(table.principals, ":")[table.principal_of]

    def _tell(rule: StandardAcl) -> Consequence:
        kind = noun(rule.resource_type)
        lost = f"{verb(rule)} and all else on the {kind}s that it covers fails for everyone: Kafka's authorizer throws"
        return Consequence(lost, replaced(rule, evolve(rule, principal=f"User:{rule.principal}")))

    return findings("05", table, rows, _tell)


def unknown_principal_type(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules for principals of types that nobody has (07)."""
    rows = ~_of_known_type(table, context)[table.principal_of]
    types = ", ".join(sorted(context.principal_types))

    def _tell(rule: StandardAcl) -> Consequence:
        kind = rule.principal.partition(":")[0]
        return Consequence(f"clients are of type {types}, none of type {kind!r}: {useless(rule)}")

    return findings("07", table, rows, _tell)


def near_miss_principal(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules for principals that were never seen, and differ little from one that was (06)."""
    active = context.active_principals()
    texts = table.principals
    blank = texts_matching(texts, _BLANK_EDGE)
    suspects = _of_known_type(table, context) & ~texts_among(texts, (WILDCARD_PRINCIPAL, *active))
    suspects &= texts_matching(texts, ":")
    near = _NearPrincipals.of(active)
    neighbours: dict[str, str | None] = {}
    if not active:
        suspects &= blank
    for number in np.flatnonzero(suspects).tolist():
        principal: str = texts[number]
        neighbour = near.of_principal(principal)
        suspects[number] = neighbour is not None or blank[number]
        if suspects[number]:
            neighbours[principal] = neighbour

    def _tell(rule: StandardAcl) -> Consequence:
        neighbour = neighbours[rule.principal]
        if neighbour is None:
            return Consequence(f"no client is {rule.principal!r}, with a blank at an edge: {useless(rule)}")
        lost = f"no client is {rule.principal!r}, and {neighbour!r} is not meant by it: {useless(rule)}"
        return Consequence(lost, replaced(rule, evolve(rule, principal=neighbour)))

    return findings("06", table, suspects[table.principal_of], _tell)


def _of_known_type(table: RuleTable, context: LintContext) -> Bools:
    """Return which principals have a type that clients have, or have no type."""
    texts = table.principals
    types = context.principal_types | {each.partition(":")[0] for each in context.active_principals()}
    return ~texts_matching(texts, ":") | texts_among(types_of(texts), types) | texts_among(texts, (WILDCARD_PRINCIPAL,))


@define(eq=False, kw_only=True)
class _NearPrincipals:
    """Principals that were seen, found by a text that nearly is one."""

    _by_folded: dict[str, list[str]]
    """By the text in lower case, without blanks."""
    _names: list[tuple[str, str]]
    """Distinguished names: in lower case, and as they are; sorted."""

    @classmethod
    def of(cls, principals: Collection[str]) -> "_NearPrincipals":
        """Index principals that were seen."""
        by_folded: dict[str, list[str]] = defaultdict(list)
        for principal in sorted(principals):
            by_folded[_folded(principal)].append(principal)
        return cls(by_folded=by_folded, names=sorted((each.lower(), each) for each in principals if "=" in each))

    def of_principal(self, principal: str) -> str | None:
        """Return a principal that was seen and may be meant by one that was not."""
        alike = self._by_folded.get(_folded(principal))
        if alike:
            return alike[0]
        if "=" not in principal:
            return None
        text = principal.lower()
        # A distinguished name that lacks its last parts, or has more than the one that was seen.
        at = bisect_left(self._names, (f"{text},",))
        if at < len(self._names) and self._names[at][0].startswith(f"{text},"):
            return self._names[at][1]
        for comma in (separator.start() for separator in re.finditer(",", text)):
            at = bisect_left(self._names, (text[:comma],))
            if at < len(self._names) and self._names[at][0] == text[:comma]:
                return self._names[at][1]
        return None


def _folded(principal: str) -> str:
    return _BLANKS.sub("", principal).lower()


# Rules of operations that their type of resource does not have.


def unsupported(table: RuleTable) -> Bools:
    """Return which rows have an operation that no request can ask of their type."""
    lacking = np.zeros((TYPES, OPERATIONS), np.bool_)
    for kind, operations in SUPPORTED_OPERATIONS.items():
        lacking[kind] = True
        lacking[kind, [AclOperation.ALL, *operations]] = False
    rows: Bools = lacking[table.type_of, table.operation_of]
    return rows


# Rules that give everyone a right with a wide reach, and a policy without them.
#
# Below such a rule every narrower ALLOW is needless. It is the wide rule that is suspect then: to remove the narrow
# ones first would leave nothing when somebody closes the wide one.


INTERNAL_TOPICS = ("__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state")
"""Topics of Kafka itself."""


def wide_rows(table: RuleTable) -> Bools:
    """Return which rows let everyone, or every client that does not log in, do what reaches far.

    That is: on all names of a type, on a topic of Kafka itself, on the cluster, or with every operation.
    """
    rows: Bools = table.allows & (table.type_of > ResourceType.ANY) & for_everyone(table)[table.principal_of]
    if not rows.any():  # as in most states: names need not be looked at
        return rows
    cluster = table.type_of_resource == ResourceType.CLUSTER
    covers_cluster = cluster & covering_cluster(table)
    far = np.where(cluster, covers_cluster, covering_everything(table) | _covering_internal(table))
    # LITERAL "" covers no name, whatever the operation.
    some = np.where(cluster, covers_cluster, ~(table.literal_resource & texts_among(table.names, ("",))))
    rows &= far[table.resource_of] | (some[table.resource_of] & (table.operation_of == AclOperation.ALL))
    return rows & ~from_nowhere(table) & ~unsupported(table)


def without_wide(table: RuleTable) -> Policy | None:
    """Return the policy of a table without its wide rules; None if it has none.

    No name of it is open for lack of rules: it tells what the narrow rules give.
    """
    rows = np.flatnonzero(wide_rows(table)).tolist()
    if not rows:
        return None
    settings = table.settings
    acls = AclsImage(AclIndex(table.base), documented=settings.documented, cidr=settings.cidr)
    changes = [RuleChange(added=False, acl=table.rule(row)) for row in rows]
    return Policy(changed_acls(acls, changes), evolve(settings, allow_everyone=False))


def for_everyone(table: RuleTable) -> Bools:
    """Return which principals stand for everyone, or for every client that does not log in."""
    anonymous = () if ANONYMOUS_PRINCIPAL in table.settings.super_users else (ANONYMOUS_PRINCIPAL,)
    return texts_among(table.principals, (WILDCARD_PRINCIPAL, *anonymous))


def covering_everything(table: RuleTable) -> Bools:
    """Return which patterns cover all names of a type: LITERAL `*`, and PREFIXED on the empty name."""
    star, empty = texts_among(table.names, (WILDCARD,)), texts_among(table.names, ("",))
    return np.where(table.literal_resource, star, empty)


def covering_cluster(table: RuleTable) -> Bools:
    """Return which patterns cover the name of the cluster."""
    prefixes = texts_among(table.names, [CLUSTER_NAME[:end] for end in range(len(CLUSTER_NAME) + 1)])
    return np.where(table.literal_resource, texts_among(table.names, (CLUSTER_NAME, WILDCARD)), prefixes)


def internal_topics(rule: StandardAcl) -> Sequence[str]:
    """Return the topics of Kafka itself that a rule on topics covers by their names, not as part of all names."""
    if rule.resource_type != ResourceType.TOPIC or not rule.resource_name:
        return ()
    if rule.pattern_type == PatternType.LITERAL:
        return [name for name in INTERNAL_TOPICS if name == rule.resource_name]
    return [name for name in INTERNAL_TOPICS if name.startswith(rule.resource_name)]


def _covering_internal(table: RuleTable) -> Bools:
    prefixes = {name[:end] for name in INTERNAL_TOPICS for end in range(1, len(name) + 1)}
    internal = np.where(
        table.literal_resource, texts_among(table.names, INTERNAL_TOPICS), texts_among(table.names, prefixes)
    )
    covers: Bools = internal & (table.type_of_resource == ResourceType.TOPIC)
    return covers


# Lints of operations: those that a type does not have, and those that are too much.


_LESSER = (
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.DESCRIBE_TOKENS,
    AclOperation.IDEMPOTENT_WRITE,  # since Kafka 2.8 whoever may write to a topic needs no such rule
)
"""Operations that read no records and change nothing: a finding about them is a warning."""


def unsupported_operation(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose operation no request can ask of their type (12)."""

    def _tell(rule: StandardAcl) -> Consequence:
        supported = SUPPORTED_OPERATIONS[ResourceType(rule.resource_type)]
        names = ", ".join(operation.name for operation in supported)
        kind = noun(rule.resource_type)
        return Consequence(f"no client asks {verb(rule)} of a {kind} ({names}): {who(rule)} fares as without the rule")

    return findings("12", table, unsupported(table), _tell)


def everyone_may_write(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules that let everyone write to everything of a type (16)."""

    def _tell(rule: StandardAcl) -> Consequence:
        kind = noun(rule.resource_type)
        where = "" if rule.host == WILDCARD else f" from {rule.host}"
        return Consequence(f"every client{where}, of whatever principal, may {verb(rule)} on every {kind}")

    return findings("16", table, _writing_everything(table), _tell)


def cluster_rights(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules that give rights over the cluster to others than brokers and super users (17)."""

    def _tell(rule: StandardAcl) -> Consequence:
        if rule.operation == AclOperation.CLUSTER_ACTION:
            return Consequence(f"{who(rule)} may fetch every topic as a replica, and change the state of replicas")
        return Consequence(f"{who(rule)} may add and remove ACLs, and so give itself every right")

    return findings("17", table, _over_cluster(table, context), _tell)


def everyone_reaches_far(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules that give everyone a right that reaches far (27), but for those of 16 and 17."""
    rows = wide_rows(table)
    if not rows.any():
        return
    brokers = texts_among(table.principals, context.broker_principals)[table.principal_of]
    rows &= ~(brokers & (table.type_of == ResourceType.CLUSTER))
    rows &= ~_writing_everything(table) & ~_over_cluster(table, context)
    numbers = np.flatnonzero(rows).tolist()
    responsible, denied = Responsible.of(table), set(table.type_of[~table.allows].tolist())
    for row in numbers:
        rule = table.rule(row)
        if responsible.covering(rule, allows=False) is not None:  # 09 says that it allows nothing
            continue
        reach = finding("27", (rule,), Consequence(_reach_text(rule, is_denied=rule.resource_type in denied)))
        is_less = rule.operation in _LESSER or not _is_any_host(rule.host)
        yield evolve(reach, severity=Severity.WARNING) if is_less else reach


def _is_any_host(host: str) -> bool:
    """Return whether a host is `*`, or the range of all IPv4 or all IPv6 addresses."""
    block = cidr_range(host)
    if block is None:
        return host == WILDCARD
    return block.last - block.first == (1 << (32 if block.version == 4 else 128)) - 1


def _reach_text(rule: StandardAcl, *, is_denied: bool) -> str:
    """Return what everyone may do by a rule; `is_denied`: some DENY rules are about the same type."""
    client = "every client"
    if rule.principal == ANONYMOUS_PRINCIPAL:
        client = "every client that does not log in"
    where = "" if rule.host == WILDCARD else f" from {rule.host}"
    does = "do everything on" if rule.operation == AclOperation.ALL else verb(rule)
    but = ", but for what DENY rules deny" if is_denied else ""
    return f"{client}{where} may {does} {_reached(rule)}{but}"


def _reached(rule: StandardAcl) -> str:
    if rule.resource_type == ResourceType.CLUSTER:
        return "the cluster"
    is_literal = rule.pattern_type == PatternType.LITERAL
    if rule.resource_name == (WILDCARD if is_literal else ""):
        also = ", the internal ones too" if rule.resource_type == ResourceType.TOPIC else ""
        return f"every {noun(rule.resource_type)}{also}"
    names = internal_topics(rule)
    if not names:
        return what(rule)
    return f"the internal topic {names[0]!r}" if is_literal else f"{what(rule)}, {', '.join(names)} among them"


def _writing_everything(table: RuleTable) -> Bools:
    """Return which rows let everyone write to everything of a type."""
    star = texts_among(table.names, (WILDCARD,)) & table.literal_resource
    rows = table.allows & star[table.resource_of] & _of(table, AclOperation.WRITE, AclOperation.ALL)
    rows &= texts_among(table.principals, (WILDCARD_PRINCIPAL,))[table.principal_of]
    return rows & ~from_nowhere(table) & ~unsupported(table)


def _over_cluster(table: RuleTable, context: LintContext) -> Bools:
    """Return which rows give rights over the cluster to others than brokers and super users."""
    covers = covering_cluster(table) & (table.type_of_resource == ResourceType.CLUSTER)
    rows: Bools = table.allows & covers[table.resource_of]
    supers = texts_among(table.principals, table.settings.super_users)
    brokers = supers | texts_among(table.principals, context.broker_principals)
    alters = _of(table, AclOperation.ALTER, AclOperation.ALL) & ~supers[table.principal_of]
    acts = _of(table, AclOperation.CLUSTER_ACTION) & ~brokers[table.principal_of]
    rows &= (alters | acts) & ~from_nowhere(table)
    return rows


def _of(table: RuleTable, *operations: AclOperation) -> Bools:
    """Return which rows have one of these operations."""
    return np.isin(table.operation_of, operations)
