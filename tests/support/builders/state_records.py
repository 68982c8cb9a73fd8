"""Records for tests of state, each from one number."""

from uuid import UUID

from aclog.metalog.records import BrokerFeature, RegisterBrokerRecord, RemoveAccessControlEntryRecord
from tests.support.builders import acls
from tests.support.builders.ids import uuid_of


def acl(number, *, name=None, permission=3, principal="User:alice", resource_type=2, tags=(), **more):
    """An ACL on the topic of that name, or of that number; `more` is what tests.support.builders.acls.acl takes."""
    topic = str(number) if name is None else name
    added = acls.acl(topic, principal, resource_type=resource_type, permission_type=permission, **more)
    return acls.acl_record(uuid_of(number), added, tags)


def removal(number):
    """The removal of that ACL."""
    return RemoveAccessControlEntryRecord(id=uuid_of(number))


def registration(number, level):
    """The registration of a broker whose software supports metadata.version up to a level; its epoch is its number."""
    feature = BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=level)
    return RegisterBrokerRecord(
        broker_id=number, incarnation_id=UUID(int=number), broker_epoch=number, end_points=(), features=(feature,)
    )
