"""A policy with a few rules more or less, made without building its index again."""

from collections.abc import Sequence
from hashlib import blake2b
from uuid import UUID

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.rule_change import RuleChange, changed_acls


def changed_policy(policy: Policy, changes: Sequence[RuleChange]) -> Policy:
    """Return a policy after changes; quick if its rules have ids (`with_ids`). Raises ConfigError as changed_acls."""
    return Policy(changed_acls(policy.acls, changes), policy.settings)


def with_ids(policy: Policy) -> Policy:
    """Return the same policy with an id for each rule, made of its content if its source has none."""
    acls = policy.acls
    if acls.index.base.has_ids:
        return policy
    named = (StandardAclWithId(id=_content_id(rule.acl), acl=rule.acl) for rule in acls)
    made = AclsImage.from_acls(named).with_options(documented=acls.documented, cidr=acls.cidr)
    return Policy(made, policy.settings)


def _content_id(acl: StandardAcl) -> UUID:
    return UUID(bytes=blake2b(repr(acl).encode("utf-8", "surrogatepass"), digest_size=16).digest())
