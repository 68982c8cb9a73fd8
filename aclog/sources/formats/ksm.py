"""Kafka Security Manager: its CSV (also Conduktor's) and its YAML."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import TypeVar

from attrs import evolve

from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.listings import claims_confluent
from aclog.sources.formats.listings import claims_csv as is_own_csv
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import LocatedRule, ReadContext, SourceFile, Statement, concrete, find_name, on_cluster

# Rows of CSV with their lines, as Kafka Security Manager's library (scala-csv) reads them.


_DELIMITERS = ",;\t|"
"""KSM's is a setting; it is taken from the header."""


@frozen
class Row:
    """The cells of a row, and the line that it begins on."""

    line: int
    cells: tuple[str, ...]


def delimiter_of(header: str) -> str:
    """Return the most frequent character between the names of a header."""
    return max(_DELIMITERS, key=header.count)


def rows(file: SourceFile, delimiter: str) -> Iterator[Row]:
    """Yield the rows that are not empty.

    Raises:
        ConfigError: a quote that no quote ends, or that does not enclose the whole cell; with its line.

    """
    # A cell without quotes ends at a line end of scala-csv; one of the rarer ones matches nothing here.
    cell = re.compile(
        rf'(?:"((?:[^"]|"")*)"|([^"\n\r\u2028\u2029\x85{re.escape(delimiter)}]*))({re.escape(delimiter)}|\r?\n|\r?\Z)'
    )
    text, position, line, begin = file.text, 0, 1, 1
    cells: list[str] = []
    while position < len(text) or cells:
        match = cell.match(text, position)
        if match is None:
            raise file.error(
                line, f"not CSV: a cell is either wholly in quotes or has none, from {_excerpt(text, position)}"
            )
        quoted, plain, end = match.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        line += text.count("\n", position, match.end())
        position = match.end()
        if end == delimiter:
            continue
        if cells != [""] or quoted is not None:
            yield Row(begin, tuple(cells))
        cells, begin = [], line


def _excerpt(text: str, position: int) -> str:
    return repr(text[position : position + 40].split("\n", 1)[0])


# A rule of Kafka Security Manager.


def ksm_rule(statement: Statement, principal: str) -> LocatedRule:
    """Return the rule of a statement; also of CLUSTER `*`, which its `Produce` makes, and only ZooKeeper accepts.

    Raises:
        ConfigError: any other rule that CreateAcls would refuse, with file and line.

    """
    if (statement.resource_type, statement.name) != (ResourceType.CLUSTER, WILDCARD):
        return statement.rule(principal)
    rule = evolve(statement, name=CLUSTER_NAME).rule(principal)
    return evolve(rule, acl=evolve(rule.acl, resource_name=WILDCARD))


# Rules as rows of CSV: Kafka Security Manager's, which Conduktor also exports, and Kafka UI's.


_Enum = TypeVar("_Enum", bound=IntEnum)

_PATTERN_TYPE = "PatternType"
COLUMNS = ("KafkaPrincipal", "ResourceType", _PATTERN_TYPE, "ResourceName", "Operation", "PermissionType", "Host")
_MOST_COLUMNS = 4
_HEAD = 2_000
"""Bytes of a file from which its format is detected."""
_ROW = re.compile(
    r"(?im)^[^,;\t|\n]*\w:.*[,;\t|]\"?(?:topic|group|cluster|transactional_?id|delegation_?token)\"?[,;\t|]"
    r".*[,;\t|]\"?(?:allow|deny)\"?[,;\t|]"
)
"""A principal, a type of resource and a permission, in the order of every known tool."""
KAFKA_UI = ("Principal", *COLUMNS[1:])


def is_ksm_csv(file: SourceFile) -> bool:
    """Return whether the first line is a header of one of the two, or a file named `.csv` has such columns or rows.

    A file with most of the columns, or rows without a header, is also claimed: `rules` refuses it.

    Raises:
        OSError, ConfigError: it cannot be read.

    """
    if claims_confluent(file) or is_own_csv(file):
        return False  # listings with columns of nearly the same names
    head = file.content[:_HEAD].decode("utf-8-sig", "replace").lstrip()
    first = head.split("\n", 1)[0]
    names = {name.strip('\r" ') for name in first.lower().replace(" ", "").split(delimiter_of(first))}
    if not names.isdisjoint(("principal", "kafkaprincipal")) and names >= {"resourcetype", "operation"}:
        return True
    if len(names & {name.lower() for name in COLUMNS}) >= _MOST_COLUMNS:
        return True
    return file.has_suffix(".csv") and _ROW.search(head) is not None


def csv_rules(file: SourceFile) -> Iterator[LocatedRule]:
    """Yield the rules of a file. Raises ConfigError: a header or a row that is not understood, with its line."""
    header = file.text.split("\n", 1)[0].rstrip("\r")
    delimiter = delimiter_of(header)
    if tuple(name.strip().lower() for name in header.replace(" ", "").split(delimiter)) == tuple(
        map(str.lower, KAFKA_UI)
    ):
        yield from _kafka_ui_rules(file, delimiter)
    else:
        yield from _ksm_rules(file, delimiter)


def _ksm_rules(file: SourceFile, delimiter: str) -> Iterator[LocatedRule]:
    lines = rows(file, delimiter)
    header = next(lines, Row(1, ()))
    _check_header(file, header)
    for row in lines:
        surplus = row.cells[len(header.cells) :]
        if len(row.cells) < len(header.cells) or any(surplus):
            raise file.error(
                row.line,
                f"{len(row.cells)} cells below a header of {len(header.cells)}: quote a cell with {delimiter!r}",
            )
        yield _Row(file, row.line, dict(zip(header.cells, row.cells, strict=False))).rule()


def _check_header(file: SourceFile, header: Row) -> None:
    """Refuse a header that lacks a column, except PatternType: without it KSM takes every name as LITERAL."""
    missing = [name for name in COLUMNS if name not in header.cells]
    if header.line != 1 or (missing and missing != [_PATTERN_TYPE]):
        lacks = f"{', '.join(missing)} missing in " if missing else "on another line than the first: "
        raise file.error(header.line, f"{lacks}the header: expected {','.join(COLUMNS)}")
    for name in header.cells:
        if header.cells.count(name) > 1:
            raise file.error(1, f"duplicate column {name[:40]!r} in the header")
        if missing and "pattern" in name.lower():
            raise file.error(1, f"a column {name[:40]!r} and none {_PATTERN_TYPE}, without which every name is literal")


def _kafka_ui_rules(file: SourceFile, delimiter: str) -> Iterator[LocatedRule]:
    """Yield the rules of rows that Kafka UI writes and reads without quotes, with spaces around cells."""
    for number, line in enumerate(file.text.split("\n")[1:], 2):
        cells = [cell.strip() for cell in line.split(delimiter)]
        if cells == [""]:
            continue
        if len(cells) != len(KAFKA_UI) or '"' in line or not all(cells):
            raise file.error(number, f"expected {len(KAFKA_UI)} cells, each with text and without quotes")
        yield _Row(file, number, dict(zip(COLUMNS, cells, strict=True))).rule()


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
        return ksm_rule(statement, self.cells[COLUMNS[0]])

    def _member(self, column: str, values: Sequence[_Enum]) -> _Enum:
        text = self.cells.get(column, PatternType.LITERAL.name)  # only PatternType may be missing
        member = find_name(values, text)
        if member is None:
            raise self._error(f"{column} {text[:40]!r} is not one of {', '.join(each.name for each in values)}")
        return member

    def _error(self, what: str) -> ConfigError:
        return self.file.error(self.line, what)


# Rules as Kafka Security Manager's YAML: users, their resources by name, and for each a list of operations.


_TYPES: Mapping[str, ResourceType] = MappingProxyType(
    {
        "topics": ResourceType.TOPIC,
        "groups": ResourceType.GROUP,
        "transactional_ids": ResourceType.TRANSACTIONAL_ID,
        "clusters": ResourceType.CLUSTER,
    }
)
_OPERATIONS = {
    value.name.replace("_", "").lower(): value
    for value in concrete(AclOperation)
    if value <= AclOperation.IDEMPOTENT_WRITE  # KSM supports no later ones
}
MARKS = (b"user", b"topics", b"groups", b"transactional", b"clusters")
"""One of them is in every file of KSM, unless everything is misspelled."""
_PERMISSIONS = {value.name.lower(): value for value in concrete(AclPermissionType)}
_HELPERS = MappingProxyType(
    {
        "consume": (AclOperation.DESCRIBE, AclOperation.READ),
        "produce": (AclOperation.DESCRIBE, AclOperation.CREATE, AclOperation.WRITE),
    }
)
"""Their meaning on a topic; `produce` also creates topics anywhere."""
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))
"""The characters that Java's trim removes."""


_MANY_KEYS = 4
"""A file of KSM has one key."""


def is_ksm_yaml(documents: Sequence[Node]) -> bool:
    """Return whether some user has resources by name, which users of other tools do not have.

    With slips in keys as well, if what they hold are operations: `rules` refuses them. A document with many keys is of
    another tool, such as values of Helm.
    """
    own = (each for each in map(_members, documents) if "users" in each or len(each) < _MANY_KEYS)
    users = (value for members in own for value in members.values())
    return any(_has_resources(user) for each in users for user in _members(each).values())


def _has_resources(user: Node) -> bool:
    """Return whether a list stands under a name, or operations do, of which one of the two may be a slip."""
    named = ((key, entries) for key, value in _members(user).items() for entries in _members(value).values())
    return any(
        (key in _TYPES) + isinstance(entries.value, tuple) + _is_operations(entries) > 1 for key, entries in named
    )


def _is_operations(entries: Node) -> bool:
    items = entries.value if isinstance(entries.value, tuple) else (entries,)
    return bool(items) and all(
        isinstance(each.value, str) and each.raw.split(",")[0].lower() in {*_OPERATIONS, *_HELPERS} for each in items
    )


def _members(node: Node) -> Mapping[str, Node]:
    return node.value if isinstance(node.value, dict) else {}


def yaml_rules(file: SourceFile) -> Iterator[LocatedRule]:
    """Yield the rules of a file. Raises ConfigError: input that KSM refuses, or silently skips; with its line."""
    documents = file.documents
    if len(documents) != 1:
        raise file.error(
            documents[1].line if documents else 1, f"{len(documents)} YAML documents: expected one, with users"
        )
    root = documents[0]
    root.check_keys(("users",), "a file of Kafka Security Manager")
    for name, user in root.required("users").mapping("users").items():
        user.check_keys(tuple(_TYPES), f"user {name[:60]!r}")
        for key, resources in user.mapping().items():
            if not resources.is_null:
                yield from _of_resources(f"User:{name}", _TYPES[key], resources)


def _of_resources(principal: str, resource_type: ResourceType, resources: Node) -> Iterator[LocatedRule]:
    for key, entries in resources.mapping("resources").items():
        name = key.strip(_BLANKS)
        prefix = name.endswith("*") and name != "*"  # a star alone is the name of all resources
        for entry in entries.items(f"{key[:60]!r}"):
            base = Statement(
                where=entry,
                resource_type=resource_type,
                name=name[:-1] if prefix else name,
                operation=AclOperation.ALL,
                pattern_type=PatternType.PREFIXED if prefix else PatternType.LITERAL,
            )
            for statement in _statements(base):
                yield ksm_rule(statement, principal)


def _statements(base: Statement) -> Iterator[Statement]:
    """Yield the operations of `Read`, `Consume`, `Produce` or `Write,Deny,10.0.0.1` on a resource."""
    node, on_topic = base.where, base.resource_type == ResourceType.TOPIC
    parts = node.text("an operation").split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()  # as Java's split does
    operation = parts[0].lower()
    if len(parts) == 1 and on_topic and operation in _HELPERS:
        yield from (evolve(base, operation=each) for each in _HELPERS[operation])
        if operation == "produce":
            yield evolve(on_cluster(node, AclOperation.CREATE), name=WILDCARD)
        return
    if operation not in _OPERATIONS:
        names = ", ".join([*_OPERATIONS, *(_HELPERS if on_topic else ())])
        raise node.error(f"the operation {parts[0][:40]!r} is not one of {names}, in any case")
    if len(parts) == 1:
        yield evolve(base, operation=_OPERATIONS[operation])
        return
    permission = _PERMISSIONS.get(parts[1].lower())
    if len(parts) != 3 or permission is None:
        raise node.error(f"{node.raw[:60]!r}: expected OPERATION or OPERATION,Allow,HOST or OPERATION,Deny,HOST")
    yield evolve(base, operation=_OPERATIONS[operation], permission_type=permission, host=parts[2])


# Which files are Kafka Security Manager's: CSV by its header, YAML by the resources of its users.


def claims(file: SourceFile) -> bool:
    """Return whether a file is one of these.

    Raises:
        ConfigError: it may be and is not YAML; OSError: it cannot be read.

    """
    if _is_yaml(file):
        return file.mentions(*MARKS) and is_ksm_yaml(file.documents)
    return is_ksm_csv(file)


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of the files. KSM takes any file that is not named as YAML for CSV.

    Raises:
        ConfigError: a row or an entry that KSM refuses, or would leave out; with its file and line.
        OSError: a file cannot be read.

    """
    for file in files:
        nameless = "." not in file.base_name  # such as stdin
        is_yaml = _is_yaml(file) or (nameless and not is_ksm_csv(file))
        yield from yaml_rules(file) if is_yaml else csv_rules(file)


def _is_yaml(file: SourceFile) -> bool:
    return file.has_suffix(".yml", ".yaml")
