"""The ACL changes that would reverse a decision."""

from collections.abc import Iterable, Sequence

from aclog.authorizer.acl import (
    WILDCARD,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acl_command import acl_command
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.decision import Basis, Decision
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import Change, Remedy
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.name_notation import is_set

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY

_DEFAULT_ALLOW = (
    "which denies the resource to all others, too: allow.everyone.if.no.acl.found is for resources without any ACL",
    "or turn off allow.everyone.if.no.acl.found",
)


def find_remedy(
    decision: Decision,
    context: RequestContext,
    action: Action,
    *,
    denying: Sequence[StandardAclWithId],
    deny_count: int,
    has_allow: bool,
    candidates: int,
    options: ExplainOptions,
) -> Remedy:
    """Return the smallest change that reverses the decision.

    `denying` are the ACLs that match and deny, or the first of them, and `deny_count` is their number; `has_allow` is
    whether an ACL would allow the request without them; `candidates` is the number of ACLs that cover the resource.
    """
    if decision.basis is Basis.SUPER_USER:
        return Remedy(notes=(f"remove {context.principal} from super.users, so that ACLs decide",))
    if decision.result is AuthorizationResult.ALLOWED:
        notes = _DEFAULT_ALLOW if decision.basis is Basis.DEFAULT_ALLOW else ()
        return _with(notes, _adding(DENY, context, action, options), asks_all=_is_every_name(action.resource_pattern))
    removals = _removing((rule.acl for rule in denying), options.place)
    left_off = deny_count - len(denying)
    if deny_count and options.allow_everyone and deny_count == candidates:
        note = "allow.everyone.if.no.acl.found then allows it to everyone, since no ACL is left on the resource"
        return Remedy(changes=removals, left_off=left_off, notes=(note,))
    if has_allow:
        return Remedy(changes=removals, left_off=left_off)
    adding = _adding(ALLOW, context, action, options)
    added = _with((), adding, asks_all=_is_every_name(action.resource_pattern))
    if not added.changes:  # then removing what denies is not enough, either
        return added
    return Remedy(changes=(*removals, *added.changes), left_off=left_off, notes=added.notes)


def _with(notes: tuple[str, ...], change: Change | None, *, asks_all: bool = False) -> Remedy:
    if change is None:
        return Remedy(notes=(*notes, "no ACL can be created for such a request"))
    if change.acl.resource_name == WILDCARD and not asks_all:
        notes = (*notes, "an ACL on the name * covers nearly every resource of the type, not only this one")
    return Remedy(changes=(change,), notes=notes)


def _is_every_name(pattern: ResourcePattern) -> bool:
    return is_set(pattern) and not pattern.name


def _removing(acls: Iterable[StandardAcl], place: ChangePlace) -> tuple[Change, ...]:
    return tuple(Change(add=False, acl=acl, command=acl_command(acl, add=False, place=place)) for acl in acls)


def _adding(
    permission: AclPermissionType, context: RequestContext, action: Action, options: ExplainOptions
) -> Change | None:
    """Return the narrowest ACL for what was asked; None if Kafka would reject its creation."""
    pattern = action.resource_pattern
    known_type = pattern.resource_type in set(ResourceType) and pattern.resource_type > ResourceType.ANY
    known_operation = action.operation in set(AclOperation) and action.operation > AclOperation.ANY
    if _is_every_name(pattern):  # no ACL has an empty prefix
        pattern = ResourcePattern(resource_type=pattern.resource_type, name=WILDCARD)
    if not (known_type and known_operation and pattern.name):
        return None
    acl = StandardAcl(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=context.principal,
        host=context.host if options.host_given else WILDCARD,
        operation=action.operation,
        permission_type=permission,
    )
    return Change(add=True, acl=acl, command=acl_command(acl, add=True, place=options.place))
