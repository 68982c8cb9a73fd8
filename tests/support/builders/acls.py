"""ACLs, and the records that add and remove them."""

from uuid import UUID

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord


def acl(
    name: str = "orders",
    principal: str = "User:app",
    host: str = "*",
    operation: int = AclOperation.READ,
    *,
    resource_type: int = ResourceType.TOPIC,
    pattern_type: int = PatternType.LITERAL,
    permission_type: int = AclPermissionType.ALLOW,
) -> StandardAcl:
    """Return an ACL; one that allows a user to read a topic, unless told otherwise."""
    return StandardAcl(
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )


def cluster_acl(principal: str, operation: int) -> StandardAcl:
    """Return an ACL that allows an operation on the cluster."""
    return acl("kafka-cluster", principal, operation=operation, resource_type=ResourceType.CLUSTER)


def acl_record(number: int | UUID, added: StandardAcl, tagged_fields: object = ()) -> AccessControlEntryRecord:
    """Return the record that adds an ACL under an id, or under one made of a number."""
    return AccessControlEntryRecord(
        id=UUID(int=number) if isinstance(number, int) else number,
        resource_type=added.resource_type,
        resource_name=added.resource_name,
        pattern_type=added.pattern_type,
        principal=added.principal,
        host=added.host,
        operation=added.operation,
        permission_type=added.permission_type,
        tagged_fields=tagged_fields,
    )


def acl_row(name: str, **other: str) -> dict[str, str]:
    """Return an ACL as Kafka's Admin client and `--format jsonl` name it; `other` are keys of it."""
    row = {
        "resourceType": "TOPIC",
        "resourceName": name,
        "patternType": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permissionType": "ALLOW",
    }
    return row | other


def record_of(entry: StandardAclWithId, tagged_fields: object = ()) -> AccessControlEntryRecord:
    """Return the record that adds an ACL under its id."""
    return acl_record(entry.id, entry.acl, tagged_fields)


def removal_of(entry: StandardAclWithId) -> RemoveAccessControlEntryRecord:
    """Return the record that removes an ACL."""
    return RemoveAccessControlEntryRecord(id=entry.id)


def acl_of(record: AccessControlEntryRecord) -> StandardAcl:
    """Return the ACL of a record."""
    return acl(
        record.resource_name,
        record.principal,
        record.host,
        record.operation,
        resource_type=record.resource_type,
        pattern_type=record.pattern_type,
        permission_type=record.permission_type,
    )
