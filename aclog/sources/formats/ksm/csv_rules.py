"""Rules as rows of CSV: Kafka Security Manager's, as Conduktor exports them, too, and Kafka UI's."""

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TypeVar

from attrs import frozen

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.enum_names import concrete, find_name
from aclog.sources.formats.ksm.csv_rows import Row, delimiter_of, rows
from aclog.sources.formats.ksm.ksm_rule import ksm_rule
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.node import Node
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.statement import Statement

_Enum = TypeVar("_Enum", bound=IntEnum)

_PATTERN_TYPE = "PatternType"
_COLUMNS = ("KafkaPrincipal", "ResourceType", _PATTERN_TYPE, "ResourceName", "Operation", "PermissionType", "Host")
_MOST_COLUMNS = 4
_HEAD = 2_000
"""Bytes of a file that tell what it is."""
_ROW = re.compile(
    r"(?im)^[^,;\t|\n]*\w:.*[,;\t|]\"?(?:topic|group|cluster|transactional_?id|delegation_?token)\"?[,;\t|]"
    r".*[,;\t|]\"?(?:allow|deny)\"?[,;\t|]"
)
"""A principal, a type of resource and a permission, in the order of every known tool."""
_KAFKA_UI = ("Principal", *_COLUMNS[1:])


def is_ksm(file: SourceFile) -> bool:
    """Return whether the first line is a header of one of the two, or a file named `.csv` has such columns or rows.

    With most of the columns, or rows without a header, it is claimed, too: `rules` refuses it.

    Raises:
        OSError, ConfigError: it cannot be read.

    """
    head = file.content[:_HEAD].decode("utf-8-sig", "replace").lstrip()
    first = head.split("\n", 1)[0]
    names = {name.strip('\r" ') for name in first.lower().replace(" ", "").split(delimiter_of(first))}
    if not names.isdisjoint(("principal", "kafkaprincipal")) and names >= {"resourcetype", "operation"}:
        return True
    if len(names & {name.lower() for name in _COLUMNS}) >= _MOST_COLUMNS:
        return True
    return file.has_suffix(".csv") and _ROW.search(head) is not None


def rules(file: SourceFile) -> Iterator[LocatedRule]:
    """Yield the rules of a file. Raises ConfigError: a header or a row that is not understood, with its line."""
    header = file.text.split("\n", 1)[0].rstrip("\r")
    delimiter = delimiter_of(header)
    if tuple(name.strip().lower() for name in header.replace(" ", "").split(delimiter)) == tuple(
        map(str.lower, _KAFKA_UI)
    ):
        yield from _kafka_ui_rules(file, delimiter)
    else:
        yield from _ksm_rules(file, delimiter)


def _ksm_rules(file: SourceFile, delimiter: str) -> Iterator[LocatedRule]:
    found = rows(file, delimiter)
    header = next(found, Row(1, ()))
    _check_header(file, header)
    for row in found:
        surplus = row.cells[len(header.cells) :]
        if len(row.cells) < len(header.cells) or any(surplus):
            raise file.error(
                row.line,
                f"{len(row.cells)} cells below a header of {len(header.cells)}: quote a cell with {delimiter!r}",
            )
        yield _Row(file, row.line, dict(zip(header.cells, row.cells, strict=False))).rule()


def _check_header(file: SourceFile, header: Row) -> None:
    """Refuse a header that lacks a column, but for PatternType: without it KSM takes every name as LITERAL."""
    missing = [name for name in _COLUMNS if name not in header.cells]
    if header.line != 1 or (missing and missing != [_PATTERN_TYPE]):
        lacks = f"{', '.join(missing)} missing in " if missing else "on another line than the first: "
        raise file.error(header.line, f"{lacks}the header: expected {','.join(_COLUMNS)}")
    for name in header.cells:
        if header.cells.count(name) > 1:
            raise file.error(1, f"the column {name[:40]!r} stands twice in the header")
        if missing and "pattern" in name.lower():
            raise file.error(1, f"a column {name[:40]!r} and none {_PATTERN_TYPE}, without which every name is literal")


def _kafka_ui_rules(file: SourceFile, delimiter: str) -> Iterator[LocatedRule]:
    """Yield the rules of rows that Kafka UI writes and reads without quotes, with spaces around cells."""
    for number, line in enumerate(file.text.split("\n")[1:], 2):
        cells = [cell.strip() for cell in line.split(delimiter)]
        if cells == [""]:
            continue
        if len(cells) != len(_KAFKA_UI) or '"' in line or not all(cells):
            raise file.error(number, f"expected {len(_KAFKA_UI)} cells, each with text and without quotes")
        yield _Row(file, number, dict(zip(_COLUMNS, cells, strict=True))).rule()


@frozen
class _Row:
    file: SourceFile
    line: int
    cells: dict[str, str]

    def rule(self) -> LocatedRule:
        """Return the rule. Raises ConfigError: a cell that Kafka would refuse to create a rule from."""
        statement = Statement(
            where=Node(file=self.file.name, line=self.line, value=None),
            resource_type=self._member("ResourceType", concrete(ResourceType)),
            name=self.cells["ResourceName"],
            pattern_type=self._member(_PATTERN_TYPE, concrete(PatternType)),
            host=self.cells["Host"],
            operation=self._member("Operation", concrete(AclOperation)),
            permission_type=self._member("PermissionType", concrete(AclPermissionType)),
        )
        return ksm_rule(statement, self.cells[_COLUMNS[0]])

    def _member(self, column: str, values: Sequence[_Enum]) -> _Enum:
        text = self.cells.get(column, PatternType.LITERAL.name)  # only PatternType may be missing
        found = find_name(values, text)
        if found is None:
            raise self._error(f"{column} {text[:40]!r} is not one of {', '.join(each.name for each in values)}")
        return found

    def _error(self, what: str) -> ConfigError:
        return self.file.error(self.line, what)
