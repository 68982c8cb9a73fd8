"""All rules of a state in the order of their JSON lines, a resource at a time: rules are never all in memory."""

from collections.abc import Iterator
from itertools import groupby

from aclog.authorizer.acl import ResourceType, StandardAclWithId, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.decision_mask import Resource
from aclog.authorizer.index.rules import rules_of
from aclog.shell.rule_text import rule_fields


def in_text_order(acls: AclsImage) -> Iterator[StandardAclWithId]:
    """The rules, sorted by rule_fields."""
    resources = sorted(acls.state.resources(), key=_type_and_name)
    for _, group in groupby(resources, key=_type_and_name):
        yield from sorted((rule for _, each in group for rule in rules_of(acls.state, each)), key=rule_fields)


def _type_and_name(found: tuple[int, Resource]) -> tuple[str, str]:
    resource_type, resource = found
    return code_name(ResourceType, resource_type), resource.name
