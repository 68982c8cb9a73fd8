"""A step of a plan."""

from enum import IntEnum

from attrs import frozen

from aclog.authorizer.acl import AclPermissionType, StandardAcl
from aclog.authorizer.rule_change import Action


class Stage(IntEnum):
    """The stages of a change: made in this order, rule by rule, it allows nothing on its way that both ends deny."""

    ADD_DENY = 0
    ADD_ALLOW = 1
    REMOVE_ALLOW = 2
    REMOVE_DENY = 3


@frozen(kw_only=True)
class Step:
    """An ACL that is added or removed; steps of one batch become visible together."""

    action: Action
    acl: StandardAcl
    batch: int
    """From 0; it never decreases from a step to the next."""

    @property
    def adds(self) -> bool:
        """Whether the ACL is added."""
        return self.action is Action.ADD

    @property
    def stage(self) -> Stage:
        """The stage to which it belongs."""
        return stage_of(self.acl, added=self.adds)


def stage_of(acl: StandardAcl, *, added: bool) -> Stage:
    """Return the stage of a change.

    On an ACL whose principal has no colon Kafka's authorizer throws: whatever it says, it refuses everybody.
    """
    if acl.permission_type == AclPermissionType.ALLOW and ":" in acl.principal:
        return Stage.ADD_ALLOW if added else Stage.REMOVE_ALLOW
    return Stage.ADD_DENY if added else Stage.REMOVE_DENY
