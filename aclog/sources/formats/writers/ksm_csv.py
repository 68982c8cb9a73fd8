"""Writes the CSV of Kafka Security Manager (CsvAclParser), which can hold any rule."""

import re
from collections.abc import Iterator, Sequence

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.sources.formats.writers.grouping import sort_key
from aclog.sources.formats.writers.names import camel_name

_HEADER = "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host"
_PLAIN = re.compile(r"[\w.*:/=@-]+", re.ASCII)


def unfit(rule: StandardAcl) -> str | None:  # noqa: ARG001
    """Return None: a cell in quotes holds any text."""
    return None


def lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the header and a row for each rule."""
    yield _HEADER
    for rule in sorted(rules, key=sort_key):
        cells = (
            rule.principal,
            camel_name(ResourceType(rule.resource_type)),
            PatternType(rule.pattern_type).name,
            rule.resource_name,
            camel_name(AclOperation(rule.operation)),
            camel_name(AclPermissionType(rule.permission_type)),
            rule.host,
        )
        yield ",".join(cell if _PLAIN.fullmatch(cell) else _quoted(cell) for cell in cells)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'
