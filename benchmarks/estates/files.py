"""Estates and requests as files of tab-separated lines, which both sides read; no name holds a tab here."""

from collections.abc import Iterable
from pathlib import Path

from aclog.authorizer.acl import StandardAcl
from benchmarks.estates.shape import Asked, Change


def write_rules(path: Path, rules: Iterable[StandardAcl]) -> None:
    """Write a rule a line; its number, from 0, is that of its id."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{number}\t{_fields(acl)}\n" for number, acl in enumerate(rules))


def write_changes(path: Path, changes: Iterable[Change]) -> None:
    """Write a change a line: a number alone removes the rule of this number."""
    with path.open("w", encoding="utf-8") as file:
        for number, added in changes:
            file.write(f"{number}\n" if added is None else f"{number}\t{_fields(added)}\n")


def read_changes(path: Path) -> list[Change]:
    """Return the changes of a file."""
    with path.open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [Change(int(row[0]), _rule(row) if len(row) > 1 else None) for row in rows]


def write_requests(path: Path, requests: Iterable[Asked]) -> None:
    """Write a request a line."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(
            f"{each.principal}\t{each.host}\t{int(each.operation)}\t{int(each.resource_type)}\t{each.name}\n"
            for each in requests
        )


def read_requests(path: Path) -> list[Asked]:
    """Return the requests of a file; its texts are new objects, whose hashes nobody knows."""
    with path.open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [Asked(principal, host, int(op), int(kind), name) for principal, host, op, kind, name in rows]


def _fields(acl: StandardAcl) -> str:
    codes = acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type
    return "\t".join((*(str(int(code)) for code in codes), acl.resource_name, acl.principal, acl.host))


def _rule(row: list[str]) -> StandardAcl:
    kind, pattern, operation, permission = map(int, row[1:5])
    return StandardAcl(
        resource_type=kind,
        resource_name=row[5],
        pattern_type=pattern,
        principal=row[6],
        host=row[7],
        operation=operation,
        permission_type=permission,
    )
