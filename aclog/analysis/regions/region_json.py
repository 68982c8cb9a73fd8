"""Regions, differences and requests as JSON objects: the lines of `--format jsonl` (docs/commands.md)."""

from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import Literal, NamePart
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.region import Difference, Region, Request
from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl, StandardAclWithId, code_name
from aclog.authorizer.origin import NO_ORIGINS, Origins, TwoOrigins, place_object

JsonObject = dict[str, object]


def region_object(region: Region) -> JsonObject:
    """Return the five sets of a region."""
    return {
        "resourceType": region.resource_type.name,
        "operations": [operation.name for operation in operations_of(region.operations)],
        "principals": _principals(region.principals),
        "hosts": _hosts(region.hosts),
        "names": [_part(part) for part in region.names],
    }


def request_object(request: Request) -> JsonObject:
    """Return a request as a line of `authorize --requests`."""
    return {
        "principal": request.principal,
        "host": request.host,
        "operation": code_name(AclOperation, request.operation),
        "resourceType": code_name(ResourceType, request.resource_type),
        "resourceName": request.resource_name,
    }


def decided_by_object(rule: StandardAcl | str | None, origins: Origins = NO_ORIGINS) -> JsonObject | str | None:
    """Return a deciding rule (aclog.analysis.deciding): an object, the name of a reason, or None.

    The file and line of a rule follow its keys, if they are known.
    """
    if not isinstance(rule, StandardAcl):
        return rule
    row: JsonObject = {**StandardAclWithId(id=None, acl=rule).to_dict()}
    del row["id"]
    return {**row, **place_object(rule, origins)}


def witness_object(request: Request, *, legal: bool) -> JsonObject:
    """Return the example of a region; `legal` false is said, since no topic can have any of its names."""
    return {"witness": request_object(request)} if legal else {"witness": request_object(request), "legal": False}


def difference_object(
    difference: Difference,
    *,
    old: StandardAcl | str | None,
    new: StandardAcl | str | None,
    origins: TwoOrigins,
) -> JsonObject:
    """Return a difference without its witness; `old` and `new` are the rules that decide that one."""
    return {
        "change": difference.direction.value,
        **region_object(difference.region),
        "old": decided_by_object(old, origins.old),
        "new": decided_by_object(new, origins.new),
    }


def _principals(principals: Principals) -> JsonObject:
    return {"except" if principals.complement else "in": list(principals.named)}


def _hosts(hosts: Hosts) -> JsonObject:
    if hosts.except_addresses:
        return {"cidr": list(hosts.entries), "except": list(hosts.except_addresses)}
    return {"except" if hosts.complement else "in": list(hosts.entries)}


def _part(part: NamePart) -> JsonObject:
    if isinstance(part, Literal):
        return {"literal": part.name}
    return {
        "prefix": part.prefix,
        "exceptPrefixes": list(part.except_prefixes),
        "exceptLiterals": list(part.except_literals),
    }
