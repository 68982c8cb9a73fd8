"""The report of tests of rules, and the mutations of ACLs that no test notices."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from attrs import evolve, field

from aclog.analysis import regions
from aclog.analysis.comparison import allowed, differences
from aclog.analysis.policy import Policy, bounds, generation_object, is_allowed, merged, only_on
from aclog.analysis.regions import only
from aclog.analysis.rows.report import decided_by_text, request_text
from aclog.analysis.rule_tests.case import Case, Failure, Outcome, changed_policy, touches, with_ids
from aclog.analysis.rule_tests.expectations import (
    Can,
    Cannot,
    CanOnly,
    Decides,
    HasIntent,
    NoNewAccess,
    Reason,
    SameAs,
    WhoCan,
)
from aclog.analysis.who_can import RulesAbout, is_about, permissions
from aclog.authorizer.acl import (
    ChangePlace,
    Origins,
    ResourcePattern,
    StandardAcl,
    acl_command,
    acl_text,
    origin_object,
)
from aclog.authorizer.acls_image import RuleChange, changes_between
from aclog.authorizer.codes import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.explain import ExplainOptions, Explanation, Role, explain
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Generation, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.authorizer.symbols import SYMBOLS
from aclog.metalog.values import define, frozen

# Mutation testing: whether a mistake in any ACL makes a case fail.


# Mutants of an ACL: plausible mistakes.


class Mutation(StrEnum):
    """A kind of mutation of an ACL."""

    REMOVED = "removed"
    ANY_LONGER_NAME = "literal to prefixed"
    ANY_HOST = "any host"
    ANY_PRINCIPAL = "any principal"
    ALL_OPERATIONS = "all operations"
    FLIPPED = "flipped"


@frozen(kw_only=True)
class Mutant:
    """An ACL and its mutation."""

    rule: StandardAcl
    mutation: Mutation
    becomes: StandardAcl | None
    """None if it is removed."""


def mutants(rule: StandardAcl) -> Iterator[Mutant]:
    """Yield the mutants of an ACL that differ from it."""
    yield Mutant(rule=rule, mutation=Mutation.REMOVED, becomes=None)
    literal = rule.pattern_type == PatternType.LITERAL and rule.resource_type != ResourceType.CLUSTER
    if literal and rule.resource_name != WILDCARD:
        yield _mutant(rule, Mutation.ANY_LONGER_NAME, pattern_type=int(PatternType.PREFIXED))
    if rule.host != WILDCARD:
        yield _mutant(rule, Mutation.ANY_HOST, host=WILDCARD)
    if rule.principal != WILDCARD_PRINCIPAL:
        yield _mutant(rule, Mutation.ANY_PRINCIPAL, principal=WILDCARD_PRINCIPAL)
    if rule.operation != AclOperation.ALL:
        yield _mutant(rule, Mutation.ALL_OPERATIONS, operation=int(AclOperation.ALL))
    allows = rule.permission_type == AclPermissionType.ALLOW
    yield _mutant(
        rule, Mutation.FLIPPED, permission_type=int(AclPermissionType.DENY if allows else AclPermissionType.ALLOW)
    )


def _mutant(rule: StandardAcl, mutation: Mutation, **fields: Any) -> Mutant:
    return Mutant(rule=rule, mutation=mutation, becomes=evolve(rule, **fields))


# Mutation testing: whether a mistake in any ACL makes a case fail.


@frozen(kw_only=True)
class MutationResult:
    """The result for a mutant that changes a decision."""

    mutant: Mutant
    killed: bool
    """Whether it makes a case fail."""
    changed: regions.Difference | None = None
    """For a surviving mutant: requests that it changes and that no case covers."""


def mutation_results(policy: Policy, cases: Iterable[Case]) -> Iterator[MutationResult | None]:
    """Yield the result of each mutant of each ACL, ACL by ACL; None for one that changes no decision.

    All `cases` must pass. The differences of a mutant are computed exactly, and only the cases that cover one of them
    are run again, until one fails.
    """
    base = with_ids(policy)
    index = _CaseIndex.of(base, cases)
    for rule in sorted((each.acl for each in base.acls), key=str):
        for mutant in mutants(rule):
            yield _judged(base, index, mutant)


def mutant_count(policy: Policy) -> int:
    """Return the number of mutants of the ACLs of a policy."""
    return sum(1 for rule in policy.acls for _ in mutants(rule.acl))


def _judged(base: Policy, index: "_CaseIndex", mutant: Mutant) -> MutationResult | None:
    changes = [RuleChange(added=False, acl=mutant.rule)]
    if mutant.becomes is not None and base.acls.find(mutant.becomes) is None:
        changes.append(RuleChange(added=True, acl=mutant.becomes))
    changed, rules = changed_policy(base, changes), [change.acl for change in changes]
    effects = list(differences(base, changed, changed=rules))
    if not effects:
        return None
    if index.is_noticed(changed, effects, rules):
        return MutationResult(mutant=mutant, killed=True)
    return MutationResult(mutant=mutant, killed=False, changed=effects[0])


@define(eq=False, kw_only=True)
class _CaseIndex:
    """Cases by the principals that they cover."""

    settings: Settings
    compares_all: bool
    """Whether a case fails if any request is decided differently."""
    looks_at_rules: bool
    """Whether a case names the ACL that decides."""
    _of_one: dict[str, list[tuple[Case, Sequence[regions.Query]]]] = field(factory=dict)
    _of_many: list[tuple[Case, Sequence[regions.Query]]] = field(factory=list)

    @staticmethod
    def of(policy: Policy, cases: Iterable[Case]) -> "_CaseIndex":
        """Return the index of cases that pass on a policy."""
        every = list(cases)
        index = _CaseIndex(
            settings=policy.settings,
            compares_all=any(map(_compares_all, every)),
            looks_at_rules=any(map(_looks_at_rules, every)),
        )
        # Cases that need not be run come first.
        for case in sorted(every, key=lambda case: not isinstance(case, CanOnly)):
            if not isinstance(case, SameAs | NoNewAccess):
                index._add(case, case.queries(policy.settings))
        # Cases that read another policy come last.
        for case in every:
            if isinstance(case, SameAs | NoNewAccess) and not _compares_all(case):
                index._of_many.append((case, case.queries(policy.settings)))
        return index

    def _add(self, case: Case, queries: Sequence[regions.Query]) -> None:
        if any(query.principals.complement for query in queries):
            self._of_many.append((case, queries))
        else:
            for each in {name for query in queries for name in query.principals.named}:
                self._of_one.setdefault(each, []).append((case, queries))

    def is_noticed(self, changed: Policy, effects: Sequence[regions.Difference], rules: Sequence[StandardAcl]) -> bool:
        """Return whether a case fails on a policy with these differences, caused by these ACLs."""
        if self.compares_all:
            return True
        near = (case for case, queries in self._near(effects, rules) if self._may_fail(case, queries, effects, rules))
        return any(isinstance(case, CanOnly) or not case.run(changed).passed for case in near)

    def _may_fail(
        self,
        case: Case,
        queries: Sequence[regions.Query],
        effects: Sequence[regions.Difference],
        rules: Sequence[StandardAcl],
    ) -> bool:
        if any(touches(each.region, query) for query in queries for each in effects):
            return True
        # The deciding ACL may change where the decision does not.
        return _looks_at_rules(case) and any(is_about(rule, each, self.settings) for each in queries for rule in rules)

    def _near(
        self, effects: Sequence[regions.Difference], rules: Sequence[StandardAcl]
    ) -> Iterator[tuple[Case, Sequence[regions.Query]]]:
        """Yield the cases for the principals of the differences and of the changed ACLs."""
        everybody = any(each.region.principals.complement for each in effects)
        everybody |= self.looks_at_rules and any(rule.principal == WILDCARD_PRINCIPAL for rule in rules)
        named = dict.fromkeys(name for each in effects for name in each.region.principals.named)
        named |= dict.fromkeys(rule.principal for rule in rules)
        for each in self._of_one if everybody else named:
            yield from self._of_one.get(each, ())
        yield from self._of_many


def _looks_at_rules(case: Case) -> bool:
    return isinstance(case, Reason) or (isinstance(case, Decides) and bool(case.by_type or case.rule))


def _compares_all(case: Case) -> bool:
    return isinstance(case, SameAs) and case.accesses is None


# The ACLs that a set of cases exercises.


@frozen(kw_only=True)
class Coverage:
    """The number of ACLs, and those that no case exercises."""

    rules: int
    uncovered: tuple[StandardAcl, ...]

    @property
    def percent(self) -> float:
        """The share of ACLs that a case exercises, in percent; 100 if there are no ACLs."""
        return 100.0 if not self.rules else 100.0 * (self.rules - len(self.uncovered)) / self.rules


def coverage(policy: Policy, cases: Iterable[Case]) -> Coverage:
    """Return the ACLs that match no request of any case.

    A comparison with another policy exercises no ACL by itself: it states no purpose of an ACL.
    """
    index = _QueryIndex(policy.settings)
    for case in cases:
        if not isinstance(case, SameAs | NoNewAccess):
            index.add(case.queries(policy.settings))
    uncovered = [rule.acl for rule in policy.acls if not index.covers(rule.acl)]
    return Coverage(rules=len(policy.acls), uncovered=tuple(sorted(uncovered, key=str)))


@define(eq=False)
class _QueryIndex:
    """Queries by principal. Filled first, then queried."""

    settings: Settings
    _of_one: dict[str, list[regions.Query]] = field(factory=dict, init=False)
    _of_many: list[regions.Query] = field(factory=list, init=False)

    def add(self, queries: Iterable[regions.Query]) -> None:
        """Add queries."""
        for query in queries:
            if query.principals.complement:
                self._of_many.append(query)
            for each in () if query.principals.complement else query.principals.named:
                self._of_one.setdefault(each, []).append(query)

    def covers(self, rule: StandardAcl) -> bool:
        """Return whether an ACL matches a request of a query."""
        if any(is_about(rule, query, self.settings) for query in self._of_many):
            return True
        everybody = rule.principal == WILDCARD_PRINCIPAL or ":" not in rule.principal
        groups = self._of_one.values() if everybody else [self._of_one.get(rule.principal, [])]
        return any(is_about(rule, query, self.settings) for queries in groups for query in queries)


# Outcomes as text and JSON objects, with the nearest change that fixes a failing case.


# The nearest change that fixes a failing case: the fewest ACLs to add or to remove.


_Changes: TypeAlias = tuple[RuleChange, ...]

MOST_CHANGES = 8
"""The longest change that is suggested."""


def nearest_change(case: Case, policy: Policy) -> tuple[RuleChange, ...]:
    """Return the fewest changes of ACLs known to fix a failing case; () if none is found.

    Each candidate is verified: the case is run on the changed policy.
    """
    for candidate in sorted(_candidates(case, policy), key=len):
        if 0 < len(candidate) <= MOST_CHANGES and case.run(changed_policy(policy, candidate)).passed:
            return _fewest(case, policy, candidate)
    return ()


def _fewest(case: Case, policy: Policy, changes: _Changes) -> _Changes:
    """Return a minimal subset of some changes with which the case still passes."""
    for change in changes if len(changes) > 1 else ():
        less = tuple(each for each in changes if each != change)
        if less and case.run(changed_policy(policy, less)).passed:
            changes = less
    return changes


def _candidates(case: Case, policy: Policy) -> Iterator[_Changes]:
    queries = case.queries(policy.settings)
    if isinstance(case, Can | HasIntent) or (isinstance(case, Decides) and case.decision == "ALLOWED"):
        yield from _granting(policy, queries)
    elif isinstance(case, Cannot) or (isinstance(case, Decides) and case.decision == "DENIED"):
        yield from _revoking(policy, queries)
    elif isinstance(case, WhoCan):
        yield from _correcting(policy, case)
    elif isinstance(case, SameAs | NoNewAccess):
        other = case.other if isinstance(case, SameAs) else case.than
        yield tuple(changes_between(policy.acls, other.policy(policy.settings).acls))
    elif isinstance(case, CanOnly):
        yield from _by_regions(policy, case)


def _granting(policy: Policy, queries: Sequence[regions.Query]) -> Iterator[_Changes]:
    adding = _new(rule for query in queries for rule in _rules_for(query, AclPermissionType.ALLOW))
    denying = dict.fromkeys(rule for query in queries for rule in RulesAbout.of(policy, query).denying)
    added = tuple(change for change in adding if policy.acls.find(change.acl) is None)
    removed = _removals(denying)
    yield from (added, removed, removed + added)


def _revoking(policy: Policy, queries: Sequence[regions.Query]) -> Iterator[_Changes]:
    """Yield removals of the granting ACLs, and a DENY; removals that take away nothing else come first."""
    giving = _giving(policy, queries)
    removed = _removals(giving)
    added = _new(rule for query in queries for rule in _rules_for(query, AclPermissionType.DENY))
    narrow = all(_is_within(rule, query.resources) for query in queries for rule in giving)
    added = tuple(change for change in added if policy.acls.find(change.acl) is None)
    yield from (removed, added) if narrow else (added, removed)


def _correcting(policy: Policy, case: WhoCan) -> Iterator[_Changes]:
    (query,) = case.queries(policy.settings)
    who = [each for each in case.expected if not each.startswith("not ")]
    rest = evolve(query, principals=regions.everyone_but(*query.principals.named, *who))
    removed = _removals(rule for rule in _giving(policy, (rest,)) if rule.principal not in who)
    granted = [each for each in who if next(allowed(policy, evolve(query, principals=only(each))), None) is None]
    added = _new(
        rule for each in granted for rule in _rules_for(evolve(query, principals=only(each)), AclPermissionType.ALLOW)
    )
    yield from (removed, added, removed + added)


def _by_regions(policy: Policy, case: CanOnly) -> Iterator[_Changes]:
    """Yield removals of excess access, and ACLs for missing access."""
    (query,) = case.queries(policy.settings)
    about = RulesAbout.of(policy, query)
    giving: list[StandardAcl] = []
    lacking: list[StandardAcl] = []
    for region in (failure.region for failure in case.run(policy).failures):
        if region is not None and is_allowed(policy, regions.witness(region)):
            giving += about.giving(region)
        elif region is not None:
            lacking += _rules_for(regions.query_of_region(region), AclPermissionType.ALLOW)
    added = tuple(change for change in _new(lacking) if policy.acls.find(change.acl) is None)
    yield _removals(giving) + added


def _giving(policy: Policy, queries: Sequence[regions.Query]) -> dict[StandardAcl, None]:
    rules = (rule for query in queries for each in permissions(policy, query) for rule in each.rules)
    return dict.fromkeys(rule for rule in rules if isinstance(rule, StandardAcl))


def _rules_for(query: regions.Query, permission: AclPermissionType) -> Iterator[StandardAcl]:
    """Yield ACLs that cover exactly a query."""
    every = query.operations == regions.REQUESTED
    operations = (AclOperation.ALL,) if every else tuple(regions.operations_of(query.operations))
    named = (WILDCARD_PRINCIPAL,) if query.principals.complement else query.principals.named
    for resource in query.resources:
        all_names = not resource.name  # every name: LITERAL `*`, as no ACL has an empty name
        for principal in named:
            for operation in operations:
                yield StandardAcl(
                    resource_type=resource.resource_type,
                    resource_name=WILDCARD if all_names else resource.name,
                    pattern_type=PatternType.LITERAL if all_names else resource.pattern_type,
                    principal=principal,
                    host=query.host or WILDCARD,
                    operation=operation,
                    permission_type=permission,
                )


def _is_within(rule: StandardAcl, resources: Sequence[ResourcePattern]) -> bool:
    """Return whether an ACL covers only names of some resources."""
    if rule.pattern_type == PatternType.LITERAL and rule.resource_name == WILDCARD:
        return any(not each.name for each in resources)
    return any(
        rule.resource_name == each.name and rule.pattern_type == each.pattern_type
        if each.pattern_type == PatternType.LITERAL
        else rule.resource_name.startswith(each.name)
        for each in resources
    )


def _new(rules: Iterable[StandardAcl]) -> _Changes:
    return tuple(RuleChange(added=True, acl=rule) for rule in dict.fromkeys(rules))


def _removals(rules: Iterable[StandardAcl]) -> _Changes:
    return tuple(RuleChange(added=False, acl=rule) for rule in dict.fromkeys(rules))


# A failing case as text: its location, the actual state, the deciding ACL, and the fix.


_LIMIT = 5
"""The most failures of a case, and ACLs of an explanation, in text; the JSON lines have all failures."""

NEAREST_CHANGE = "the nearest change:"
"""The heading of the fix of a case."""


@frozen(kw_only=True, eq=False)
class TestedState:
    """The policy that cases were run on, with its origins."""

    __test__ = False
    """Excludes the class from pytest's collection."""

    policy: Policy
    """With ids (aclog.analysis.rule_tests.case.with_ids), so that changes are fast."""
    policies: Mapping[Generation, Policy] = field(factory=dict)
    """The policy for each generation of Kafka that may decide, if there are several; also with ids."""
    origins: Origins
    place: ChangePlace
    """The target of changes, for command lines."""

    def failing(self, outcome: Outcome) -> Policy:
        """Return the policy on which a case fails, the first one if there are several."""
        return self.policy_of(outcome.failures[0]) if outcome.failures else self.policy

    def policy_of(self, failure: Failure) -> Policy:
        """Return the policy with a failure, the first one if there are several."""
        return self.policy if failure.only is None else self.policies[failure.only]


def failure_lines(outcome: Outcome, state: TestedState) -> Iterator[str]:
    """Yield the lines of a failing case."""
    case = outcome.case
    yield f"FAILED {case.origin.file}:{case.origin.line}: {case.test}"
    yield f"  expected: {case.text}"
    for failure in outcome.failures[:_LIMIT]:
        yield f"  found: {failure.actual}"
        yield from _why(failure, state)
    if len(outcome.failures) > _LIMIT:
        yield f"  and {len(outcome.failures) - _LIMIT:,} more: --format jsonl has all"
    for failure in outcome.failures:
        if failure.request is not None:
            yield from (f"  {line}" for line in _explanation(failure.request, state.policy_of(failure), state.origins))
            break
    changes = nearest_change(case, state.failing(outcome))
    if changes:
        yield f"  {NEAREST_CHANGE}"
        yield from (f"    {line}" for change in changes for line in change_lines(change, state.place))


def change_lines(change: RuleChange, place: ChangePlace) -> Iterator[str]:
    """Yield a change and the command that makes it."""
    yield f"{'add' if change.added else 'remove'} {acl_text(change.acl)}"
    command = acl_command(change.acl, add=change.added, place=place)
    if command is not None:
        yield f"  {command}"


def _why(failure: Failure, state: TestedState) -> Iterator[str]:
    if failure.request is not None:
        such_as = "" if failure.region is None else f"such as {request_text(failure.request)}, "
        yield f"    {such_as}decided by {decided_by_text(failure.decided_by, state.origins)}"


def _explanation(request: regions.Request, policy: Policy, origins: Origins) -> Iterator[str]:
    """Yield the ACLs that cover the resource, the most important first, with notes."""
    explanation = _explained(request, policy)
    if explanation is None:
        return
    total = sum(explanation.counts.values())
    if not total:
        yield "no ACL covers this resource"
        return
    parts = ", ".join(f"{explanation.counts[role]:,} {role.value}" for role in Role if explanation.counts.get(role))
    covering = "1 ACL covers" if total == 1 else f"{total:,} ACLs cover"
    yield f"explained: {covering} {request.resource_name!r}: {parts}"
    for examined in explanation.rules:
        yield f"  {examined.role.value}: {decided_by_text(examined.rule.acl, origins)}"
        yield from (f"    ({note})" for note in examined.notes)
    for text in (*explanation.quirks, *explanation.near_misses):
        yield f"  note: {text}"


def _explained(request: regions.Request, policy: Policy) -> Explanation | None:
    if not request.resource_name:  # for any resource of a type, or for none
        return None
    context = RequestContext(principal=request.principal, host=request.host)
    resource = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
    action = Action(operation=request.operation, resource_pattern=resource)
    settings = policy.settings
    image = policy.acls.with_options(documented=settings.documented, cidr=settings.cidr)
    options = ExplainOptions(allow_everyone=settings.allow_everyone, limit=_LIMIT)
    try:
        return explain(image, policy.authorizer.decide(context, action), context, action, options=options)
    except InvalidRequestError:
        return None


def failing(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the failed outcomes."""
    return [outcome for outcome in outcomes if not outcome.passed]


# Outcomes as JSON objects: the lines of `aclog test --format jsonl` (docs/testing-rules.md).


class Tested(Protocol):
    """Provides the state that a case was run on."""

    @property
    def state(self) -> TestedState:
        """The state that the case was run on; read only if the case fails."""
        ...


def outcome_object(outcome: Outcome, tested: Tested, *, nearest: bool = True) -> regions.JsonObject:
    """Return a case, whether it passes, and its failures; with `nearest` also the fix."""
    case = outcome.case
    line: regions.JsonObject = {
        "test": case.test,
        "file": case.origin.file,
        "line": case.origin.line,
        "case": case.text,
        "verdict": "PASSED" if outcome.passed else "FAILED",
    }
    if outcome.passed:
        return line
    state = tested.state
    line["failures"] = [_failure(each, state.origins) for each in outcome.failures]
    if not nearest:
        return line
    changes = [
        {
            "change": "add" if change.added else "remove",
            "rule": stated_object(change.acl, state.origins),
            "command": acl_command(change.acl, add=change.added, place=state.place),
        }
        for change in nearest_change(case, state.failing(outcome))
    ]
    return {**line, "nearest": changes}


def mutant_object(result: MutationResult, origins: Origins) -> regions.JsonObject:
    """Return a mutant and whether it makes a case fail; for a survivor, also the difference that it makes."""
    mutant = result.mutant
    line: regions.JsonObject = {
        "mutant": mutant.mutation.value,
        "rule": stated_object(mutant.rule, origins),
        "becomes": None if mutant.becomes is None else regions.decided_by_object(mutant.becomes),
        "verdict": "KILLED" if result.killed else "SURVIVED",
    }
    if result.changed is None:
        return line
    return {**line, "change": result.changed.direction.value, "region": regions.region_object(result.changed.region)}


def stated_object(rule: StandardAcl | str | None, origins: Origins) -> regions.JsonObject | str | None:
    """Return an ACL with its first location, or another basis of a decision."""
    value = regions.decided_by_object(rule)
    if not isinstance(rule, StandardAcl) or not isinstance(value, dict):
        return value
    return {**value, **(origin_object(origins.of(rule)[0]) if origins.of(rule) else {})}


def _failure(failure: Failure, origins: Origins) -> regions.JsonObject:
    return {
        "found": failure.actual,
        "request": None if failure.request is None else regions.request_object(failure.request),
        "rule": stated_object(failure.decided_by, origins),
        "region": None if failure.region is None else regions.region_object(failure.region),
        **generation_object(failure.only),
    }


# Cases whose outcome depends on an unknown premise, or on the generation of Kafka: none of them passes.


@define(eq=False)
class PremisedRun:
    """Runs cases on a policy with unknown settings.

    A case that passes is run again with the opposite of all unknown settings: with the principals that it names as
    super users, and with resources without ACLs open to everyone. If it fails then, it is reported as not proven.
    """

    policy: Policy
    premises: Premises
    settled: AbstractSet[str] = frozenset()
    """The broker properties whose values are in the settings of the policy."""
    _policies: dict[tuple[frozenset[str], bool], Policy] = field(factory=dict, init=False)

    def run(self, case: Case) -> Outcome:
        """Return the outcome of the case. Raises as Case.run."""
        outcome = case.run(self.policy)
        premises = self._unknown(case) if outcome.passed else ALL_KNOWN
        if not premises:
            return outcome
        each_alone = map(Premises, ((premise,) for premise in premises.unknown))
        turning = Premises(tuple(each.unknown[0] for each in each_alone if not self._passes(case, each)))
        if not turning and not self._passes(case, premises):
            turning = premises
        if not turning:
            return outcome
        reason = f"not proven: it fails if {turning.unless()}"
        return evolve(outcome, failures=(Failure(actual=reason),))

    def _unknown(self, case: Case) -> Premises:
        """Return the unknown premises of the policy, or of the compared one: both have its settings."""
        other = case.than if isinstance(case, NoNewAccess) else case.other if isinstance(case, SameAs) else None
        if other is None:
            return self.premises
        more = other.premises.without(self.settled | set(self.premises.names))
        return Premises((*self.premises.unknown, *more.unknown))

    def _passes(self, case: Case, others: Premises) -> bool:
        """Return whether a case passes with the opposite of these premises; False if the opposite is unknown."""
        if not {SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG, SYMBOLS}.issuperset(others.names):
            return False
        if SYMBOLS in others.names:
            return self._passes_with_symbols(case, others)
        users = frozenset(_named(case, self.policy)) if SUPER_USERS_CONFIG in others.names else frozenset[str]()
        is_open = ALLOW_EVERYONE_CONFIG in others.names
        return not (users or is_open) or case.run(self._changed(users, is_open=is_open)).passed

    def _passes_with_symbols(self, case: Case, others: Premises) -> bool:
        """Return whether a case passes for all values of symbols; False if the bounds do not show it."""
        if isinstance(case, NoNewAccess | SameAs) or ALLOW_EVERYONE_CONFIG in others.names:
            return False
        within = [with_ids(each) for each in bounds(self.policy)]
        rest = others.without({SYMBOLS})
        return bool(within) and all(
            case.run(each).passed and PremisedRun(each, rest, self.settled)._passes(case, rest) for each in within
        )

    def _changed(self, users: frozenset[str], *, is_open: bool) -> Policy:
        key = users, is_open
        if key not in self._policies:
            settings = self.policy.settings
            changed = evolve(
                settings,
                super_users=settings.super_users | users,
                allow_everyone=settings.allow_everyone or is_open,
            )
            self._policies[key] = Policy(self.policy.acls, changed)
        return self._policies[key]


def _named(case: Case, policy: Policy) -> Iterator[str]:
    """Yield the principals that a case names; super users are excluded from everyone anyway."""
    for query in case.queries(policy.settings):
        if not query.principals.complement:
            yield from query.principals.named


@frozen(eq=False)
class EachRun:
    """Runs cases on the policies of all generations of Kafka that may decide: a case must pass on each."""

    runs: Mapping[Generation, PremisedRun]

    @classmethod
    def of(
        cls, policies: Mapping[Generation, Policy], premises: Premises, settled: AbstractSet[str] = frozenset()
    ) -> "EachRun":
        """Return a runner for policies with unknown settings, as PremisedRun has them."""
        return cls({generation: PremisedRun(policy, premises, settled) for generation, policy in policies.items()})

    def run(self, case: Case) -> Outcome:
        """Return the outcome; failures in one generation only are marked. Raises as Case.run."""
        outcomes = {generation: run.run(case) for generation, run in self.runs.items()}
        if len(outcomes) == 1:
            return next(iter(outcomes.values()))
        failures = merged({generation: outcome.failures for generation, outcome in outcomes.items()}, _key)
        marked = (evolve(each, actual=f"{each.actual}{only_on(only)}", only=only) for each, only in failures)
        return Outcome(case=case, failures=tuple(marked))


def _key(failure: Failure) -> Hashable:
    return failure.actual, failure.request, failure.decided_by, failure.region
