"""The value of `can_only`: all that somebody can do."""

from collections.abc import Iterator, Mapping

from aclog.analysis.rule_tests.listed_access import ListedAccess, ListedHosts
from aclog.analysis.rule_tests.tested_resource import TYPES, parse_names, parse_resource
from aclog.authorizer.acl import PatternType, ResourcePattern, ResourceType
from aclog.authorizer.cidr import cidr_range
from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.node import Node
from aclog.sources.rule_tests.node_values import mask_of, one_or_more, operation_of, parsed

_MORE = ("except", "from", "not_from")


def parse_listed(node: Node) -> tuple[ListedAccess, ...]:
    """Return what a mapping of operations to resources lists; `{}` is nothing.

    Raises:
        ConfigError: something is not understood; with file and line.

    """
    return tuple(_listed(node))


def _listed(node: Node) -> Iterator[ListedAccess]:
    for operation, items in node.mapping("can_only").items():
        mask = mask_of(operation_of(operation, items))
        for item in one_or_more(items, f"can_only {operation}"):
            if isinstance(item.value, Mapping):
                yield _with_exceptions(item, mask)
            else:
                yield ListedAccess(operations=mask, resource=parsed(item, "a resource", parse_resource))


def _with_exceptions(item: Node, mask: int) -> ListedAccess:
    item.check_keys((*TYPES, *_MORE), "a resource")
    (word, *more) = [key for key in item.mapping() if key in TYPES] or ("",)
    if not word or more:
        raise item.error(f"expected one of {', '.join(TYPES)}, and its name")
    resource = parsed(item.required(word), word, lambda text: parse_resource(f"{word}:{text}"))
    but = tuple(_exception(each, resource) for each in one_or_more(item.get("except"), "except"))
    hosts = ListedHosts(
        entries=tuple(_host(each) for each in one_or_more(item.get("from"), "from")),
        but=tuple(_host(each) for each in one_or_more(item.get("not_from"), "not_from")),
    )
    return ListedAccess(operations=mask, resource=resource, but=but, hosts=hosts)


def _exception(node: Node, resource: ResourcePattern) -> ResourcePattern:
    kind = ResourceType(resource.resource_type)
    found = parsed(node, "except", lambda text: parse_names(kind, text))
    if resource.pattern_type == PatternType.LITERAL or not found.name.startswith(resource.name):
        raise node.error("except: expected a part of the names that it is an exception of")
    return found


def _host(node: Node) -> str:
    """Return an address in the form of `host_address`, or a CIDR range."""
    text = node.text("a host")
    if "/" in text:
        if cidr_range(text) is None:
            raise node.error(f"host {text[:60]!r}: expected an IP address or a CIDR range")
        return text
    try:
        return host_address(text)
    except ConfigError as error:
        raise node.error(str(error)) from error
