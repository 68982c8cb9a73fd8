"""Rules that give everyone a right with a wide reach, and a policy without them.

Below such a rule every narrower ALLOW is needless. It is the wide rule that is suspect then: to remove the narrow ones
first would leave nothing when somebody closes the wide one.
"""

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from aclog.analysis.lint.dead_hosts import from_nowhere
from aclog.analysis.lint.found import texts_among
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.unsupported import unsupported
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import (
    ANONYMOUS_PRINCIPAL,
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.rule_change import RuleChange, changed_acls
from aclog.metalog.vectors import Bools

INTERNAL_TOPICS = ("__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state")
"""Topics of Kafka itself."""


def wide_rows(table: RuleTable) -> Bools:
    """Return which rows let everyone, or every client that does not log in, do what reaches far.

    That is: on all names of a type, on a topic of Kafka itself, on the cluster, or with every operation.
    """
    rows: Bools = table.allows & (table.type_of > ResourceType.ANY) & for_everyone(table)[table.principal_of]
    if not rows.any():  # as in most states: names need not be looked at
        return rows
    cluster = table.type_of_resource == ResourceType.CLUSTER
    covers_cluster = cluster & covering_cluster(table)
    far = np.where(cluster, covers_cluster, covering_everything(table) | _covering_internal(table))
    # LITERAL "" covers no name, whatever the operation.
    some = np.where(cluster, covers_cluster, ~(table.literal_resource & texts_among(table.names, ("",))))
    rows &= far[table.resource_of] | (some[table.resource_of] & (table.operation_of == AclOperation.ALL))
    return rows & ~from_nowhere(table) & ~unsupported(table)


def without_wide(table: RuleTable) -> Policy | None:
    """Return the policy of a table without its wide rules; None if it has none.

    No name of it is open for lack of rules: it tells what the narrow rules give.
    """
    rows = np.flatnonzero(wide_rows(table)).tolist()
    if not rows:
        return None
    settings = table.settings
    acls = AclsImage(AclIndex(table.base), documented=settings.documented, cidr=settings.cidr)
    changes = [RuleChange(added=False, acl=table.rule(row)) for row in rows]
    return Policy(changed_acls(acls, changes), evolve(settings, allow_everyone=False))


def for_everyone(table: RuleTable) -> Bools:
    """Return which principals stand for everyone, or for every client that does not log in."""
    anonymous = () if ANONYMOUS_PRINCIPAL in table.settings.super_users else (ANONYMOUS_PRINCIPAL,)
    return texts_among(table.principals, (WILDCARD_PRINCIPAL, *anonymous))


def covering_everything(table: RuleTable) -> Bools:
    """Return which patterns cover all names of a type: LITERAL `*`, and PREFIXED on the empty name."""
    star, empty = texts_among(table.names, (WILDCARD,)), texts_among(table.names, ("",))
    return np.where(table.literal_resource, star, empty)


def covering_cluster(table: RuleTable) -> Bools:
    """Return which patterns cover the name of the cluster."""
    prefixes = texts_among(table.names, [CLUSTER_NAME[:end] for end in range(len(CLUSTER_NAME) + 1)])
    return np.where(table.literal_resource, texts_among(table.names, (CLUSTER_NAME, WILDCARD)), prefixes)


def internal_topics(rule: StandardAcl) -> Sequence[str]:
    """Return the topics of Kafka itself that a rule on topics covers by their names, not as part of all names."""
    if rule.resource_type != ResourceType.TOPIC or not rule.resource_name:
        return ()
    if rule.pattern_type == PatternType.LITERAL:
        return [name for name in INTERNAL_TOPICS if name == rule.resource_name]
    return [name for name in INTERNAL_TOPICS if name.startswith(rule.resource_name)]


def _covering_internal(table: RuleTable) -> Bools:
    prefixes = {name[:end] for name in INTERNAL_TOPICS for end in range(1, len(name) + 1)}
    found = np.where(
        table.literal_resource, texts_among(table.names, INTERNAL_TOPICS), texts_among(table.names, prefixes)
    )
    covers: Bools = found & (table.type_of_resource == ResourceType.TOPIC)
    return covers
