"""The ACLs of a state in the three formats of `acls list`."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice

from attrs import evolve, frozen

from aclog.authorizer.acl import AclBindingFilter, ResourceType, StandardAclWithId, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import Resource
from aclog.authorizer.index.rules import rules_of
from aclog.authorizer.origin import NO_ORIGINS, Origins, origin_text
from aclog.cli.acls.flags import ListFormat, ResourceFlags, parse_principal
from aclog.cli.acls.kafka_format import listed as kafka_lines
from aclog.cli.acls.plan import resource_filter
from aclog.cli.image_report import CidrWatch
from aclog.shell.rule_text import located_json, rule_fields, rule_json
from aclog.terminal.output import emit, shown
from aclog.terminal.table import aligned

_BLOCK = 512
"""Lines per print: one print per line would dominate the time for a million ACLs."""
_HEADER = ("TYPE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION", "ID")


@frozen(eq=False, kw_only=True)
class ListedAcls:
    """The ACLs of a state, and where they stand."""

    acls: AclsImage
    origins: Origins
    with_origins: bool
    """Whether JSON lines tell it, too."""


def print_acls(
    listed: ListedAcls, resources: ResourceFlags, principals: Sequence[str], list_format: ListFormat | None
) -> None:
    """Print the selected ACLs; warn about those with a CIDR range as host.

    Raises:
        ConfigError: a principal without a colon.

    """
    list_format = list_format or (ListFormat.TABLE if sys.stdout.isatty() else ListFormat.KAFKA)
    filters = [resource_filter(pattern) for pattern in resources.patterns()] or [AclBindingFilter()]
    wanted = list(dict.fromkeys(map(parse_principal, principals)))
    watch = CidrWatch(listed.origins)
    lines = _lines(listed, filters, principals=wanted, list_format=list_format, watch=watch)
    while block := list(islice(lines, _BLOCK)):
        emit("\n".join(block))
    watch.report()


def _lines(
    listed: ListedAcls,
    filters: Sequence[AclBindingFilter],
    *,
    principals: Sequence[str],
    list_format: ListFormat,
    watch: CidrWatch,
) -> Iterator[str]:
    acls, origins = listed.acls, listed.origins
    if list_format is ListFormat.KAFKA and principals:  # kafka-acls.sh prints a section per principal
        for principal in principals:
            yield f"ACLs for principal `{shown()(principal)}`"
            yield from kafka_lines(watch.watch(_sorted(acls, [evolve(each, principal=principal) for each in filters])))
        return
    if principals:
        filters = [evolve(each, principal=principal) for each in filters for principal in principals]
    rules = watch.watch(_sorted(acls, filters))
    if list_format is ListFormat.KAFKA:
        yield from kafka_lines(rules)
    elif list_format is ListFormat.JSONL:
        text = partial(located_json, origins=origins) if listed.with_origins else rule_json
        yield from map(text, rules)
    elif origins is NO_ORIGINS:
        yield from aligned(_HEADER, _cells(rules))
    else:
        yield from aligned((*_HEADER, "PLACE"), _located_cells(rules, origins))


def _sorted(acls: AclsImage, filters: Iterable[AclBindingFilter]) -> Iterable[StandardAclWithId]:
    """Return the ACLs that match any of the filters, each once, in the order of their JSON lines."""
    filters = list(filters)
    if filters == [AclBindingFilter()]:
        return _in_text_order(acls)
    found = dict.fromkeys(rule for each in filters for rule in acls.matching(each))
    return sorted(found, key=rule_fields)


def _in_text_order(acls: AclsImage) -> Iterator[StandardAclWithId]:
    """Yield all ACLs sorted by rule_fields, resource by resource, so that they are never all in memory."""
    resources = sorted(acls.index.resources(), key=_type_and_name)
    for _, group in groupby(resources, key=_type_and_name):
        yield from sorted((rule for _, each in group for rule in rules_of(acls.index, each)), key=rule_fields)


def _type_and_name(found: tuple[int, Resource]) -> tuple[str, str]:
    resource_type, resource = found
    return code_name(ResourceType, resource_type), resource.name


def _cells(rules: Iterable[StandardAclWithId]) -> Iterator[Sequence[str]]:
    return (tuple(text or "-" for text in rule.to_dict().values()) for rule in rules)


def _located_cells(rules: Iterable[StandardAclWithId], origins: Origins) -> Iterator[Sequence[str]]:
    for rule in rules:
        (cells,) = _cells([rule])
        yield (*cells, ", ".join(map(origin_text, origins.of(rule.acl))) or "-")
