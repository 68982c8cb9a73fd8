"""What an authorizer log says of rules, by nested loops: nothing here is aclog's."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import field, frozen

from tests.support.kafka.jvm import run_tool

_LINE = re.compile(
    r"\[(.{23})\] \w+ Principal = (\S+) is (Allowed|Denied) operation = (\S+) from host = (\S+) on resource = "
    r"(\w+):LITERAL:(\S+) for request = \S+ with resourceRefCount = \d+ based on rule (.*) "
    r"\(kafka\.authorizer\.logger\)"
)
_RECORD = re.compile(r"CreateTime: (\d+).*payload: (\{.*\})")
_CODES = {
    "resourceType": {2: "TOPIC", 3: "GROUP", 4: "CLUSTER"},
    "patternType": {3: "LITERAL", 4: "PREFIXED"},
    "operation": {2: "ALL", 3: "READ", 4: "WRITE", 8: "DESCRIBE"},
    "permissionType": {2: "DENY", 3: "ALLOW"},
}
_IMPLIED = {"DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"}, "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"}}

Rule = Mapping[str, object]


@frozen
class Line:
    """An access as Kafka logged it; the time in ms since 1970."""

    time: int
    principal: str
    host: str
    operation: str
    resource_type: str
    name: str
    allowed: bool
    super_user: bool


def lines_of(logs: Iterable[Path]) -> list[Line]:
    """All lines of an authorizer log's files."""
    found = []
    for path in logs:
        for text in path.read_text().splitlines():
            parts = _LINE.fullmatch(text)
            assert parts, text
            time, principal, answer, operation, host, kind, name, rule = parts.groups()
            at = datetime.strptime(time, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
            asked = principal, host, operation, kind.upper(), name
            found.append(Line(round(at.timestamp() * 1000), *asked, answer == "Allowed", rule == "SuperUser"))
    return found


def rules_of(segments: Sequence[Path]) -> list[Rule]:
    """Every rule there has been, with `from` and `to` in ms since 1970, as kafka-dump-log prints the records."""
    tool = "org.apache.kafka.tools.DumpLogSegments"
    told = run_tool(tool, "--cluster-metadata-decoder", "--files", ",".join(map(str, segments))).out
    rules: dict[str, dict[str, object]] = {}
    for line in told.splitlines():
        if found := _RECORD.search(line):
            time, record = int(found[1]), json.loads(found[2])
            data = record["data"]
            if record["type"] == "ACCESS_CONTROL_ENTRY_RECORD":
                named = {key: names[data[key]] for key, names in _CODES.items()}
                rules[data["id"]] = {**data, **named, "from": time, "to": None}
            elif record["type"] == "REMOVE_ACCESS_CONTROL_ENTRY_RECORD":
                rules[data["id"]]["to"] = time
    return list(rules.values())


@frozen
class Judged:
    """What the lines say: by id how often a rule matched and was needed; and decisions that Kafka made otherwise."""

    matched: Counter[str] = field(factory=Counter)
    needed: Counter[str] = field(factory=Counter)
    denied_now: Counter[tuple[str, ...]] = field(factory=Counter)
    """Accesses that the rules at the end deny."""
    otherwise: int = 0


def judge(lines: Sequence[Line], rules: Sequence[Rule]) -> Judged:
    """Decide each line by the rules of its time, and again without each rule that matches."""
    found, otherwise = Judged(), 0
    now = [rule for rule in rules if rule["to"] is None]
    by_name: dict[tuple[str, ...], list[Rule]] = defaultdict(list)
    for line in lines:
        if line.super_user:
            continue
        asked = (line.principal, line.host, line.operation, line.resource_type, line.name)
        if asked not in by_name:
            by_name[asked] = [rule for rule in rules if _matches(rule, line)]
        then = [r for r in by_name[asked] if r["from"] <= line.time and (r["to"] is None or line.time < r["to"])]
        decision = _allows(then)
        otherwise += decision is not line.allowed
        for rule in then:
            found.matched[rule["id"]] += 1
            found.needed[rule["id"]] += _allows([other for other in then if other is not rule]) is not decision
        if not _allows([rule for rule in now if rule in by_name[asked]]):
            found.denied_now[asked] += 1
    return Judged(found.matched, found.needed, found.denied_now, otherwise)


def _matches(rule: Rule, line: Line) -> bool:
    name = str(rule["resourceName"])
    covers = line.name.startswith(name) if rule["patternType"] == "PREFIXED" else name in (line.name, "*")
    for_it = rule["principal"] in (line.principal, "User:*") and rule["host"] in (line.host, "*")
    if rule["resourceType"] != line.resource_type or not covers or not for_it:
        return False
    if rule["operation"] in (line.operation, "ALL"):
        return True
    return rule["permissionType"] == "ALLOW" and rule["operation"] in _IMPLIED.get(line.operation, ())


def _allows(rules: Sequence[Rule]) -> bool:
    kinds = {rule["permissionType"] for rule in rules}
    return kinds == {"ALLOW"}
