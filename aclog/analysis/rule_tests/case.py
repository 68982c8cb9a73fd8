"""Cases of tests of ACLs: what is expected of a policy, and its outcome."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol, TypeAlias
from uuid import UUID

from attrs import define, evolve, field, frozen

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
from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acls_image import AclsImage, RuleChange, changed_acls
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.premises import Premises
from aclog.authorizer.settings import Generation, Settings, parse_pattern, pattern_text
from aclog.metalog.errors import ConfigError

# Whom a test is about: a principal, or everybody but some, from one host or from any.


@frozen(kw_only=True)
class CaseSubject:
    """One principal, or with `User:*` all of them, but for super users and some that are named."""

    principal: str
    but: tuple[str, ...] = ()
    """With `User:*` only."""
    host: str | None = None
    """In the form of `host_address`; None for every host."""

    def principals(self, settings: Settings) -> Principals:
        """Return the principals; super users are nobody's surprise, so that "everybody" is without them."""
        if self.principal != WILDCARD_PRINCIPAL:
            return only(self.principal)
        return everyone_but(*self.but, *settings.super_users)

    @property
    def text(self) -> str:
        """Such as `User:billing` or `everybody but User:audit`."""
        if self.principal != WILDCARD_PRINCIPAL:
            return self.principal
        return f"everybody but {', '.join(self.but)}" if self.but else "everybody"

    @property
    def place(self) -> str:
        """The host as the end of a sentence; empty for every host."""
        return "" if self.host is None else f" from {self.host}"


# What became of a case.


@frozen(kw_only=True)
class Failure:
    """One way in which a case does not hold."""

    actual: str
    """What is so instead, as a sentence without its end: `READ on TOPIC bill.in is denied, from any host`."""
    request: Request | None = None
    """A request that shows it; None if no single one does."""
    decided_by: StandardAcl | str | None = None
    """What decides it (aclog.analysis.policy)."""
    region: Region | None = None
    """All requests of which `request` is an example, if there are several."""
    only: Generation | None = None
    """That of Kafka by which alone it is so, if several may decide; `actual` says it, too."""


@frozen(kw_only=True)
class Outcome:
    """A case that was run."""

    case: "Case"
    failures: tuple[Failure, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether what the case expects holds."""
        return not self.failures


# A case: one thing that is expected of a policy.


class Case(Protocol):
    """One expectation, and where it is written. Immutable."""

    @property
    def test(self) -> str:
        """The name of the test that it belongs to: what `--run` selects by."""
        ...

    @property
    def origin(self) -> FileOrigin:
        """Where it is written."""
        ...

    @property
    def text(self) -> str:
        """What is expected, on one line: `User:billing can READ topic:bill.*`."""
        ...

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return queries that hold every request on whose decision the outcome depends."""
        ...

    def run(self, policy: Policy) -> Outcome:
        """Return whether it holds. Raises MetadataError: what it compares with cannot be read."""
        ...


# Failures that are regions: requests that are allowed, or denied, and should not be.


def region_failures(policy: Policy, regions: Iterable[Region], *, verb: str) -> tuple[Failure, ...]:
    """Return a failure for each region; `verb` says what is so there: `is allowed`, `is denied`."""
    return tuple(_failure(policy, region, verb) for region in regions)


def _failure(policy: Policy, region: Region, verb: str) -> Failure:
    example = witness(region)
    clause = Clause(resource_type=region.resource_type, operations=region.operations, names=region.names)
    legal = "" if has_legal_name(region) else " (no topic can have such a name)"
    what = f"{who_text(region.principals)}: {what_text([clause])}"
    return Failure(
        actual=f"{what} {verb}, from {hosts_text(region.hosts)}{legal}",
        request=example,
        decided_by=deciding(policy, example),
        region=region,
    )


# What a case compares with: the policy of another source, and accesses; read only when the case is run.


class OtherPolicy(Protocol):
    """The policy of another source."""

    @property
    def name(self) -> str:
        """How people name it: `main:kafka`, `prod as of 30d ago`."""
        ...

    def policy(self, settings: Settings) -> Policy:
        """Return it; the settings hold where the source states none. Raises MetadataError: it cannot be read."""
        ...

    @property
    def premises(self) -> Premises:
        """What is unknown of the settings of its source, once it has been read; nothing of one that is no cluster."""
        ...


class Accesses(Protocol):
    """Requests that were made."""

    @property
    def name(self) -> str:
        """How people name them."""
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
"""What an ACL on `*` covers in Kafka: every name but longer ones that begin with `*`."""

_CLUSTER = "cluster"


def parse_resource(text: str) -> ResourcePattern:
    """Return what a text names: LITERAL for one name, PREFIXED for all that begin so.

    Raises:
        ConfigError: no known type, no name, or a star that is neither at the end nor escaped.

    """
    word, colon, name = text.partition(":")
    kind = TYPES.get(word.strip().lower().replace("_", "-")) if word.isascii() else None
    if kind is None:
        forms = ", ".join(each if each == _CLUSTER else f"{each}:NAME" for each in TYPES)
        raise ConfigError(f"{text[:80]!r} is no resource: expected one of {forms}")
    if kind is ResourceType.CLUSTER:
        if name not in ("", CLUSTER_NAME):
            raise ConfigError(f"{text[:80]!r}: a cluster has the name {CLUSTER_NAME}: expected {_CLUSTER}")
        return ResourcePattern(resource_type=kind, name=CLUSTER_NAME)
    if not colon or not name:
        raise ConfigError(f"{text[:80]!r} has no name: expected {word}:NAME, {word}:PREFIX* or {word}:* for all")
    return parse_names(kind, name)


def parse_names(kind: ResourceType, text: str) -> ResourcePattern:
    """Return the resource of a type with a name as tests write it, without the type. Raises as parse_resource."""
    if not text:
        raise ConfigError("an empty name: expected a name, PREFIX* or * for all")
    return parse_pattern(kind, text)


def resource_text(resource: ResourcePattern) -> str:
    """Return the text that parse_resource reads as this resource."""
    word = ResourceType(resource.resource_type).name.lower().replace("_", "-")
    return _CLUSTER if resource.resource_type == ResourceType.CLUSTER else f"{word}:{pattern_text(resource)}"


def is_every_name(resource: ResourcePattern) -> bool:
    """Return whether it is a star alone: `topic:*`."""
    return resource.pattern_type != PatternType.LITERAL and not resource.name


# Whether a region holds a request of a query.


def touches(region: Region, query: Query) -> bool:
    """Return whether a request of a query is in a region: both are products of sets, so each two of these must meet."""
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


# What an intent needs of the resources that a test names: of each of them, all of it.


@frozen(kw_only=True)
class IntentNeeds:
    """What is needed on every resource that is named, and what on one that is not, whichever."""

    named: tuple[Need, ...]
    """Each on one pattern."""
    some: tuple[Need, ...] = ()


@frozen(kw_only=True)
class Application:
    """A Streams application: its id, the topics that it reads and writes, and whether it processes exactly once."""

    id: str
    inputs: tuple[ResourcePattern, ...] = field(default=())
    outputs: tuple[ResourcePattern, ...] = field(default=())
    exactly_once: bool = False


def intent_needs(intent: Intent, resources: Sequence[ResourcePattern]) -> IntentNeeds:
    """Return what an intent other than STREAM needs.

    Raises:
        ConfigError: no resource, one of a type that the intent has no use for, or STREAM.

    """
    if intent is Intent.STREAM:
        raise ConfigError("intent stream: expected a mapping with application, inputs, outputs and exactly-once")
    if not resources:
        raise ConfigError(f"intent {intent}: no resource is named")
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
    """Return what a Streams application needs on its topics, its group, its internal topics and transactional ids."""
    group = _literal(ResourceType.GROUP, application.id)
    identity = [group]
    if application.exactly_once:
        identity.append(_literal(ResourceType.TRANSACTIONAL_ID, application.id))
    consuming = intent_needs(Intent.CONSUME, (group, *application.inputs)).named
    producing = intent_needs(Intent.PRODUCE, application.outputs).named if application.outputs else ()
    internal = (need for need in needs_of(Intent.STREAM, identity) if need.every)
    return IntentNeeds(named=(*consuming, *producing, *internal))


def application_resources(application: Application) -> tuple[ResourcePattern, ...]:
    """Return the resources that name an application, for people."""
    return (_literal(ResourceType.GROUP, application.id), *application.inputs, *application.outputs)


def _literal(kind: ResourceType, name: str) -> ResourcePattern:
    return ResourcePattern(resource_type=kind, name=name, pattern_type=PatternType.LITERAL)


# Sets of allowed requests of one subject, and what one of them has that another has not.


Place: TypeAlias = tuple[NamePart, int]
"""Names, and classes of hosts as a mask."""


@define(eq=False)
class AccessSet:
    """By resource type and operation: names with the hosts from which they are allowed. Filled, then asked."""

    _places: dict[tuple[int, int], dict[NamePart, int]] = field(factory=dict, init=False)

    def add(self, kind: int, operation: int, names: Iterable[NamePart], classes: int) -> None:
        """Add some names from some hosts."""
        if classes:
            places = self._places.setdefault((kind, operation), {})
            for part in names:
                places[part] = places.get(part, 0) | classes

    def beyond(self, other: "AccessSet") -> Iterator[tuple[int, int, Place]]:
        """Yield by resource type and operation what is in this set and not in another."""
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
    """Places by the beginning of their names."""

    places: Mapping[NamePart, int]
    _by_begin: dict[str, list[Place]] = field(factory=dict, init=False)
    _begins: list[str] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        for part, mask in self.places.items():
            self._by_begin.setdefault(_begin(part), []).append((part, mask))
        self._begins = sorted(self._by_begin)

    def outside(self, place: Place) -> list[Place]:
        """Return what of a place none of the places has."""
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


# A policy with a few rules more or less, made without building its index again.


def changed_policy(policy: Policy, changes: Sequence[RuleChange]) -> Policy:
    """Return a policy after changes; quick if its rules have ids (`with_ids`). Raises ConfigError as changed_acls."""
    return Policy(changed_acls(policy.acls, changes), policy.settings)


def with_ids(policy: Policy) -> Policy:
    """Return the same policy with an id for each rule, made of its content if its source has none."""
    acls = policy.acls
    if acls.index.base.has_ids:
        return policy
    named = (StandardAclWithId(id=_content_id(rule.acl), acl=rule.acl) for rule in acls)
    image = AclsImage.from_acls(named).with_options(documented=acls.documented, cidr=acls.cidr)
    return Policy(image, policy.settings)


def _content_id(acl: StandardAcl) -> UUID:
    return UUID(bytes=blake2b(repr(acl).encode("utf-8", "surrogatepass"), digest_size=16).digest())
