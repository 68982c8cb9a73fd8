"""The ACLs of a state in the formats of `acls list`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TypeAlias

from attrs import evolve, frozen

from aclog.authorizer.acl import (
    AclBindingFilter,
    ResourceType,
    StandardAclWithId,
    code_name,
    resource_of,
    rule_fields,
    rule_json,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import Resource
from aclog.authorizer.index.queries import rules_of
from aclog.authorizer.origin import NO_ORIGINS, Origins, origin_text, place_object
from aclog.cli.acl_columns import ORIGIN_COLUMNS, PLACE, RULE_COLUMNS
from aclog.cli.flags.commands import entry_of, parse_principal, resource_filter
from aclog.cli.flags.common import Output
from aclog.cli.flags.question import ResourceFlags
from aclog.cli.images import RangeWatch
from aclog.shell.tree import located_json
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.columns import OutputFormat, Row
from aclog.terminal.output import value_formatter
from aclog.terminal.progress import tracked
from aclog.terminal.tables import print_lines, print_rows

# ACLs in the output format of kafka-acls.sh: its bytes in a pipe, escaped on a terminal.


def listed(rules: Iterable[StandardAclWithId]) -> Iterator[str]:
    """Yield a paragraph for each resource, without the last line end; the ACLs must be grouped by resource."""
    show = value_formatter()
    for pattern, group in groupby((rule.acl for rule in rules), key=resource_of):
        entries = "\n".join(f"\t{show(entry_of(acl))}" for acl in group)
        yield f"Current ACLs for resource `{show(pattern)}`:\n{entries}\n"


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
