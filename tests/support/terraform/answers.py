"""What aclog makes of expressions and repositories, in the words of the judge."""

import hashlib
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.rule import DirectoryTree, LocatedRule, ReadContext, SourceFile
from aclog.sources.formats.terraform import claims, read
from aclog.sources.formats.terraform.evaluation import NoNames, Scope, evaluate
from aclog.sources.formats.terraform.file_functions import FUNCTIONS
from aclog.sources.formats.terraform.functions import json_text
from aclog.sources.formats.terraform.hcl import read_expression
from aclog.sources.formats.terraform.values import Kind, Type, first_unknown

RULE_KEYS = (
    "resourceType",
    "resourceName",
    "patternType",
    "principal",
    "host",
    "operation",
    "permissionType",
    "file",
    "line",
)


def answer(expression: str) -> dict[str, object]:
    """Return type and value of an expression, or that there is none."""
    try:
        value = evaluate(read_expression(expression, "test", 1), Scope("test", NoNames(), FUNCTIONS))
    except ConfigError:
        return {"error": True}
    if first_unknown(value) is not None:
        return {"unknown": True}
    return {"type": _type(value.type), "value": json.loads(json_text(value), parse_float=Decimal)}


def recorded(line: str) -> dict[str, object]:
    """Return an answer of the judge as `answer` gives ours."""
    row = json.loads(line, parse_float=Decimal)
    if "error" in row:
        return {"error": True}
    if row.get("unknown"):
        return {"unknown": True}
    return {"type": row["type"], "value": row.get("value")}


def _type(kind: Type) -> object:
    """Return a type as cty writes it in JSON."""
    if kind.kind is Kind.DYNAMIC:
        return "dynamic"
    if kind.is_primitive:
        return kind.kind.value
    if kind.kind is Kind.TUPLE:
        return ["tuple", [_type(each) for each in kind.elements]]
    if kind.kind is Kind.OBJECT:
        return ["object", {name: _type(each) for name, each in kind.attributes.items()}]
    return [kind.kind.value, _type(kind.item)]


def read_directory(directory: Path) -> list[tuple[object, ...]]:
    """Return the rules of a directory, each with its file and line, sorted. Raises ConfigError: as `--acls` does."""
    tree = DirectoryTree(str(directory))
    files = [file for file in (SourceFile(tree, path) for path in tree.paths()) if claims(file)]
    return rows(read(files, ReadContext(tree=tree)), directory)


def rows(rules: Iterable[LocatedRule], directory: Path) -> list[tuple[object, ...]]:
    """Return rules as rows of RULE_KEYS, sorted; files are named from the directory."""
    result: list[tuple[object, ...]] = []
    for rule in rules:
        acl, origin = rule.acl, rule.origin
        result.append(
            (
                ResourceType(acl.resource_type).name,
                acl.resource_name,
                PatternType(acl.pattern_type).name,
                acl.principal,
                acl.host,
                AclOperation(acl.operation).name,
                AclPermissionType(acl.permission_type).name,
                Path(origin.file).relative_to(directory).as_posix(),
                origin.line,
            )
        )
    return sorted(result, key=repr)


def judged(verdict: dict[str, object]) -> list[tuple[object, ...]] | None:
    """Return the rules that the judge tells, as `rows` gives ours; None: there are none, as something is wrong."""
    rules = verdict["rules"]
    if "error" in verdict or not isinstance(rules, list):
        return None
    return sorted((tuple(rule[key] for key in RULE_KEYS) for rule in rules), key=repr)


def digest(rules: list[tuple[object, ...]] | None) -> str:
    """Return a short word for rules, to record; `refused` for none."""
    if rules is None:
        return "refused"
    text = json.dumps(rules, ensure_ascii=False)
    return f"{len(rules)} rules, {hashlib.sha256(text.encode()).hexdigest()[:16]}"
