"""The ACLs to add or remove (org.apache.kafka.tools.AclCommand). Error messages are Kafka's."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    code_name,
)
from aclog.authorizer.supported_operations import SUPPORTED_OPERATIONS
from aclog.cli.acls.flags import Entry, RuleFlags
from aclog.cli.flags.resources import CLUSTER, ResourceFlags
from aclog.metalog.errors import ConfigError

Plan: TypeAlias = dict[ResourcePattern, list[Entry]]
"""Entries by resource; when removing, no entries means every ACL of the resource."""

_PRODUCER_TOPIC = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_PRODUCER_TRANSACTIONAL_ID = (AclOperation.WRITE, AclOperation.DESCRIBE)
_PRODUCER_CLUSTER = (AclOperation.IDEMPOTENT_WRITE,)
_CONSUMER_TOPIC = (AclOperation.READ, AclOperation.DESCRIBE)
_CONSUMER_GROUP = (AclOperation.READ,)


def plan_to_add(resources: ResourceFlags, entries: RuleFlags) -> Plan:
    """Return the ACLs to add.

    Raises:
        ConfigError: incompatible flags, no resource, no principal, or an operation that the resource type lacks.

    """
    if resources.pattern_type in {PatternType.ANY, PatternType.MATCH}:
        name = code_name(PatternType, resources.pattern_type)
        raise ConfigError(f"A '--resource-pattern-type' value of '{name}' is not valid when adding acls")
    plan = plan_to_remove(resources, entries)
    if not all(plan.values()):
        raise ConfigError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs")
    return plan


def plan_to_remove(resources: ResourceFlags, entries: RuleFlags) -> Plan:
    """Return the ACLs to remove. Without a principal, `--operation` and hosts are ignored, as in Kafka.

    Raises:
        ConfigError: as plan_to_add, but principals are optional and the pattern type may be ANY or MATCH.

    """
    _check_convenience_flags(resources, entries)
    plan: Plan = {}
    if not entries.producer and not entries.consumer:
        _merge(plan, _named(resources), entries.entries(entries.operations or (AclOperation.ALL,)))
    if entries.producer:
        _plan_producer(plan, _named(resources), entries)
    if entries.consumer:
        patterns = _named(resources)
        _merge(plan, _of_type(patterns, ResourceType.TOPIC), entries.entries(_CONSUMER_TOPIC))
        _merge(plan, _of_type(patterns, ResourceType.GROUP), entries.entries(_CONSUMER_GROUP))
    _check_operations(plan)
    return plan


def _plan_producer(plan: Plan, patterns: Sequence[ResourcePattern], entries: RuleFlags) -> None:
    _merge(plan, _of_type(patterns, ResourceType.TOPIC), entries.entries(_PRODUCER_TOPIC))
    transactional_ids = _of_type(patterns, ResourceType.TRANSACTIONAL_ID)
    _merge(plan, transactional_ids, entries.entries(_PRODUCER_TRANSACTIONAL_ID))
    if entries.idempotent:
        _merge(plan, [CLUSTER], entries.entries(_PRODUCER_CLUSTER))


def _named(resources: ResourceFlags) -> list[ResourcePattern]:
    patterns = resources.patterns()
    if not patterns:
        raise ConfigError(
            "You must provide at least one resource: --topic, --group, --cluster, --transactional-id, "
            "--delegation-token or --user-principal"
        )
    return patterns


def _of_type(patterns: Sequence[ResourcePattern], resource_type: ResourceType) -> list[ResourcePattern]:
    return [pattern for pattern in patterns if pattern.resource_type == resource_type]


def _merge(plan: Plan, patterns: Sequence[ResourcePattern], entries: Sequence[Entry]) -> None:
    for pattern in patterns:
        plan[pattern] = list(dict.fromkeys([*plan.get(pattern, []), *entries]))


def _check_convenience_flags(resources: ResourceFlags, entries: RuleFlags) -> None:
    """Check what --producer, --consumer and --idempotent require and exclude."""
    for flag, given in (("producer", entries.producer), ("consumer", entries.consumer)):
        excluded = {
            "operation": entries.operations,
            "deny-principal": entries.deny_principals,
            "deny-host": entries.deny_hosts,
        }
        for other, values in excluded.items():
            if given and values:
                raise ConfigError(f'Option "[{other}]" can\'t be used with option "[{flag}]"')
    if entries.producer and not resources.topics:
        raise ConfigError("With --producer you must specify a --topic")
    if entries.idempotent and not entries.producer:
        raise ConfigError("The --idempotent option is only available if --producer is set")
    if entries.consumer and not _fits_consumer(resources, entries):
        raise ConfigError(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified"
        )


def _fits_consumer(resources: ResourceFlags, entries: RuleFlags) -> bool:
    others = resources.cluster or bool(resources.transactional_ids)
    return bool(resources.topics and resources.groups) and (entries.producer or not others)


def _check_operations(plan: Plan) -> None:
    for pattern, entries in plan.items():
        supported = (*SUPPORTED_OPERATIONS[ResourceType(pattern.resource_type)], AclOperation.ALL)
        if any(entry.operation not in supported for entry in entries):
            kind = code_name(ResourceType, pattern.resource_type)
            names = ", ".join(operation.name for operation in sorted(supported))
            raise ConfigError(f"ResourceType {kind} only supports operations [{names}]")


def rule_of(pattern: ResourcePattern, entry: Entry) -> StandardAcl:
    """Return the ACL of an entry on a resource."""
    return StandardAcl(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def filters_of(pattern: ResourcePattern, entries: Sequence[Entry]) -> Iterator[AclBindingFilter]:
    """Yield filters that match these entries of the resource; without entries, one that matches all of them."""
    if not entries:
        yield resource_filter(pattern)
    for entry in entries:
        yield AclBindingFilter(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission_type,
        )


def resource_filter(pattern: ResourcePattern) -> AclBindingFilter:
    """Return the filter that matches every ACL of the resource."""
    return AclBindingFilter(
        resource_type=pattern.resource_type, resource_name=pattern.name, pattern_type=pattern.pattern_type
    )
