"""Granting: the rules that are missing, those that give a part of it already, and what overrules them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from attrs import evolve, field, frozen

from aclog.analysis.answers.permissions import permissions
from aclog.analysis.by_generation import merged, only_on
from aclog.analysis.deciding import deciding
from aclog.analysis.difference import allowed, differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Direction, Region
from aclog.analysis.regions.witness import witness
from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, StandardAcl, acl_text, resource_of
from aclog.authorizer.creation_checks import refusal
from aclog.authorizer.generation import Generation
from aclog.authorizer.settings import Settings
from aclog.authorizer.unmatched import host_problem
from aclog.planning.errors import RefusedError
from aclog.planning.granting.asked import Asked, one_address
from aclog.planning.granting.least import least_rules
from aclog.planning.granting.near_rules import by_rules_alone, changed_policy, near_rules, policy_with


@frozen(kw_only=True)
class Overruled:
    """Requests that were asked for and stay denied, and a rule that denies one of them.

    None: Kafka's authorizer throws on them, as a rule there has a principal without a colon.
    """

    region: Region
    rule: StandardAcl | None
    only: Generation | None = None
    """That of Kafka which alone decides so, if several may."""


@frozen(kw_only=True)
class Grant:
    """What grants all that is asked, as far as no rule denies it."""

    added: tuple[StandardAcl, ...]
    reused: tuple[StandardAcl | str, ...]
    """What gives the rest already: rules, `SuperUser` or `DefaultAllow`."""
    overruled: tuple[Overruled, ...]
    reused_only: Mapping[StandardAcl | str, Generation] = field(factory=dict)
    """Of `reused`, what gives it by one generation of Kafka only, and which that is."""


def grant(
    asked: Asked, contents: AbstractSet[bytes], settings: Settings, generations: Collection[Generation] = ()
) -> Grant:
    """Return the least rules that allow what is asked, given the rules of a place (their contents).

    `generations`: of Kafka, each of which must allow it; without any, it is that of `settings`. Unless it is known that
    uncovered names are open, `settings` must say that they are not: then rules allow it all.

    Raises:
        RefusedError: rules deny an operation on a whole pattern, so that no ALLOW helps; or a rule could match nobody.

    """
    wanted, each = asked.rules(), settings.by_generation(generations)
    for generation, own in each.items():
        _check_rules(wanted, cidr=own.cidr, only=generation)
    near = near_rules(contents, map(resource_of, wanted))
    policies = {generation: policy_with(near, own) for generation, own in each.items()}
    added = least_rules(policies.values(), wanted, _query(asked))
    after = {generation: changed_policy(policy, added=added) for generation, policy in policies.items()}
    overruled = {generation: list(_overruled(wanted, policy, _query(asked))) for generation, policy in after.items()}
    for generation, policy in after.items():
        if overruled[generation]:
            _check_some_allowed(asked, wanted, policy, generation)
    reused = {generation: _reused(asked, wanted, added, policy) for generation, policy in policies.items()}
    reasons = list(merged(reused))
    return Grant(
        added=added,
        reused=tuple(reason for reason, _ in reasons),
        overruled=tuple(evolve(found, only=only) for found, only in merged(overruled)),
        reused_only={reason: only for reason, only in reasons if only is not None},
    )


def _query(asked: Asked) -> Query:
    """Return the query for all operations on all names that are asked about."""
    resources = (resource for need in asked.needs for resource in asked.query(need, 0).resources)
    return Query(resources=tuple(resources), principals=asked.principals)


def _check_rules(rules: Iterable[StandardAcl], *, cidr: bool, only: Generation | None) -> None:
    for each in rules:
        why = refusal(each, cidr=cidr) or host_problem(each.host, cidr=cidr)
        if why is not None:
            by = "" if only is None else f"{only} may decide there: "
            raise RefusedError(f"{acl_text(each)}: {by}{why}")


def _overruled(wanted: Iterable[StandardAcl], after: Policy, query: Query) -> Iterator[Overruled]:
    """Yield what the wanted rules alone would allow of a query, and the policy with them does not."""
    alone = policy_with(wanted, by_rules_alone(after.settings))
    for each in differences(alone, after, query=query):
        if each.direction is Direction.LOST:
            rule = deciding(after, witness(each.region))
            yield Overruled(region=each.region, rule=rule if isinstance(rule, StandardAcl) else None)


def _check_some_allowed(
    asked: Asked, wanted: Iterable[StandardAcl], after: Policy, generation: Generation | None
) -> None:
    """Check that of each operation on each pattern something is allowed."""
    hosts = dict.fromkeys(map(one_address, asked.hosts or (WILDCARD,)))
    for need in asked.needs:
        for operation in operations_of(need.operations):
            for host in hosts:
                query = evolve(asked.query(need, 1 << operation), host=host)
                if not any(True for _ in allowed(after, query)):
                    denying = evolve(next(_overruled(wanted, after, query)), only=generation)
                    raise RefusedError(_denied_text(denying))


def _denied_text(denying: Overruled) -> str:
    rule = "a rule whose principal has no colon" if denying.rule is None else acl_text(denying.rule)
    would = f"{denying.region} would stay denied{only_on(denying.only)}"
    return f"{would}, by {rule}: no ALLOW overrules it; remove it first, if that is meant"


def _reused(
    asked: Asked, wanted: Iterable[StandardAcl], added: Iterable[StandardAcl], policy: Policy
) -> Iterator[StandardAcl | str]:
    """Yield what allows the wanted rules that are not added."""
    known: set[StandardAcl | str] = set()
    new = set(added)
    for rule in wanted:
        if rule in new:
            continue
        for reason in _reasons(asked, rule, policy):
            if reason not in known:
                known.add(reason)
                yield reason


def _reasons(asked: Asked, rule: StandardAcl, policy: Policy) -> Iterator[StandardAcl | str]:
    need = next(each for each in asked.needs if resource_of(rule) in each.patterns)
    query = asked.query(need, 1 << rule.operation)
    for each in permissions(policy, query):
        for reason in each.rules:
            if isinstance(reason, str) or reason.principal in (asked.principal, WILDCARD_PRINCIPAL):
                yield reason
