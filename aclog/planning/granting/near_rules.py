"""The rules of a place that have a name in common with what is asked; no other rule matters to it."""

from collections.abc import Iterable
from uuid import UUID

from attrs import evolve

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.rule_change import RuleChange, changed_acls
from aclog.authorizer.rule_content import acl_of_content, pattern_of_content
from aclog.authorizer.settings import Settings
from aclog.planning.overlap import PatternSet


def near_rules(contents: Iterable[bytes], patterns: Iterable[ResourcePattern]) -> tuple[StandardAcl, ...]:
    """Return the rules on a pattern that has a name in common with one of these, in a stable order."""
    asked = PatternSet.of(patterns)
    found = (content for content in contents if asked.meets(*pattern_of_content(content)[:3]))
    return tuple(map(acl_of_content, sorted(found)))


def policy_with(rules: Iterable[StandardAcl], settings: Settings) -> Policy:
    """Return the policy of some rules. They get ids, so that a change of it is cheap (`changed_policy`)."""
    numbered = (StandardAclWithId(id=UUID(int=number), acl=acl) for number, acl in enumerate(rules, 1))
    image = AclsImage.from_acls(numbered).with_options(documented=settings.documented, cidr=settings.cidr)
    return Policy(image, settings)


def changed_policy(policy: Policy, *, added: Iterable[StandardAcl] = (), removed: Iterable[StandardAcl] = ()) -> Policy:
    """Return the policy after some changes."""
    changes = [
        *(RuleChange(added=False, acl=acl) for acl in removed),
        *(RuleChange(added=True, acl=acl) for acl in added),
    ]
    return Policy(changed_acls(policy.acls, changes), policy.settings)


def by_rules_alone(settings: Settings) -> Settings:
    """Return the settings under which nothing but a rule allows anything."""
    return evolve(settings, allow_everyone=False, super_users=frozenset())
