"""Changes between the recorded ACLs of a cluster and those of a poll, as records."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from uuid import UUID

from attrs import frozen

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
)
from aclog.metalog.codec import encode_acl, encode_record
from aclog.metalog.errors import DecodeError
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.nodes.wire.messages import MAX_STRING
from aclog.shell.rule_text import rule_fields

_SAFE_CHARACTERS = MAX_STRING // 4
"""Strings up to this length fit into a record in any case: UTF-8 takes at most 4 bytes a character."""


@frozen(kw_only=True)
class AclChanges:
    """Removed ACLs with their recorded ids, and added ACLs with new ids."""

    removed: tuple[StandardAclWithId, ...] = ()
    added: tuple[StandardAclWithId, ...] = ()

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)

    def values(self) -> list[bytes]:
        """Encode the changes as record values, removals first.

        Raises:
            EncodeError: a string that is too long for a record.

        """
        return list(self._values())

    def _values(self) -> Iterator[bytes]:
        for each in self.removed:
            if each.id is not None:
                yield encode_record(RemoveAccessControlEntryRecord(id=each.id))
        for each in self.added:
            if each.id is not None:
                yield encode_acl(each.acl, each.id)


def acl_changes(
    recorded: Mapping[StandardAcl, UUID], polled: Iterable[StandardAcl], new_id: Callable[[], UUID]
) -> AclChanges:
    """Return the changes from the recorded to the polled ACLs; an unchanged ACL keeps its id.

    Changes are in listing order (aclog.shell.rule_text.rule_fields), whatever the order of the poll.
    """
    # A response may repeat an ACL.
    now = dict.fromkeys(polled)
    removed = (StandardAclWithId(id=id_, acl=acl) for acl, id_ in recorded.items() if acl not in now)
    added = sorted((StandardAclWithId(id=None, acl=acl) for acl in now if acl not in recorded), key=rule_fields)
    return AclChanges(
        removed=tuple(sorted(removed, key=rule_fields)),
        added=tuple(StandardAclWithId(id=new_id(), acl=each.acl) for each in added),
    )


def check_acls(acls: Iterable[StandardAcl]) -> None:
    """Check that polled ACLs can be recorded. Operations and resource types of a newer Kafka are accepted.

    Raises:
        DecodeError: UNKNOWN, ANY or MATCH, which are for filters only (Kafka's DescribeAclsResponse throws too), or a
            string that is too long for a record.

    """
    for acl in acls:
        for text in (acl.resource_name, acl.principal, acl.host):
            if len(text) > _SAFE_CHARACTERS and len(text.encode()) > MAX_STRING:
                raise DecodeError(f"a string of {len(text)} characters: expected at most {MAX_STRING} bytes")
        if (
            acl.resource_type <= ResourceType.ANY
            or acl.pattern_type <= PatternType.MATCH
            or acl.operation <= AclOperation.ANY
            or acl.permission_type <= AclPermissionType.ANY
        ):
            raise DecodeError(
                f"an ACL of resource type {acl.resource_type}, pattern type {acl.pattern_type}, operation "
                f"{acl.operation} and permission type {acl.permission_type}: expected none of UNKNOWN, ANY and MATCH"
            )
