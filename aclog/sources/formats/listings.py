"""Listings of ACLs as tables and objects: of rpk, of the confluent CLI, and aclog's own as csv and table."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from aclog.authorizer.acl import FileOrigin, StandardAcl
from aclog.authorizer.codes import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.rule import LocatedRule, ReadContext, SourceFile, find_name

# A listing: the names of its columns and keys, by the fields of a rule.


_FIELDS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")


@frozen(kw_only=True)
class Listing:
    """A kind of listing."""

    titles: Mapping[str, str]
    """The field of each column of its table, by the title; empty for a column that is no part of the rule."""
    keys: Mapping[str, str]
    """The same by the key of its objects."""
    optional: frozenset[str] = frozenset()
    """Fields that a listing may lack: Confluent Cloud has no hosts."""


RPK = Listing(
    titles=MappingProxyType(
        {
            "PRINCIPAL": "principal",
            "HOST": "host",
            "RESOURCE-TYPE": "resourceType",
            "RESOURCE-NAME": "resourceName",
            "RESOURCE-PATTERN-TYPE": "patternType",
            "OPERATION": "operation",
            "PERMISSION": "permissionType",
            "ERROR": "",
        }
    ),
    keys=MappingProxyType(
        {
            "principal": "principal",
            "host": "host",
            "resource_type": "resourceType",
            "resource_name": "resourceName",
            "resource_pattern_type": "patternType",
            "operation": "operation",
            "permission": "permissionType",
        }
    ),
)
CONFLUENT = Listing(
    titles=MappingProxyType(
        {
            "Principal": "principal",
            "Permission": "permissionType",
            "Operation": "operation",
            "Host": "host",
            "Resource Type": "resourceType",
            "Resource Name": "resourceName",
            "Pattern Type": "patternType",
        }
    ),
    keys=MappingProxyType(
        {
            "principal": "principal",
            "permission": "permissionType",
            "operation": "operation",
            "host": "host",
            "resource_type": "resourceType",
            "resource_name": "resourceName",
            "pattern_type": "patternType",
        }
    ),
    optional=frozenset({"host"}),
)
OWN = Listing(
    titles=MappingProxyType(
        {
            "TYPE": "resourceType",
            "NAME": "resourceName",
            "PATTERN": "patternType",
            "PRINCIPAL": "principal",
            "HOST": "host",
            "OPERATION": "operation",
            "PERMISSION": "permissionType",
            "ID": "",
            "PLACE": "",
        }
    ),
    keys=MappingProxyType({**{name: name for name in _FIELDS}, "id": "", "place": ""}),
)


def _rule(file: SourceFile, line: int, listing: Listing, fields: Mapping[str, str]) -> LocatedRule:
    """Return the rule of a row. Raises ConfigError: a field is missing or unknown, or may be cut or a symbol."""
    texts = dict(fields)
    for name in _FIELDS:
        if name in texts:
            continue
        if name not in listing.optional:
            raise file.error(line, f"the listing has no {name}")
        texts[name] = WILDCARD
    for name in ("principal", "host", "resourceName"):
        if "${" in texts[name]:
            raise file.error(line, f"{name} {texts[name][:60]!r} may be known after apply only: list as jsonl instead")
    acl = StandardAcl(
        resource_type=_code(file, line, ResourceType, texts["resourceType"]),
        resource_name=texts["resourceName"],
        pattern_type=_code(file, line, PatternType, texts["patternType"]),
        principal=texts["principal"],
        host=texts["host"],
        operation=_code(file, line, AclOperation, texts["operation"]),
        permission_type=_code(file, line, AclPermissionType, texts["permissionType"]),
    )
    return LocatedRule(acl=acl, origin=FileOrigin(file=file.name, line=line))


def _code(
    file: SourceFile,
    line: int,
    kind: type[ResourceType] | type[PatternType] | type[AclOperation] | type[AclPermissionType],
    name: str,
) -> int:
    member = find_name(kind, name.replace("-", "_"))
    if member is None:
        raise file.error(line, f"{name[:40]!r} is not one of {', '.join(kind.__members__)}")
    return int(member)


# Tables whose columns begin where their titles do (rpk, aclog).


_CUT = "\N{HORIZONTAL ELLIPSIS}"
_SPACED = re.compile(r"\S+(?: \S+)*")


def _titles(line: str) -> list[tuple[str, int]]:
    """Return the titles of a head, which are two blanks apart, and where each begins."""
    return [(match[0], match.start()) for match in _SPACED.finditer(line)]


def _is_head(line: str, listing: Listing) -> bool:
    titles = [title for title, _ in _titles(line)]
    fields = {listing.titles.get(title, "?") for title in titles}
    return "?" not in fields and set(_FIELDS) - listing.optional <= fields and len(set(titles)) == len(titles)


def _head(file: SourceFile, listing: Listing) -> int | None:
    """Return the number of the first line that is not blank, from 0, if it is the head of such a table."""
    lines = file.text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    return first if first is not None and _is_head(lines[first].rstrip("\r"), listing) else None


def _aligned_rules(file: SourceFile, listing: Listing) -> Iterator[LocatedRule]:
    head = _head(file, listing)
    if head is None:
        raise file.error(1, f"expected a head with {', '.join(title for title in listing.titles)}")
    lines = [line.rstrip("\r") for line in file.text.split("\n")]
    columns = _titles(lines[head])
    for number, line in enumerate(lines[head + 1 :], head + 2):
        if not line.strip():
            continue
        if _CUT in line:
            raise file.error(number, f"a value that is cut ({_CUT}): list in another form, such as jsonl")
        fields = {}
        ends = [*(start for _, start in columns[1:]), len(line)]
        for (title, start), end in zip(columns, ends, strict=True):
            cell = line[start:end]
            is_last = (title, start) == columns[-1]
            if not is_last and len(line) > end and not cell.endswith("  "):
                raise file.error(number, f"the column {title} runs into the next one: list in another form")
            fields[listing.titles[title]] = cell.rstrip(" ")
        fields.pop("", None)
        yield _rule(file, number, listing, fields)


# Tables whose columns are separated by bars (the confluent CLI).


def _barred(line: str) -> list[str]:
    return [cell.strip(" ") for cell in line.split("|")]


def _barred_head(file: SourceFile) -> int | None:
    lines = file.text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return None
    fields = [CONFLUENT.titles.get(title, "?") for title in _barred(lines[first].rstrip("\r"))]
    is_head = "?" not in fields and set(_FIELDS) - CONFLUENT.optional <= set(fields)
    return first if is_head else None


def _barred_rules(file: SourceFile) -> Iterator[LocatedRule]:
    head = _barred_head(file)
    if head is None:
        raise file.error(1, f"expected a head with {', '.join(CONFLUENT.titles)}")
    lines = [line.rstrip("\r") for line in file.text.split("\n")]
    titles = _barred(lines[head])
    for number, line in enumerate(lines[head + 1 :], head + 2):
        if not line.strip(" -+|"):
            continue
        cells = _barred(line)
        if len(cells) != len(titles):
            raise file.error(
                number, f"{len(cells)} columns: expected {len(titles)}; list with -o json if a name has a |"
            )
        yield _rule(file, number, CONFLUENT, dict(zip((CONFLUENT.titles[each] for each in titles), cells, strict=True)))


# Objects of JSON (rpk --format json, confluent -o json).


def _objects(file: SourceFile) -> list[Mapping[str, object]] | None:
    """Return the objects of a listing in JSON; None: it is not one."""
    if file.content[:3].lstrip(b"\xef\xbb\xbf \r\n\t")[:1] not in (b"[", b"{", b""):
        return None
    try:
        value = json.loads(file.text)
    except (ValueError, RecursionError):
        return None
    items = value.get("matches") if isinstance(value, dict) else value
    return items if isinstance(items, list) and all(isinstance(item, dict) for item in items) else None


def _claims_objects(file: SourceFile, listing: Listing) -> bool:
    if not file.has_suffix(".json", ".txt") and "." in file.base_name:
        return False
    items = _objects(file)
    needed = {key for key, name in listing.keys.items() if name and name not in listing.optional}
    return bool(items) and all(needed <= item.keys() <= listing.keys.keys() for item in items or ())


def _object_rules(file: SourceFile, items: Sequence[Mapping[str, object]], listing: Listing) -> Iterator[LocatedRule]:
    at = -1
    for number, item in enumerate(items, 1):
        fields = {}
        for key, value in item.items():
            name = listing.keys.get(key)
            if name is None or not isinstance(value, str):
                raise ConfigError(f"{file.name}: ACL {number}: {key[:40]!r} is unknown, or no text")
            fields[name] = value
        fields.pop("", None)
        at = file.text.find('"principal"', at + 1)  # which each has once as a key
        yield _rule(file, file.line_at(max(at, 0)), listing, fields)


# The listings as formats.


_TEXTS = (".txt", ".log", ".out", ".acl", ".acls", ".list", ".lst", ".table")


def _may_be_table(file: SourceFile) -> bool:
    return (file.has_suffix(*_TEXTS) or "." not in file.base_name) and b"\0" not in file.content[:1024]


def claims_rpk(file: SourceFile) -> bool:
    """Return whether a file is a listing of rpk. Raises OSError, ConfigError: it cannot be read."""
    if b"RESOURCE-PATTERN-TYPE" in file.content:
        return _may_be_table(file) and _head(file, RPK) is not None
    return b"resource_pattern_type" in file.content and _claims_objects(file, RPK)


def read_rpk(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of listings by `rpk security acl list`, as a table or `--format json`. Raises ConfigError."""
    for file in files:
        items = _objects(file)
        yield from _aligned_rules(file, RPK) if items is None else _object_rules(file, items, RPK)


def claims_confluent(file: SourceFile) -> bool:
    """Return whether a file is a listing of the confluent CLI. Raises OSError, ConfigError: it cannot be read."""
    if b"Resource Type" in file.content:
        return _may_be_table(file) and _barred_head(file) is not None
    return b"pattern_type" in file.content and _claims_objects(file, CONFLUENT)


def read_confluent(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of listings by `confluent kafka acl list`, as a table or `-o json`. Raises ConfigError."""
    for file in files:
        items = _objects(file)
        yield from _barred_rules(file) if items is None else _object_rules(file, items, CONFLUENT)


def claims_table(file: SourceFile) -> bool:
    """Return whether a file is a table of `aclog acls list`. Raises OSError, ConfigError: it cannot be read."""
    return b"PERMISSION" in file.content and _may_be_table(file) and _head(file, OWN) is not None


def read_table(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of tables. Raises ConfigError: a value is cut, or unknown."""
    for file in files:
        yield from _aligned_rules(file, OWN)


_UNSEEN_PREFIX = re.compile(r"((?:\A|[;\t\r\n])[^=+\-@'\w]*)'(?=[=+\-@\uff1d\uff0b\uff0d\uff20'])")


def claims_csv(file: SourceFile) -> bool:
    """Return whether a file is the csv of `aclog acls list`. Raises OSError, ConfigError: it cannot be read."""
    if not file.has_suffix(".csv", ".txt") and "." in file.base_name:
        return False
    first = file.content[:256].removeprefix(b"\xef\xbb\xbf").split(b"\n")[0].rstrip(b"\r").decode(errors="replace")
    return set(_FIELDS) <= set(first.split(","))


def read_csv(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of csv. Raises ConfigError: a column is missing, or a value unknown."""
    for file in files:
        reader = csv.reader(io.StringIO(file.text, newline=""))
        head = next(reader, [])
        unknown = [name for name in head if name not in OWN.keys]
        if unknown or not head:
            raise file.error(1, f"the column {unknown[0][:40]!r} is unknown" if unknown else "expected a head")
        line = reader.line_num
        for cells in reader:
            number, line = line + 1, reader.line_num
            if not cells:
                continue
            if len(cells) != len(head):
                raise file.error(number, f"{len(cells)} cells: expected {len(head)}")
            fields = {OWN.keys[name]: _uncovered(cell) for name, cell in zip(head, cells, strict=True)}
            fields.pop("", None)
            yield _rule(file, number, OWN, fields)


def _uncovered(cell: str) -> str:
    """Return a cell without the apostrophes that keep spreadsheets from reading a formula (terminal.tables)."""
    if cell.startswith(("'\t", "'\r", "'\n")):
        cell = cell[1:]
    return _UNSEEN_PREFIX.sub(r"\1", cell)
