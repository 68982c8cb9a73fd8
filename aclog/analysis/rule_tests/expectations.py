"""The expectations that a test states."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

from attrs import evolve, field

from aclog.analysis.comparison import allowed, denied, differences
from aclog.analysis.engine.host_classes import Partition, partition
from aclog.analysis.intents import Intent, Need
from aclog.analysis.policy import Policy, deciding, is_allowed
from aclog.analysis.regions import (
    EVERYONE,
    EVERYWHERE,
    EXCEPT,
    REQUESTED,
    Direction,
    Hosts,
    Literal,
    NamePart,
    Names,
    Principals,
    Query,
    Region,
    Request,
    Subtree,
    common,
    everyone_but,
    has_legal_name,
    only,
    operations_of,
    operations_text,
    without,
    witness,
)
from aclog.analysis.rows.report import request_text
from aclog.analysis.rows.row import fold
from aclog.analysis.rule_tests.case import (
    USUAL_NAMES,
    Accesses,
    AccessSet,
    CaseSubject,
    Failure,
    OtherPolicy,
    Outcome,
    is_every_name,
    region_failures,
    resource_text,
)
from aclog.analysis.who_can import holders, names_of
from aclog.authorizer.acl import FileOrigin, ResourcePattern, StandardAcl, code_name, parse_name
from aclog.authorizer.acls_image import Basis
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

# can: each of the operations is allowed on every name.


@frozen(kw_only=True)
class Can:
    """Each of some operations is allowed on a name, or on every name with a prefix, from every host."""

    test: str
    origin: FileOrigin
    subject: CaseSubject
    operations: int
    """A mask (aclog.analysis.regions)."""
    resource: ResourcePattern

    @property
    def text(self) -> str:
        """The expectation on one line."""
        what = f"{operations_text(self.operations)} {resource_text(self.resource)}"
        return f"{self.subject.text} can {what}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return the queries on which the outcome depends."""
        return (access_query(self.subject, self.operations, self.resource, settings),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether all of the access is allowed."""
        (query,) = self.queries(policy.settings)
        lacking = lacking_access(policy, query)
        return Outcome(case=self, failures=region_failures(policy, lacking, verb="is denied"))


def access_query(subject: CaseSubject, operations: int, resource: ResourcePattern, settings: Settings) -> Query:
    """Return the query for some operations on one resource."""
    return Query(
        resources=(resource,), operations=operations, principals=subject.principals(settings), host=subject.host
    )


def lacking_access(policy: Policy, query: Query) -> Iterator[Region]:
    """Yield the denied requests of a query, on names that count.

    A name that no topic can have does not count, as no client can use it, unless the query has only such names: a
    mistyped name must not pass. Nor does, if every name is expected, a longer name that begins with `*`, which no ACL
    on `*` covers in Kafka.
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
    """Return whether the resource is a topic, or a prefix of topics, with an illegal name."""
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


# cannot: none of the operations is allowed on any name.


@frozen(kw_only=True)
class Cannot:
    """None of some operations is allowed on a name, or on any name with a prefix, from any host."""

    test: str
    origin: FileOrigin
    subject: CaseSubject
    operations: int
    """A mask (aclog.analysis.regions)."""
    resource: ResourcePattern

    @property
    def text(self) -> str:
        """The expectation on one line."""
        what = f"{operations_text(self.operations)} {resource_text(self.resource)}"
        return f"{self.subject.text} cannot {what}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return the queries on which the outcome depends."""
        return (access_query(self.subject, self.operations, self.resource, settings),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether none of the access is allowed."""
        (query,) = self.queries(policy.settings)
        return Outcome(case=self, failures=region_failures(policy, allowed(policy, query), verb="is allowed"))


# Intents: whether a principal has all the access that an intent needs.


@frozen(kw_only=True)
class HasIntent:
    """All requests of a client with an intent are allowed: on every named resource, from every host.

    For a needed type without a named resource, they are allowed on some resource of the type.
    """

    test: str
    origin: FileOrigin
    subject: CaseSubject
    intent: Intent
    resources: tuple[ResourcePattern, ...]
    """The named resources, for display."""
    named: tuple[Need, ...]
    """The needs on every name that the patterns cover."""
    some: tuple[Need, ...] = ()
    """The needs on some name."""

    @property
    def text(self) -> str:
        """The expectation on one line."""
        named = ", ".join(map(resource_text, self.resources))
        return f"{self.subject.text} can {self.intent} {named}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return the queries of the needs."""
        principals = self.subject.principals(settings)
        return tuple(need.query(principals, self.subject.host) for need in (*self.named, *self.some))

    def run(self, policy: Policy) -> Outcome:
        """Return whether all needs are met."""
        principals = self.subject.principals(policy.settings)
        failures: list[Failure] = []
        for need in self.named:
            query = need.query(principals, self.subject.host)
            failures += region_failures(policy, lacking_access(policy, query), verb="is denied")
        failures += (_none(need) for need in self.some if not self._has_some(policy, need))
        return Outcome(case=self, failures=tuple(failures))

    def _has_some(self, policy: Policy, need: Need) -> bool:
        principals, host = self.subject.principals(policy.settings), self.subject.host
        everywhere = EVERYWHERE if host is None else Hosts(entries=(host,))
        matching = [
            each for each in holders(policy, (need,), principals=principals, host=host) if everywhere in each.hosts
        ]
        named = {each for holder in matching if not holder.principals.complement for each in holder.principals.named}
        if not principals.complement:
            others = [each.principals for each in matching if each.principals.complement]
            return all(each in named or any(each in other for other in others) for each in principals.named)
        return any(
            set(holder.principals.named) - set(principals.named) <= named
            for holder in matching
            if holder.principals.complement
        )


def _none(need: Need) -> Failure:
    kind = code_name(ResourceType, need.resource_type)
    return Failure(actual=f"{operations_text(need.operations)} is allowed on no {kind} from every host")


# The items of can_only: names of a type, and hosts of clients.


@frozen(kw_only=True)
class ListedHosts:
    """Addresses and CIDR ranges with exceptions; if empty, every address except those."""

    entries: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def classes_in(self, partition: Partition) -> int:
        """Return the classes of a partition whose texts must include these."""
        every = (1 << partition.count) - 1
        classes = _joined(partition, self.entries) if self.entries else every
        return classes & ~_joined(partition, self.but)

    @property
    def text(self) -> str:
        """The hosts as the end of a sentence; empty for every host."""
        from_ = f" from {', '.join(self.entries)}" if self.entries else ""
        return f"{from_ or ' from any host'}{EXCEPT}{', '.join(self.but)}" if self.but else from_


ANY_HOST = ListedHosts()


@frozen(kw_only=True)
class ListedAccess:
    """Operations on names of one type, with exceptions, from hosts."""

    operations: int
    """A mask (aclog.analysis.regions)."""
    resource: ResourcePattern
    """`topic:*` is what an ACL on `*` covers: every name except longer ones that begin with `*`."""
    but: tuple[ResourcePattern, ...] = ()
    hosts: ListedHosts = field(default=ANY_HOST)

    @property
    def names(self) -> Names:
        """The names without the exceptions."""
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
        but = f"{EXCEPT}{', '.join(map(resource_text, self.but))}" if self.but else ""
        return f"{resource_text(self.resource)}{but}{self.hosts.text}"


def _less(part: NamePart, prefixes: set[str], literals: set[str]) -> NamePart | None:
    """Return a part without some names, of which there are thousands where names without ACLs are open."""
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


# can_only: exactly the listed access is allowed.


@frozen(kw_only=True)
class CanOnly:
    """Exactly the listed requests are allowed to each of several principals, illegal topic names included."""

    test: str
    origin: FileOrigin
    subject: CaseSubject
    listed: tuple[ListedAccess, ...]

    @property
    def text(self) -> str:
        """The expectation on one line."""
        if not self.listed:
            return f"{self.subject.text} can do nothing{self.subject.place}"
        first, *rest = self.listed
        what = f"{operations_text(first.operations)} {first.text}{f' and {len(rest):,} more' if rest else ''}"
        return f"{self.subject.text} can only {what}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return the query for all requests of the principals."""
        return (Query(principals=self.subject.principals(settings), host=self.subject.host),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether exactly the listed requests are allowed."""
        (query,) = self.queries(policy.settings)
        comparison = _Comparison(query=query, regions=list(allowed(policy, query)), listed=self.listed)
        more, less = comparison.beyond()
        return Outcome(
            case=self,
            failures=(
                *region_failures(policy, more, verb="is allowed but not listed"),
                *region_failures(policy, less, verb="is denied"),
            ),
        )


@define(eq=False, kw_only=True)
class _Comparison:
    """The allowed and the listed access."""

    query: Query
    regions: Sequence[Region]
    listed: Sequence[ListedAccess]
    _hosts: Partition = field(init=False)

    def __attrs_post_init__(self) -> None:
        texts = {text for region in self.regions for text in (*region.hosts.entries, *region.hosts.except_addresses)}
        texts |= {text for each in self.listed for text in (*each.hosts.entries, *each.hosts.but)}
        self._hosts = partition({*texts, *([self.query.host] if self.query.host else [])}, cidr=True)

    def beyond(self) -> tuple[list[Region], list[Region]]:
        """Return the allowed regions that are not listed, and the listed regions that are not allowed."""
        listed = self._listed()
        more: list[Region] = []
        less: list[Region] = []
        for principals, regions in groups(self.query.principals, self.regions):
            actual = AccessSet()
            for region in regions:
                classes = self._hosts.classes_of(region.hosts)
                for operation in operations_of(region.operations):
                    actual.add(region.resource_type, operation, region.names, classes)
            more += self._regions(principals, actual, listed)
            less += self._regions(principals, listed, actual)
        return more, less

    def _listed(self) -> AccessSet:
        host, access = self.query.host, AccessSet()
        host_classes = (1 << self._hosts.count) - 1 if host is None else self._hosts.matched(host, cidr=True)
        for each in self.listed:
            classes = each.hosts.classes_in(self._hosts) & host_classes
            names = each.names
            for operation in operations_of(each.operations):
                access.add(each.resource.resource_type, operation, names, classes)
        return access

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


def groups(subjects: Principals, regions: Iterable[Region]) -> Iterator[tuple[Principals, tuple[Region, ...]]]:
    """Yield principals that share their regions, with these; each principal of the query is in one group."""
    of_everyone: list[tuple[int, Region]] = []
    of_one: dict[str, dict[int, Region]] = {} if subjects.complement else {each: {} for each in subjects.named}
    for number, region in enumerate(regions):
        if region.principals.complement:
            of_everyone.append((number, region))
            for each in region.principals.named:
                if each in subjects:
                    of_one.setdefault(each, {})
        else:
            for each in region.principals.named:
                of_one.setdefault(each, {})[number] = region
    members: dict[tuple[int, ...], list[str]] = {}
    shared: dict[tuple[int, ...], tuple[Region, ...]] = {}
    for principal, own in of_one.items():
        theirs = own | {number: region for number, region in of_everyone if principal in region.principals}
        key = tuple(sorted(theirs))
        members.setdefault(key, []).append(principal)
        shared[key] = tuple(theirs[number] for number in key)
    rest = tuple(number for number, _ in of_everyone)
    if subjects.complement:
        apart = {each for key, those in members.items() if key != rest for each in those}
        yield everyone_but(*subjects.named, *apart), tuple(region for _, region in of_everyone)
    for key, those in members.items():
        if key != rest or not subjects.complement:
            yield only(*those), shared[key]


# no_new_access: a policy allows nothing that another one denies, with exceptions.


@frozen(kw_only=True)
class NoNewAccess:
    """No request is allowed that another policy denies, except on some resources."""

    test: str
    origin: FileOrigin
    than: OtherPolicy
    but: tuple[ResourcePattern, ...] = ()

    @property
    def text(self) -> str:
        """The expectation on one line."""
        but = f", except on {', '.join(map(resource_text, self.but))}" if self.but else ""
        return f"nothing is allowed that {self.than.name} denies{but}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:  # noqa: ARG002  # of Case
        """Return the query for all requests."""
        return (Query(),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether nothing new is allowed. Raises MetadataError: the other policy cannot be read."""
        changes = differences(self.than.policy(policy.settings), policy)
        gained = (each.region for each in changes if each.direction is Direction.GAINED)
        regions = (part for region in gained for part in self._elsewhere(region))
        verb = f"is allowed, but denied by {self.than.name}"
        return Outcome(case=self, failures=region_failures(policy, regions, verb=verb))

    def _elsewhere(self, region: Region) -> Iterator[Region]:
        """Yield the parts of a region outside the excepted resources."""
        names = region.names
        for resource in self.but:
            if resource.resource_type == region.resource_type:
                (part,) = names_of(resource)
                names = without(names, part)
        if names:
            yield evolve(region, names=names)


# same_as: a policy decides as another one on every request, or on some accesses.


@frozen(kw_only=True)
class SameAs:
    """Every request is decided as by another policy; with accesses, each of these."""

    test: str
    origin: FileOrigin
    other: OtherPolicy
    accesses: Accesses | None = None

    @property
    def text(self) -> str:
        """The expectation on one line."""
        what = "every request" if self.accesses is None else f"every access of {self.accesses.name}"
        return f"{what} is decided as by {self.other.name}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:  # noqa: ARG002  # of Case
        """Return the query for all requests."""
        return (Query(),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether there is no difference.

        Raises MetadataError: the other policy or the accesses cannot be read.
        """
        other = self.other.policy(policy.settings)
        if self.accesses is not None:
            return Outcome(case=self, failures=self._flips(policy, other, self.accesses))
        changes = list(differences(other, policy))
        gained = (each.region for each in changes if each.direction is Direction.GAINED)
        lost = (each.region for each in changes if each.direction is Direction.LOST)
        was = self.other.name
        return Outcome(
            case=self,
            failures=(
                *region_failures(policy, gained, verb=f"is allowed, but denied by {was}"),
                *region_failures(policy, lost, verb=f"is denied, but allowed by {was}"),
            ),
        )

    def _flips(self, policy: Policy, other: Policy, accesses: Accesses) -> tuple[Failure, ...]:
        failures = []
        for request, count in accesses.counts().items():
            now = is_allowed(policy, request)
            if now is not is_allowed(other, request):
                times = "" if count == 1 else f" ({count:,} times)"
                verdict = "allowed, but was denied" if now else "denied, but was allowed"
                what = f"{request_text(request)}{times} is {verdict}"
                failures.append(Failure(actual=what, request=request, decided_by=deciding(policy, request)))
        return tuple(failures)


# who_can: exactly some principals have access, besides super users.


@frozen(kw_only=True)
class WhoCan:
    """Only these principals and super users are allowed any of the operations on any of the names.

    `User:*` is every principal that no ACL names; `not User:bob` is one that is then allowed none of the access.
    """

    test: str
    origin: FileOrigin
    operations: int
    """A mask (aclog.analysis.regions)."""
    resource: ResourcePattern
    expected: tuple[str, ...]
    host: str | None = None
    """In the form of `host_address`; None for any host."""

    @property
    def text(self) -> str:
        """The expectation on one line."""
        place = "" if self.host is None else f" from {self.host}"
        what = f"can {operations_text(self.operations)} {resource_text(self.resource)}{place}"
        return f"exactly {', '.join(self.expected)} {what}" if self.expected else f"no principal {what}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return the queries on which the outcome depends."""
        principals = everyone_but(*settings.super_users)
        return (Query(resources=(self.resource,), operations=self.operations, principals=principals, host=self.host),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether exactly the expected principals have access."""
        (query,) = self.queries(policy.settings)
        regions = list(allowed(policy, query))
        actual, expected = who(regions, policy.settings), set(self.expected) - policy.settings.super_users
        failures: list[Failure] = []
        for more in sorted(actual - expected):
            failures += _allowed_too(policy, regions, more)
        failures += (_not_so(less) for less in sorted(expected - actual))
        return Outcome(case=self, failures=tuple(failures))


def who(regions: Sequence[Region], settings: Settings) -> set[str]:
    """Return the principals of allowed regions in the notation of `WhoCan`."""
    named = {each for region in regions if not region.principals.complement for each in region.principals.named}
    rest = [set(region.principals.named) for region in regions if region.principals.complement]
    if not rest:
        return named
    excepted = set[str].intersection(*rest) - named - settings.super_users
    return {WILDCARD_PRINCIPAL, *(f"not {each}" for each in excepted)}


def _allowed_too(policy: Policy, regions: Sequence[Region], principal: str) -> tuple[Failure, ...]:
    if principal.startswith("not "):
        return (Failure(actual=f"{principal.removeprefix('not ')} cannot"),)
    if principal == WILDCARD_PRINCIPAL:
        theirs = [region for region in regions if region.principals.complement]
    else:
        theirs = [_of(region, principal) for region in regions if principal in region.principals]
    return region_failures(policy, theirs, verb="is allowed")


def _of(region: Region, principal: str) -> Region:
    return evolve(region, principals=only(principal))


def _not_so(principal: str) -> Failure:
    if principal.startswith("not "):
        return Failure(actual=f"{principal.removeprefix('not ')} can, or no principal can")
    everybody = principal == WILDCARD_PRINCIPAL
    return Failure(actual=f"{'a principal without ACLs' if everybody else principal} cannot")


# The short form of a deciding rule: `READ prefixed bill.`, `DENY ALL literal pii.card for User:* from 10.0.0.1`.


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_FORM = re.compile(
    rf"(?:(?P<permission>(?ai:ALLOW|DENY))\s+)?(?P<operation>[A-Za-z_-]+)\s+(?P<pattern>(?ai:literal|prefixed))\s+"
    rf"(?P<name>{_QUOTED}|\S+)(?:\s+(?ai:for)\s+(?P<principal>{_QUOTED}|\S+))?"
    rf"(?:\s+(?ai:from)\s+(?P<host>{_QUOTED}|\S+))?"
)
_BASES = {basis.value.lower(): basis.value for basis in Basis if basis is not Basis.MATCHING_ACL}
_OPERATIONS = tuple(operation for operation in AclOperation if operation > AclOperation.ANY)
EXPECTED = (
    "[ALLOW|DENY] OPERATION literal|prefixed NAME [for PRINCIPAL] [from HOST], or SuperUser, DefaultAllow, DefaultDeny"
)
_PLAIN = re.compile(r'[^\s"]\S*')


@frozen(kw_only=True)
class RuleText:
    """A description of a deciding ACL; omitted parts match anything, and the ACL allows unless DENY is stated."""

    basis: str | None = None
    """`SuperUser`, `DefaultAllow` or `DefaultDeny`; no other part is stated then."""
    permission: AclPermissionType = AclPermissionType.ALLOW
    operation: AclOperation = AclOperation.ALL
    pattern: PatternType = PatternType.LITERAL
    name: str = ""
    principal: str | None = None
    host: str | None = None

    def is_of(self, rule: StandardAcl | str | None) -> bool:
        """Return whether the description matches the basis of a decision (aclog.analysis.policy)."""
        if not isinstance(rule, StandardAcl):
            return rule is not None and rule == self.basis
        literal = self.pattern is PatternType.LITERAL
        return (
            self.basis is None
            and (rule.permission_type == AclPermissionType.ALLOW) is (self.permission is AclPermissionType.ALLOW)
            and rule.operation == self.operation
            and (rule.pattern_type == PatternType.LITERAL) is literal
            and rule.resource_name == self.name
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
        )

    def __str__(self) -> str:
        if self.basis is not None:
            return self.basis
        who = "" if self.principal is None else f" for {_word(self.principal)}"
        host = "" if self.host is None else f" from {_word(self.host)}"
        deny = "" if self.permission is AclPermissionType.ALLOW else "DENY "
        return f"{deny}{self.operation.name} {self.pattern.name.lower()} {_word(self.name)}{who}{host}"


def parse_rule_text(text: str) -> RuleText:
    """Return the description in a text.

    Raises:
        ConfigError: it is not in the short form, or the operation is unknown.

    """
    basis = _BASES.get(text.strip().lower())
    if basis is not None:
        return RuleText(basis=basis)
    parts = _FORM.fullmatch(text.strip())
    if parts is None:
        raise ConfigError(f"{text[:80]!r} is not a rule: expected {EXPECTED}")
    denies = (parts["permission"] or "").upper() == "DENY"
    return RuleText(
        permission=AclPermissionType.DENY if denies else AclPermissionType.ALLOW,
        operation=parse_name(_OPERATIONS, parts["operation"]),
        pattern=PatternType[parts["pattern"].upper()],
        name=_unquoted(parts["name"]) or "",
        principal=_unquoted(parts["principal"]),
        host=_unquoted(parts["host"]),
    )


def rule_text(rule: StandardAcl | str | None) -> str:
    """Return the basis of a decision in the short form, complete."""
    if not isinstance(rule, StandardAcl):
        return "nothing (Kafka's authorizer throws)" if rule is None else rule
    deny = "" if rule.permission_type == AclPermissionType.ALLOW else "DENY "
    pattern = "literal" if rule.pattern_type == PatternType.LITERAL else "prefixed"
    operation = code_name(AclOperation, rule.operation)
    return (
        f"{deny}{operation} {pattern} {_word(rule.resource_name)} for {_word(rule.principal)} from {_word(rule.host)}"
    )


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _unquoted(text: str | None) -> str | None:
    if text is None or not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise ConfigError(f"{text[:80]} is not a JSON string") from error


# The decision on one request, and its basis.


ERROR = "ERROR"
"""The decision of `aclog authorize --requests` where Kafka's authorizer throws."""


@frozen(kw_only=True)
class Decides:
    """A request has a decision and, if stated, a basis. A line of a file of requests."""

    test: str
    origin: FileOrigin
    request: Request
    by_type: bool = False
    """Whether the request is for any resource of the type (authorizeByResourceType), so that its name is ignored."""
    decision: str
    """ALLOWED, DENIED or ERROR."""
    rule: str | RuleText | None = None
    """Kafka's text (aclog.authorizer.audit), or the short form."""

    @property
    def text(self) -> str:
        """The expectation on one line."""
        by = "" if self.rule is None else f" by {self.rule}"
        return f"{request_text(self.request)} is {self.decision}{by}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:  # noqa: ARG002  # of Case
        """Return the query for the request."""
        request = self.request
        pattern = PatternType.PREFIXED if self.by_type else PatternType.LITERAL
        resource = ResourcePattern(
            resource_type=request.resource_type, name=request.resource_name, pattern_type=pattern
        )
        query = Query(
            resources=(resource,),
            operations=1 << request.operation,
            principals=only(request.principal),
            host=request.host,
        )
        return (query,)

    def run(self, policy: Policy) -> Outcome:
        """Return whether the decision and its basis are as expected."""
        request = self.request
        context = RequestContext(principal=request.principal, host=request.host)
        try:
            if self.by_type:
                answer = policy.authorizer.authorize_by_resource_type(context, request.operation, request.resource_type)
                return self._judged(answer, None)
            resource = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
            action = Action(operation=request.operation, resource_pattern=resource)
            if self.rule is None:
                (answer,) = policy.authorizer.authorize(context, (action,))
                if answer.value == self.decision:
                    return Outcome(case=self)
            decision = policy.authorizer.decide(context, action)
        except InvalidRequestError as error:
            return self._failed(f"Kafka's authorizer throws: {error}") if self.decision != ERROR else Outcome(case=self)
        if decision.rule is None:
            return self._judged(decision.result, decision.basis.value, decision.text)
        return self._judged(decision.result, decision.rule.acl, decision.text)

    def _judged(self, result: AuthorizationResult, rule: StandardAcl | str | None, text: str = "") -> Outcome:
        same_rule = self.rule.is_of(rule) if isinstance(self.rule, RuleText) else self.rule in (None, text)
        if result.value == self.decision and same_rule:
            return Outcome(case=self)
        by = f" by {text}" if text else ""
        return self._failed(f"{request_text(self.request)} is {result.value}{by}", rule)

    def _failed(self, actual: str, rule: StandardAcl | str | None = None) -> Outcome:
        return Outcome(case=self, failures=(Failure(actual=actual, request=self.request, decided_by=rule),))


# The ACL that decides a request.


@frozen(kw_only=True)
class Reason:
    """One ACL decides an operation on one resource, from every host."""

    test: str
    origin: FileOrigin
    subject: CaseSubject
    """One principal."""
    operation: AclOperation
    resource: ResourcePattern
    """LITERAL."""
    expected: RuleText

    @property
    def text(self) -> str:
        """The expectation on one line."""
        what = f"{self.operation.name} {resource_text(self.resource)}"
        return f"{self.expected} decides that {self.subject.text} may {what}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return the queries on which the outcome depends."""
        return (access_query(self.subject, 1 << self.operation, self.resource, settings),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether the ACL decides the requests."""
        failures = []
        for request in self._requests(policy):
            rule = deciding(policy, request)
            if not self.expected.is_of(rule):
                actual = f"{request_text(request)} is decided by {rule_text(rule)}"
                failures.append(Failure(actual=actual, request=request, decided_by=rule))
        return Outcome(case=self, failures=tuple(failures))

    def _requests(self, policy: Policy) -> Iterator[Request]:
        """Yield a request from each class of hosts that ACLs on the resource distinguish."""
        kind, name = ResourceType(self.resource.resource_type), self.resource.name
        acls = policy.acls.with_options(documented=policy.settings.documented, cidr=policy.settings.cidr)
        candidates = (rule.acl.host for rule in acls.candidates(kind, name)) if self.subject.host is None else ()
        classes = partition(candidates, cidr=policy.settings.cidr)
        principals = self.subject.principals(policy.settings)
        for number in range(classes.count) if self.subject.host is None else ():
            for hosts in classes.hosts(1 << number)[:1]:
                yield witness(
                    Region(
                        resource_type=kind,
                        operations=1 << self.operation,
                        principals=principals,
                        hosts=hosts,
                        names=(Literal(name=name),),
                    )
                )
        if self.subject.host is not None:
            yield Request(
                principal=self.subject.principal,
                host=self.subject.host,
                operation=self.operation,
                resource_type=kind,
                resource_name=name,
            )
