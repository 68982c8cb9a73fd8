"""What an access log used, and which rules of the present set allow it."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.usage.decisions.accesses import REQUEST_COLUMNS, Access, ParsedAccess, parse_access
from aclog.usage.decisions.necessary_acls import NecessaryAcls
from aclog.usage.suggestion.suggested_rule import Times

_ROWS = 1 << 16
"""Distinct accesses that are matched together."""


@frozen(kw_only=True)
class UsedAccess:
    """A distinct access that the present set allows, and the rules that match it."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    resource_name: str
    times: Times
    allowing: tuple[int, ...]
    """The ordinals of all ALLOW rules that match."""


def used_accesses(counted: pa.Table, acls: NecessaryAcls) -> Iterator[UsedAccess]:
    """Yield the accesses of a table (COUNTED) all of which the rules allow, in its order."""
    version = acls.intervals.versions.end - 1
    denies = acls.denying()
    for start in range(0, len(counted), _ROWS):
        rows = counted.slice(start, _ROWS)
        columns = (rows.column(name).to_pylist() for name in REQUEST_COLUMNS)
        parsed = [each for each in map(parse_access, map(Access, *columns)) if isinstance(each, ParsedAccess)]
        codes = np.zeros(len(parsed), np.int32)
        found = acls.find(parsed, np.full(len(parsed), version), codes).matched
        allows = ~denies[found.ordinal]
        access, ordinal = found.access[allows], found.ordinal[allows]
        starts = np.searchsorted(access, np.arange(len(parsed) + 1)).tolist()
        ordinals = ordinal.tolist()
        numbers = (rows.column(name).to_pylist() for name in ("count", "first", "last"))
        for at, (each, *times) in enumerate(zip(parsed, *numbers, strict=True)):
            yield UsedAccess(
                principal=each.principal,
                host=each.host,
                operation=AclOperation(each.operation),
                resource_type=ResourceType(each.resource_type),
                resource_name=each.resource_name,
                times=Times(*times),
                allowing=tuple(ordinals[starts[at] : starts[at + 1]]),
            )
