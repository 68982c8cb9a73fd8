"""Ten kinds of estates, each of any number of rules; the same in every run."""

from collections.abc import Callable, Iterator
from random import Random

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from benchmarks.estates.shape import rule

_DENY = AclPermissionType.DENY
_PREFIXED = PatternType.PREFIXED


def _address(number: int) -> str:
    return f"10.{number // 62_500 % 250}.{number // 250 % 250}.{number % 250}"


def _agents(count: int) -> Iterator[StandardAcl]:
    """20 users, each of whom reads each of many topics from one host."""
    for number in range(count):
        yield rule(f"agents.{number % 400}", f"User:agent-{number % 20}", host=_address(number))


def _one_client(count: int) -> Iterator[StandardAcl]:
    """One user that writes ten topics, each from many hosts."""
    for number in range(count):
        yield rule(f"metrics.{number % 10}", "User:client", host=_address(number), operation=AclOperation.WRITE)


def _banned(count: int) -> Iterator[StandardAcl]:
    """20 users of a prefix, who are denied single topics from single hosts."""
    for number in range(20):
        yield rule("jobs.", f"User:job-{number}", pattern=_PREFIXED)
    for number in range(count - 20):
        yield rule(f"jobs.{number % 300}", f"User:job-{number % 20}", host=_address(number), permission=_DENY)


def _robot(count: int) -> Iterator[StandardAcl]:
    """One user with many topics and prefixes, some of them denied."""
    for number in range(count):
        codes = {"pattern": _PREFIXED} if number % 6 == 0 else {}
        permission = _DENY if number % 30 == 11 else AclPermissionType.ALLOW
        yield rule(f"replica.{number:08d}", "User:robot", permission=permission, **codes)


def _common_prefix(count: int) -> Iterator[StandardAcl]:
    """Many users of one prefix, some of them denied."""
    for number in range(count):
        permission = _DENY if number % 25 == 4 else AclPermissionType.ALLOW
        yield rule("common.", f"User:member-{number:08d}", pattern=_PREFIXED, permission=permission)


def _popular(count: int) -> Iterator[StandardAcl]:
    """Ten topics of many users each."""
    for number in range(count):
        yield rule(f"popular.{number % 10}", f"User:reader-{number // 10:08d}")


def _nested(count: int) -> Iterator[StandardAcl]:
    """Prefixes inside prefixes, 100 deep."""
    for number in range(count):
        chain, depth = divmod(number, 100)
        permission = _DENY if depth % 8 == 3 else AclPermissionType.ALLOW
        name = f"nest-{chain:05d}." + "n" * depth
        yield rule(name, f"User:owner-{(chain * 3 + depth) % 300}", pattern=_PREFIXED, permission=permission)


def _ranges(count: int) -> Iterator[StandardAcl]:
    """400 users, whose hosts are ranges inside other ranges."""
    for number in range(count):
        wide = number % 4 == 0
        host = f"10.{number % 120}.0.0/16" if wide else f"10.{number // 240 % 240}.{number % 240}.0/24"
        permission = _DENY if number % 12 == 5 else AclPermissionType.ALLOW
        yield rule(f"sites.{number % 1_500}", f"User:site-{number % 400}", host=host, permission=permission)


def _teams(count: int) -> Iterator[StandardAcl]:
    """Applications with a prefix, a group and the topics of others; two wide denials of everyone."""
    draw, apps = Random(42), max(2, count // 10)
    yield rule("*", "User:*", operation=AclOperation.DESCRIBE_CONFIGS, permission=_DENY)
    yield rule("team-", "User:*", operation=AclOperation.ALTER, pattern=_PREFIXED, permission=_DENY)
    for app in range(apps):
        who, own = f"User:app-{app:07d}", f"team-{app % 50:02d}.app-{app:07d}."
        yield rule(own, who, operation=AclOperation.ALL, pattern=_PREFIXED)
        yield rule(own, who, kind=ResourceType.GROUP, pattern=_PREFIXED)
        for number in range(8):
            other = draw.randrange(apps)
            operation = draw.choice((AclOperation.READ, AclOperation.READ, AclOperation.WRITE))
            host = _address(draw.randrange(50_000)) if draw.random() < 0.05 else "*"
            yield rule(f"team-{other % 50:02d}.app-{other:07d}.t{number}", who, operation=operation, host=host)


def _public(count: int) -> Iterator[StandardAcl]:
    """Many topics that everyone may read, and users with topics of their own."""
    for number in range(count // 4):
        yield rule(f"public.{number:07d}", "User:*")
        for topic in range(3):
            yield rule(f"own.{number:07d}.{topic}", f"User:own-{number:07d}", operation=AclOperation.ALL)


KINDS: dict[str, Callable[[int], Iterator[StandardAcl]]] = {
    "agents": _agents,
    "one client": _one_client,
    "banned": _banned,
    "robot": _robot,
    "common prefix": _common_prefix,
    "popular": _popular,
    "nested": _nested,
    "ranges": _ranges,
    "teams": _teams,
    "public": _public,
}
