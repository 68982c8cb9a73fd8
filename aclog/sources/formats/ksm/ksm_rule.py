"""A rule of Kafka Security Manager."""

from attrs import evolve

from aclog.authorizer.acl import CLUSTER_NAME, WILDCARD, ResourceType
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.statement import Statement


def ksm_rule(statement: Statement, principal: str) -> LocatedRule:
    """Return the rule of a statement; also of CLUSTER `*`, which its `Produce` makes, and only ZooKeeper accepts.

    Raises:
        ConfigError: any other rule that CreateAcls would refuse, with file and line.

    """
    if (statement.resource_type, statement.name) != (ResourceType.CLUSTER, WILDCARD):
        return statement.rule(principal)
    rule = evolve(statement, name=CLUSTER_NAME).rule(principal)
    return evolve(rule, acl=evolve(rule.acl, resource_name=WILDCARD))
