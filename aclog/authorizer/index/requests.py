"""Many requests at once, as columns of dictionary codes."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.authorizer.index.arrays import Int32s
from aclog.metalog.errors import ConfigError


@frozen(eq=False, kw_only=True)
class RequestColumns:
    """n requests. A text column is its distinct values and, for each row, the index of one of them."""

    principals: Sequence[str]
    principal_of: Int32s
    hosts: Sequence[str]
    """In the form that rules are compared with (aclog.authorizer.hosts)."""
    host_of: Int32s
    names: Sequence[str]
    name_of: Int32s
    operations: NDArray[np.uint8]
    """0..15; Kafka takes any other code for 0 (UNKNOWN)."""
    types: NDArray[np.uint8]
    """0..7, as above."""

    def __len__(self) -> int:
        return len(self.operations)

    @classmethod
    def from_arrow(cls, table: "pa.Table | pa.RecordBatch") -> Self:
        """From string columns (plain or dictionary) principal, host, operation, resourceType, resourceName.

        Operations and resource types are upper-case enum names, or integer codes.

        Raises:
            ConfigError: a column is missing, holds nulls or is of another type, or a name is no enum name.

        """
        principals, principal_of = _text(table, "principal")
        hosts, host_of = _text(table, "host")
        names, name_of = _text(table, "resourceName")
        return cls(
            principals=principals,
            principal_of=principal_of,
            hosts=hosts,
            host_of=host_of,
            names=names,
            name_of=name_of,
            operations=_codes(table, "operation", AclOperation),
            types=_codes(table, "resourceType", ResourceType),
        )


def _column(table: "pa.Table | pa.RecordBatch", name: str) -> Any:
    if name not in table.schema.names:
        raise ConfigError(
            f"requests have no column {name}: expected principal, host, operation, resourceType, resourceName"
        )
    column: Any = table.column(name)
    if column.null_count:
        raise ConfigError(f"column {name} of the requests holds nulls")
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def _text(table: "pa.Table | pa.RecordBatch", name: str) -> tuple[list[str], Int32s]:
    column = _column(table, name)
    if not pa.types.is_dictionary(column.type):
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise ConfigError(f"column {name} of the requests is {column.type}: expected strings")
        column = column.dictionary_encode()
    return column.dictionary.to_pylist(), np.asarray(column.indices).astype(np.int32, copy=False)


def _codes(table: "pa.Table | pa.RecordBatch", name: str, kind: type[AclOperation | ResourceType]) -> NDArray[np.uint8]:
    column = _column(table, name)
    if pa.types.is_integer(column.type):
        codes = np.asarray(column)
        return np.where((codes >= 0) & (codes < len(kind)), codes, 0).astype(np.uint8)
    texts, indices = _text(table, name)
    unknown = [text for text in texts if text not in kind.__members__]
    if unknown:
        raise ConfigError(
            f"{unknown[0]!r} in column {name} of the requests is not one of {', '.join(kind.__members__)}"
        )
    return np.array([kind[text] for text in texts], np.uint8)[indices] if texts else np.zeros(0, np.uint8)
