"""A statement of a file that makes one rule."""

from attrs import frozen

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.creation_checks import refusal
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.node import Node


@frozen(kw_only=True)
class Statement:
    """What a rule says, but for its principal; ALLOW from every host on a literal name unless told otherwise."""

    where: Node
    """The value that states it."""
    resource_type: ResourceType
    name: str
    operation: AclOperation
    pattern_type: PatternType = PatternType.LITERAL
    host: str = WILDCARD
    permission_type: AclPermissionType = AclPermissionType.ALLOW

    def rule(self, principal: str) -> LocatedRule:
        """Return the rule for a principal. Raises ConfigError: CreateAcls would refuse it, with file and line."""
        acl = StandardAcl(
            resource_type=self.resource_type,
            resource_name=self.name,
            pattern_type=self.pattern_type,
            principal=principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission_type,
        )
        refused = refusal(acl)
        if refused is not None:
            raise self.where.error(f"no Kafka accepts this rule: {refused}")
        return LocatedRule(acl=acl, origin=self.where.origin)


def on_cluster(where: Node, operation: AclOperation) -> Statement:
    """Return a statement about the cluster."""
    return Statement(where=where, resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME, operation=operation)
