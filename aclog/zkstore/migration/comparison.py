"""Comparison of two access states: their contents, and their decisions on requests generated from the ACLs of both."""

import random
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

from attrs import field, frozen

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType, StandardAcl, code_name
from aclog.authorizer.cidr import parse_cidr
from aclog.metalog.errors import ConfigError
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference, listing_key

REQUESTS = 20_000
"""Default number of generated requests."""
_UNKNOWN_PRINCIPALS = ("User:nobody-has-this-name",)
_ADDRESSES = ("127.0.0.1", "10.9.8.7")
_ENDINGS = ("", "x", "-1", ".a")
_STARRED = ("**", "*x")
_IPV6 = 6


@frozen(kw_only=True)
class Request:
    """A request by a principal from a host for an operation on one resource."""

    principal: str
    host: str
    operation: int
    resource_type: int
    name: str

    def __str__(self) -> str:
        kind, operation = code_name(ResourceType, self.resource_type), code_name(AclOperation, self.operation)
        return f"{self.principal} from {self.host}: {operation} on {kind} {self.name}"


Decide: TypeAlias = Callable[[Request], bool]
"""Whether a request is allowed, without super users and without allow.everyone.if.no.acl.found."""


@frozen(kw_only=True)
class Disagreement:
    """A request that one side allows and the other denies."""

    request: Request
    store_allows: bool

    @property
    def is_known(self) -> bool:
        """Whether it is a known difference: to StandardAuthorizer, LITERAL `*` does not match names such as `*x`."""
        return self.request.name.startswith("*") and len(self.request.name) > 1

    def __str__(self) -> str:
        store, log = ("ALLOWED", "DENIED") if self.store_allows else ("DENIED", "ALLOWED")
        return f"{self.request}: {store} by the store, {log} by the target"


@frozen(kw_only=True)
class Comparison:
    """The changes that would make the target equal to ZooKeeper, and the requests on which they disagree."""

    difference: StateChange
    requests: int
    disagreements: tuple[Disagreement, ...] = field(default=())

    @property
    def is_equal(self) -> bool:
        """Whether contents and decisions are equal, except for known differences of Kafka 4.3.1."""
        return not len(self.difference) and all(each.is_known for each in self.disagreements)


def compare(
    store: AccessState, target: AccessState, *, store_decides: Decide, target_decides: Decide, requests: int = REQUESTS
) -> Comparison:
    """Compare contents, and decisions on up to `requests` generated requests, the same ones every time."""
    unique = dict.fromkeys(generated_requests(sorted(store.acls | target.acls, key=listing_key), requests))
    disagreements = []
    for request in unique:
        store_allows = store_decides(request)
        if store_allows is not target_decides(request):
            disagreements.append(Disagreement(request=request, store_allows=store_allows))
    return Comparison(difference=difference(target, store), requests=len(unique), disagreements=tuple(disagreements))


def generated_requests(acls: Sequence[StandardAcl], count: int, seed: int = 0) -> Iterator[Request]:
    """Generate requests close to the ACLs: their principals and resources, mixed with those of others; some repeat."""
    if not acls:
        return
    rng = random.Random(seed)  # noqa: S311  # reproducible, and not a secret
    operations = [code for code in AclOperation if code > AclOperation.ALL]
    for number in range(count):
        acl, other = acls[number % len(acls)], rng.choice(acls)
        who = rng.choice((acl, acl, other))
        yield Request(
            principal=_principal(who, other, rng),
            host=_host(who, rng),
            operation=acl.operation if acl.operation in operations and rng.random() < 0.6 else rng.choice(operations),
            resource_type=acl.resource_type,
            name=_name(acl, rng),
        )


def _principal(who: StandardAcl, other: StandardAcl, rng: random.Random) -> str:
    if who.principal != "User:*":
        return who.principal
    return other.principal if other.principal != "User:*" else rng.choice(_UNKNOWN_PRINCIPALS)


def _host(acl: StandardAcl, rng: random.Random) -> str:
    if acl.host == "*":
        return rng.choice(_ADDRESSES)
    try:
        found = parse_cidr(acl.host) if "/" in acl.host else None
    except ConfigError:
        found = None
    if found is None:
        return acl.host
    # A client inside the range, for which no Kafka before 4.4 lets the rule decide. No IPv4 range contains 0.0.0.0.
    return str(IPv6Address(found.first) if found.version == _IPV6 else IPv4Address(found.first or 1))


def _name(acl: StandardAcl, rng: random.Random) -> str:
    name = acl.resource_name
    if acl.pattern_type == PatternType.LITERAL:
        return rng.choice(_STARRED) if name == "*" and rng.random() < 0.05 else name + rng.choice(("", "", "", "x"))
    return name + rng.choice(_ENDINGS)
