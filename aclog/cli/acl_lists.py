"""The ACLs of a state in the formats of `acls list`, and those that `acls add` and `acls remove` name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TypeAlias

from attrs import evolve, frozen

from aclog.authorizer.acl import (
    SUPPORTED_OPERATIONS,
    AclBindingFilter,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    code_name,
    resource_of,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import Resource
from aclog.authorizer.index.queries import rules_of
from aclog.authorizer.origin import NO_ORIGINS, Origins, origin_text, place_object
from aclog.cli.acl_columns import ORIGIN_COLUMNS, PLACE, RULE_COLUMNS
from aclog.cli.flags.commands import Entry, RuleFlags, parse_principal
from aclog.cli.flags.common import Output
from aclog.cli.flags.question import CLUSTER, ResourceFlags
from aclog.cli.images import RangeWatch
from aclog.metalog.errors import ConfigError
from aclog.shell.tree import located_json, rule_fields, rule_json
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.columns import OutputFormat, Row
from aclog.terminal.output import value_formatter
from aclog.terminal.progress import tracked
from aclog.terminal.tables import print_lines, print_rows

# ACLs in the output format of kafka-acls.sh: its bytes in a pipe, escaped on a terminal.


def entry_of(acl: StandardAcl) -> Entry:
    """Return the ACL without its resource."""
    return Entry(principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type)


def listed(rules: Iterable[StandardAclWithId]) -> Iterator[str]:
    """Yield a paragraph for each resource, without the last line end; the ACLs must be grouped by resource."""
    show = value_formatter()
    for pattern, group in groupby((rule.acl for rule in rules), key=resource_of):
        entries = "\n".join(f"\t{show(entry_of(acl))}" for acl in group)
        yield f"Current ACLs for resource `{show(pattern)}`:\n{entries}\n"


def adding(pattern: ResourcePattern, entries: Iterable[Entry]) -> str:
    """Return the message for ACLs that are added."""
    return f"Adding ACLs for resource `{value_formatter()(pattern)}`: \n {_indented(entries)}\n"


def already_there(pattern: ResourcePattern, entry: Entry) -> str:
    """Return the message for an ACL that exists."""
    return f"Acl (pattern={value_formatter()(pattern)}, entry={value_formatter()(entry)}) already exists."


def question(pattern: ResourcePattern, entries: list[Entry]) -> str:
    """Return the question before ACLs are removed."""
    name = value_formatter()(pattern)
    if not entries:
        return f"Are you sure you want to delete all ACLs for resource filter `{name}`? (y/n)"
    return f"Are you sure you want to remove ACLs: \n {_indented(entries)}\n from resource filter `{name}`? (y/n)"


def _indented(entries: Iterable[Entry]) -> str:
    show = value_formatter()
    return "\n".join(f"\t{show(entry)}" for entry in entries)


# The ACLs to add or remove (org.apache.kafka.tools.AclCommand). Error messages are Kafka's.


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
    for flag, enabled in (("producer", entries.producer), ("consumer", entries.consumer)):
        excluded = {
            "operation": entries.operations,
            "deny-principal": entries.deny_principals,
            "deny-host": entries.deny_hosts,
        }
        for other, values in excluded.items():
            if enabled and values:
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
    """Yield filters that match these entries of the resource; without entries, one that matches all entries."""
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


# The ACLs of a state in the formats of `acls list`.


Watch: TypeAlias = Callable[[Iterable[StandardAclWithId]], Iterator[StandardAclWithId]]
"""Passes ACLs on, and counts those that deserve a warning."""


@frozen(eq=False, kw_only=True)
class ListedAcls:
    """The ACLs of a state, and where they stand."""

    acls: AclsImage
    kafka: DecidingKafka
    """What decides on them."""
    origins: Origins
    with_origins: bool
    """Whether every format has the origins."""


def print_acls(listed: ListedAcls, resources: ResourceFlags, principals: Sequence[str], output: Output) -> None:
    """Print the selected ACLs; warn about those with a CIDR range as host.

    Raises:
        ConfigError: a principal without a colon, or a chosen column does not exist.

    """
    filters = [resource_filter(pattern) for pattern in resources.patterns()] or [AclBindingFilter()]
    subjects = list(dict.fromkeys(map(parse_principal, principals)))
    ranges = RangeWatch(listed.origins)
    watch = partial(ranges.watch, kafka=listed.kafka)
    if output.form is OutputFormat.KAFKA:
        print_lines(_kafka_lines(listed.acls, filters, principals=subjects, watch=watch))
    else:
        if subjects:
            filters = [evolve(each, principal=principal) for each in filters for principal in subjects]
        rules = tracked(_sorted(listed.acls, filters), "listing", "ACLs", streams=True)
        _print_rows(listed, watch(rules), output)
    ranges.report()


def _kafka_lines(
    acls: AclsImage, filters: Sequence[AclBindingFilter], *, principals: Sequence[str], watch: Watch
) -> Iterator[str]:
    if not principals:
        yield from listed(watch(_sorted(acls, filters)))
    for principal in principals:  # kafka-acls.sh prints a section for each
        yield f"ACLs for principal `{value_formatter()(principal)}`"
        yield from listed(watch(_sorted(acls, [evolve(each, principal=principal) for each in filters])))


def _print_rows(listed: ListedAcls, rules: Iterable[StandardAclWithId], output: Output) -> None:
    origins = listed.origins
    if output.form is OutputFormat.JSONL and not output.columns:  # as fast as a million ACLs need
        print_lines(map(partial(located_json, origins=origins) if listed.with_origins else rule_json, rules))
    elif output.form is OutputFormat.TABLE and origins is not NO_ORIGINS:
        print_rows((*RULE_COLUMNS, PLACE), _placed(rules, origins), output.form, keys=output.columns)
    elif listed.with_origins:
        rows = ({**rule.to_dict(), **place_object(rule.acl, origins)} for rule in rules)
        print_rows((*RULE_COLUMNS, *ORIGIN_COLUMNS), rows, output.form, keys=output.columns)
    else:
        print_rows(RULE_COLUMNS, (rule.to_dict() for rule in rules), output.form, keys=output.columns)


def _sorted(acls: AclsImage, filters: Iterable[AclBindingFilter]) -> Iterable[StandardAclWithId]:
    """Return the ACLs that match any of the filters, each once, in the order of their JSON lines."""
    filters = list(filters)
    if filters == [AclBindingFilter()]:
        return _in_text_order(acls)
    rules = dict.fromkeys(rule for each in filters for rule in acls.matching(each))
    return sorted(rules, key=rule_fields)


def _in_text_order(acls: AclsImage) -> Iterator[StandardAclWithId]:
    """Yield all ACLs sorted by rule_fields, resource by resource, so that they are never all in memory."""
    resources = sorted(acls.index.resources(), key=_type_and_name)
    for _, group in groupby(resources, key=_type_and_name):
        yield from sorted((rule for _, each in group for rule in rules_of(acls.index, each)), key=rule_fields)


def _type_and_name(entry: tuple[int, Resource]) -> tuple[str, str]:
    resource_type, resource = entry
    return code_name(ResourceType, resource_type), resource.name


def _placed(rules: Iterable[StandardAclWithId], origins: Origins) -> Iterator[Row]:
    for rule in rules:
        places = ", ".join(map(origin_text, origins.of(rule.acl)))
        yield {**rule.to_dict(), PLACE.key: places}
