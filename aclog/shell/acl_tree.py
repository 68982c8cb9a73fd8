"""The ACLs of an image as directories: by id, by resource and by principal (`/acl`).

A look-up reads one ACL only; a listing reads what it lists.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from string import ascii_letters, digits
from typing import TypeAlias

from aclog.authorizer.acl import AclBindingFilter, PatternType, ResourceType, StandardAclWithId, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.metalog.uuids import uuid_text
from aclog.shell.rule_text import located_json, rule_id, rule_json, rule_name
from aclog.shell.tree_nodes import Directory, File, Node, computed, directory

_URL_SAFE = ascii_letters[26:] + ascii_letters[:26] + digits + "-_"
"""The digits of URL-safe Base64 by value, which is not their order as text."""

_VALUES = {digit: value for value, digit in enumerate(_URL_SAFE)}
_ID_TEXT_LENGTH = 22
_ID_BITS = 128
_BITS_PER_DIGIT = 6

Rules: TypeAlias = Callable[[], Iterator[StandardAclWithId]]
"""Some ACLs, looked up at each call."""
Text: TypeAlias = Callable[[StandardAclWithId], str]
"""The content of the file of an ACL."""


def acl_directory(acls: AclsImage, origins: Origins = NO_ORIGINS) -> Directory:
    """Return `/acl`: every ACL as JSON, by its id (KIP-801), its resource pattern and its principal.

    The file and line of an ACL follow its keys, if `origins` tells them.
    """
    text: Text = rule_json if origins is NO_ORIGINS else partial(located_json, origins=origins)
    return computed(
        {
            "id": lambda: ids_directory(acls, text),
            "resource": lambda: _resource_types(acls, text),
            "principal": lambda: _principals(acls, text),
        }
    )


def ids_directory(acls: AclsImage, text: Text) -> Directory:
    """Return a directory of all ACLs that have an id, one file each."""

    def child(name: str) -> Node | None:
        """Return the ACL with this id."""
        found = rule_id(name)
        acl = acls.get(found) if found is not None else None
        return None if acl is None else _rule_file(StandardAclWithId(id=found, acl=acl), text)

    return Directory(names=lambda prefix: id_names(acls, prefix), child=child)


def _resource_types(acls: AclsImage, text: Text) -> Directory:
    """Return the directory of resource types; types without ACLs exist but are not listed."""

    @cache
    def listed() -> Mapping[tuple[str, ...], set[str]]:
        return _resource_listing(acls)

    def pattern_types(resource_type: str) -> Node | None:
        """Return the directory of a resource type."""
        if resource_type not in ResourceType.__members__:
            return None
        return directory(lambda: listed()[resource_type,], lambda name: resource_names(resource_type, name))

    def resource_names(resource_type: str, pattern_type: str) -> Node | None:
        """Return the directory of a pattern type of a resource type."""
        if pattern_type not in PatternType.__members__:
            return None
        return directory(
            lambda: listed()[resource_type, pattern_type],
            lambda name: _rules_directory(partial(_about, acls, resource_type, pattern_type, name), text),
        )

    return directory(lambda: listed()[()], pattern_types)


def _resource_listing(acls: AclsImage) -> Mapping[tuple[str, ...], set[str]]:
    """Return the names in each directory under `/acl/resource`: resource types, pattern types, resource names."""
    found: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for pattern in acls.resource_patterns():
        resource_type = code_name(ResourceType, pattern.resource_type)
        pattern_type = code_name(PatternType, pattern.pattern_type)
        found[()].add(resource_type)
        found[resource_type,].add(pattern_type)
        found[resource_type, pattern_type].add(pattern.name)
    return found


def _about(acls: AclsImage, resource_type: str, pattern_type: str, name: str) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of one resource pattern, given by the names of its types.

    A filter cannot tell UNKNOWN from codes that Kafka does not know, so the types are compared here.
    """
    for rule in acls.matching(AclBindingFilter(resource_name=name)):
        found = code_name(ResourceType, rule.acl.resource_type), code_name(PatternType, rule.acl.pattern_type)
        if found == (resource_type, pattern_type):
            yield rule


def _principals(acls: AclsImage, text: Text) -> Directory:
    return directory(
        acls.principals,
        lambda name: _rules_directory(lambda: acls.matching(AclBindingFilter(principal=name)), text),
    )


def _rules_directory(rules: Rules, text: Text) -> Node | None:
    """Return a directory of some ACLs; None if there are none."""
    # An empty directory would make every path exist, whatever principal or resource it names.
    if next(rules(), None) is None:
        return None

    def child(name: str) -> Node | None:
        """Return the ACL whose file has this name."""
        return next((_rule_file(rule, text) for rule in rules() if rule_name(rule) == name), None)

    return directory(lambda: map(rule_name, rules()), child)


def _rule_file(rule: StandardAclWithId, text: Text) -> File:
    return File(text=lambda: text(rule))


def id_names(acls: AclsImage, prefix: str) -> Iterator[str]:
    """Yield the texts of the ids that begin with `prefix`, in the order of Java's String.compareTo.

    The index is sorted by the uuids' bytes, in which ids that share their first digits are adjacent. So they are read
    in ranges, one more digit than the prefix each, in text order; only one range at a time is sorted.
    """
    if any(digit not in _VALUES for digit in prefix):
        return
    if len(prefix) >= _ID_TEXT_LENGTH - 1:
        yield from _of_digits(acls, prefix[: _ID_TEXT_LENGTH - 1], prefix)
        return
    for digit in sorted(_VALUES):
        yield from _of_digits(acls, prefix + digit, prefix)


def _of_digits(acls: AclsImage, digits: str, prefix: str) -> list[str]:
    """Return the texts of the ids that begin with these digits, at most 21 (the 22nd holds padding bits)."""
    low = 0
    for digit in digits:
        low = low << _BITS_PER_DIGIT | _VALUES[digit]
    shift = _ID_BITS - _BITS_PER_DIGIT * len(digits)
    texts = map(uuid_text, acls.ids(low << shift, low + 1 << shift))
    return sorted(text for text in texts if text.startswith(prefix))
