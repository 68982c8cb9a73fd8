"""CreateAcls beside the real AclControlManager of a release: which ACLs it refuses, with which code and message.

Every host at every level of metadata.version, and every combination of codes at the lowest and the newest level. What a
broker checks before it forwards a request (AclApis) is not in that class, so no ACL here fails there.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import CLUSTER_NAME, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.control import broker_check, filter_value
from tests.oracle.kit.assumptions import assumed_generation, creation_errors
from tests.oracle.kit.estates import ODD_RANGES
from tests.oracle.kit.values import Difference, Outcome
from tests.support.kafka.jvm import run_tool
from tests.support.kafka.release_facts import ReleaseFacts, ReleaseFactsError
from tests.support.models.shapes import HOSTS, ODD_HOSTS

CHECK = "CreateAcls"
RANGES = ("10.0.0.0/8", "10.1.2.3/8", "0.0.0.0/0", "255.255.255.255/32", "2001:db8::/32", "::/0", "2001:db8::1/128")
NO_RANGES = ("*", "my host", "broker-1.example.org", "10.0.0.*", "10.0.0.1,10.0.0.2", "10.0.0.1-10.0.0.9", " ", "é")
FAULTY = (
    "2001:db8:::/x", "2001:db8:::/129", "::ffff:10.0.0.0/x", "::ffff:10.0.0.0/129", "::/", "::/ 32", "::/32 ", " ::/32",
    "::/999", "::/2147483648", "::/-2147483649", "2001:db8::%1/", "[::]/x", "[::/32", "::]/32", "1:2/64", "::1::/64",
    "//::", "/64", "256.0.0.0/33", "10.0.0.0/99", "10.0.0.0/100", "1.2.3/24", "1.2.3.4.5/24", "0x10.0.0.0/8",
    "10.0.0.0/ 8", "10.0.0.0//8", "/10.0.0.0/8",
)  # fmt: skip
"""One or two things are wrong with each: which of them the message names is part of the answer."""
GRID_HOSTS = tuple(dict.fromkeys((*NO_RANGES, *HOSTS, *ODD_HOSTS, *RANGES, *ODD_RANGES, *FAULTY)))
_UNKNOWN = 99
_TYPES = (*(each.value for each in ResourceType), _UNKNOWN)
_PATTERNS = (*(each.value for each in PatternType), _UNKNOWN)
_OPERATIONS = (*(each.value for each in AclOperation), _UNKNOWN)
_PERMISSIONS = (*(each.value for each in AclPermissionType), _UNKNOWN)
_PRINCIPALS = ("User:alice", "Group:dev", "nocolon")
_CODE_HOSTS = ("*", "10.0.0.0/8", "a/b")
_BATCH = 5000
"""ACLs of a request; 10,000 are the most that it may create."""
_EXAMPLES = 4


def host_grid() -> list[StandardAcl]:
    """Every host, in ACLs of several kinds."""
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.USER)
    permissions, patterns = (
        (AclPermissionType.ALLOW, AclPermissionType.DENY),
        (PatternType.LITERAL, PatternType.PREFIXED),
    )
    operations = (AclOperation.READ, AclOperation.ALL)
    return [
        acl_of(kind, pattern, principal, host, operation, permission)
        for host, kind, pattern, principal, operation, permission in product(
            GRID_HOSTS, kinds, patterns, _PRINCIPALS, operations, permissions
        )
    ]


def code_grid() -> list[StandardAcl]:
    """Every combination of codes, those that only a filter may hold and unknown ones among them."""
    return [
        acl_of(kind, pattern, _PRINCIPALS[0], host, operation, permission)
        for kind, pattern, host, operation, permission in product(
            _TYPES, _PATTERNS, _CODE_HOSTS, _OPERATIONS, _PERMISSIONS
        )
    ]


def acl_of(kind: int, pattern: int, principal: str, host: str, operation: int, permission: int) -> StandardAcl:
    return StandardAcl(
        resource_type=kind,
        resource_name=CLUSTER_NAME if kind == ResourceType.CLUSTER else "t",
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def check_creation(facts: ReleaseFacts, *, every_level: bool = True) -> Outcome:
    """Compare the grids; without `every_level`, hosts at the lowest and newest level only."""
    hosts, codes = host_grid(), code_grid()
    acls = [*hosts, *codes]
    assert not any(map(broker_check, acls))
    valid = [place for place, acl in enumerate(acls) if filter_value(acl) is None]
    levels = [level.level for level in facts.levels if level.is_production]
    ends = [levels[0], levels[-1]]
    requests = [
        (level, part)
        for level in levels
        for places in (range(len(hosts)), range(len(hosts), len(acls)))
        if level in ends or (every_level and places.start == 0)
        for part in _batches([place for place in valid if place in places])
    ]
    invalid, results = _ask(facts.version, acls, requests)
    generation = assumed_generation(facts.version)
    alike: dict[tuple[str, str], list[tuple[int, StandardAcl]]] = defaultdict(list)
    for (level, places), answers in zip(requests, results, strict=True):
        errors = creation_errors([acls[place] for place in places], generation, level)
        for place, answer, error in zip(places, answers, errors, strict=True):
            ours = None if error is None else [error.code, error.message]
            if ours != answer:
                host = acls[place].host
                alike[_shown(answer, host), _shown(ours, host)].append((level, acls[place]))
    compared = len(invalid) + sum(map(len, results))
    notes = (f"{len(GRID_HOSTS)} hosts at {len({level for level, _ in requests})} levels, {len(codes):,} combinations",)
    differences = (*_invalid_otherwise(acls, invalid), *(_of_alike(*each) for each in alike.items()))
    return Outcome(check=CHECK, compared=compared, differences=differences, notes=notes)


def _of_alike(answers: tuple[str, str], cases: Sequence[tuple[int, StandardAcl]]) -> Difference:
    """One difference for all ACLs that get the same two answers."""
    levels = sorted({level for level, _ in cases})
    hosts = list(dict.fromkeys(acl.host for _, acl in cases))
    subject = (
        f"{len(cases):,} ACLs at the levels {levels[0]} to {levels[-1]} ({len(levels)}), {len(hosts)} hosts such as "
        f"{', '.join(map(repr, hosts[:_EXAMPLES]))}; the first: {cases[0][1]}"
    )
    return Difference(subject=subject, kafka=answers[0], aclog=answers[1])


def _batches(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[begin : begin + _BATCH] for begin in range(0, len(places), _BATCH))


def _ask(
    version: str, acls: Sequence[StandardAcl], requests: Sequence[tuple[int, Sequence[int]]]
) -> tuple[list[str | None], list[list[list[object] | None]]]:
    rows = [
        [
            acl.resource_type,
            acl.resource_name,
            acl.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        ]
        for acl in acls
    ]
    asked = {"acls": rows, "requests": [{"level": level, "places": list(places)} for level, places in requests]}
    done = run_tool("aclog.AclCreation", version=version, stdin=json.dumps(asked), timeout=600)
    if done.exit_code:
        raise ReleaseFactsError(f"AclCreation on Kafka {version}: {done.err[-4000:]}")
    reply = json.loads(done.out)
    return reply["invalid"], reply["results"]


def _invalid_otherwise(acls: Sequence[StandardAcl], invalid: Sequence[str | None]) -> Iterator[Difference]:
    """What only a filter may hold."""
    for acl, theirs in zip(acls, invalid, strict=True):
        if (ours := filter_value(acl)) != theirs:
            yield Difference(subject=f"a request with {acl}", kafka=theirs or "valid", aclog=ours or "valid")


def _shown(answer: Sequence[object] | None, host: str) -> str:
    if answer is None:
        return "created"
    text = f"{answer[0]} {answer[1]}"
    return text.replace(f"'{host}'", "'<host>'").replace(f"[{host}]", "[<host>]")
