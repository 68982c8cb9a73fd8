"""Removals on a real Kafka of many rules: `aclog apply`'s filters beside requests with a filter for each rule.

Kafka's controller compares each filter with every rule, and applications leave a cluster with all of their rules. Both
sides remove as many applications, alternately, on one Kafka.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import RuleChange, content_of
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.client.connection import Role, connect
from aclog.client.requests import delete_acls
from aclog.config.node_config import HostPort
from aclog.planning.plan import Batching
from aclog.planning.planner import ordered
from aclog.targets.cluster import exactly, open_server_place
from benchmarks.apply_changes import ADMIN, fill
from benchmarks.estates.shape import rule
from benchmarks.report import Row
from tests.support.kafka.jvm import PRODUCTION
from tests.support.kafka.server import KafkaServer
from tests.support.nodes.server_properties import CLUSTER_ID, Ports, server_properties

TARGET = 5.0
TAKES = 2
_RULES = 20
"""Of each application."""
_AT_ONCE = 100
"""Filters of a request of the rival."""


def _own_and_shared(number: int) -> Iterator[StandardAcl]:
    """Yield the rules of an application: its prefixes, and topics of others."""
    user = f"User:team{number % 200:03d}-app{number:05d}"
    own = f"team{number % 200:03d}.app{number:05d}."
    for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
        yield rule(own, user, operation=AclOperation.ALL, kind=kind, pattern=PatternType.PREFIXED)
    for topic in range(_RULES - 3):
        yield rule(f"shared-{(number * 7 + topic * 13) % 500}-{topic}", user)


def _same_topics(number: int) -> Iterator[StandardAcl]:
    """Yield the rules of an application that reads the 20 topics that all others read."""
    return (rule(f"hot-{topic}", f"User:u{number}") for topic in range(_RULES))


ESTATES: dict[str, Callable[[int], Iterator[StandardAcl]]] = {
    "own and shared topics": _own_and_shared,
    "20 topics of all": _same_topics,
}


def run(scratch: Path, rules: int, removals: int) -> Iterator[Row]:
    """Yield a row for each kind of estate: seconds of so many removals beside so many rules."""
    for number, (kind, rules_of) in enumerate(ESTATES.items()):
        ports = Ports.free()
        home = scratch / f"removals-{number}"
        home.mkdir()
        server = KafkaServer(home, server_properties(ports), port=ports.broker)
        server.options = PRODUCTION
        server.format(CLUSTER_ID, "--standalone")
        with server:
            address = HostPort(host="localhost", port=ports.broker)
            applications = [list(rules_of(each)) for each in range(rules // _RULES)]
            asyncio.run(fill(address, [acl for each in applications for acl in each]))
            takes = [_take(address, applications, removals // _RULES) for _ in range(TAKES)]
        ours, theirs = (min(seconds) for seconds in zip(*takes, strict=True))
        what = f"{removals:,} removals beside {rules:,} rules, {kind}, vs. a filter for each, 100 in a request"
        yield Row(what=what, ours=ours, theirs=theirs, unit="s", target=TARGET)


def _take(address: HostPort, applications: list[list[StandardAcl]], count: int) -> tuple[float, float]:
    """Return the seconds of ours, and of requests with a filter for each rule; each removes `count` applications."""
    ours, theirs = ([acl for each in _taken(applications, count) for acl in each] for _ in range(2))
    with open_server_place([address], ADMIN, Role.BROKER, print) as place:
        place.read()  # as each apply does before it begins
        steps = ordered([RuleChange(acl=acl, added=False, where="") for acl in ours], Batching.RULE)
        begun = time.monotonic()
        for piece in place.pieces(steps):
            place.write(piece)
            assert not place.read_back([step.acl for step in piece])
        seconds = time.monotonic() - begun
    return seconds, asyncio.run(_removed_one_by_one(address, theirs))


def _taken(applications: list[list[StandardAcl]], count: int) -> list[list[StandardAcl]]:
    taken = applications[-count:]
    del applications[-count:]
    return taken


async def _removed_one_by_one(address: HostPort, acls: Sequence[StandardAcl]) -> float:
    async with await connect(address, ADMIN, timeout=60) as connection:
        begun, results = time.monotonic(), []
        for first in range(0, len(acls), _AT_ONCE):  # a larger one is answered after the broker has stopped to wait
            results += await delete_acls(connection, [exactly(acl) for acl in acls[first : first + _AT_ONCE]], 600)
        seconds = time.monotonic() - begun
    assert {content_of(rule.acl) for each in results for rule in each.deleted} == set(map(content_of, acls))
    return seconds
