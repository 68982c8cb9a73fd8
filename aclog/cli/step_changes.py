"""The ACLs that one step of a log changes."""

from collections.abc import Iterable
from uuid import UUID

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl_records import acl_of
from aclog.authorizer.rule_change import RuleChange, changes_between, net_changes
from aclog.metalog.records import AccessControlEntryRecord
from aclog.snapshots.following import Followed


def step_changes(step: Followed) -> list[RuleChange]:
    """Return the ACLs that one of the states has and the other has not."""
    if step.changes is None:
        return changes_between(step.before.acls, step.after.acls)
    return net_changes(_in_order(step))


def _in_order(step: Followed) -> Iterable[RuleChange]:
    added: dict[UUID, StandardAcl] = {}
    for change in step.changes or ():
        if isinstance(change, AccessControlEntryRecord):
            added[change.id] = acl_of(change)
            yield RuleChange(added=True, acl=added[change.id])
        else:
            removed = added.pop(change.id, None) or step.before.acls.get(change.id)
            if removed is not None:  # else it was added and removed before this step
                yield RuleChange(added=False, acl=removed)
