"""Rules of operations that their type of resource does not have."""

import numpy as np

from aclog.analysis.lint.rule_table import RuleTable
from aclog.authorizer.acl import AclOperation
from aclog.authorizer.index.masks import OPERATIONS, TYPES
from aclog.authorizer.supported_operations import SUPPORTED_OPERATIONS
from aclog.metalog.vectors import Bools


def unsupported(table: RuleTable) -> Bools:
    """Return which rows have an operation that no request can ask of their type."""
    lacking = np.zeros((TYPES, OPERATIONS), np.bool_)
    for kind, operations in SUPPORTED_OPERATIONS.items():
        lacking[kind] = True
        lacking[kind, [AclOperation.ALL, *operations]] = False
    found: Bools = lacking[table.type_of, table.operation_of]
    return found
