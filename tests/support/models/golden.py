"""The golden sets: what the real StandardAuthorizer of Kafka 4.3.1 answered, 57 estates and 200,000 requests."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

from aclog.authorizer.acl import StandardAcl, host_address
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType

ROOT = Path(__file__).parents[2] / "data" / "golden"
NUMBERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir())
"""The names of the estates: 000, 001, ..."""
_OPERATIONS = dict(AclOperation.__members__)
_RESOURCE_TYPES = dict(ResourceType.__members__)


@frozen(kw_only=True)
class GoldenRequest:
    """`resource_name` is None where authorizeByResourceType is asked; `host` is in Java's form."""

    principal: str
    host: str
    operation: int
    resource_type: int
    resource_name: str | None
    api: int
    reference_count: int


@frozen(kw_only=True)
class GoldenAnswer:
    """`letter`: A allowed, D denied, E Kafka throws, H Kafka never returns; `rule` its text, or the exception's."""

    letter: str
    rule: str


@frozen(kw_only=True)
class GoldenEstate:
    number: str
    name: str
    super_users: str | None
    allow_everyone: str | None
    acls: tuple[StandardAcl, ...]
    requests: tuple[GoldenRequest, ...]
    answers: tuple[GoldenAnswer, ...]


def load(number: str) -> GoldenEstate:
    """One estate with its requests and Kafka's answers to them."""
    directory = ROOT / number
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    everyone = config["allowEveryone"]
    rules = _rows(directory / "rules.jsonl.gz")
    decisions = _lines(directory / "decisions.txt.gz")
    answers = {line: GoldenAnswer(letter=line[0], rule=rules[int(line[2:])]) for line in set(decisions)}
    return GoldenEstate(
        number=number,
        name=config["name"],
        super_users=config["superUsers"],
        allow_everyone=None if everyone is None else str(everyone).lower(),
        acls=tuple(acl_of(row) for row in _rows(directory / "acls.jsonl.gz")),
        requests=tuple(_request(row) for row in _rows(directory / "requests.jsonl.gz")),
        answers=tuple(answers[line] for line in decisions),
    )


def acl_of(row: dict) -> StandardAcl:
    """The rule of one JSON object with enum names."""
    return StandardAcl(
        resource_type=ResourceType[row["resourceType"]],
        resource_name=row["resourceName"],
        pattern_type=PatternType[row["patternType"]],
        principal=row["principal"],
        host=row["host"],
        operation=AclOperation[row["operation"]],
        permission_type=AclPermissionType[row["permissionType"]],
    )


def _request(row: dict) -> GoldenRequest:
    return GoldenRequest(
        principal=row["principal"],
        host=_host(row["host"]),
        operation=_OPERATIONS[row["operation"]],
        resource_type=_RESOURCE_TYPES[row["resourceType"]],
        resource_name=None if row.get("kind") == "byResourceType" else row["resourceName"],
        api=row.get("api", 1),
        reference_count=row.get("refCount", 1),
    )


# Requests are many, and hosts few: parsing an address takes longer than the rest of its row.
_host = cache(host_address)


def _rows(path: Path) -> list[Any]:
    return json.loads(f"[{','.join(_lines(path))}]")


def _lines(path: Path) -> list[str]:
    # Not splitlines: it breaks lines at more characters than the newline.
    return [line for line in gzip.decompress(path.read_bytes()).decode("utf-8").split("\n") if line]
