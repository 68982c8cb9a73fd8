"""The accesses that decisions are about, and decisions as texts."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import WILDCARD_PRINCIPAL, AclOperation, ResourceType, host_address, logged_address
from aclog.authorizer.audit import operation_name, resource_type_name
from aclog.authorizer.index.layout import Int32s
from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Int64s
from aclog.usage.arrow import ACL_FIELDS
from aclog.usage.decisions.decisions import ALLOWED, BASES, ERRORS, DecisionCode

# Accesses as data: numbered in order of appearance, and parsed into what ACLs are matched against.


REQUEST_COLUMNS = ("principal", "host", "operation", "resourceType", "resourceName")
"""The columns of an authorization request, all of them text; the resource is LITERAL."""

_HOSTS_REMEMBERED = 1 << 16
_OPERATIONS = {name: int(code) for name, code in AclOperation.__members__.items()}
_RESOURCE_TYPES = {name: int(code) for name, code in ResourceType.__members__.items()}


class Access(NamedTuple):
    """An access as it appears in a table; None for a missing value."""

    principal: str | None
    host: str | None
    operation: str | None
    resource_type: str | None
    resource_name: str | None


class ParsedAccess(NamedTuple):
    """A well-formed access: the host in canonical form, operation and resource type as codes."""

    principal: str
    host: str
    operation: int
    resource_type: int
    resource_name: str


T = TypeVar("T")


class _Numbers(dict[T, int]):
    """Numbers keys 0, 1, ... on first use; `ordered` has the keys in this order.

    __missing__ rather than setdefault: a key seen before costs one dict look-up in C.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ordered: list[T] = []

    def __missing__(self, key: T) -> int:
        number = self[key] = len(self.ordered)
        self.ordered.append(key)
        return number

    def of(self, keys: Sequence[T]) -> Int64s:
        """Return the numbers of these keys."""
        return np.fromiter(map(self.__getitem__, keys), np.int64, len(keys))


@define(eq=False)
class AccessNumbers:
    """Numbers distinct accesses 0, 1, ... in order of appearance, in about 500 bytes each.

    Texts are numbered per column first, so that an access is five int32s: their look-up dominates the time.
    """

    _texts: tuple[_Numbers[str | None], ...] = field(
        factory=lambda: tuple(_Numbers() for _ in REQUEST_COLUMNS), init=False
    )
    _accesses: _Numbers[bytes] = field(factory=_Numbers, init=False)

    def __len__(self) -> int:
        return len(self._accesses)

    def number(self, columns: Sequence[Any]) -> tuple[Int64s, list[Access]]:
        """Return the number of each row's access, and the accesses seen for the first time.

        `columns` are the five columns of a batch (REQUEST_COLUMNS): Arrow arrays of text, plain or dictionary-encoded.
        """
        encoded = [_encoded(column) for column in columns]
        once, access_of = _distinct([(len(values), codes) for values, codes in encoded])
        numbers = np.empty((len(once), len(columns)), np.int32)
        for at, ((values, codes), texts) in enumerate(zip(encoded, self._texts, strict=True)):
            numbers[:, at] = texts.of(values)[codes[once]]
        # five int32s as one 20-byte value: hashed as bytes, much faster than as a tuple
        before = len(self)
        access_numbers = self._accesses.of(numbers.view(f"V{numbers.itemsize * len(columns)}")[:, 0].tolist())
        new = numbers[np.flatnonzero(access_numbers >= before)]
        return access_numbers[access_of], self._of_numbers(new)

    def _of_numbers(self, numbers: Int32s) -> list[Access]:
        parts = (map(texts.ordered.__getitem__, numbers[:, at].tolist()) for at, texts in enumerate(self._texts))
        return list(map(Access, *parts))


def _encoded(column: Any) -> tuple[list[str | None], Int64s]:
    """Return the distinct values, with None appended as the last, and the index of each row's value."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.to_pylist()
    indices = column.indices
    if column.null_count:
        indices = indices.fill_null(len(values))
    return [*values, None], np.asarray(indices).astype(np.int64)


def _distinct(columns: Iterable[tuple[int, Int64s]]) -> tuple[Int64s, Int32s]:
    """Return one row for each distinct combination of codes, and the combination of each row.

    Columns are (number of values, code of each row).
    """
    codes, size = np.zeros(0, np.int64), 0
    for count, column in columns:
        if not size:
            codes, size = column, count
            continue
        # codes are mixed-radix numbers: renumber before they exceed int64
        if size * count >= 1 << 62:
            codes, size = np.asarray(pa.array(codes).dictionary_encode().indices).astype(np.int64), len(codes)
        codes, size = codes * count + column, size * count
    encoded = pa.array(codes).dictionary_encode()
    access_of = np.asarray(encoded.indices)
    rows = np.empty(len(encoded.dictionary), np.int64)
    rows[access_of] = np.arange(len(codes))
    return rows, access_of


def spelled_as_kafka(access: Access) -> Access:
    """Return an access with the spellings of its host, operation and type that have one meaning as Kafka has them.

    Logs have been through other programs: `/10.0.0.1`, `Read`, `topic` (logged_address, operation_name).
    """
    principal, host, operation, kind, name = access
    return Access(
        principal,
        None if host is None else _logged_address(host),
        None if operation is None else operation_name(operation) or operation,
        None if kind is None else resource_type_name(kind) or kind,
        name,
    )


def parse_access(access: Access) -> ParsedAccess | DecisionCode:
    """Return what ACLs are matched against, or the error; the principal is checked later (`principal_error`)."""
    principal, host, operation, resource_type, name = access
    if principal is None or host is None or operation is None or resource_type is None or name is None:
        return DecisionCode.MISSING
    operation_code = _OPERATIONS.get(operation)
    if operation_code is None:
        return DecisionCode.NO_OPERATION
    type_code = _RESOURCE_TYPES.get(resource_type)
    if type_code is None:
        return DecisionCode.NO_RESOURCE_TYPE
    address = _address(host)
    if address is None:
        return DecisionCode.NO_HOST
    return ParsedAccess(
        principal=principal, host=address, operation=operation_code, resource_type=type_code, resource_name=name
    )


def principal_error(principal: str) -> DecisionCode | None:
    """Return the error if Kafka's authorizer throws on a principal that is not a super user."""
    if principal == WILDCARD_PRINCIPAL:
        return DecisionCode.WILDCARD_PRINCIPAL
    return DecisionCode.NO_PRINCIPAL if ":" not in principal else None


_logged_address = lru_cache(_HOSTS_REMEMBERED)(logged_address)


@lru_cache(_HOSTS_REMEMBERED)
def _address(host: str) -> str | None:
    try:
        return host_address(host)
    except ConfigError:
        return None


# Decision codes as text, in Arrow columns: the decision, the ACL as in Kafka's audit log, and its id.


TEXT_COLUMNS = ("decision", "rule", "rule_id")

_FIRST = int(min(DecisionCode))
_TEXT: Any = pa.large_string()
"""64-bit offsets: the texts of ten million ACLs exceed the 2 GiB of a string column."""


@frozen(eq=False)
class DecisionTexts:
    """The columns TEXT_COLUMNS; the row of code c is c - min(DecisionCode)."""

    table: pa.Table

    @classmethod
    def of_rules(cls, rules: pa.Table) -> "DecisionTexts":
        """Make the texts from the columns RULE_COLUMNS, in the order of the ordinals."""
        named = pa.table([_decisions(rules), _texts(rules), rules.column("id").cast(_TEXT)], names=list(TEXT_COLUMNS))
        return cls(pa.concat_tables([_without_rule(), named.cast(_without_rule().schema)]).combine_chunks())

    def of_codes(self, codes: "pa.Array[Any]") -> list[Any]:
        """Return the columns with one row per code, for batches whose texts stay below 2 GiB per column."""
        rows = pc.subtract(codes, pa.scalar(_FIRST, pa.int32()))
        return [column.chunk(0).take(rows).cast(pa.string()) for column in self.table.columns]

    def allowing(self) -> "NDArray[np.bool_]":
        """Return whether each code allows, from min(DecisionCode) on."""
        return np.asarray(pc.equal(self.table.column("decision"), pa.scalar("ALLOWED", _TEXT)))

    def numbered(self) -> pa.Table:
        """Return the table with each row's code as the first column, decision_code."""
        codes = pa.array(range(_FIRST, _FIRST + len(self.table)), pa.int32())
        return self.table.add_column(0, "decision_code", codes)


def _without_rule() -> pa.Table:
    rows = []
    for code in map(DecisionCode, range(_FIRST, 0)):
        decision = "ALLOWED" if code in ALLOWED else "DENIED"
        rows.append((decision, BASES[code]) if code in BASES else ("ERROR", ERRORS[code]))
    decisions, texts = zip(*rows, strict=True)
    columns: Any = [pa.array(decisions, _TEXT), pa.array(texts, _TEXT), pa.nulls(len(rows), _TEXT)]
    return pa.table(columns, names=list(TEXT_COLUMNS))


def _decisions(rules: pa.Table) -> Any:
    allows = pc.equal(rules.column("permissionType"), pa.scalar("ALLOW"))
    return pc.if_else(allows, pa.scalar("ALLOWED", _TEXT), pa.scalar("DENIED", _TEXT))


def _texts(rules: pa.Table) -> Any:
    """The text of each ACL in the audit log (StandardAcl.toString)."""
    parts: list[Any] = []
    for name in ACL_FIELDS:
        head = f"{', ' if parts else 'MatchingAcl(acl=StandardAcl['}{name}="
        parts += [pa.scalar(head, _TEXT), rules.column(name).cast(_TEXT)]
    return pc.binary_join_element_wise(*parts, pa.scalar("])", _TEXT), pa.scalar("", _TEXT))
