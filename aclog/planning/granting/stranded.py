"""Topics that a principal may still use, when the groups or transactional ids that its clients use for it are gone."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from attrs import frozen

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    resource_of,
)
from aclog.authorizer.rule_content import acl_of_content, content_of, pattern_of_content
from aclog.planning.granting.revoke import Revocation

_USED_FOR = {ResourceType.GROUP: AclOperation.READ, ResourceType.TRANSACTIONAL_ID: AclOperation.WRITE}
"""What clients do with topics by a resource of a type."""


@frozen(kw_only=True)
class Stranded:
    """Groups, or transactional ids, that go, and topics on which the principal's own rules still give what for."""

    gone: tuple[ResourcePattern, ...]
    operation: AclOperation
    topics: tuple[ResourcePattern, ...]
    """Sorted by name."""


def stranded(found: Revocation, contents: AbstractSet[bytes], principal: str) -> Iterator[Stranded]:
    """Yield what clients may no longer do, though nobody asked for it."""
    for kind, operation in _USED_FOR.items():
        gone = tuple(resource_of(acl) for acl in found.removed if acl.resource_type == kind)
        if gone:
            left = contents - set(map(content_of, found.removed)) | set(map(content_of, found.added))
            topics = {resource_of(acl) for acl in _on_topics(left, principal) if _allows(acl, operation)}
            if topics:
                yield Stranded(
                    gone=tuple(dict.fromkeys(gone)),
                    operation=operation,
                    topics=tuple(sorted(topics, key=lambda topic: (topic.name, topic.pattern_type))),
                )


def _on_topics(contents: Iterable[bytes], principal: str) -> Iterator[StandardAcl]:
    for content in contents:
        kind, _, _, who = pattern_of_content(content)
        if kind == ResourceType.TOPIC and who == principal:
            yield acl_of_content(content)


def _allows(acl: StandardAcl, operation: AclOperation) -> bool:
    return acl.permission_type == AclPermissionType.ALLOW and acl.operation in (operation, AclOperation.ALL)
