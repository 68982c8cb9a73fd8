"""Well-formed accesses in columns, parsed by distinct value: many accesses have few principals, hosts and names."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self, TypeVar, overload

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from aclog.authorizer.index.layout import Int32s
from aclog.authorizer.index.subjects import RequestCodes
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.values import frozen
from aclog.usage.decisions.decisions import (
    OPERATION_CODES,
    RESOURCE_TYPE_CODES,
    UNRESOLVED,
    DecisionCode,
    ParsedAccess,
    encoded_texts,
    request_address,
    used_numbers,
)

_Value = TypeVar("_Value")


@frozen(eq=False)
class AccessColumns(Sequence[ParsedAccess]):
    """Accesses as a sequence, of which each is made when it is looked at."""

    requests: RequestCodes
    operations: NDArray[np.uint8]

    @classmethod
    def of(cls, accesses: Sequence[ParsedAccess]) -> "AccessColumns":
        """Return accesses in columns."""
        if isinstance(accesses, AccessColumns):
            return accesses
        principals, principal_of = _distinct(each.principal for each in accesses)
        hosts, host_of = _distinct(each.host for each in accesses)
        places, name_of = _distinct((each.resource_type, each.resource_name) for each in accesses)
        requests = RequestCodes(
            principals=principals,
            principal_of=principal_of,
            hosts=hosts,
            host_of=host_of,
            types=[kind for kind, _ in places],
            names=[name for _, name in places],
            name_of=name_of,
        )
        return cls(requests, np.fromiter((each.operation for each in accesses), np.uint8, len(accesses)))

    def __len__(self) -> int:
        return len(self.operations)

    @overload
    def __getitem__(self, at: int) -> ParsedAccess: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> "ParsedAccess | AccessColumns":
        """Return one access, or some."""
        if isinstance(at, slice):
            return self.take(at)
        requests, place = self.requests, self.requests.name_of[at]
        return ParsedAccess(
            principal=requests.principals[requests.principal_of[at]],
            host=requests.hosts[requests.host_of[at]],
            operation=int(self.operations[at]),
            resource_type=requests.types[place],
            resource_name=requests.names[place],
        )

    def take(self, rows: Int64s | Bools | slice) -> Self:
        """Return the accesses of these rows; values that none of them has may remain."""
        requests = self.requests
        numbers = {name: getattr(requests, name)[rows] for name in ("principal_of", "host_of", "name_of")}
        return type(self)(evolve(requests, **numbers), self.operations[rows])

    def users(self) -> tuple[list[tuple[str, str]], Int64s]:
        """Return the distinct pairs of a principal and a host, and the position of each access's among them."""
        requests, hosts = self.requests, self.requests.hosts
        keys = requests.principal_of.astype(np.int64) * len(hosts) + requests.host_of
        distinct, user_of = np.unique(keys, return_inverse=True)
        pairs = (divmod(key, len(hosts)) for key in distinct.tolist())
        return [(requests.principals[who], hosts[where]) for who, where in pairs], user_of

    def objects(self) -> list[ParsedAccess]:
        """Return all accesses as objects, in a tenth of the time of indexing each one."""
        requests, places = self.requests, self.requests.name_of.tolist()
        fields = (
            map(requests.principals.__getitem__, requests.principal_of.tolist()),
            map(requests.hosts.__getitem__, requests.host_of.tolist()),
            self.operations.tolist(),
            map(requests.types.__getitem__, places),
            map(requests.names.__getitem__, places),
        )
        return list(map(ParsedAccess, *fields))

    def types(self) -> Int64s:
        """Return the resource type of each."""
        return np.array(self.requests.types, np.int64)[self.requests.name_of]


def _distinct(values: Iterable[_Value]) -> tuple[list[_Value], Int32s]:
    numbers: dict[_Value, int] = {}
    of = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int32)
    return list(numbers), of


class ParsedColumns(NamedTuple):
    """The well-formed accesses of some rows, and the code of each row: UNRESOLVED if it is well-formed."""

    accesses: AccessColumns
    codes: Int32s


def parse_columns(columns: Sequence[Any]) -> ParsedColumns:
    """Return the well-formed accesses of some rows, and the code of each row: UNRESOLVED if it is well-formed.

    `columns` are Arrow arrays of text (REQUEST_COLUMNS). The same as `parse_access` of each row.
    """
    (principals, principal_of), (hosts, host_of), (operations, operation_of), (kinds, kind_of), (names, name_of) = map(
        encoded_texts, columns
    )
    addresses = [None if host is None else request_address(host) for host in hosts]
    operation_codes = np.array([-1 if text is None else OPERATION_CODES.get(text, -1) for text in operations])
    type_codes = np.array([-1 if text is None else RESOURCE_TYPE_CODES.get(text, -1) for text in kinds])
    codes = np.full(len(principal_of), UNRESOLVED, np.int32)
    # The last error that is set is the first that `parse_access` finds.
    codes[np.array([address is None for address in addresses], np.bool_)[host_of]] = DecisionCode.NO_HOST
    codes[type_codes[kind_of] < 0] = DecisionCode.NO_RESOURCE_TYPE
    codes[operation_codes[operation_of] < 0] = DecisionCode.NO_OPERATION
    of_columns = (principals, principal_of), (hosts, host_of), (operations, operation_of), (kinds, kind_of)
    for values, of in (*of_columns, (names, name_of)):
        codes[of == len(values) - 1] = DecisionCode.MISSING  # the last value is None
    rows = np.flatnonzero(codes == UNRESOLVED)
    of_address, by_host = _distinct(addresses)
    principal_texts, principal_numbers = _used(principals, principal_of[rows])
    host_texts, host_numbers = _used(of_address, by_host[host_of[rows]])
    key_of = type_codes[kind_of[rows]] * len(names) + name_of[rows]
    places, place_of = used_numbers(key_of, len(RESOURCE_TYPE_CODES) * len(names))
    requests = RequestCodes(
        principals=principal_texts,
        principal_of=principal_numbers,
        hosts=host_texts,
        host_of=host_numbers,
        types=(places // len(names)).tolist(),
        names=[names[number] or "" for number in (places % len(names)).tolist()],
        name_of=place_of.astype(np.int32),
    )
    return ParsedColumns(AccessColumns(requests, operation_codes[operation_of[rows]].astype(np.uint8)), codes)


def _used(values: Sequence[str | None], of: NDArray[np.signedinteger]) -> tuple[list[str], Int32s]:
    """Return the values that rows have, and the number of each row's among them."""
    distinct, numbers = used_numbers(of, len(values))
    return [values[number] or "" for number in distinct.tolist()], numbers.astype(np.int32)
