"""The JSON objects of commands as typed tables: rows with one value per cell, for CSV, Arrow, data frames and SQL.

A permission, and a difference, is a region: sets of principals, operations, names and hosts. Its rows are the elements
of these sets, each with what is excluded from it. A finding has a row for each of its rules. Any other object is one
row: its nested objects become columns `a.b`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product, takewhile
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import field

from aclog.analysis.rows.report import Cell, Kind, arrow_table, pandas_frame
from aclog.analysis.rows.rule_tables import RULE_KINDS, rule_cells
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, AclPermissionType, PatternType
from aclog.authorizer.index.layout import ALL_OPERATIONS, matched_operations
from aclog.authorizer.settings import name_text
from aclog.metalog.values import frozen
from aclog.snapshots.history import Change
from aclog.terminal.columns import json_text

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Flat: TypeAlias = Mapping[str, Any]
"""A row: text, numbers, flags, null, or a list of text by column."""

ANYONE = "anyone"
"""The principal of a row about every principal that is not excluded."""
ANY_HOST = "any"
"""The host of a row about every host that is not excluded."""


# Rows of regions.


def rule_text(rule: Mapping[str, Any] | str | None) -> str:
    """Return a rule, or a reason in place of a rule, on one line."""
    if rule is None or isinstance(rule, str):
        return rule or ""
    return (
        f"{rule['permissionType']} {rule['principal']} {rule['operation']} on {rule['resourceType']} "
        f"{rule['patternType']} {rule['resourceName']!r} from {rule['host']}"
    )


def principal_rows(principals: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each principal of a set (`principals_object`), with the principals excluded from it."""
    named, left_out = _elements(principals, ANYONE)
    yield from ({"principal": each, "exceptPrincipals": left_out} for each in named)


def region_rows(region: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each principal, operation, name and host of a region."""
    hosts, except_hosts = _elements(region["hosts"], ANY_HOST)
    principals = principal_rows(region["principals"])
    for principal, operation, part, host in product(principals, region["operations"], region["names"], hosts):
        yield {
            **principal,
            "operation": operation,
            "resourceType": region["resourceType"],
            **_name_cells(part),
            "host": host,
            "exceptHosts": except_hosts,
        }


def _elements(entries: Mapping[str, Sequence[str]], every: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the elements of a set, and what is excluded from each."""
    named = entries.get("cidr", entries.get("in"))
    return (every,) if named is None else named, entries.get("except", ())


def _name_cells(part: Mapping[str, Any]) -> dict[str, Any]:
    if "literal" in part:
        return {"name": part["literal"], "patternType": PatternType.LITERAL.name, "exceptNames": ()}
    excluded = [name_text(prefix, PatternType.PREFIXED) for prefix in part["exceptPrefixes"]]
    excluded += map(name_text, part["exceptLiterals"])
    return {"name": part["prefix"], "patternType": PatternType.PREFIXED.name, "exceptNames": excluded}


def permission_rows(objects: Iterable[Mapping[str, Any]]) -> Iterator[Flat]:
    """Yield the rows of permissions (aclog.analysis.who_can), each with the rules that are about it."""
    for value in objects:
        rules, denies = _RulesOfRegion(value["rules"]), _RulesOfRegion(value["denies"])
        for row in region_rows(value):
            yield {
                **row,
                "covers": value.get("covers"),
                "legal": value.get("legal", True),
                "rules": rules.about(row),
                "denies": denies.about(row),
                "generation": value.get("generation"),
            }


_Rule: TypeAlias = tuple[int, int, str]
"""The place of a rule in its region, a mask of its operations, and its text."""


class _RulesByName:
    """Rules by name and operation, for lookups that do not read every rule."""

    def __init__(self) -> None:
        self._always: list[_Rule] = []  # reasons in place of a rule, and patterns of no kind that Kafka has
        self._by_name: dict[str, dict[str, list[_Rule]]] = {PatternType.LITERAL.name: {}, PatternType.PREFIXED.name: {}}
        self._sorted: dict[str, list[str]] = {}

    def add(self, place: int, rule: Mapping[str, Any] | str) -> None:
        """Add a rule. Not after a lookup."""
        if isinstance(rule, str) or rule["patternType"] not in self._by_name:
            self._always.append((place, ALL_OPERATIONS, rule_text(rule)))
            return
        of_name = self._by_name[rule["patternType"]].setdefault(rule["resourceName"], [])
        of_name.append((place, _operations(rule), rule_text(rule)))

    def about(self, operation: int, name: str, *, is_prefix: bool) -> list[_Rule]:
        """Return the rules about an operation on a name, or on some of the names with a prefix."""
        literal, prefixed = self._by_name[PatternType.LITERAL.name], self._by_name[PatternType.PREFIXED.name]
        of_names = [self._always, literal.get(WILDCARD, ())]
        of_names += [prefixed.get(name[:end], ()) for end in range(len(name) + (not is_prefix))]
        if is_prefix:
            of_names += [literal[each] for each in self._below(PatternType.LITERAL.name, name) if each != WILDCARD]
            of_names += [prefixed[each] for each in self._below(PatternType.PREFIXED.name, name)]
        elif name != WILDCARD:
            of_names.append(literal.get(name, ()))
        return [rule for of_name in of_names for rule in of_name if rule[1] & operation]

    def _below(self, pattern: str, prefix: str) -> Iterator[str]:
        """Yield the names of rules that begin with a prefix."""
        names = self._sorted.get(pattern)
        if names is None:
            names = self._sorted[pattern] = sorted(self._by_name[pattern])
        return takewhile(lambda each: each.startswith(prefix), islice(names, bisect_left(names, prefix), None))


class _RulesOfRegion:
    """The rules of a region, by principal: those of all principals apart from those of one."""

    def __init__(self, rules: Iterable[Mapping[str, Any] | str]) -> None:
        self._of_all = _RulesByName()
        self._of_one: dict[str, _RulesByName] = {}
        self._shared: dict[tuple[int, str, bool], list[_Rule]] = {}
        for place, rule in enumerate(rules):
            principal = "" if isinstance(rule, str) else rule["principal"]
            by_name = self._of_all
            if ":" in principal and principal != WILDCARD_PRINCIPAL:
                by_name = self._of_one.setdefault(principal, _RulesByName())
            by_name.add(place, rule)

    def about(self, row: Flat) -> list[str]:
        """Return the texts of the rules that may be about a row's principal, operation and name, in their order."""
        name, is_prefix = row["name"], row["patternType"] == PatternType.PREFIXED.name
        operation = 1 << AclOperation[row["operation"]]
        key = (operation, name, is_prefix)
        if key not in self._shared:
            self._shared[key] = self._of_all.about(operation, name, is_prefix=is_prefix)
        principal = row["principal"]
        own = self._of_one.values() if principal == ANYONE else filter(None, [self._of_one.get(principal)])
        rules = [*self._shared[key]]
        for each in own:
            rules += each.about(operation, name, is_prefix=is_prefix)
        return [text for _, _, text in sorted(rules)]


def _operations(rule: Mapping[str, Any]) -> int:
    """Return a mask of the operations that a rule is about."""
    if ":" not in rule["principal"] or rule["operation"] not in AclOperation.__members__:
        return ALL_OPERATIONS  # an ACL on which Kafka's authorizer throws, for every principal and operation
    return matched_operations(AclOperation[rule["operation"]], AclPermissionType[rule["permissionType"]])


def difference_rows(objects: Iterable[Mapping[str, Any]]) -> Iterator[Flat]:
    """Yield the rows of differences, each with what decides the example of its region."""
    for value in objects:
        for row in region_rows(value):
            yield {
                "change": value["change"],
                **row,
                "old": rule_text(value.get("old")),
                "new": rule_text(value.get("new")),
                "legal": value.get("legal", True),
                "topics": value.get("topics"),
                "accesses": value.get("accesses"),
                "generation": value.get("generation"),
            }


# Rows of other objects.


def flat_rows(objects: Iterable[Mapping[str, Any]]) -> Iterator[Flat]:
    """Yield a row for each object: nested objects as columns `a.b`, lists of anything but text as JSON."""
    return (dict(_flat(value, "")) for value in objects)


def _flat(value: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{before}{key}.")
        elif isinstance(item, list | tuple) and not all(isinstance(each, str) for each in item):
            yield f"{before}{key}", json_text(item)
        else:
            yield f"{before}{key}", item


def finding_rows(objects: Iterable[Mapping[str, Any]]) -> Iterator[Flat]:
    """Yield a row for each rule of each finding of lint; `finding` counts these from 1."""
    for number, value in enumerate(objects, 1):
        common = {"finding": number, **{key: item for key, item in value.items() if key != "rules"}}
        yield from ({**common, **rule} for rule in flat_rows(value.get("rules") or ({},)))


# Rows of changes.


def change_cells(change: Change) -> Sequence[Cell]:
    """Return the cells of a change under CHANGE_KINDS."""
    place = (change.offset, change.end_offset, change.timestamp, change.kind.value)
    return (*place, *rule_cells(change.rule), change.first_seen)


CHANGE_KINDS = {
    "offset": Kind.NUMBER,
    "endOffset": Kind.NUMBER,
    "timestamp": Kind.TIME,
    "change": Kind.TEXT,
    **RULE_KINDS,
    "firstSeen": Kind.FLAG,
}


# Tables.


@frozen(kw_only=True)
class TableForm:
    """How the objects of a command become a table."""

    kinds: Mapping[str, Kind] = field(factory=dict[str, Kind])
    """The columns that are always there, in order, with their types."""
    rows: Callable[[Iterable[Mapping[str, Any]]], Iterator[Flat]] = flat_rows


_REGION_KINDS = {
    "principal": Kind.TEXT,
    "exceptPrincipals": Kind.TEXTS,
    "operation": Kind.TEXT,
    "resourceType": Kind.TEXT,
    "name": Kind.TEXT,
    "patternType": Kind.TEXT,
    "exceptNames": Kind.TEXTS,
    "host": Kind.TEXT,
    "exceptHosts": Kind.TEXTS,
}
PLAIN = TableForm()
PERMISSIONS = TableForm(
    kinds={
        **_REGION_KINDS,
        "covers": Kind.TEXT,
        "legal": Kind.FLAG,
        "rules": Kind.TEXTS,
        "denies": Kind.TEXTS,
        "generation": Kind.TEXT,
    },
    rows=permission_rows,
)
DIFFERENCES = TableForm(
    kinds={
        "change": Kind.TEXT,
        **_REGION_KINDS,
        "old": Kind.TEXT,
        "new": Kind.TEXT,
        "legal": Kind.FLAG,
        "topics": Kind.NUMBER,
        "accesses": Kind.NUMBER,
        "generation": Kind.TEXT,
    },
    rows=difference_rows,
)
FINDINGS = TableForm(
    kinds={
        "finding": Kind.NUMBER,
        "lint": Kind.TEXT,
        "severity": Kind.TEXT,
        "resourceType": Kind.TEXT,
        "resourceName": Kind.TEXT,
        "patternType": Kind.TEXT,
        "principal": Kind.TEXT,
        "host": Kind.TEXT,
        "operation": Kind.TEXT,
        "permissionType": Kind.TEXT,
        "file": Kind.TEXT,
        "line": Kind.NUMBER,
        "offset": Kind.NUMBER,
        "timestamp": Kind.TIME,
        "lost": Kind.TEXT,
        "fix": Kind.TEXT,
    },
    rows=finding_rows,
)


@frozen(kw_only=True)
class Table:
    """Rows under typed columns."""

    kinds: Mapping[str, Kind]
    rows: Sequence[Sequence[Cell]]

    def to_arrow(self) -> "pa.Table":
        """Return this as an Arrow table. Raises ConfigError: pyarrow is not installed."""
        return arrow_table(self.kinds, self.rows)

    def to_pandas(self) -> "pd.DataFrame":
        """Return this as a data frame. Raises ConfigError: pandas is not installed."""
        return pandas_frame(self.kinds, self.rows)


def table_of(objects: Iterable[Mapping[str, Any]], form: TableForm = PLAIN) -> Table:
    """Return objects as a table; a column that the form does not name has the type of its values, else text."""
    rows = list(form.rows(objects))
    kinds = dict(form.kinds)
    for key in dict.fromkeys(key for row in rows for key in row):
        if key not in kinds:
            kinds[key] = _kind_of([value for row in rows if (value := row.get(key)) is not None])
    return Table(kinds=kinds, rows=[[_cell(row.get(key), kind) for key, kind in kinds.items()] for row in rows])


def _kind_of(values: Sequence[Any]) -> Kind:
    types = {type(value) for value in values}
    if types and types <= {list, tuple}:
        return Kind.TEXTS
    if types == {bool}:
        return Kind.FLAG
    if types == {int} and all(-(1 << 63) <= value < 1 << 63 for value in values):
        return Kind.NUMBER
    return Kind.FRACTION if types and types <= {int, float} else Kind.TEXT


def _cell(value: Any, kind: Kind) -> Cell:
    if value is None or kind is not Kind.TEXT or isinstance(value, str):
        return list(value) if isinstance(value, tuple) else value
    return json_text(value)
