"""Estates for lint, full of rules that stand in for one another, and the plain truth about each rule."""

from random import Random

from attrs import evolve

from aclog.analysis.comparison import differences
from aclog.analysis.lint_report import lint
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from tests.support.analysis.cells import Cells
from tests.support.analysis.model import PolicyModel
from tests.support.analysis.policies import distinct, image_of, random_rule, random_settings

NAMES = ("a", "a.b", "a.b.c", "a.c", "*", "*a", "")
PRINCIPALS = ("User:a", "User:b", "User:*")
HOSTS = ("*", "*", "*", "10.0.0.0", "10.0.0.1", "::1")
RANGES = ("10.0.0.0/31", "10.0.0.1/32", "10.0.0.0/8", "0.0.0.0/0", "::/0", "::/1", "8000::/1", "::1/128")


def dense_policy(random: Random, *, most: int = 14) -> Policy:
    """Few names, principals, hosts and operations, so that rules often cover one another, alone or together."""
    cidr = random.random() < 0.4
    operations = [AclOperation.ALL, AclOperation.READ, AclOperation.DESCRIBE]

    def rule() -> StandardAcl:
        name = random.choice(NAMES)
        return StandardAcl(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            pattern_type=random.choice([PatternType.LITERAL, PatternType.PREFIXED]) if name else PatternType.PREFIXED,
            principal=random.choice(PRINCIPALS),
            host=random.choice(HOSTS + RANGES if cidr else HOSTS),
            operation=random.choice(operations),
            permission_type=random.choice([AclPermissionType.ALLOW, AclPermissionType.DENY]),
        )

    rules = distinct([rule() for _ in range(random.randint(1, most))])
    settings = random_settings(random, cidr=cidr)
    return Policy(image_of(rules), evolve(settings, cidr=cidr))


def odd_policy(random: Random, *, most: int = 12) -> Policy:
    """Everything that rules and settings can have."""
    cidr = random.random() < 0.3
    rules = distinct([random_rule(random, cidr=cidr) for _ in range(random.randint(1, most))])
    return Policy(image_of(rules), random_settings(random, cidr=cidr))


def without(policy: Policy, *rules: StandardAcl) -> Policy:
    """The policy less some rules."""
    return Policy(image_of([entry.acl for entry in policy.acls if entry.acl not in rules]), policy.settings)


def decides_without(policy: Policy, rule: StandardAcl) -> bool:
    """Whether every request is decided the same without a rule, by the engine of differences."""
    return not any(differences(policy, without(policy, rule), changed=[rule]))


def decides_without_by_cells(policy: Policy, rule: StandardAcl) -> bool:
    """The same by asking a plain model of the authorizer about a member of every class of requests."""
    model, other = PolicyModel(policy), PolicyModel(without(policy, rule))
    return all(
        model.allowed(principal, host, kind, name) == other.allowed(principal, host, kind, name)
        for kind, name, principal, host in Cells.of(policy).all()
        if kind == rule.resource_type
    )


def rule(name="orders", operation="READ", *, kind="TOPIC", prefixed=False, deny=False, who="User:a", host="*"):
    return StandardAcl(
        resource_type=ResourceType[kind],
        resource_name=name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=who,
        host=host,
        operation=AclOperation[operation],
        permission_type=AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
    )


def ids(*rules, context=None, **settings):
    """The ids of the lints that find something about each rule."""
    policy = Policy(image_of(rules), Settings(**settings))
    found = list(lint(policy, context))
    return [{each.lint for each in found if one in each.rules} for one in rules]


def found_by(lint_id, *rules, context=None, **settings):
    """The rules that one lint names, a set for each finding."""
    found = lint(Policy(image_of(rules), Settings(**settings)), context, select={lint_id})
    return [set(each.rules) for each in found]
