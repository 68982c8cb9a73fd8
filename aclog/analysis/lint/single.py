"""Lints of single ACLs: names, hosts, principals and operations that are wrong or too broad by themselves."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import evolve, field

from aclog.analysis.lint.finding import (
    PLAIN_HOST,
    SEPARATORS,
    Consequence,
    DeclaredTopics,
    Facts,
    Finding,
    Lint,
    LintContext,
    Responsible,
    RuleTable,
    Severity,
    effect_verb,
    noun,
    one_of,
    replaced,
    texts_among,
    texts_matching,
    types_of,
    useless,
    verb,
    what,
    who,
)
from aclog.analysis.policy import Policy
from aclog.analysis.regions import ExistingNames
from aclog.authorizer.acl import StandardAcl, StandardAclWithId, cidr_range, host_address, host_problem, is_cidr
from aclog.authorizer.acls_image import AclsImage, RuleChange, changed_acls
from aclog.authorizer.codes import (
    ANONYMOUS_PRINCIPAL,
    CLUSTER_NAME,
    LONGEST_TOPIC,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.layout import OPERATIONS, TYPES
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.values import define, frozen

# Resource names: `*` as a prefix, globs, names that trigger a bug of Kafka, names that no topic can have.


_GLOB = r"[*?\[\]^$|\\]|^/.*/\Z"
_TRAILING_STAR = re.compile(r"[^*?\[\]^$|\\]+\*")
_BELOW_STAR = r"^[\x00-\x29]"
_NOT_OF_TOPICS = r"[^a-zA-Z0-9._-]"


class PrefixedStar(Lint):
    """A rule on PREFIXED `*`."""

    id = "01"
    judges = "resource_name"
    name = "prefixed-star"
    title = "PREFIXED `*` covers only names that start with an asterisk"
    severity = Severity.ERROR
    exact = True
    rationale = "It reads like a wildcard, and covers no existing name: an ALLOW grants nothing, a DENY blocks nothing."
    example = "`ALLOW READ topic ** to User:a` (PREFIXED `*`) grants no topic."
    fix = "Use LITERAL `*` for every name, or the intended prefix."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules on PREFIXED `*`."""
        star = texts_among(table.names, (WILDCARD,)) & ~table.literal_resource

        def consequence(rule: StandardAcl) -> Consequence:
            kind = noun(rule.resource_type)
            lost = f"covers only {kind}s whose names start with '*': {useless(rule)}"
            return Consequence(lost, replaced(rule, evolve(rule, pattern_type=PatternType.LITERAL)))

        return self.findings(table, star[table.resource_of], consequence)


class GlobInName(Lint):
    """A rule whose name is a glob or a regular expression to people, and plain text to Kafka."""

    id = "02"
    judges = "resource_name"
    name = "glob-in-name"
    title = "the name contains a glob or a regular expression"
    severity = Severity.ERROR
    exact = True
    rationale = (
        "Kafka compares it as plain text: a LITERAL rule covers the one name that looks like that, a PREFIXED rule "
        "the names that start with it."
    )
    details = "A finding has one of the characters `* ? [ ] ^ $ | \\` in its name, or a name between slashes."
    example = "LITERAL `orders-*` covers only the topic literally named `orders-*`; PREFIXED `orders-` was intended."
    fix = "Use PREFIXED for all names with a common prefix; for other patterns, one rule per name or prefix."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules with a glob or a regular expression in their name."""
        glob = texts_matching(table.names, _GLOB) & ~texts_among(table.names, (WILDCARD,))

        def consequence(rule: StandardAcl) -> Consequence:
            name, kind = rule.resource_name, noun(rule.resource_type)
            if rule.pattern_type == PatternType.LITERAL:
                grant = f"{effect_verb(rule)} {who(rule)} {verb(rule)}"
                lost = f"covers only the {kind} literally named {name!r}: it {grant} on that {kind} alone"
            else:
                lost = f"covers only {kind}s whose names literally start with {name!r}: {useless(rule)}"
            if not _TRAILING_STAR.fullmatch(name):
                return Consequence(lost)
            replacement = evolve(rule, resource_name=name[:-1], pattern_type=PatternType.PREFIXED)
            return Consequence(lost, replaced(rule, replacement))

        return self.findings(table, glob[table.resource_of], consequence)


class NameBelowStar(Lint):
    """A rule whose name triggers a bug of Kafka 4.3.1, PREFIXED or LITERAL."""

    id = "23"
    judges = "resource_name"
    name = "name-below-star"
    title = "the name starts with a character that sorts before `*`"
    severity = Severity.ERROR
    exact = True
    rationale = "Kafka 4.3.1 loops forever, or throws, when it decides on another name with the same first character."
    details = (
        "A finding is a LITERAL or PREFIXED name of any type except the cluster that starts with a space, one of "
        "``! \" # $ % & ' ( )`` or a control character; the other name is of the same type "
        "([semantics.md](semantics.md#quirks-of-431))."
    )
    example = "A rule on the group `!b`: a request on the group `!a` blocks a request thread of the broker."
    fix = "Use a name that starts with none of: space ! \" # $ % & ' ( )."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules whose name starts with such a character."""
        below = texts_matching(table.names, _BELOW_STAR) & (table.type_of_resource != ResourceType.CLUSTER)

        def consequence(rule: StandardAcl) -> Consequence:
            name, kind = rule.resource_name, noun(rule.resource_type)
            other = repr(f"{name[0]}...")
            return Consequence(
                f"a request on another {kind} named {other} blocks a request thread of a broker, or fails"
            )

        return self.findings(table, below[table.resource_of], consequence)


class IllegalTopicName(Lint):
    """A rule on a name that no topic has, or starts with."""

    id = "24"
    judges = "resource_name"
    name = "illegal-topic-name"
    title = "no topic can have this name"
    severity = Severity.ERROR
    exact = True
    rationale = "Topic names have up to 249 of the characters a-z A-Z 0-9 . _ -: the rule covers nothing."
    details = "The names `.` and `..` are also impossible. A prefix is a finding if no topic name can start with it."
    example = "`ALLOW READ topic team/a` covers no topic."
    fix = "Use the name of the topic."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules on such names."""
        literal, lengths = table.literal_resource, _lengths(table.names)
        illegal = texts_matching(table.names, _NOT_OF_TOPICS) | (lengths > LONGEST_TOPIC)
        illegal |= literal & texts_among(table.names, (".", "..", ""))
        illegal &= ~(literal & texts_among(table.names, (WILDCARD,))) & (table.type_of_resource == ResourceType.TOPIC)

        def consequence(rule: StandardAcl) -> Consequence:
            subject = "topic can have" if rule.pattern_type == PatternType.LITERAL else "topic name can start with"
            name = rule.resource_name[: LONGEST_TOPIC + 1]
            return Consequence(f"no {subject} {name!r}: {useless(rule)}")

        return self.findings(table, illegal[table.resource_of], consequence)


def _lengths(texts: Sequence[str]) -> Int64s:
    """Return the number of characters of each text."""
    return np.fromiter(map(len, texts), np.int64, len(texts))


# Hosts that match no client: neither `*`, nor an address in the form that Kafka compares.


class HostNotAnAddress(Lint):
    """A rule whose host is neither `*`, nor an address in Kafka's form, nor a range."""

    id = "03"
    judges = "host"
    name = "host-not-an-address"
    title = "the host is neither `*` nor an address in Kafka's form"
    severity = Severity.ERROR
    exact = True
    rationale = (
        "Kafka compares the host with the text of the client's address: a name, a glob or `::1` matches no client."
    )
    details = "An IPv6 address in upper case and an empty host match no client either."
    example = "`ALLOW READ topic a to User:a from localhost` grants nothing."
    fix = "Use the address in Kafka's form: IPv6 as eight lower-case groups without leading zeros."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules with such a host."""
        return self.findings(table, dead_hosts(table, ranges=False)[table.host_of], _host_consequence)


class CidrHost(Lint):
    """A rule whose host is a range, on brokers without support of ranges."""

    id = "04"
    judges = "host"
    name = "cidr-host"
    title = "the host is a CIDR range, which the brokers compare as plain text"
    severity = Severity.ERROR
    exact = True
    rationale = "Without ranges (KIP-1276) the rule matches no client: an ALLOW grants nothing, a DENY blocks nothing."
    details = (
        "Kafka 4.3.1 has no ranges. Kafka 4.4 and later have ranges (`--kafka-version 4.4`), and such a rule is not a "
        "finding there."
    )
    example = "`DENY ALL topic * to User:* from 10.0.0.0/8` blocks no client."
    fix = "Add one rule per address, or use brokers that support ranges (`--cidr`)."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules with a range as host, unless the brokers support ranges."""
        if table.settings.cidr:
            return iter(())
        return self.findings(table, dead_hosts(table, ranges=True)[table.host_of], _host_consequence)


def dead_hosts(table: RuleTable, *, ranges: bool) -> Bools:
    """Return which hosts of a table match no client of a broker without ranges: the ranges, or the other ones."""
    dead = ~texts_matching(table.hosts, PLAIN_HOST)
    for number in np.flatnonzero(dead).tolist():
        host = table.hosts[number]
        dead[number] = host_problem(host, cidr=True) is not None if not ranges else is_cidr(host)
    return dead


def from_nowhere(table: RuleTable) -> Bools:
    """Return which rows have a host that matches no client; a range matches with `cidr` only."""
    dead = dead_hosts(table, ranges=False)
    if not table.settings.cidr:
        dead |= dead_hosts(table, ranges=True)
    rows: Bools = dead[table.host_of]
    return rows


def _host_consequence(rule: StandardAcl) -> Consequence:
    lost = f"no client has the address {rule.host!r}: {useless(evolve(rule, host=WILDCARD))}"
    try:
        address = host_address(rule.host)
    except ConfigError:
        return Consequence(lost)
    return Consequence(lost, replaced(rule, evolve(rule, host=address)))


# Principals: no type, a type that no client has, and names that differ little from that of a client.


_BLANKS = re.compile(r"\s+")
_BLANK_EDGE = r"(?a:^\s|\s\Z|^[^:]*:\s)"


class PrincipalWithoutType(Lint):
    """A rule whose principal has no colon."""

    id = "05"
    judges = "principal"
    name = "principal-without-type"
    title = "the principal has no type"
    severity = Severity.ERROR
    exact = True
    rationale = "Kafka's authorizer throws when it reaches the rule: requests on the resource fail for every principal."
    details = "The principal has no colon."
    example = "A rule for the principal `alice`."
    fix = "Add a type and a colon before the name: User:alice."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules of such principals."""
        rows = ~texts_matching(table.principals, ":")[table.principal_of]

        def consequence(rule: StandardAcl) -> Consequence:
            kind = noun(rule.resource_type)
            lost = f"{verb(rule)} and every other operation on the {kind}s that it covers fail for every principal"
            fix = replaced(rule, evolve(rule, principal=f"User:{rule.principal}"))
            return Consequence(f"{lost}: Kafka's authorizer throws", fix)

        return self.findings(table, rows, consequence)


class UnknownPrincipalType(Lint):
    """A rule for a principal of a type that no client has."""

    id = "07"
    judges = "principal"
    name = "unknown-principal-type"
    title = "the principal is of a type that no client has"
    severity = Severity.ERROR
    exact = True
    rationale = "Kafka's own principal builder creates only users: a rule for a group or a role matches no client."
    details = (
        "The lint also accepts the types of principals in `--accesses`, and those of `--principal-types`, which a "
        "repository sets as `lint.principal-types`. Without `--principal-types` a finding is a warning, since another "
        "principal builder, such as one for LDAP groups, may create the type."
    )
    example = "`ALLOW READ topic a to Group:developers` grants nothing."
    fix = "Add one rule per user, or name the types that your principal builder creates (`--principal-types`)."

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield the rules for principals of such types."""
        rows = ~_of_known_type(table, context)[table.principal_of]
        types = ", ".join(sorted(context.principal_types))

        def consequence(rule: StandardAcl) -> Consequence:
            kind = rule.principal.partition(":")[0]
            return Consequence(f"clients have the type {types}, not {kind!r}: {useless(rule)}")

        severity = Severity.ERROR if context.states_principal_types else Severity.WARNING
        return (evolve(each, severity=severity) for each in self.findings(table, rows, consequence))


class NearMissPrincipal(Lint):
    """A rule for a principal without requests that differs little from one with requests."""

    id = "06"
    judges = "principal"
    name = "near-miss-principal"
    title = "the principal makes no requests; an active one differs only in case, blanks or a part of its name"
    severity = Severity.ERROR
    exact = False
    rationale = (
        "Kafka compares principals exactly: the rule matches no client, and does not apply to the intended client."
    )
    details = (
        'A principal is active if `--accesses` has a request by that principal. "A part of its name" is the end of '
        "a distinguished name. Without `--accesses`, a principal whose name begins or ends with a blank is a finding."
    )
    example = "A rule for `User:Alice`, where `User:alice` makes the requests."
    fix = "Use the name exactly as the broker logs it."
    needs = "--accesses"

    def is_ready(self, facts: Facts) -> bool:
        """Return whether any principal is active."""
        return bool(facts.context.active_principals())

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield the rules for such principals."""
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

        def consequence(rule: StandardAcl) -> Consequence:
            neighbour = neighbours[rule.principal]
            if neighbour is None:
                return Consequence(
                    f"no client authenticates as {rule.principal!r}, which begins or ends with a blank: {useless(rule)}"
                )
            lost = (
                f"no client authenticates as {rule.principal!r}, and the rule does not match {neighbour!r}: "
                f"{useless(rule)}"
            )
            return Consequence(lost, replaced(rule, evolve(rule, principal=neighbour)))

        return self.findings(table, suspects[table.principal_of], consequence)


def _of_known_type(table: RuleTable, context: LintContext) -> Bools:
    """Return which principals have a type of a client, or have no type."""
    texts = table.principals
    types = context.principal_types | {each.partition(":")[0] for each in context.active_principals()}
    return ~texts_matching(texts, ":") | texts_among(types_of(texts), types) | texts_among(texts, (WILDCARD_PRINCIPAL,))


@define(eq=False, kw_only=True)
class _NearPrincipals:
    """Active principals, by texts that differ little from them."""

    _by_folded: dict[str, list[str]]
    """By the text in lower case, without blanks."""
    _names: list[tuple[str, str]]
    """Distinguished names: in lower case, and unchanged; sorted."""

    @classmethod
    def of(cls, principals: Collection[str]) -> "_NearPrincipals":
        """Index active principals."""
        by_folded: dict[str, list[str]] = defaultdict(list)
        for principal in sorted(principals):
            by_folded[_folded(principal)].append(principal)
        return cls(by_folded=by_folded, names=sorted((each.lower(), each) for each in principals if "=" in each))

    def of_principal(self, principal: str) -> str | None:
        """Return the active principal that an unknown one probably means, or None."""
        alike = self._by_folded.get(_folded(principal))
        if alike:
            return alike[0]
        if "=" not in principal:
            return None
        text = principal.lower()
        # A distinguished name without its last parts, or with more parts than the active one.
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


# Operations that the resource type does not have.


class UnsupportedOperation(Lint):
    """A rule whose operation no request on its resource type has."""

    id = "12"
    name = "unsupported-operation"
    title = "the operation does not exist on this resource type"
    severity = Severity.ERROR
    exact = True
    rationale = "No request has it: the rule grants or denies nothing that it names."
    example = "`ALLOW WRITE group g`: a consumer needs READ."
    fix = "Use the intended operation (consuming needs READ on the group), or remove the rule."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules with such an operation."""

        def consequence(rule: StandardAcl) -> Consequence:
            supported = SUPPORTED_OPERATIONS[ResourceType(rule.resource_type)]
            names = ", ".join(operation.name for operation in supported)
            kind = noun(rule.resource_type)
            return Consequence(f"no request has {verb(rule)} on a {kind} (only {names}): {useless(rule)}")

        return self.findings(table, unsupported(table), consequence)


def unsupported(table: RuleTable) -> Bools:
    """Return which rows have an operation that no request on their resource type has."""
    lacking = np.zeros((TYPES, OPERATIONS), np.bool_)
    for kind, operations in SUPPORTED_OPERATIONS.items():
        lacking[kind] = True
        lacking[kind, [AclOperation.ALL, *operations]] = False
    rows: Bools = lacking[table.type_of, table.operation_of]
    return rows


# Broad rules for everyone, rights over the cluster, and a policy without the broad rules.
#
# A broad rule makes every narrower ALLOW redundant, and is the likely mistake: without the narrow rules, closing the
# broad one would leave no access at all.


INTERNAL_TOPICS = ("__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state")
"""Topics of Kafka itself."""
_LESSER = (
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.DESCRIBE_TOKENS,
    AclOperation.IDEMPOTENT_WRITE,  # since Kafka 2.8 WRITE on a topic includes it
)
"""Operations that read no records and change nothing: a finding about them is a warning."""


class EveryoneMayWrite(Lint):
    """A rule that lets everyone write to everything of a type."""

    id = "16"
    name = "everyone-may-write"
    title = "everyone may write to every resource of a type"
    severity = Severity.ERROR
    exact = True
    rationale = "User:* is every client with any type of principal, and LITERAL `*` every existing and future name."
    details = (
        "The operation is WRITE or ALL. A rule from a host that no client has (03, 04) is not a finding. Other broad "
        "rules for everyone are findings of 27."
    )
    example = "`ALLOW ALL topic * to User:*`."
    fix = "Grant access to the principals and on the names that need it."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield these rules."""

        def consequence(rule: StandardAcl) -> Consequence:
            kind = noun(rule.resource_type)
            where = "" if rule.host == WILDCARD else f" from {rule.host}"
            return Consequence(f"every client{where}, with any principal, may {verb(rule)} on every {kind}")

        return self.findings(table, _writing_everything(table), consequence)


class ClusterRights(Lint):
    """A rule that grants rights over the cluster to a principal that is neither a broker nor a super user."""

    id = "17"
    name = "cluster-rights"
    title = "a principal that is neither a broker nor a super user has rights over the whole cluster"
    severity = Severity.ERROR
    exact = True
    rationale = (
        "ALTER on the cluster changes ACLs, so it is every right; CLUSTER_ACTION reads topics as a replica does."
    )
    details = (
        "A finding grants ALTER or ALL on the cluster to a principal that is not a super user, or CLUSTER_ACTION to a "
        "principal that is neither a broker nor a super user."
    )
    example = "`ALLOW ALTER cluster to User:ci`."
    fix = (
        "If the principal is a broker, list it in `--broker-principals`; if it is a super user, list it in "
        "`--super-users`. Otherwise remove the rule."
    )
    fix_details = "If the principal is intended to have the right, suppress the finding with a reason."

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield these rules."""

        def consequence(rule: StandardAcl) -> Consequence:
            if rule.operation == AclOperation.CLUSTER_ACTION:
                return Consequence(f"{who(rule)} may fetch every topic as a replica, and change the state of replicas")
            return Consequence(f"{who(rule)} may add and remove ACLs, and so grant itself every right")

        return self.findings(table, _over_cluster(table, context), consequence)


class EveryoneReachesFar(Lint):
    """A rule that grants everyone broad access, and is no finding of 16 or 17."""

    id = "27"
    name = "everyone-reaches-far"
    title = "everyone has broad access"
    severity = Severity.ERROR
    exact = True
    rationale = (
        "User:* is every client with any type of principal, User:ANONYMOUS every unauthenticated one: they have access "
        "to all names of a type, internal topics, the cluster or all operations. A rule that only grants DESCRIBE, or "
        "only for one host, is a warning."
    )
    details = """An ALLOW for one of these principals has broad access if it grants

- all names of a type: LITERAL `*`, or PREFIXED on the empty name;
- a topic of Kafka itself: `__consumer_offsets`, `__transaction_state`, `__share_group_state`, `__cluster_metadata`, by name or by a prefix such as `__`;
- the cluster;
- all operations, on any name.

A warning is an operation that neither reads records nor changes anything (DESCRIBE, DESCRIBE_CONFIGS, DESCRIBE_TOKENS, IDEMPOTENT_WRITE), or a rule for one host or range, which the
finding names (`0.0.0.0/0` and `::/0` are no restriction).

Excluded are findings of 16 and 17, an ALLOW that a DENY overrides as a whole (09), rules that match no client (03, 04) or have an operation that does not exist (12), `User:ANONYMOUS`
as a super user, and its rules on the cluster where it is a principal of brokers (`--broker-principals`). A DENY for everyone is not a finding."""  # noqa: E501
    example = "`ALLOW READ topic * to User:*`."
    fix = "Grant access to the principals, on the names and for the operations that need it."
    fix_details = (
        "`--fix` changes none of these rules: only you can decide which principals need the access. If everyone is "
        "intended, suppress the finding with a reason ([how](repository.md#suppressions))."
    )

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield these rules, those of limited reach as warnings."""
        rows = table.derived(wide_rows)
        if not rows.any():
            return
        brokers = texts_among(table.principals, context.broker_principals)[table.principal_of]
        rows = rows & ~(brokers & (table.type_of == ResourceType.CLUSTER))
        rows &= ~_writing_everything(table) & ~_over_cluster(table, context)
        numbers = np.flatnonzero(rows).tolist()
        responsible, denied = Responsible.of(table), set(table.type_of[~table.allows].tolist())
        for row in numbers:
            rule = table.rule(row)
            if responsible.covering(rule, allows=False) is not None:  # a finding of 09
                continue
            reach = self.finding((rule,), Consequence(_reach_text(rule, is_denied=rule.resource_type in denied)))
            is_less = rule.operation in _LESSER or not _is_any_host(rule.host)
            yield evolve(reach, severity=Severity.WARNING) if is_less else reach


def wide_rows(table: RuleTable) -> Bools:
    """Return which rows grant broad access to everyone, or to every unauthenticated client.

    Broad access is to all names of a type, to a topic of Kafka itself, to the cluster, or with every operation.
    """
    rows: Bools = table.allows & (table.type_of > ResourceType.ANY) & for_everyone(table)[table.principal_of]
    if not rows.any():  # the usual case, without a look at names
        return rows
    cluster = table.type_of_resource == ResourceType.CLUSTER
    covers_cluster = cluster & covering_cluster(table)
    far = np.where(cluster, covers_cluster, covering_everything(table) | _covering_internal(table))
    # LITERAL "" covers no name, with any operation.
    some = np.where(cluster, covers_cluster, ~(table.literal_resource & texts_among(table.names, ("",))))
    rows &= far[table.resource_of] | (some[table.resource_of] & (table.operation_of == AclOperation.ALL))
    return rows & ~from_nowhere(table) & ~unsupported(table)


def without_wide(table: RuleTable) -> Policy | None:
    """Return the policy of a table without its broad rules for everyone; None if it has none.

    allow.everyone.if.no.acl.found is off in it: it grants what the narrow rules grant.
    """
    rows = np.flatnonzero(table.derived(wide_rows)).tolist()
    if not rows:
        return None
    settings = table.settings
    acls = AclsImage(AclIndex(table.base), documented=settings.documented, cidr=settings.cidr)
    changes = [RuleChange(added=False, acl=table.rule(row)) for row in rows]
    return Policy(changed_acls(acls, changes), evolve(settings, allow_everyone=False))


def for_everyone(table: RuleTable) -> Bools:
    """Return which principals mean everyone, or every unauthenticated client."""
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


def _is_any_host(host: str) -> bool:
    """Return whether a host is `*`, or the range of all IPv4 or all IPv6 addresses."""
    block = cidr_range(host)
    if block is None:
        return host == WILDCARD
    return block.last - block.first == (1 << (32 if block.version == 4 else 128)) - 1


def _reach_text(rule: StandardAcl, *, is_denied: bool) -> str:
    """Return what a rule allows everyone; `is_denied`: some DENY rules are on the same type."""
    client = "every client"
    if rule.principal == ANONYMOUS_PRINCIPAL:
        client = "every unauthenticated client"
    where = "" if rule.host == WILDCARD else f" from {rule.host}"
    does = "do everything on" if rule.operation == AclOperation.ALL else verb(rule)
    exception = ", except what DENY rules deny" if is_denied else ""
    return f"{client}{where} may {does} {_reached(rule)}{exception}"


def _reached(rule: StandardAcl) -> str:
    if rule.resource_type == ResourceType.CLUSTER:
        return "the cluster"
    is_literal = rule.pattern_type == PatternType.LITERAL
    if rule.resource_name == (WILDCARD if is_literal else ""):
        internal = ", including internal topics" if rule.resource_type == ResourceType.TOPIC else ""
        return f"every {noun(rule.resource_type)}{internal}"
    names = internal_topics(rule)
    if not names:
        return what(rule)
    return f"the internal topic {names[0]!r}" if is_literal else f"{what(rule)}, including {', '.join(names)}"


def _writing_everything(table: RuleTable) -> Bools:
    """Return which rows let everyone write to everything of a type."""
    star = texts_among(table.names, (WILDCARD,)) & table.literal_resource
    rows = table.allows & star[table.resource_of] & _of(table, AclOperation.WRITE, AclOperation.ALL)
    rows &= texts_among(table.principals, (WILDCARD_PRINCIPAL,))[table.principal_of]
    return rows & ~from_nowhere(table) & ~unsupported(table)


def _over_cluster(table: RuleTable, context: LintContext) -> Bools:
    """Return which rows grant rights over the cluster to principals that are neither brokers nor super users."""
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


# Names compared with the topics and groups that exist.


_SHOWN_NAMES = 5
"""Owners that a finding names."""
_LEGAL = rf"^[a-zA-Z0-9._-]{{0,{LONGEST_TOPIC}}}\Z"


class NoSuchName(Lint):
    """A rule that covers none of the topics, or of the groups, that exist."""

    id = "18"
    judges = "resource_name"
    name = "no-such-name"
    title = "the rule covers no existing topic or group"
    severity = Severity.WARNING
    exact = False
    rationale = "It is a leftover, or its name has a typo and its principals lack the intended access."
    details = (
        "Rules that allow CREATE are excluded. A topic that the same files declare counts as existing: a topic of "
        "Terraform, Strimzi, JulieOps or kafka-gitops. Without `--topics`, a rule that covers none of these is `info`, "
        "unless content is unread or its name begins with `_`, since other topics may exist. A rule is not a finding "
        "if it may match a declared name whose value is unknown."
    )
    example = "`ALLOW READ topic order.v1`, where the topic is `orders.v1`."
    fix = "Correct the name, or remove the rule."
    needs = "--topics or --groups"

    def is_ready(self, facts: Facts) -> bool:
        """Return whether topics or groups are known."""
        context = facts.context
        return context.topics is not None or context.groups is not None or _states_topics(context.declared)

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield these rules."""
        for kind, existing in (ResourceType.TOPIC, context.topics), (ResourceType.GROUP, context.groups):
            declared = context.declared if kind == ResourceType.TOPIC else None
            if existing is None and not _states_topics(declared):
                continue
            relevant = (table.type_of_resource == kind) & ~texts_among(table.names, (WILDCARD,))
            if kind == ResourceType.TOPIC:
                relevant &= _legal(table)  # the others are findings of 24
            uncovered = relevant.copy()
            for names in (existing, None if declared is None else declared.names):
                if names is not None:
                    uncovered &= ~_covers_one(table, names, relevant)
            if existing is None:  # programs create these, such as `_schemas`
                uncovered &= ~texts_matching(table.names, r"\A_")
            if declared is not None and declared.beginnings:
                uncovered &= ~_may_cover(table, declared, uncovered)
            rows = uncovered[table.resource_of]
            # To create a topic takes the rule before the topic exists.
            rows &= ~(table.allows & (table.operation_of == AclOperation.CREATE))
            if existing is not None:
                yield from self.findings(table, rows, _absent)
            elif declared is not None:
                findings = self.findings(table, rows, partial(_undeclared, len(declared.names)))
                yield from (evolve(each, severity=Severity.INFO) for each in findings)


class PrefixWithoutSeparator(Lint):
    """A rule whose prefix ends inside a word, and covers topics of several owners or only of others."""

    id = "21"
    judges = "resource_name"
    name = "prefix-without-separator"
    title = "a prefix ends inside a word, and covers names of other owners"
    severity = Severity.WARNING
    exact = False
    rationale = "`pay` covers `payroll.out` as well as `pay.in`, now and in the future."
    details = (
        "The owner of a topic is the first part of its name. A finding is a prefix of topics that does not end with a "
        "separator (`--separators`, by default `.-_`), and that covers topics of several owners, or only topics whose "
        "first part is longer than the prefix."
    )
    example = "PREFIXED `pay`, where the topics `pay.in` and `payroll.out` exist."
    fix = "End the prefix with a separator: `pay.`."
    needs = "--topics"

    def is_ready(self, facts: Facts) -> bool:
        """Return whether the existing topics are known."""
        return facts.context.topics is not None

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield these rules."""
        topics, separators = context.topics, context.separators
        if topics is None or not separators:
            return
        suspects = (table.type_of_resource == ResourceType.TOPIC) & ~table.literal_resource
        suspects &= texts_matching(table.names, f"[^{one_of(separators)}]\\Z")
        owners, covered = _Owners.of(topics, separators), dict[str, list[str]]()
        for number in np.flatnonzero(suspects).tolist():
            prefix: str = table.names[number]
            owner_names = covered[prefix] = owners.below(prefix)
            suspects[number] = _is_cut(prefix, owner_names)

        def consequence(rule: StandardAcl) -> Consequence:
            owner_names = covered[rule.resource_name]
            names = ", ".join(owner_names[:_SHOWN_NAMES]) + (", ..." if len(owner_names) > _SHOWN_NAMES else "")
            prefix = f"the prefix {rule.resource_name!r}"
            return Consequence(f"{prefix} {effect_verb(rule)} {who(rule)} {verb(rule)} on topics of {names}")

        yield from self.findings(table, suspects[table.resource_of], consequence)


def _is_cut(prefix: str, owners: Sequence[str]) -> bool:
    """Return whether a prefix covers topics of several owners, or only topics whose first part is longer."""
    if len(owners) != 1:
        return len(owners) > 1
    return owners[0] != prefix and not prefix.startswith(owners[0])


@frozen(eq=False, kw_only=True)
class _Owners:
    """The owners of topics: by convention the first parts of their names."""

    _names: list[str]
    """Of topics, sorted."""
    _owners: list[str]
    """By topic."""
    _next: list[int]
    """By topic: the next one of another owner."""

    @classmethod
    def of(cls, topics: ExistingNames, separators: str) -> "_Owners":
        """Return the owners of topics."""
        names = list(topics)
        owners = [_first_part(name, separators) for name in names]
        following = list(range(1, len(names) + 1))
        for at in range(len(names) - 2, -1, -1):
            if owners[at] == owners[at + 1]:
                following[at] = following[at + 1]
        return cls(names=names, owners=owners, next=following)

    def below(self, prefix: str) -> list[str]:
        """Return owners of the topics that start with a prefix: all, or one more than a finding names."""
        at, owners = bisect_left(self._names, prefix), dict[str, None]()
        while at < len(self._names) and len(owners) <= _SHOWN_NAMES and self._names[at].startswith(prefix):
            owners[self._owners[at]] = None
            at = self._next[at]
        return sorted(owners)


def _first_part(name: str, separators: str) -> str:
    ends = [at for at in map(name.find, separators) if at >= 0]
    return name[: min(ends)] if ends else name


def _absent(rule: StandardAcl) -> Consequence:
    kind, name = noun(rule.resource_type), rule.resource_name
    absent = f"no {kind} {name!r} exists"
    if rule.pattern_type != PatternType.LITERAL:
        absent = f"no {kind} exists whose name starts with {name!r}"
    return Consequence(f"{absent}: today {useless(rule)}")


def _undeclared(number: int, rule: StandardAcl) -> Consequence:
    name = rule.resource_name
    relation = "is" if rule.pattern_type == PatternType.LITERAL else "begins with"
    return Consequence(f"these files declare {plural(number, 'topic')}, of which none {relation} {name!r}")


def _states_topics(declared: DeclaredTopics | None) -> bool:
    """Return whether files declare topics, and all were read."""
    return declared is not None and declared.is_whole and len(declared.names) > 0


def _may_cover(table: RuleTable, declared: DeclaredTopics, relevant: Bools) -> Bools:
    """Return which of the relevant patterns may cover a declared topic whose name is not known."""
    covers = np.zeros(len(relevant), np.bool_)
    for number in np.flatnonzero(relevant).tolist():
        is_literal = bool(table.literal_resource[number])
        covers[number] = declared.may_cover(table.names[number], is_literal=is_literal)
    return covers


def _legal(table: RuleTable) -> Bools:
    legal = texts_matching(table.names, _LEGAL)
    return legal & ~(table.literal_resource & texts_among(table.names, (".", "..", "")))


def _covers_one(table: RuleTable, existing: ExistingNames, relevant: Bools) -> Bools:
    """Return which of the relevant patterns cover a name that exists."""
    names = list(existing)
    covers = texts_among(table.names, names)
    for number in np.flatnonzero(relevant & ~covers & ~table.literal_resource).tolist():
        prefix: str = table.names[number]
        at = bisect_left(names, prefix)
        covers[number] = at < len(names) and names[at].startswith(prefix)
    return covers


# Patterns that cover other topics than when they were added, by the history of rules and topics.


MANY_TIMES, MANY_MORE = 10, 20
"""A pattern has grown notably if it covers this many times as many topics as at first, and this many more."""
_NAMED = 3

Spans = Mapping[str, Sequence[tuple[int, int | None]]]
"""For each name of a topic the intervals of end offsets in which it existed; without an end if it exists now."""


class GrownReach(Lint):
    """An ALLOW on a prefix that covers more topics than when it was added: `grown_reach` finds it."""

    id = "26"
    name = "grown-reach"
    title = "a pattern covers more topics than when it was added"
    severity = Severity.WARNING
    exact = False
    rationale = "Topics that came later are open to every principal with the pattern, without any decision on these."
    details = (
        "A finding is an ALLOW on a prefix that now covers topics of other owners, or at least ten times as many "
        "topics and 20 more. If the prefix covered no topic when it was added, the first topic that it covered counts."
    )
    example = "READ on `data*` covered 2 topics when it was added, and covers 90 now."
    fix = "Use a longer prefix, or the intended names."
    needs = "a source with a history"
    of_history = True

    def is_ready(self, facts: Facts) -> bool:
        """Return whether the source has a history."""
        return facts.history


GROWN_REACH = GrownReach.id


def judged_rules(policy: Policy) -> Iterator[StandardAclWithId]:
    """Yield the rules that lint 26 judges: each ALLOW on a prefix of topics. `*` always meant all topics."""
    table = RuleTable.of(policy)
    rows = table.allows & (table.type_of == ResourceType.TOPIC) & ~table.literal_resource[table.resource_of]
    return (table.base.rule(row) for row in np.flatnonzero(rows).tolist())


@frozen
class TopicTimes:
    """The topics of a log, sorted by name, and when they existed."""

    _spans: Spans
    _names: list[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_names", sorted(self._spans))

    def below(self, prefix: str) -> list[str]:
        """Return the names that start with a prefix, also those of deleted topics."""
        first = bisect_left(self._names, prefix)
        last = next(
            (at for at in range(first, len(self._names)) if not self._names[at].startswith(prefix)), len(self._names)
        )
        return self._names[first:last]

    def among(self, names: Iterable[str], end_offset: int | None) -> set[str]:
        """Return those that existed in the state at an end offset; None: those that exist now."""
        return {name for name in names if any(_holds(span, end_offset) for span in self._spans[name])}

    def first_after(self, names: Iterable[str], end_offset: int) -> int | None:
        """Return the end offset at which the first of some names was created after a state; None if none was."""
        return min((begin for name in names for begin, _ in self._spans[name] if begin > end_offset), default=None)


def grown_reach(
    rules: Iterable[tuple[StandardAcl, int]], topics: TopicTimes, *, separators: str = SEPARATORS
) -> Iterator[Finding]:
    """Yield a finding of lint 26 for each rule that covers topics of other owners than at first, or notably more.

    Each rule (of judged_rules) comes with the end offset of the first state that has it. "At first" is that state, or,
    if the pattern covered no topic in it, the first state with a topic that it covers. The owner of a topic is its name
    up to the first separator.
    """
    for acl, added in rules:
        growth = _judge(acl, added, topics, separators)
        if growth is not None:
            yield growth


def _judge(acl: StandardAcl, added: int, topics: TopicTimes, separators: str) -> Finding | None:
    names = topics.below(acl.resource_name)
    first, now = topics.among(names, added), topics.among(names, None)
    if not first:
        begin = topics.first_after(names, added)
        first = set() if begin is None else topics.among(names, begin)
    owners = {_owner(name, separators) for name in first}
    others = sorted(name for name in now - first if _owner(name, separators) not in owners)
    grown = len(now) >= MANY_TIMES * len(first) and len(now) - len(first) >= MANY_MORE
    if not first or not (others or grown):
        return None
    fix = _narrowed(acl, sorted(first), separators) if others else ()
    return GrownReach().finding((acl,), Consequence(_growth_text(acl, len(first), len(now), others), fix))


def _growth_text(acl: StandardAcl, first: int, now: int, others: Sequence[str]) -> str:
    reach = f"grants {who(acl)} {verb(acl)} on {now:,} topic{'' if now == 1 else 's'} now, {first:,} at first"
    if not others:
        return reach
    more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
    return f"{reach}; of other owners: {', '.join(others[:_NAMED])}{more}"


def _narrowed(acl: StandardAcl, first: Sequence[str], separators: str) -> tuple[RuleChange, ...]:
    """Return the changes that limit a rule to the owners of the first topics: their prefixes with the separator."""
    replacements: dict[StandardAcl, None] = {}
    for name in first:
        owner = _owner(name, separators)
        if owner == name:
            replacements[evolve(acl, resource_name=name, pattern_type=int(PatternType.LITERAL))] = None
        else:
            replacements[evolve(acl, resource_name=name[: len(owner) + 1])] = None
    return (*(RuleChange(added=True, acl=each) for each in replacements), RuleChange(added=False, acl=acl))


def _owner(name: str, separators: str) -> str:
    return re.split(f"[{re.escape(separators)}]", name, maxsplit=1)[0] if separators else name


def _holds(span: tuple[int, int | None], end_offset: int | None) -> bool:
    begin, end = span
    return end is None if end_offset is None else begin <= end_offset and (end is None or end_offset < end)
