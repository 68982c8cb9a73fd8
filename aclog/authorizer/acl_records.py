"""Conversions between ACLs and their records (StandardAcl.fromRecord, StandardAclWithId.toRecord)."""

from uuid import UUID

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.metalog.records import AccessControlEntryRecord


def acl_of(record: AccessControlEntryRecord) -> StandardAcl:
    """Return the ACL of a record."""
    return StandardAcl(
        resource_type=record.resource_type,
        resource_name=record.resource_name,
        pattern_type=record.pattern_type,
        principal=record.principal,
        host=record.host,
        operation=record.operation,
        permission_type=record.permission_type,
    )


def rule_of(record: AccessControlEntryRecord) -> StandardAclWithId:
    """Return the ACL of a record with its id."""
    return StandardAclWithId(id=record.id, acl=acl_of(record))


def record_of(acl: StandardAcl, id: UUID) -> AccessControlEntryRecord:  # noqa: A002  # the record's own name for it
    """Return the record that adds an ACL under an id."""
    return AccessControlEntryRecord(
        id=id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
