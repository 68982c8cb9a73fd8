"""Our AclAuthorizer and the real one of Kafka 3.9 on the same store: what both hold, and how both decide."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.zookeeper.authorizer import AclAuthorizer
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.zookeeper import estates
from tests.support.zookeeper.real_acl_authorizer import Ask, RealAclAuthorizer

ADMIN = RequestContext(principal="User:admin", host="127.0.0.1")
EVERYTHING = AclBindingFilter()


@contextmanager
def our_authorizer(connect: str, properties: Mapping[str, str] | None = None) -> Iterator[AclAuthorizer]:
    """Ours on a store; closed at the end."""
    authorizer = AclAuthorizer()
    authorizer.configure({"zookeeper.connect": connect, **(properties or {})})
    try:
        yield authorizer
    finally:
        authorizer.close()


def rules_of(authorizer: AclAuthorizer) -> set[StandardAcl]:
    """All rules that ours has."""
    return {rule.acl for rule in authorizer.acls(EVERYTHING)}


def ours_create(authorizer: AclAuthorizer, acls: Sequence[StandardAcl]) -> list[str | None]:
    """The error of each rule, or None."""
    return [
        None if result.error is None else str(result.error)
        for result in authorizer.create_acls(ADMIN, acls).result(SECONDS)
    ]


def ours_delete(authorizer: AclAuthorizer, filters: Sequence[AclBindingFilter]) -> list[set[StandardAcl] | str]:
    """What each filter deleted, or its error."""
    return [
        {rule.acl for rule in result.deleted} if result.error is None else str(result.error)
        for result in authorizer.delete_acls(ADMIN, filters).result(SECONDS)
    ]


def decide(authorizer: AclAuthorizer, asks: Sequence[Ask]) -> str:
    """A letter a request, as RealAclAuthorizer.decide."""
    return "".join(_letter(authorizer, ask) for ask in asks)


def _letter(authorizer: AclAuthorizer, ask: Ask) -> str:
    context = RequestContext(principal=ask.principal, host=ask.host)
    try:
        if ask.name is None:
            result = authorizer.authorize_by_resource_type(context, ask.operation, ask.resource_type)
        else:
            pattern = ResourcePattern(resource_type=ask.resource_type, name=ask.name)
            (result,) = authorizer.authorize(context, [Action(operation=ask.operation, resource_pattern=pattern)])
    except InvalidRequestError:
        return "E"
    return "A" if result is AuthorizationResult.ALLOWED else "D"


def compare(connect: str, real: RealAclAuthorizer, random: Random, *, requests: int) -> Counter[str]:
    """One estate, written by both, then changed by both; how often which letter was given. A difference fails.

    `connect` is a store (a chroot) that nobody has used.
    """
    properties = estates.properties(random)
    acls = estates.estate(random)
    real.configure({"zookeeper.connect": connect, **properties})
    letters: Counter[str] = Counter()
    with our_authorizer(connect, properties) as ours:
        half = len(acls) // 2
        assert not any(ours_create(ours, acls[:half]))
        assert not any(real.create(acls[half:]))
        letters += _agree(ours, real, set(acls), random, requests // 2)
        removed = random.sample(acls, len(acls) // 3)
        for number, acl in enumerate(removed):
            acl_filter = exactly(acl)
            deleted = ours_delete(ours, [acl_filter]) if number % 2 else real.delete([acl_filter])
            assert deleted == [{acl}]
        letters += _agree(ours, real, set(acls) - set(removed), random, requests - requests // 2)
    real.close()
    return letters


def exactly(acl: StandardAcl) -> AclBindingFilter:
    """The filter that takes this rule alone."""
    return AclBindingFilter(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _agree(
    ours: AclAuthorizer, real: RealAclAuthorizer, acls: set[StandardAcl], random: Random, requests: int
) -> Counter[str]:
    wait_until(lambda: rules_of(ours) == acls, "what ours holds")
    wait_until(lambda: real.acls() == acls, "what the real one holds")
    asks = estates.asks(random, sorted(acls, key=str), requests)
    theirs, mine = real.decide(asks), decide(ours, asks)
    differing = [
        f"{ask}: Kafka {their}, we {our}" for ask, their, our in zip(asks, theirs, mine, strict=True) if their != our
    ]
    assert not differing, f"{len(differing)} differ: {differing[:10]} on {sorted(map(str, acls))}"
    return Counter(theirs) + Counter(
        {"byResourceType": sum(ask.name is None for ask in asks), "rules": len(acls), "estates": 1}
    )
