"""The rules of a policy in columns, as lints read them: a million rules without an object for each."""

from functools import cached_property

import numpy as np
from attrs import define

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclPermissionType, PatternType, StandardAcl
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.byte_strings import ByteStrings
from aclog.authorizer.index.columns import row_keys
from aclog.authorizer.index.masks import OPERATIONS
from aclog.authorizer.index.tables import tables_of
from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Bools, Bytes, Int64s, unsigned_varints


@define(eq=False, slots=False)
class RuleTable:
    """Rules by row, and the distinct texts that they hold by number. Immutable by convention."""

    base: Base
    settings: Settings

    @classmethod
    def of(cls, policy: Policy) -> "RuleTable":
        """Return the table of a policy; changes since the base of its image was built are merged into it first."""
        acls = policy.acls
        return cls((acls.merged() if acls.overlay_size else acls).index.base, policy.settings)

    def __len__(self) -> int:
        return len(self.base)

    def rule(self, row: int) -> StandardAcl:
        """Return the rule of a row."""
        return self.base.rule(row).acl

    @cached_property
    def _keys(self) -> tuple[Int32s, Int32s]:
        return row_keys(self.base)

    @property
    def resource_of(self) -> Int32s:
        """By row: the resource pattern."""
        return self._keys[0]

    @property
    def pair_of(self) -> Int32s:
        """By row: the pair of principal and host."""
        return self._keys[1]

    @cached_property
    def principal_of(self) -> Int32s:
        """By row: the principal."""
        return tables_of(self.base).principal_of[self.pair_of]

    @cached_property
    def host_of(self) -> Int32s:
        """By row: the host."""
        return tables_of(self.base).host_of[self.pair_of]

    @cached_property
    def operation_of(self) -> Bytes:
        """By row: the operation as Kafka reads it."""
        codes = np.frombuffer(self.base.operations, np.uint8)
        return np.where(codes < OPERATIONS, codes, 0).astype(np.uint8)

    @cached_property
    def allows(self) -> Bools:
        """By row: whether it is an ALLOW; every other permission acts as DENY."""
        found: Bools = np.frombuffer(self.base.permissions, np.uint8) == AclPermissionType.ALLOW
        return found

    @cached_property
    def _resource_data(self) -> tuple[Int64s, Bytes]:
        keys = self.base.resources
        return np.asarray(keys.offsets).astype(np.int64), np.frombuffer(keys.data, np.uint8)

    @cached_property
    def type_of_resource(self) -> Bytes:
        """By resource: its type, 0..7."""
        offsets, data = self._resource_data
        return data[offsets[:-1]]

    @cached_property
    def type_of(self) -> Bytes:
        """By row: the type of the resource."""
        return self.type_of_resource[self.resource_of]

    @cached_property
    def literal_resource(self) -> Bools:
        """By resource: whether the pattern is LITERAL; every other one acts as PREFIXED."""
        offsets, data = self._resource_data
        found: Bools = data[offsets[1:] - 1] == PatternType.LITERAL
        return found

    @cached_property
    def names(self) -> list[str]:
        """By resource: its name."""
        offsets, data = self._resource_data
        _, starts, _ = unsigned_varints(data, offsets[:-1] + 1)
        return _texts(data, starts, offsets[1:] - 1)

    @cached_property
    def principals(self) -> list[str]:
        """By number: the principal."""
        return _plain(tables_of(self.base).principals)

    @cached_property
    def hosts(self) -> list[str]:
        """By number: the host."""
        return _plain(tables_of(self.base).hosts)


def _plain(compact: ByteStrings) -> list[str]:
    """Return compact strings as texts."""
    _, starts, _ = unsigned_varints(compact.data, compact.starts)
    return _texts(compact.data, starts, compact.ends)


def _texts(data: Bytes, starts: Int64s, ends: Int64s) -> list[str]:
    whole = data.tobytes()
    return [whole[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
