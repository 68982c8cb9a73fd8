"""Records for tests of state, each from one number."""

from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from tests.support.builders.ids import uuid_of


def acl(number, *, name=None, permission=3, principal="User:alice", resource_type=2, tags=()):
    """An ACL on the topic of that name, or of that number."""
    return AccessControlEntryRecord(
        id=uuid_of(number),
        resource_type=resource_type,
        resource_name=str(number) if name is None else name,
        pattern_type=3,
        principal=principal,
        host="*",
        operation=3,
        permission_type=permission,
        tagged_fields=tags,
    )


def removal(number):
    """The removal of that ACL."""
    return RemoveAccessControlEntryRecord(id=uuid_of(number))
