"""ACL control (AclControlManager): from a request to create or delete ACLs to records."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias
from uuid import UUID

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, address_number, code_name, parse_cidr, record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import CLUSTER_NAME, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult, AclRequestError
from aclog.authorizer.settings import RANGES_LEVEL, Generation, no_colon
from aclog.authorizer.symbols import symbol_refusal
from aclog.metalog.errors import ConfigError
from aclog.metalog.native import regex
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.values import frozen

# The checks of CreateAcls on a single ACL: in a broker's parser, in AclApis and in AclControlManager, in this order.


_UNSUPPORTED_VERSION, _INVALID_REQUEST = 35, 42

_IPV4_RANGE = regex(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})")
_IPV4, _IPV6_BITS = 4, 128
_INT_END = 1 << 31
"""The end of the range of Java's Integer.parseInt."""
_COMBINATIONS = 1024
"""How many combinations of codes are remembered: valid ones are fewer, and a state has many ACLs of each."""


def refusal(acl: StandardAcl, *, cidr: bool = False) -> str | None:
    """Return Kafka's message about an ACL that CreateAcls refuses; None for a valid one. `cidr` as control_check.

    A rule with symbols is refused as well: what it will be is unknown.
    """
    return symbol_refusal(acl) or malformed(acl, cidr=cidr)


def malformed(acl: StandardAcl, *, cidr: bool = False) -> str | None:
    """Return the message as `refusal`, as if each symbol were a valid name."""
    return filter_value(acl) or broker_check(acl) or controller_check(acl, cidr=cidr)


def filter_value(acl: StandardAcl) -> str | None:
    """Return Kafka's message about ANY or MATCH, which only filters may contain (ResourcePattern, AccessControlEntry).

    A broker fails to parse a request with such an ACL: it logs this message, and responds without one.
    """
    return _filter_value(acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type)


@lru_cache(_COMBINATIONS)
def _filter_value(resource_type: int, pattern_type: int, operation: int, permission_type: int) -> str | None:
    if resource_type == ResourceType.ANY:
        return "resourceType must not be ANY"
    if pattern_type in (PatternType.ANY, PatternType.MATCH):
        return f"patternType must not be {code_name(PatternType, pattern_type)}"
    if operation == AclOperation.ANY:
        return "operation must not be ANY"
    if permission_type == AclPermissionType.ANY:
        return "permissionType must not be ANY"
    return None


def broker_check(acl: StandardAcl) -> str | None:
    """Return the message of the broker's check before it forwards the request (AclApis)."""
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    return None


def controller_check(acl: StandardAcl, *, cidr: bool) -> str | None:
    """Return the message of the controller's check (AclControlManager.validateNewAcl), ANY and MATCH aside.

    With `cidr`, a host with a slash must be a valid range.
    """
    unknown = unknown_field(acl)
    if unknown is not None:
        return f"Invalid {unknown} UNKNOWN"
    if ":" not in acl.principal:
        return no_colon(acl.principal)
    if cidr and "/" in acl.host:
        try:
            parse_cidr(acl.host)
        except ConfigError as e:
            return str(e)
    return None


def host_check(host: str, level: int) -> tuple[int, str] | None:
    """Return the code and message about a host that Kafka 4.4 refuses at this metadata.version (KIP-1276); else None.

    The controller makes this check after the others (AclControlManager.validateNewAcl).
    """
    if not host:
        return _INVALID_REQUEST, "Host pattern cannot be null or empty"
    if "/" not in host:
        return None
    if level < RANGES_LEVEL:
        return _UNSUPPORTED_VERSION, "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    try:
        parse_cidr(host)
    except ConfigError:
        return _INVALID_REQUEST, f"Invalid CIDR notation '{host}': {_why_no_range(host)}"
    return None


def _why_no_range(host: str) -> str:
    """Return the message of commons-net about a text that is not a range (SubnetUtils, SubnetUtils6)."""
    base, _, prefix = host.partition("/")
    if ":" not in host:
        numbers = _IPV4_RANGE.fullmatch(host)
        for number, most in zip(map(int, numbers.groups()), (255, 255, 255, 255, 32), strict=True) if numbers else ():
            if number > most:
                return f"Value [{number}] not in range [0,{most}]"
        return f"Could not parse [{host}]"
    # SubnetUtils6 reads the prefix length before the base.
    digits = prefix[1:] if prefix[:1] in {"+", "-"} else prefix
    if not digits.isdecimal() or not -_INT_END <= int(prefix) < _INT_END:
        return f"Could not parse [{host}] - invalid prefix length"
    if not 0 <= int(prefix) <= _IPV6_BITS:
        return f"Could not parse [{host}] - prefix length must be between 0 and 128"
    address = address_number(base)
    mapped = address is not None and address.version == _IPV4  # Java reads ::ffff:10.0.0.0 as an IPv4 address
    return f"Could not parse [{base}]{' - not an IPv6 address' if mapped else ''}"


def unknown_field(acl: StandardAcl) -> str | None:
    """Return the first field whose code Kafka 4.3.1 does not know; None if it knows them all."""
    return _unknown_field(acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type)


@lru_cache(_COMBINATIONS)
def _unknown_field(resource_type: int, pattern_type: int, operation: int, permission_type: int) -> str | None:
    fields = (
        ("resourceType", ResourceType, resource_type),
        ("patternType", PatternType, pattern_type),
        ("operation", AclOperation, operation),
        ("permissionType", AclPermissionType, permission_type),
    )
    return next((name for name, kind, code in fields if code_name(kind, code) == "UNKNOWN"), None)


# ACL control (AclControlManager): from a request to create or delete ACLs to records, or the error that Kafka
# returns.
#
# Pure functions of an image. The caller appends the records as one batch at the end offset of that image; a change in
# between would make the checks for duplicates stale. The checks that a broker makes first (AclApis) are included.


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
    # Only new ACLs count, and here ACLs that the controller rejects also get this error: AclControlManager
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


_CREATED = AclCreateResult()


def _created(errors: Iterable[AclRequestError | None]) -> tuple[AclCreateResult, ...]:
    return tuple(_CREATED if error is None else AclCreateResult(error=error) for error in errors)


def _records(image: AclsImage, acls: Iterable[StandardAcl], new_id: NewId) -> tuple[AccessControlEntryRecord, ...]:
    records: dict[UUID, AccessControlEntryRecord] = {}
    for acl in acls:
        id = new_id()  # noqa: A001  # the record's own name for it
        while id in records or image.get(id) is not None:
            id = new_id()  # noqa: A001
        records[id] = record_of(acl, id)
    return tuple(records.values())


def _host_error(acl: StandardAcl, level: int) -> AclRequestError | None:
    problem = host_check(acl.host, level)
    return None if problem is None else AclRequestError(*problem)


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
    for acl_filter in filters:
        error = filter_error(acl_filter)
        deleted = []
        for rule in image.matching(acl_filter) if error is None else ():
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


def filter_error(acl_filter: AclBindingFilter) -> AclRequestError | None:
    """Return the error of a filter; None for a valid one."""
    pattern = code_name(ResourceType, acl_filter.resource_type), code_name(PatternType, acl_filter.pattern_type)
    if "UNKNOWN" in pattern:
        return _invalid("Unknown patternFilter.")
    entry = code_name(AclOperation, acl_filter.operation), code_name(AclPermissionType, acl_filter.permission_type)
    if "UNKNOWN" in entry:
        return _invalid("Unknown entryFilter.")
    return None


# Odd ACLs: only records can contain them, as CreateAcls refuses them; and their effect on Kafka 4.3.1.


def failure_in_kafka(acl: StandardAcl) -> str | None:
    """Return what fails in a Kafka 4.3.1 whose log contains this ACL; None if nothing does.

    Seen on a real one (tests/data/kafka-4.3.1-admin/odd-rules.json): StandardAcl.toBinding throws on ANY and MATCH,
    before it applies any filter; the checks of responses on UNKNOWN; StandardAcl.kafkaPrincipal without a colon.
    """
    if filter_value(acl) is not None:
        return "every listing and every removal of ACLs, with any filter"
    if unknown_field(acl) is not None:
        return "every listing and every removal that selects it"
    if ":" not in acl.principal:
        return "every decision that reaches it"
    return None
