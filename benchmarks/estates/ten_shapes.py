"""The ten shapes. Two are those of Kafka's own AuthorizerBenchmark, the others what estates have in excess."""

from collections.abc import Iterator
from functools import partial
from random import Random

from attrs import evolve

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from benchmarks import shapes
from benchmarks.estates.shape import Shape, rule

_PREFIXED, _GROUP, _DENY = PatternType.PREFIXED, ResourceType.GROUP, AclPermissionType.DENY
_TEAMS = ("payments", "orders", "clicks", "audit", "search", "billing", "stock", "mail")


def _kafkas(tag: str, *, resources: int, wildcards: bool) -> Iterator[StandardAcl]:
    for acl in shapes.rules(resources, wildcards=wildcards):
        yield evolve(acl, resource_name=acl.resource_name.replace(shapes.STEM, f"resource{tag}-stem-"))


def _tiny(tag: str) -> Iterator[StandardAcl]:
    for number in range(5):
        yield rule(f"topic{tag}-{number}", f"User:app-{number}")
        yield rule(f"topic{tag}-{number}", f"User:app-{number + 1}", operation=AclOperation.WRITE)
        yield rule(f"group{tag}-{number}", f"User:app-{number}", kind=_GROUP)
        yield rule(f"team{tag}-{number}.", f"User:app-{number}", operation=AclOperation.ALL, pattern=_PREFIXED)


def _mix(tag: str, *, applications: int = 12_500) -> Iterator[StandardAcl]:
    """Eight rules an application: its prefix, its group, what it reads of others; here and there a DENY or a host."""
    for number in range(applications):
        team, user = _TEAMS[number % len(_TEAMS)], f"User:{_TEAMS[number % len(_TEAMS)]}{tag}-{number}"
        own = f"{team}{tag}.{number:05d}."
        yield rule(own, user, operation=AclOperation.ALL, pattern=_PREFIXED)
        yield rule(own, user, kind=_GROUP, pattern=_PREFIXED)
        for step in range(1, 6):
            other = (number * 31 + step * 977) % applications
            name = f"{_TEAMS[other % len(_TEAMS)]}{tag}.{other:05d}.events"
            yield rule(name, user, host=f"10.1.{number % 200}.{step}" if step == 5 else "*")
        if number % 20:
            yield rule(f"{own}private", user, operation=AclOperation.WRITE)
        else:
            yield rule(f"{own}private", "User:*", permission=_DENY)


def _deep(tag: str) -> Iterator[StandardAcl]:
    """16,000 prefixes of 240 lengths, many within others, and as many names."""
    draw = Random(5)
    for number in range(16_000):
        line = "".join(f"{part % 10}" for part in range(number % 64, number % 64 + 240))
        name = f"{tag}{number % 66}.{line}"[: 8 + number % 240] + ("" if number < 8_000 else f"{number}")
        yield rule(name, f"User:u{number % 400}-{number}", pattern=_PREFIXED)
        yield rule(f"{name}{draw.randrange(10)}x{number}", f"User:u{number % 400}-{number}")


def _subjects(tag: str) -> Iterator[StandardAcl]:
    for topic in range(20):
        for number in range(5_000):
            yield rule(f"shared{tag}-{topic}", f"User:client-{(number * 7 + topic) % 20_000}")


def _subject(tag: str) -> Iterator[StandardAcl]:
    for number in range(80_000):
        yield rule(f"copy{tag}.{number:06d}", "User:replicator", pattern=_PREFIXED if number % 5 == 0 else 3)
    for number in range(20_000):
        yield rule(f"copy{tag}.{number:06d}", f"User:reader-{number % 500}")


def _hosts(tag: str) -> Iterator[StandardAcl]:
    for number in range(100_000):
        host = f"10.{number // 62_500}.{number // 250 % 250}.{number % 250}"
        yield rule(f"metrics{tag}-{number % 1_000}", f"User:agent-{number % 50}", host=host)


def _wildcards(tag: str) -> Iterator[StandardAcl]:
    for number in range(4_000):
        yield rule("*", f"User:monitor-{number}", operation=AclOperation.DESCRIBE)
    for number in range(1_000):
        yield rule("*", "User:operator", host=f"10.9.{number // 250}.{number % 250}", operation=AclOperation.ALL)
    for number in range(75_000):
        yield rule(f"public{tag}.{number}", "User:*")
    for number in range(20_000):
        yield rule(f"public{tag}.{number}.", f"User:team-{number % 900}", pattern=_PREFIXED, operation=AclOperation.ALL)


def _million(tag: str, *, count: int = 1_000_000) -> Iterator[StandardAcl]:
    for acl in shapes.million(200_000 if tag else count):
        yield evolve(acl, resource_name=acl.resource_name.replace(".", f"{tag}.", 1))


TEN = (
    Shape(
        name="K", what="Kafka's benchmark: LITERAL * by host", rules=partial(_kafkas, resources=6_600, wildcards=True)
    ),
    Shape(name="S", what="the same without LITERAL *", rules=partial(_kafkas, resources=6_600, wildcards=False)),
    Shape(name="tiny", what="20 rules of five applications", rules=_tiny),
    Shape(name="mix", what="12,500 applications", rules=_mix),
    Shape(name="deep", what="16,000 prefixes of 240 lengths", rules=_deep),
    Shape(name="subjects", what="20 topics of 5,000 principals each", rules=_subjects),
    Shape(name="subject", what="one principal with 80,000 rules", rules=_subject),
    Shape(name="hosts", what="100,000 hosts", rules=_hosts),
    Shape(name="wildcards", what="5,000 rules on *, 75,000 of User:*", rules=_wildcards),
    Shape(name="1M", what="a million resources", rules=_million),
)
"""In the order of the table."""
