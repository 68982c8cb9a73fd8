"""Whether two states are the same, and decide alike: pure, on requests made from the rules of both."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from attrs import field, frozen

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType, StandardAcl, code_name
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference, listing_key

REQUESTS = 20_000
"""How many decisions are compared, unless said."""
_STRANGERS = ("User:nobody-has-this-name",)
_ADDRESSES = ("127.0.0.1", "10.9.8.7")
_ENDINGS = ("", "x", "-1", ".a")
_STARRED = ("**", "*x")


@frozen(kw_only=True)
class Request:
    """What somebody wants to do: a principal from a host, with one resource by its name."""

    principal: str
    host: str
    operation: int
    resource_type: int
    name: str

    def __str__(self) -> str:
        kind, operation = code_name(ResourceType, self.resource_type), code_name(AclOperation, self.operation)
        return f"{self.principal} from {self.host}: {operation} on {kind} {self.name}"


Decide: TypeAlias = Callable[[Request], bool]
"""Whether a request is allowed, nobody being a super user, and nobody without a rule."""


@frozen(kw_only=True)
class Disagreement:
    """A request that one side allows and the other does not."""

    request: Request
    store_allows: bool

    @property
    def is_known(self) -> bool:
        """Whether StandardAuthorizer's own rule explains it: LITERAL `*` is not for a name that begins with `*`."""
        return self.request.name.startswith("*") and len(self.request.name) > 1

    def __str__(self) -> str:
        store, log = ("ALLOWED", "DENIED") if self.store_allows else ("DENIED", "ALLOWED")
        return f"{self.request}: {store} by the store, {log} by the target"


@frozen(kw_only=True)
class Comparison:
    """What it takes to make the target of the store, and where they decide differently."""

    difference: StateChange
    asked: int
    disagreements: tuple[Disagreement, ...] = field(default=())

    @property
    def is_equal(self) -> bool:
        """Whether both hold the same and decide alike, but for what is known of Kafka 4.3.1."""
        return not len(self.difference) and all(each.is_known for each in self.disagreements)


def compare(
    store: AccessState, target: AccessState, *, store_decides: Decide, target_decides: Decide, requests: int = REQUESTS
) -> Comparison:
    """Compare contents, and decisions on requests that the rules of both suggest; the same ones every time."""
    asked = dict.fromkeys(suggested_requests(sorted(store.acls | target.acls, key=listing_key), requests))
    disagreements = []
    for request in asked:
        store_allows = store_decides(request)
        if store_allows is not target_decides(request):
            disagreements.append(Disagreement(request=request, store_allows=store_allows))
    return Comparison(difference=difference(target, store), asked=len(asked), disagreements=tuple(disagreements))


def suggested_requests(acls: Sequence[StandardAcl], count: int, seed: int = 0) -> Iterator[Request]:
    """Requests near the rules: by whom and on what they are about, crossed with those of other rules; some twice."""
    if not acls:
        return
    chance = random.Random(seed)  # noqa: S311  # the same every time, and no secret
    operations = [code for code in AclOperation if code > AclOperation.ALL]
    for number in range(count):
        rule, other = acls[number % len(acls)], chance.choice(acls)
        who = chance.choice((rule, rule, other))
        yield Request(
            principal=_principal(who, other, chance),
            host=who.host if who.host != "*" else chance.choice(_ADDRESSES),
            operation=rule.operation
            if rule.operation in operations and chance.random() < 0.6
            else chance.choice(operations),
            resource_type=rule.resource_type,
            name=_name(rule, chance),
        )


def _principal(who: StandardAcl, other: StandardAcl, chance: random.Random) -> str:
    if who.principal != "User:*":
        return who.principal
    return other.principal if other.principal != "User:*" else chance.choice(_STRANGERS)


def _name(rule: StandardAcl, chance: random.Random) -> str:
    name = rule.resource_name
    if rule.pattern_type == PatternType.LITERAL:
        return (
            chance.choice(_STARRED)
            if name == "*" and chance.random() < 0.05
            else name + chance.choice(("", "", "", "x"))
        )
    return name + chance.choice(_ENDINGS)
