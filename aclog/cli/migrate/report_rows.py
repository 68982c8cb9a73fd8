"""What a migration would do, and how both sides differ, as rows: each has a `kind`."""

from collections.abc import Iterable, Iterator, Sequence

from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl, StandardAclWithId, code_name
from aclog.cli.rule_columns import ACL_COLUMNS
from aclog.terminal.columns import Column, Row
from aclog.zkstore.migration.access_state import StateChange
from aclog.zkstore.migration.comparison import Comparison
from aclog.zkstore.migration.node_content import LeftOut

_KIND = Column(key="kind")
PLAN_COLUMNS = (
    _KIND,
    *ACL_COLUMNS,
    Column(key="aclsAdded", spare=True),
    Column(key="aclsRemoved", spare=True),
    Column(key="credentialsChanged", spare=True),
    Column(key="tokensChanged", spare=True),
    Column(key="path", cut=True, spare=True),
    Column(key="reason", flows=True),
)
"""Of `plan_rows`."""
COMPARISON_COLUMNS = (
    _KIND,
    *ACL_COLUMNS,
    Column(key="name", title="USER", cut=True, spare=True),
    Column(key="mechanism", spare=True),
    Column(key="tokenId", title="TOKEN", spare=True),
    Column(key="allowedByZooKeeper", title="ZOOKEEPER ALLOWS", spare=True),
    Column(key="known", spare=True),
    Column(key="contents", spare=True),
    Column(key="decisions", spare=True),
    Column(key="differing", spare=True),
)
"""Of `comparison_rows`."""


def plan_rows(left_out: Iterable[LeftOut], change: StateChange, obstacles: Sequence[str]) -> Iterator[Row]:
    """Yield the counts, what is left out, the ACLs that would be removed, and what blocks the migration."""
    yield {
        "kind": "plan",
        "aclsAdded": len(change.added_acls),
        "aclsRemoved": len(change.removed_acls),
        "credentialsChanged": len(change.credentials),
        "tokensChanged": len(change.tokens),
    }
    yield from ({"kind": "leftOut", "path": each.path, "reason": each.reason} for each in left_out)
    yield from ({"kind": "remove", **_acl(acl)} for acl in change.removed_acls)
    yield from ({"kind": "obstacle", "reason": text} for text in obstacles)


def comparison_rows(comparison: Comparison) -> Iterator[Row]:
    """Yield the counts, what only one side has, what differs, and the requests that are decided differently."""
    change, known = comparison.difference, sum(each.is_known for each in comparison.disagreements)
    yield {
        "kind": "compared",
        "contents": len(change),
        "decisions": comparison.requests,
        "differing": len(comparison.disagreements) - known,
        "known": known,
    }
    yield from ({"kind": "onlyInZooKeeper", **_acl(acl)} for acl in change.added_acls)
    yield from ({"kind": "notInZooKeeper", **_acl(acl)} for acl in change.removed_acls)
    yield from ({"kind": "credential", "name": each.name, "mechanism": each.mechanism} for each in change.credentials)
    yield from ({"kind": "token", "tokenId": each.token_id} for each in change.tokens)
    for each in comparison.disagreements:
        asked = each.request
        yield {
            "kind": "decision",
            "principal": asked.principal,
            "host": asked.host,
            "operation": code_name(AclOperation, asked.operation),
            "resourceType": code_name(ResourceType, asked.resource_type),
            "resourceName": asked.name,
            "allowedByZooKeeper": each.store_allows,
            "known": each.is_known,
        }


def _acl(acl: StandardAcl) -> dict[str, object]:
    row: dict[str, object] = {**StandardAclWithId(id=None, acl=acl).to_dict()}
    del row["id"]
    return row
