"""Records for tests of state, each from one number."""

from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.builders import acls
from tests.support.builders.ids import uuid_of


def acl(number, *, name=None, permission=3, principal="User:alice", resource_type=2, tags=()):
    """An ACL on the topic of that name, or of that number."""
    topic = str(number) if name is None else name
    added = acls.acl(topic, principal, resource_type=resource_type, permission_type=permission)
    return acls.acl_record(uuid_of(number), added, tags)


def removal(number):
    """The removal of that ACL."""
    return RemoveAccessControlEntryRecord(id=uuid_of(number))
