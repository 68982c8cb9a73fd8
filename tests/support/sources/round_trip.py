"""Rules exported as files of another tool, and read back."""

import json
from pathlib import Path

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.control import refusal
from aclog.cli.flags.common import ExportFormat
from aclog.sources.formats.format import AclsFormat
from tests.support.cli.command import aclog
from tests.support.sources.random_estates import random_estate, random_rules

_NAMES = {AclsFormat.TERRAFORM: "acls.tf", AclsFormat.KSM: "acls.csv", AclsFormat.KAFKA_ACLS: "acls.txt"}


def round_trip(form: AclsFormat, seed: int, directory: Path) -> int:
    """Export a random estate; what is read back decides the same and lists the same. Return its number of rules."""
    rules = random_estate(form, seed)
    estate, exported = directory / f"{form}-{seed}.jsonl", directory / f"{form}-{seed}" / _NAMES.get(form, "acls.yaml")
    exported.parent.mkdir()
    estate.write_text("".join(map(json_line, rules)))
    aclog("export", "--acls", estate, "--format", form, "--out", exported).ok()
    aclog("check", "equal", "--acls", estate, "--to-acls", exported).ok()
    before, after = (_listed(each) for each in (estate, exported))
    assert after == before, (form, seed)
    assert len(before) == len(rules)
    return len(rules)


def _listed(path: Path) -> list[dict[str, object]]:
    """Return the rules of a file without their locations."""
    rows = map(json.loads, aclog("acls", "list", "--acls", path, "--format", "jsonl").ok().lines)
    return [{key: value for key, value in row.items() if key not in ("file", "line", "calls")} for row in rows]


def round_trip_of_state(form: ExportFormat, seed: int, directory: Path) -> int:
    """Import a random estate into a log, export that, and import it again: all three decide and list the same."""
    rules = random_rules(form, seed, refusal)
    estate, state = directory / f"{form}-{seed}.jsonl", directory / f"{form}-{seed}.state"
    first, second = directory / f"{form}-{seed}-first", directory / f"{form}-{seed}-second"
    estate.write_text("".join(map(json_line, rules)))
    aclog("import", estate, "--log", first).ok()
    aclog("export", "--log", first, "--format", form, "--out", state).ok()
    aclog("import", state, "--log", second).ok()
    aclog("check", "equal", "--acls", estate, "--to-log", second).ok()
    lists = [aclog("acls", "list", "--log", each, "--format", "jsonl").ok().out for each in (first, second)]
    assert lists[0] == lists[1], (form, seed)
    assert lists[0].count("\n") == len(rules)
    return len(rules)


def json_line(rule: StandardAcl) -> str:
    """Return a rule as a line of `--acls`."""
    fields = {
        "resourceType": ResourceType(rule.resource_type).name,
        "resourceName": rule.resource_name,
        "patternType": PatternType(rule.pattern_type).name,
        "principal": rule.principal,
        "host": rule.host,
        "operation": AclOperation(rule.operation).name,
        "permissionType": AclPermissionType(rule.permission_type).name,
    }
    return json.dumps(fields) + "\n"
