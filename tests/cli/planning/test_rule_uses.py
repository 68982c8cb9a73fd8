"""When rules were last used, by a log and by an index, beside a brute force over every access."""

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from aclog.analysis.policy import Policy, is_allowed
from aclog.analysis.regions import Request
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.cli.flags.accesses import AccessesFlags
from aclog.ops.unused import read_rule_uses
from aclog.planning.plan import Batching, PlaceAddress, PlaceKind, PlaceState
from aclog.planning.report import RuleUse
from aclog.targets.opening import FoundPlace
from aclog.usage.index.used import Use
from tests.support.analysis.model import IMPLIED
from tests.support.analysis.policies import image_of
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import line_of

OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)
NAMES, PRINCIPALS, HOSTS = ("a", "ab", "b"), ("User:a", "User:b"), ("10.0.0.1", "10.0.0.2")


def random_rules(random: Random) -> list[StandardAcl]:
    made = (
        acl(
            random.choice((*NAMES, "*")), random.choice((*PRINCIPALS, "User:*")), random.choice((*HOSTS, "*")),
            random.choice((*OPERATIONS, AclOperation.ALL)),
            pattern_type=random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            permission_type=random.choice((AclPermissionType.ALLOW,) * 3 + (AclPermissionType.DENY,)),
        )
        for _ in range(random.randint(1, 8))
    )  # fmt: skip
    return list(dict.fromkeys(made))


def random_access(random: Random) -> Request:
    return Request(
        principal=random.choice(PRINCIPALS), host=random.choice(HOSTS), operation=random.choice(OPERATIONS),
        resource_type=ResourceType.TOPIC, resource_name=random.choice((*NAMES, "c")),
    )  # fmt: skip


def matches(rule: StandardAcl, asked: Request) -> bool:
    allows = rule.permission_type == AclPermissionType.ALLOW
    implied = allows and IMPLIED.get(AclOperation(rule.operation)) == asked.operation
    name = rule.resource_name
    literal = rule.pattern_type == PatternType.LITERAL
    return (
        rule.principal in (asked.principal, "User:*")
        and rule.host in (asked.host, "*")
        and (rule.operation in (asked.operation, AclOperation.ALL) or implied)
        and (name in (asked.resource_name, "*") if literal else asked.resource_name.startswith(name))
    )


def use_of(times: list[tuple[int, Request]]) -> Use | None:
    return max((Use(time, each.principal, each.host) for time, each in times), default=None)


@pytest.mark.parametrize("seed", range(6))
def test_last_uses_are_those_of_every_access_tried(tmp_path, seed):
    random = Random(seed)
    rules, decided = random_rules(random), Settings(allow_everyone=seed % 3 == 0)
    accesses = [(1_700_000_000_000_000 + random.randrange(10**6) * 1_000_000, random_access(random)) for _ in range(40)]
    log = tmp_path / "accesses.jsonl"
    log.write_text("".join(map(line, accesses)))
    (tmp_path / "rules.jsonl").write_text("".join(map(line_of, rules)))
    flags = ("--allow-everyone-if-no-acl-found",) if decided.allow_everyone else ()
    aclog("usage-index", "--accesses", log, "--acls", tmp_path / "rules.jsonl", "--index", tmp_path / "index", *flags)
    now = policy(rules, decided)
    expected = {}
    for rule in rules:
        without = policy([each for each in rules if each != rule], decided)
        matched = [each for each in accesses if matches(rule, each[1])]
        needed = [each for each in accesses if is_allowed(now, each[1]) is not is_allowed(without, each[1])]
        expected[rule] = (use_of(matched), use_of(needed))
    for path in (log, tmp_path / "index"):
        found = uses(path, rules, decided)
        assert {rule: (use.matched, use.needed) for rule, use in found.items()} == expected


def policy(rules: list[StandardAcl], decided: Settings) -> Policy:
    return Policy(image_of(rules), decided)


def line(access: tuple[int, Request]) -> str:
    time, asked = access
    return json.dumps({
        "timestamp": datetime.fromtimestamp(time / 1_000_000, UTC).isoformat(), "principal": asked.principal,
        "host": asked.host, "operation": AclOperation(asked.operation).name, "resourceType": "TOPIC",
        "resourceName": asked.resource_name,
    }) + "\n"  # fmt: skip


def uses(path: Path, rules: list[StandardAcl], decided: Settings) -> dict[StandardAcl, RuleUse]:
    found = FoundPlace(
        name="place",
        address=PlaceAddress(kind=PlaceKind.LOG, value="/log"),
        identity=None,
        fingerprint=None,
        batching=Batching.ALL,
        state=PlaceState.of_image(image_of(rules)),
        settings=decided,
        settings_known=True,
        settings_by_place=False,
        check=lambda _: None,
        journal=None,
        settled=None,
        owned_by_others=frozenset(),
    )
    return dict(read_rule_uses(AccessesFlags(accesses=[str(path)]), found, rules).of_rules)
