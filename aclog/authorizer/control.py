"""ACL control (AclControlManager): from a request to create or delete ACLs to records, or the error that Kafka returns.

Pure functions of an image. The caller appends the records as one batch at the end offset of that image; a change in
between would make the checks for duplicates stale. The checks that a broker makes first (AclApis) are included.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias
from uuid import UUID

from attrs import frozen

from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    code_name,
)
from aclog.authorizer.acl_records import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.creation_checks import (
    broker_check,
    controller_check,
    filter_value,
    host_check,
    refusal,
)
from aclog.authorizer.errors import AclRequestError
from aclog.authorizer.generation import Generation
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord

MAX_RECORDS_PER_USER_OP = 10_000
"""The most records of one request (QuorumController.MAX_RECORDS_PER_USER_OP)."""

UNKNOWN_SERVER_ERROR, INVALID_REQUEST, POLICY_VIOLATION = -1, 42, 44

NewId: TypeAlias = Callable[[], UUID]


@frozen(kw_only=True)
class AclCreation:
    """The records to append as one batch, and one result per ACL, in order."""

    records: tuple[AccessControlEntryRecord, ...]
    results: tuple[AclCreateResult, ...]


@frozen(kw_only=True)
class AclDeletion:
    """The records to append as one atomic batch, and one result per filter, in order."""

    records: tuple[RemoveAccessControlEntryRecord, ...]
    results: tuple[AclDeleteResult, ...]


def create_acls(
    image: AclsImage,
    acls: Sequence[StandardAcl],
    new_id: NewId,
    *,
    cidr: bool = False,
    generation: Generation = Generation.V4_3,
    level: int = 0,
) -> AclCreation:
    """Return the records for the valid and new ACLs, and the result for each ACL of the request.

    An ACL that exists already or is repeated in the request succeeds without a record. An ACL that holds ANY or MATCH
    fails the whole request, and so do more than 10,000 new ACLs; any other error fails one ACL only. `new_id` returns
    random uuids. A controller of Kafka 4.4 (`generation`) checks hosts by the cluster's metadata.version (`level`). One
    of 4.3 takes any, but with `cidr` a host with a slash must be a valid range.
    """
    if any(map(filter_value, acls)):
        return AclCreation(records=(), results=_created(creation_errors(acls)))
    refused_first = [_error(broker_check(acl)) for acl in acls]
    ranges = cidr and not generation.has_ranges
    results = [
        error or _error(controller_check(acl, cidr=ranges)) for acl, error in zip(acls, refused_first, strict=True)
    ]
    if generation.has_ranges:
        results = [error or _host_error(acl, level) for acl, error in zip(acls, results, strict=True)]
    new = dict.fromkeys(
        acl for acl, error in zip(acls, results, strict=True) if error is None and image.find(acl) is None
    )
    # Only new ACLs count, and at this point ACLs that the controller rejects get this error, too: AclControlManager
    # checks the size of the whole request and throws. Errors found by the broker before are kept.
    if len(new) > MAX_RECORDS_PER_USER_OP:
        too_large = AclRequestError(POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        return AclCreation(records=(), results=_created(error or too_large for error in refused_first))
    return AclCreation(records=_records(image, new, new_id), results=_created(results))


def creation_errors(acls: Sequence[StandardAcl]) -> list[AclRequestError | None]:
    """Return the error of each ACL of a request, checked without an image; one that holds ANY or MATCH fails all."""
    if any(map(filter_value, acls)):
        return [AclRequestError(UNKNOWN_SERVER_ERROR) for _ in acls]
    return [_error(refusal(acl)) for acl in acls]


def _created(errors: Iterable[AclRequestError | None]) -> tuple[AclCreateResult, ...]:
    return tuple(AclCreateResult(error=error) for error in errors)


def _records(image: AclsImage, acls: Iterable[StandardAcl], new_id: NewId) -> tuple[AccessControlEntryRecord, ...]:
    records: dict[UUID, AccessControlEntryRecord] = {}
    for acl in acls:
        id = new_id()  # noqa: A001  # the record's own name for it
        while id in records or image.get(id) is not None:
            id = new_id()  # noqa: A001
        records[id] = record_of(acl, id)
    return tuple(records.values())


def _host_error(acl: StandardAcl, level: int) -> AclRequestError | None:
    found = host_check(acl.host, level)
    return None if found is None else AclRequestError(*found)


def _error(message: str | None) -> AclRequestError | None:
    return None if message is None else _invalid(message)


def _invalid(message: str) -> AclRequestError:
    return AclRequestError(INVALID_REQUEST, message)


def delete_acls(image: AclsImage, filters: Sequence[AclBindingFilter]) -> AclDeletion:
    """Return the records that remove the ACLs that the filters match, and the ACLs that each filter matched.

    An ACL that several filters match is listed under each and removed once. An unknown code fails its filter only; more
    than 10,000 ACLs fail all filters, and nothing is removed.
    """
    removed: dict[UUID, RemoveAccessControlEntryRecord] = {}
    results = []
    for wanted in filters:
        error = filter_error(wanted)
        deleted = []
        for rule in image.matching(wanted) if error is None else ():
            # As in Kafka, at the limit even an ACL that another filter has matched already is one too many.
            if len(removed) >= MAX_RECORDS_PER_USER_OP:
                return _too_many(filters)
            if rule.id is not None:
                removed[rule.id] = RemoveAccessControlEntryRecord(id=rule.id)
                deleted.append(rule)
        results.append(AclDeleteResult(deleted=tuple(deleted), error=error))
    return AclDeletion(records=tuple(removed.values()), results=tuple(results))


def _too_many(filters: Sequence[AclBindingFilter]) -> AclDeletion:
    error = _invalid(f"Cannot remove more than {MAX_RECORDS_PER_USER_OP} acls in a single delete operation.")
    return AclDeletion(records=(), results=tuple(AclDeleteResult(error=error) for _ in filters))


def filter_error(wanted: AclBindingFilter) -> AclRequestError | None:
    """Return the error of a filter; None for a valid one."""
    pattern = code_name(ResourceType, wanted.resource_type), code_name(PatternType, wanted.pattern_type)
    if "UNKNOWN" in pattern:
        return _invalid("Unknown patternFilter.")
    entry = code_name(AclOperation, wanted.operation), code_name(AclPermissionType, wanted.permission_type)
    if "UNKNOWN" in entry:
        return _invalid("Unknown entryFilter.")
    return None
