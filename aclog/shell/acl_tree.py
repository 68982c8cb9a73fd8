"""The rules of an image as directories: by id, by resource and by principal (`/acl`).

A rule is looked up without the others being touched; only a listing walks over what it lists.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import TypeAlias

from aclog.authorizer.acl import AclBindingFilter, PatternType, ResourceType, StandardAclWithId, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.shell.id_names import id_names
from aclog.shell.rule_text import rule_id, rule_json, rule_name
from aclog.shell.tree_nodes import Directory, File, Node, computed, directory

Rules: TypeAlias = Callable[[], Iterator[StandardAclWithId]]
"""Some rules, found anew at each call."""


def acl_directory(acls: AclsImage) -> Directory:
    """`/acl`: every rule as JSON, under its id (KIP-801), its resource pattern and its principal."""
    return computed(
        {
            "id": lambda: ids_directory(acls, rule_json),
            "resource": lambda: _resource_types(acls),
            "principal": lambda: _principals(acls),
        }
    )


def ids_directory(acls: AclsImage, text: Callable[[StandardAclWithId], str]) -> Directory:
    """Every rule that has an id, as a file under it."""

    def child(name: str) -> Node | None:
        """The rule of this id."""
        found = rule_id(name)
        acl = acls.get(found) if found is not None else None
        return None if acl is None else _rule_file(StandardAclWithId(id=found, acl=acl), text)

    return Directory(names=lambda prefix: id_names(acls, prefix), child=child)


def _resource_types(acls: AclsImage) -> Directory:
    """Directories by type and pattern type are there for every name that Kafka has; those without rules not listed."""

    @cache
    def listed() -> Mapping[tuple[str, ...], set[str]]:
        return _resource_listing(acls)

    def pattern_types(resource_type: str) -> Node | None:
        """The directory of a type."""
        if resource_type not in ResourceType.__members__:
            return None
        return directory(lambda: listed()[resource_type,], lambda name: resource_names(resource_type, name))

    def resource_names(resource_type: str, pattern_type: str) -> Node | None:
        """The directory of a pattern type under a type."""
        if pattern_type not in PatternType.__members__:
            return None
        return directory(
            lambda: listed()[resource_type, pattern_type],
            lambda name: _rules_directory(partial(_about, acls, resource_type, pattern_type, name)),
        )

    return directory(lambda: listed()[()], pattern_types)


def _resource_listing(acls: AclsImage) -> Mapping[tuple[str, ...], set[str]]:
    """The names under each directory of `/acl/resource`: types, pattern types, resource names."""
    found: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for pattern in acls.resource_patterns():
        resource_type = code_name(ResourceType, pattern.resource_type)
        pattern_type = code_name(PatternType, pattern.pattern_type)
        found[()].add(resource_type)
        found[resource_type,].add(pattern_type)
        found[resource_type, pattern_type].add(pattern.name)
    return found


def _about(acls: AclsImage, resource_type: str, pattern_type: str, name: str) -> Iterator[StandardAclWithId]:
    """The rules about one resource pattern, its types by their names.

    A filter does not know codes that only records can hold, so the types are compared here.
    """
    for rule in acls.matching(AclBindingFilter(resource_name=name)):
        found = code_name(ResourceType, rule.acl.resource_type), code_name(PatternType, rule.acl.pattern_type)
        if found == (resource_type, pattern_type):
            yield rule


def _principals(acls: AclsImage) -> Directory:
    return directory(
        acls.principals,
        lambda name: _rules_directory(lambda: acls.matching(AclBindingFilter(principal=name))),
    )


def _rules_directory(rules: Rules) -> Node | None:
    """A directory of some rules; None if there are none."""
    if next(rules(), None) is None:
        return None

    def child(name: str) -> Node | None:
        """The rule whose file has this name."""
        return next((_rule_file(rule, rule_json) for rule in rules() if rule_name(rule) == name), None)

    return directory(lambda: map(rule_name, rules()), child)


def _rule_file(rule: StandardAclWithId, text: Callable[[StandardAclWithId], str]) -> File:
    return File(text=lambda: text(rule))
