"""The fewest filters that remove some ACLs of a cluster and none of its others.

A Kafka's controller compares each filter of DeleteAcls with every ACL, and serves no other request meanwhile: what a
removal costs is filters times ACLs. A client that leaves a cluster takes all ACLs of its principal along, so one filter
on the principal is as exact as one for each ACL. Pure: a filter is exact for the contents that are given, and the
caller compares what a cluster removed with what was to be removed.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.acls_image import acl_of_content, content_of, pattern_of_content
from aclog.metalog.values import frozen

_RESOURCE = ("resource_type", "resource_name", "pattern_type")
_FIELDS: tuple[tuple[str, ...], ...] = (
    ("principal",),
    ("principal", "host"),
    ("resource_type", "principal"),
    ("resource_type", "principal", "host"),
    ("principal", "permission_type"),
    ("principal", "operation"),
    ("resource_type", "principal", "operation"),
    ("resource_type", "resource_name"),
    _RESOURCE,
    (*_RESOURCE, "permission_type"),
    (*_RESOURCE, "operation"),
    (*_RESOURCE, "host"),
    (*_RESOURCE, "principal"),
    (*_RESOURCE, "principal", "host"),
    (*_RESOURCE, "principal", "operation"),
)
"""What a filter may state, each with the principal or the resource's name: nothing wider is ever removed at once."""

_Key = tuple[object, ...]
_Alive = defaultdict[str, dict[tuple[str, ...], set[_Key]]]
"""Filters that match no other ACL so far, by what they state: by fields, their values."""


@frozen
class RemovalFilter:
    """A filter, and all ACLs that it matches, which are all to be removed."""

    filter: AclBindingFilter
    acls: tuple[StandardAcl, ...]


def removal_filters(acls: Sequence[StandardAcl], present: Collection[bytes]) -> list[RemovalFilter]:
    """Return filters that match only these ACLs among those that are present (contents_of), each ACL by one filter.

    The filter that matches the most is taken first: their number is small, though not proven to be the least. An ACL
    that no filter matches together with others, or that is not present, has one of its own.
    """
    groups = _exact_groups(acls, present)
    pending, filters = dict.fromkeys(acls), list[RemovalFilter]()
    for (fields, key), members in sorted(groups.items(), key=lambda group: -len(group[1])):
        rest = tuple(acl for acl in members if acl in pending)
        if len(rest) > 1:
            filters.append(RemovalFilter(_filter(fields, key), rest))
            for acl in rest:
                del pending[acl]
    return [*filters, *(RemovalFilter(AclBindingFilter.of(acl), (acl,)) for acl in pending)]


def _exact_groups(
    acls: Sequence[StandardAcl], present: Collection[bytes]
) -> dict[tuple[tuple[str, ...], _Key], list[StandardAcl]]:
    """Return the filters that match two or more of these ACLs and none of the others that are present."""
    ours = {content: acl for acl in acls if (content := content_of(acl)) in present}
    groups: dict[tuple[tuple[str, ...], _Key], list[StandardAcl]] = defaultdict(list)
    for acl in ours.values():
        for fields in _FIELDS:
            groups[fields, _key(acl, fields)].append(acl)
    groups = {group: members for group, members in groups.items() if len(members) > 1}
    if not groups:
        return groups
    # By the principal that a filter states, else by the name: most ACLs have neither, or none that is left.
    by_principal, by_name = _Alive(dict), _Alive(dict)
    for (fields, key), members in groups.items():
        first = members[0]
        alive, value = (by_principal, first.principal) if "principal" in fields else (by_name, first.resource_name)
        alive[value].setdefault(fields, set()).add(key)
    for content in present:
        _, name, _, principal = pattern_of_content(content)
        matches = [(alive, value) for alive, value in ((by_principal, principal), (by_name, name)) if value in alive]
        if not matches or content in ours:
            continue
        other = acl_of_content(content)
        for alive, value in matches:
            for fields, keys in list(alive[value].items()):
                key = _key(other, fields)
                if key in keys:
                    keys.discard(key)
                    del groups[fields, key]
                    if not keys:
                        del alive[value][fields]
            if not alive[value]:
                del alive[value]
    return groups


def _filter(fields: Sequence[str], key: _Key) -> AclBindingFilter:
    stated: dict[str, Any] = dict(zip(fields, key, strict=True))
    return AclBindingFilter(**stated)


def _key(acl: StandardAcl, fields: tuple[str, ...]) -> _Key:
    return tuple(getattr(acl, field) for field in fields)
