"""Cases of ACL tests: expectations of a policy, and their outcomes."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol, TypeAlias
from uuid import UUID

from attrs import evolve, field

from aclog.analysis.intents import Intent, Need, needs_of
from aclog.analysis.policy import Policy, deciding
from aclog.analysis.regions import (
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
    hosts_text,
    less,
    only,
    who_text,
    witness,
)
from aclog.analysis.rows.row import Clause, what_text
from aclog.analysis.who_can import names_of
from aclog.authorizer.acl import FileOrigin, ResourcePattern, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage, RuleChange, changed_acls
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, WILDCARD_PRINCIPAL, PatternType, ResourceType
from aclog.authorizer.settings import Generation, Settings, parse_pattern, pattern_text
from aclog.authorizer.standard import Premises
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

# The subject of a test: a principal, or everyone with exceptions, from one host or from any.


@frozen(kw_only=True)
class CaseSubject:
    """One principal, or with `User:*` all principals except super users and some named ones."""

    principal: str
    but: tuple[str, ...] = ()
    """With `User:*` only."""
    host: str | None = None
    """In the form of `host_address`; None for every host."""

    def principals(self, settings: Settings) -> Principals:
        """Return the principals. `User:*` excludes super users, who are allowed everything."""
        if self.principal != WILDCARD_PRINCIPAL:
            return only(self.principal)
        return everyone_but(*self.but, *settings.super_users)

    @property
    def text(self) -> str:
        """Such as `User:billing` or `everyone except User:audit`."""
        if self.principal != WILDCARD_PRINCIPAL:
            return self.principal
        return f"everyone except {', '.join(self.but)}" if self.but else "everyone"

    @property
    def place(self) -> str:
        """The host as the end of a sentence; empty for every host."""
        return "" if self.host is None else f" from {self.host}"


# The outcome of a case.


@frozen(kw_only=True)
class Failure:
    """A way in which a case fails."""

    actual: str
    """The actual state, as a sentence without its end: `READ on TOPIC bill.in is denied, from any host`."""
    request: Request | None = None
    """An example request; None if no single request is one."""
    decided_by: StandardAcl | str | None = None
    """The basis of the decision on `request` (aclog.analysis.policy)."""
    region: Region | None = None
    """All requests of which `request` is an example, if there are several."""
    only: Generation | None = None
    """The only generation of Kafka in which the case fails, if several may decide; `actual` includes it."""


@frozen(kw_only=True)
class Outcome:
    """A case after it was run."""

    case: "Case"
    failures: tuple[Failure, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the expectation holds."""
        return not self.failures


# A case: one expectation of a policy.


class Case(Protocol):
    """One expectation, and its location. Immutable."""

    @property
    def test(self) -> str:
        """The name of the test that the case belongs to, by which `--run` selects."""
        ...

    @property
    def origin(self) -> FileOrigin:
        """The location of the case."""
        ...

    @property
    def text(self) -> str:
        """The expectation on one line: `User:billing can READ topic:bill.*`."""
        ...

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return queries that contain every request on which the outcome depends."""
        ...

    def run(self, policy: Policy) -> Outcome:
        """Return the outcome. Raises MetadataError: the policy or accesses to compare with cannot be read."""
        ...


# Failures as regions: requests that are allowed, or denied, and should not be.


def region_failures(policy: Policy, regions: Iterable[Region], *, verb: str) -> tuple[Failure, ...]:
    """Return a failure for each region; `verb` is `is allowed` or `is denied`."""
    return tuple(_failure(policy, region, verb) for region in regions)


def _failure(policy: Policy, region: Region, verb: str) -> Failure:
    example = witness(region)
    clause = Clause(resource_type=region.resource_type, operations=region.operations, names=region.names)
    legal = "" if has_legal_name(region) else " (not a legal topic name)"
    what = f"{who_text(region.principals)}: {what_text([clause])}"
    return Failure(
        actual=f"{what} {verb}, from {hosts_text(region.hosts)}{legal}",
        request=example,
        decided_by=deciding(policy, example),
        region=region,
    )


# The other side of a comparison: the policy of another source, or accesses; read only when the case is run.


class OtherPolicy(Protocol):
    """The policy of another source."""

    @property
    def name(self) -> str:
        """The name for people: `main:kafka`, `prod as of 30d ago`."""
        ...

    def policy(self, settings: Settings) -> Policy:
        """Return the policy; the settings apply where the source states none.

        Raises MetadataError: it cannot be read.
        """
        ...

    @property
    def premises(self) -> Premises:
        """The unknown settings of the source after a read; empty if the source is not a cluster."""
        ...


class Accesses(Protocol):
    """Requests that clients made."""

    @property
    def name(self) -> str:
        """The name for people."""
        ...

    def counts(self) -> Mapping[Request, int]:
        """Return distinct requests, with how often each was made. Raises MetadataError: they cannot be read."""
        ...


# Resources as tests name them: `topic:bill.in`, `topic:bill.*`, `cluster` (aclog.authorizer.settings).


TYPES = {
    kind.name.lower().replace("_", "-"): kind
    for kind in (
        ResourceType.TOPIC,
        ResourceType.GROUP,
        ResourceType.CLUSTER,
        ResourceType.TRANSACTIONAL_ID,
        ResourceType.DELEGATION_TOKEN,
        ResourceType.USER,
    )
}
"""The resource types by the word before the colon."""

USUAL_NAMES: Names = (Subtree(prefix="", except_prefixes=(WILDCARD,)), Literal(name=WILDCARD))
"""The names that an ACL on `*` covers in Kafka: every name except longer ones that begin with `*`."""

_CLUSTER = "cluster"


def parse_resource(text: str) -> ResourcePattern:
    """Return the resource of a text: LITERAL for one name, PREFIXED for all names with a prefix.

    Raises:
        ConfigError: an unknown type, no name, or a star that is neither last nor escaped.

    """
    word, colon, name = text.partition(":")
    kind = TYPES.get(word.strip().lower().replace("_", "-")) if word.isascii() else None
    if kind is None:
        forms = ", ".join(each if each == _CLUSTER else f"{each}:NAME" for each in TYPES)
        raise ConfigError(f"{text[:80]!r} is not a resource: expected one of {forms}")
    if kind is ResourceType.CLUSTER:
        if name not in ("", CLUSTER_NAME):
            raise ConfigError(f"{text[:80]!r}: the name of a cluster is {CLUSTER_NAME}: expected {_CLUSTER}")
        return ResourcePattern(resource_type=kind, name=CLUSTER_NAME)
    if not colon or not name:
        raise ConfigError(f"{text[:80]!r} has no name: expected {word}:NAME, {word}:PREFIX* or {word}:* (all)")
    return parse_names(kind, name)


def parse_names(kind: ResourceType, text: str) -> ResourcePattern:
    """Return the resource of a type with a name as in tests, without the type. Raises as parse_resource."""
    if not text:
        raise ConfigError("empty name: expected a name, PREFIX* or * (all)")
    return parse_pattern(kind, text)


def resource_text(resource: ResourcePattern) -> str:
    """Return the text that parse_resource reads as this resource."""
    word = ResourceType(resource.resource_type).name.lower().replace("_", "-")
    return _CLUSTER if resource.resource_type == ResourceType.CLUSTER else f"{word}:{pattern_text(resource)}"


def is_every_name(resource: ResourcePattern) -> bool:
    """Return whether the name is a single star: `topic:*`."""
    return resource.pattern_type != PatternType.LITERAL and not resource.name


# Whether a region and a query intersect.


def touches(region: Region, query: Query) -> bool:
    """Return whether a region and a query intersect: as products of sets, they do if each pair of sets does."""
    return (
        bool(region.operations & query.operations)
        and _principals_meet(region.principals, query.principals)
        and (query.host is None or query.host in region.hosts)
        and any(
            resource.resource_type == region.resource_type and bool(common(region.names, names_of(resource)))
            for resource in query.resources
        )
    )


def _principals_meet(one: Principals, other: Principals) -> bool:
    if one.complement:
        return other.complement or any(each in one for each in other.named)
    return any(each in other for each in one.named)


# The needs of an intent on the resources that a test names.


@frozen(kw_only=True)
class IntentNeeds:
    """The needs on every named resource, and those on some resource of a type that is not named."""

    named: tuple[Need, ...]
    """Each on one pattern."""
    some: tuple[Need, ...] = ()


@frozen(kw_only=True)
class Application:
    """A Streams application: its id, its input and output topics, and whether it uses exactly-once processing."""

    id: str
    inputs: tuple[ResourcePattern, ...] = field(default=())
    outputs: tuple[ResourcePattern, ...] = field(default=())
    exactly_once: bool = False


def intent_needs(intent: Intent, resources: Sequence[ResourcePattern]) -> IntentNeeds:
    """Return the needs of an intent other than STREAM.

    Raises:
        ConfigError: no resource, a resource of a type that the intent does not use, or STREAM.

    """
    if intent is Intent.STREAM:
        raise ConfigError("intent stream: expected a mapping with application, inputs, outputs and exactly-once")
    if not resources:
        raise ConfigError(f"intent {intent}: no resource named")
    types = {resource.resource_type for resource in resources}
    named: list[Need] = []
    some: list[Need] = []
    for need in needs_of(intent, resources):
        if need.resource_type in types:
            named += (evolve(need, patterns=(pattern,)) for pattern in need.patterns)
        else:
            some.append(need)
    return IntentNeeds(named=tuple(named), some=tuple(some))


def stream_needs(application: Application) -> IntentNeeds:
    """Return the needs of a Streams application on its topics, its group, its internal topics and transactional ids."""
    group = _literal(ResourceType.GROUP, application.id)
    identity = [group]
    if application.exactly_once:
        identity.append(_literal(ResourceType.TRANSACTIONAL_ID, application.id))
    consuming = intent_needs(Intent.CONSUME, (group, *application.inputs)).named
    producing = intent_needs(Intent.PRODUCE, application.outputs).named if application.outputs else ()
    internal = (need for need in needs_of(Intent.STREAM, identity) if need.every)
    return IntentNeeds(named=(*consuming, *producing, *internal))


def application_resources(application: Application) -> tuple[ResourcePattern, ...]:
    """Return the resources of an application for display."""
    return (_literal(ResourceType.GROUP, application.id), *application.inputs, *application.outputs)


def _literal(kind: ResourceType, name: str) -> ResourcePattern:
    return ResourcePattern(resource_type=kind, name=name, pattern_type=PatternType.LITERAL)


# Sets of allowed requests of one subject, and their differences.


Place: TypeAlias = tuple[NamePart, int]
"""Names, and classes of hosts as a mask."""


@define(eq=False)
class AccessSet:
    """By resource type and operation: names with the hosts from which they are allowed. Filled first, then queried."""

    _places: dict[tuple[int, int], dict[NamePart, int]] = field(factory=dict, init=False)

    def add(self, kind: int, operation: int, names: Iterable[NamePart], classes: int) -> None:
        """Add names with the hosts from which they are allowed."""
        if classes:
            places = self._places.setdefault((kind, operation), {})
            for part in names:
                places[part] = places.get(part, 0) | classes

    def beyond(self, other: "AccessSet") -> Iterator[tuple[int, int, Place]]:
        """Yield the difference of this set and another, by resource type and operation."""
        for key, places in self._places.items():
            others = other._places.get(key, {})
            own = [(part, mask & ~others.get(part, 0)) for part, mask in places.items()]
            remaining = [(part, mask) for part, mask in own if mask]
            index = _Index(others) if remaining else None
            for place in remaining:
                if index is not None:
                    yield from ((*key, each) for each in index.outside(place))


@define(eq=False)
class _Index:
    """Places by a prefix of their names."""

    places: Mapping[NamePart, int]
    _by_begin: dict[str, list[Place]] = field(factory=dict, init=False)
    _begins: list[str] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        for part, mask in self.places.items():
            self._by_begin.setdefault(_begin(part), []).append((part, mask))
        self._begins = sorted(self._by_begin)

    def outside(self, place: Place) -> list[Place]:
        """Return the parts of a place that none of the places has."""
        remaining = [place]
        for part, mask in self._near(place[0]):
            remaining = [each for one in remaining for each in _less(one, part, mask)]
        return remaining

    def _near(self, part: NamePart) -> Iterator[Place]:
        begin = _begin(part)
        for end in range(len(begin)):
            yield from self._by_begin.get(begin[:end], ())
        for position in range(bisect_left(self._begins, begin), len(self._begins)):
            if not self._begins[position].startswith(begin):
                return
            yield from self._by_begin[self._begins[position]]


def _less(place: Place, other: NamePart, classes: int) -> Iterator[Place]:
    part, mask = place
    if mask & ~classes:
        yield part, mask & ~classes
    if mask & classes:
        for rest in less((part,), other):
            yield rest, mask & classes


def _begin(part: NamePart) -> str:
    return part.name if isinstance(part, Literal) else part.prefix


# Small changes of a policy, without a new index.


def changed_policy(policy: Policy, changes: Sequence[RuleChange]) -> Policy:
    """Return a policy after changes; fast if its ACLs have ids (`with_ids`). Raises ConfigError as changed_acls."""
    return Policy(changed_acls(policy.acls, changes), policy.settings)


def with_ids(policy: Policy) -> Policy:
    """Return the same policy with an id for each ACL, derived from its content if its source has none."""
    acls = policy.acls
    if acls.index.base.has_ids:
        return policy
    named = (StandardAclWithId(id=_content_id(rule.acl), acl=rule.acl) for rule in acls)
    image = AclsImage.from_acls(named).with_options(documented=acls.documented, cidr=acls.cidr)
    return Policy(image, policy.settings)


def _content_id(acl: StandardAcl) -> UUID:
    return UUID(bytes=blake2b(repr(acl).encode("utf-8", "surrogatepass"), digest_size=16).digest())
