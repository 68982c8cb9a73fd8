"""`aclog apply` on a real Kafka of many rules, beside one request a rule, and kafka-acls rule by rule.

All on one Kafka in one run. Its JVM compiles as in production (`-server`). What takes minutes is measured on some of
the rules and told for all; the name of its row says on how many.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from aclog.authorizer.acl import StandardAcl, object_of_rule
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.client.connection import Connection, connect
from aclog.client.requests import create_acls, delete_acls
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.protocol.session import SecurityProtocol
from aclog.targets.cluster import exactly
from benchmarks.report import Row
from tests.support.kafka.jvm import PRODUCTION, java_command
from tests.support.kafka.server import KafkaServer
from tests.support.kafka.tools import MAINS, client_properties
from tests.support.nodes.server_properties import CLUSTER_ID, Ports, server_properties

TARGET_S = 2.0
TAKES = 3
_AT_ONCE = 5_000
_SAMPLED_BY_TOOL = 10
_SAMPLED_REMOVALS = 50
ADMIN = ClientSecurity(
    security_protocol=SecurityProtocol.SASL_PLAINTEXT,
    sasl_mechanism="PLAIN",
    username="admin",
    password="admin-secret",
)
_OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)


def _rule(name: str, number: int) -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=f"{name}-{number // 4:06d}",
        pattern_type=PatternType.LITERAL,
        principal=f"User:service-{number % 997}",
        host="*",
        operation=_OPERATIONS[number % 4],
        permission_type=AclPermissionType.ALLOW,
    )


def _rules(name: str, count: int) -> list[StandardAcl]:
    return [_rule(name, number) for number in range(count)]


def run(scratch: Path, rules: int, changes: int) -> Iterator[Row]:
    """Yield rows of so many changes on a Kafka with so many other rules."""
    ports = Ports.free()
    home = scratch / "kafka"
    home.mkdir()
    server = KafkaServer(home, server_properties(ports), port=ports.broker)
    server.options = PRODUCTION
    server.format(CLUSTER_ID, "--standalone")
    with server:
        address = HostPort(host="localhost", port=ports.broker)
        asyncio.run(fill(address, _rules("topic", rules)))
        config = client_properties(scratch, "admin")
        ours = dict(_ours(scratch, f"{address}", config, changes))
        theirs = {**_one_request_a_rule(address, changes), **_by_tool(f"{address}", config)}
    for kind in ("adds", "removals"):
        request, tool = theirs[f"request {kind}"], theirs[f"tool {kind}"]
        what = f"{changes:,} {kind} beside {rules:,} rules: `aclog apply`, the whole process"
        yield Row(what=f"{what}, vs. one request a rule", ours=ours[kind], theirs=changes * request, unit="s")
        yield Row(
            what=f"{what}, vs. kafka-acls rule by rule ({_SAMPLED_BY_TOOL} measured)",
            ours=ours[kind],
            theirs=changes * tool,
            unit="s",
        )
    for kind in ("adds", "edits", "removals"):
        what = f"{changes:,} changes of {rules:,} rules, {kind}: `aclog apply`"
        yield Row(what=what, ours=ours[kind], unit="s", target=TARGET_S)
        yield Row(what=f"the plan before, {kind}: `aclog plan`", ours=ours[f"plan of {kind}"], unit="s")


async def fill(address: HostPort, acls: Sequence[StandardAcl]) -> None:
    """Add rules to a cluster."""
    async with await connect(address, ADMIN, timeout=60) as connection:
        for begin in range(0, len(acls), _AT_ONCE):
            results = await create_acls(connection, acls[begin : begin + _AT_ONCE])
            assert not any(each.error for each in results)


def _ours(scratch: Path, server: str, config: Path, changes: int) -> Iterator[tuple[str, float]]:
    """Yield the seconds of plan and apply: all are added, half of them are replaced by others, all are removed.

    An edit is two changes: the new rule is added, and the old one removed. Adding is done thrice, and the best told.
    """
    place = ("--bootstrap-server", server, "--command-config", str(config))

    def plan_and_apply(source: str, wanted: Sequence[StandardAcl]) -> tuple[float, float]:
        want, plan = scratch / "wanted.jsonl", scratch / "plan"
        want.write_text("".join(json.dumps(object_of_rule(acl)) + "\n" for acl in wanted), encoding="utf-8")
        flags = ("--want", str(want), "--journal", str(scratch / source), "--max-deletes", "100%")
        planned = _seconds(_aclog("plan", *place, *flags, "--out", str(plan)), 1)
        return planned, _seconds(_aclog("apply", str(plan), "--yes"), 0)

    added = [plan_and_apply(f"source-{number}", _rules(f"source-{number}", changes)) for number in range(TAKES)]
    edited = [*_rules("edited", changes // 2), *_rules("source-0", changes)[changes // 2 :]]
    measured = {
        "adds": (min(planned for planned, _ in added), min(applied for _, applied in added)),
        "edits": plan_and_apply("source-0", edited),
        "removals": plan_and_apply("source-0", ()),
    }
    for kind, (planned, applied) in measured.items():
        yield f"plan of {kind}", planned
        yield kind, applied


def _one_request_a_rule(address: HostPort, changes: int) -> dict[str, float]:
    """Return the seconds of a rule when each is sent by itself on one connection, as soon as the last is answered."""
    acls = _rules("one-by-one", changes)

    async def each(some: Sequence[StandardAcl], change: Callable[[Connection, StandardAcl], object]) -> float:
        async with await connect(address, ADMIN, timeout=60) as connection:
            begun = time.monotonic()
            for acl in some:
                await change(connection, acl)  # type: ignore[misc]
            return (time.monotonic() - begun) / len(some)

    return {
        "request adds": asyncio.run(each(acls, lambda connection, acl: create_acls(connection, [acl]))),
        "request removals": asyncio.run(
            each(acls[:_SAMPLED_REMOVALS], lambda connection, acl: delete_acls(connection, [exactly(acl)]))
        ),
    }


def _by_tool(server: str, config: Path) -> dict[str, float]:
    """Return the seconds of a rule by kafka-acls, a JVM each."""
    place = ("--bootstrap-server", server, "--command-config", str(config))

    def seconds(*action: str) -> float:
        begun = time.monotonic()
        for number in range(_SAMPLED_BY_TOOL):
            rule = ("--allow-principal", "User:tool", "--operation", "Read", "--topic", f"tool-{number}")
            command = java_command(MAINS["acls"], *place, *action, *rule)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return (time.monotonic() - begun) / _SAMPLED_BY_TOOL

    return {"tool adds": seconds("--add"), "tool removals": seconds("--remove", "--force")}


def _aclog(*words: str) -> list[str]:
    return [sys.executable, "-m", "aclog", *words]


def _seconds(command: Sequence[str], expected: int) -> float:
    begun = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == expected, (command, done.stdout[-500:], done.stderr)
    return time.monotonic() - begun
