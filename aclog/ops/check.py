"""Proofs about one state or two, over all principals, hosts and names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve

from aclog.analysis.comparison import Compared, turning
from aclog.analysis.intents import Intent, Need, needs_of
from aclog.analysis.policy import Policy, deciding, generation_object, merged
from aclog.analysis.regions import (
    EVERYONE,
    Difference,
    Direction,
    ExistingNames,
    JsonObject,
    Query,
    Region,
    decided_by_object,
    everyone_but,
    only,
    witness,
)
from aclog.analysis.rule_tests.case import resource_text
from aclog.analysis.who_can import Permission, granted, permission_key, permission_object
from aclog.authorizer.acl import Origins, ResourcePattern, StandardAcl, code_name
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Generation, pattern_text
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.ops.policies import (
    StatedSettings,
    TwoStates,
    compare,
    difference_objects,
    existing_topics,
    policies_of,
    read_premises,
)
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import ChosenSource
from aclog.terminal.notices import tracked

# Claims, and the verdicts on them.


@frozen(kw_only=True)
class Claim:
    """A claim to prove: the name of the check, and a sentence about the states that are read."""

    check: str
    text: str
    """`{old}` and `{new}` are the names of two states."""
    negation: str
    """The opposite sentence, which holds if the claim is refuted."""
    resources: tuple[ResourcePattern, ...] = ()
    """Of two states: those that the claim is about, all if empty."""

    def of_states(self, states: TwoStates) -> "Claim":
        """Return the claim with the names of two states."""
        names = dict(zip(("old", "new"), _names(states), strict=True))
        return evolve(self, text=self.text.format_map(names), negation=self.negation.format_map(names))


def _names(states: TwoStates) -> tuple[str, str]:
    """Return the names of two states in a sentence; two names of one source only if a moment distinguishes them."""
    old = _name(states.first)
    new = f"{old} after the change" if states.second is None else _name(states.second)
    return (old, new) if old != new else ("the first state", "the second state")


def _name(choice: ChosenSource) -> str:
    return choice.source.name if choice.as_of is None else f"{choice.source.name} at {choice.as_of}"


def no_new_access(resources: Sequence[ResourcePattern] = ()) -> Claim:
    """Return the claim that a second state allows no request that the first one denies; without resources, on all."""
    where = f" on {' or '.join(map(_resource_text, resources))}" if resources else ""
    where = where.replace("{", "{{").replace("}", "}}")
    return Claim(
        check="no-new-access",
        text=f"{{new}} allows no request{where} that {{old}} denies",
        negation=f"{{new}} allows requests{where} that {{old}} denies",
        resources=tuple(resources),
    )


EQUAL = Claim(
    check="equal",
    text="both states decide every request the same",
    negation="the two states decide some requests differently",
)


@frozen(kw_only=True)
class Verdict:
    """What became of a claim."""

    refuted: bool
    premises: Premises
    """What is unknown, and could turn it."""

    @property
    def name(self) -> str:
        """PROVED, REFUTED or UNKNOWN."""
        return "REFUTED" if self.refuted else "UNKNOWN" if self.premises else "PROVED"

    @property
    def is_proved(self) -> bool:
        """Whether it holds, regardless of unknown settings."""
        return not self.refuted and not self.premises

    def sentence(self, claim: Claim) -> str:
        """Return the verdict and the claim, or its negation if refuted; `unless` introduces unknown premises."""
        text = f"{claim.negation}{',' if self.premises else ''}" if self.refuted else claim.text
        return f"{self.name}: {self.premises.decided(text)}"


def _head(claim: Claim, verdict: Verdict, regions: Sequence[Region], topics: ExistingNames | None) -> JsonObject:
    head: JsonObject = {"check": claim.check, "verdict": verdict.name, "regions": len(regions)}
    if claim.resources:
        head["resources"] = [*map(resource_text, claim.resources)]
    if topics is not None:
        head["topics"] = len(topics.of_clauses(regions))
    return {**head, **verdict.premises.key()}


# Proofs about two states.


@frozen(eq=False, kw_only=True)
class ComparisonProof:
    """Whether two states differ in a direction, or at all."""

    claim: Claim
    verdict: Verdict
    compared: Compared
    counterexamples: Sequence[Difference]
    topics: ExistingNames | None

    def head(self) -> JsonObject:
        """Return the object of the verdict."""
        regions = [difference.region for difference in self.counterexamples]
        return _head(self.claim, self.verdict, regions, self.topics)

    def refutations(self) -> Iterator[JsonObject]:
        """Yield an object for each counterexample."""
        return difference_objects(self.compared)


def prove_comparison(claim: Claim, states: TwoStates, *, direction: Direction | None) -> ComparisonProof:
    """Prove that two states do not differ in a direction, or at all.

    Raises:
        ConfigError: malformed input.
        MetadataError, OSError: a source is damaged or cannot be read.

    """
    each = states.read_each()
    sides = next(iter(each.values()))
    query = Query(resources=claim.resources) if claim.resources else None
    compared, unknown = compare(each, direction=direction, query=query), sides.premises
    answers = {generation: comparison.differences for generation, comparison in compared.items()}
    counterexamples = [difference for difference, _ in merged(answers)]
    if counterexamples:
        verdict = Verdict(refuted=True, premises=unknown.unknown.turning(allowed=True))
    else:
        could_turn = [turning(unknown, comparison, direction) for comparison in compared.values()]
        verdict = Verdict(refuted=False, premises=next(filter(None, could_turn), ALL_KNOWN))
    return ComparisonProof(
        claim=claim.of_states(states),
        verdict=verdict,
        compared=compared,
        counterexamples=counterexamples,
        topics=next(iter(compared.values())).topics,
    )


# Proofs that no principal, or none of some, may do something.


@frozen(kw_only=True)
class Question:
    """Whether any of some principals may make a request, from a host or from any."""

    claim: Claim
    """That none may."""
    query: Query
    needs: tuple[Need, ...] = ()
    """What an intent needs, instead of operations."""
    requests: tuple[tuple[int, int], ...] | None = None
    """The resource type and the operation of all requests in question, as codes; None if they may be any."""
    only_unnamed: bool = False
    """Whether only principals that nothing names count."""


@frozen(kw_only=True)
class Asked:
    """An operation or an intent, or neither for any access, on resources; on none for any resource."""

    operation: int | None = None
    intent: Intent | None = None
    resources: tuple[ResourcePattern, ...] = ()

    @property
    def narrows(self) -> bool:
        """Whether it is less than every operation on everything."""
        return self.operation is not None or self.intent is not None or bool(self.resources)

    def text(self, which: str, host: str | None) -> str:
        """Return such as `READ on TOPIC orders`; `which` is the word before a prefix: `any` or `some`."""
        named = [
            f"{'' if each.pattern_type == PatternType.LITERAL else f'{which} '}{_resource_text(each)}"
            for each in self.resources
        ]
        where = (" or " if self.intent is None else ", ").join(named) or f"{which} resource"
        what = "access" if self.operation is None else f"{code_name(AclOperation, self.operation)} on"
        what = what if self.intent is None else f"{self.intent} on"
        return f"{what} {where}{'' if host is None else f' from {host}'}"


def _resource_text(pattern: ResourcePattern) -> str:
    kind = ResourceType(pattern.resource_type)
    return kind.name if kind is ResourceType.CLUSTER else f"{kind.name} {pattern_text(pattern)}"


def question_of(
    check: str,
    query: Query,
    asked: Asked,
    *,
    principals: Sequence[str] = (),
    requests: tuple[tuple[int, int], ...] | None = None,
) -> Question:
    """Return the question of a check: not-granted, only or no-public; `query` has the same requests, and no principals.

    `requests` as in Question.

    Raises:
        ConfigError: `only` without principals, or a resource that an intent does not use.

    """
    named = tuple(principals)
    what, some = asked.text("any", query.host), asked.text("some", query.host)
    if check == "not-granted":
        query = evolve(query, principals=only(*named) if named else EVERYONE)
        who = "no principal may" if not named else f"{named[0]} may not" if len(named) == 1 else _none_of(named)
        text, negation = f"{who} {what}", f"{_one_of(named)} may {some}"
    elif check == "only":
        if not named:
            raise ConfigError("--principal is missing: expected the principals that may do it")
        query = evolve(query, principals=everyone_but(*named))
        text = f"no principal except {', '.join(named)} may {what}"
        negation = f"at least one principal other than {', '.join(named)} may {some}"
    elif asked.narrows:
        text, negation = f"{_UNNAMED_OTHERS} may not {what}", f"{_UNNAMED} may {some}"
    else:
        text, negation = f"{_UNNAMED_OTHERS} have no access", f"{_UNNAMED} have some access"
    return Question(
        claim=Claim(check=check, text=text, negation=negation),
        query=query,
        needs=() if asked.intent is None else needs_of(asked.intent, asked.resources),
        requests=requests,
        only_unnamed=check == "no-public",
    )


_UNNAMED = "principals not named in any rule"
_UNNAMED_OTHERS = f"{_UNNAMED}, except super users,"


def _none_of(principals: Sequence[str]) -> str:
    return f"none of {', '.join(principals)} may"


def _one_of(principals: Sequence[str]) -> str:
    if len(principals) == 1:
        return principals[0]
    return f"at least one of {', '.join(principals)}" if principals else "at least one principal"


@frozen(eq=False, kw_only=True)
class PermissionProof:
    """Whether no permission is what the claim rules out."""

    claim: Claim
    verdict: Verdict
    policies: Mapping[Generation, Policy]
    """The queried policies, by the generation of Kafka that may decide."""
    origins: Origins
    """The locations of their rules."""
    counterexamples: Sequence[tuple[Permission, Generation | None]]
    """Each with the generation that alone allows it, if it is one of several."""
    topics: ExistingNames | None

    def deciding(self, permission: Permission, generation: Generation | None) -> StandardAcl | str | None:
        """Return what decides an example of a counterexample."""
        policy = next(iter(self.policies.values())) if generation is None else self.policies[generation]
        return deciding(policy, witness(permission.region))

    def head(self) -> JsonObject:
        """Return the object of the verdict."""
        return _head(self.claim, self.verdict, [each.region for each, _ in self.counterexamples], self.topics)

    def refutations(self) -> Iterator[JsonObject]:
        """Yield an object for each counterexample."""
        for permission, generation in self.counterexamples:
            rule = decided_by_object(self.deciding(permission, generation), self.origins)
            line = {**permission_object(permission, self.origins), "rule": rule, **generation_object(generation)}
            if self.topics is not None and permission.region.resource_type == ResourceType.TOPIC:
                line["topics"] = len(self.topics.among(permission.region.names))
            yield line


def prove_none(
    question: Question, choice: ChosenSource, stated: StatedSettings, *, topics: NameFile | None = None
) -> PermissionProof:
    """Prove that no principal may make the requests; `topics`: existing ones. Notes unknown settings.

    Raises:
        ConfigError: malformed input.
        MetadataError, OSError: the source is damaged or cannot be read.

    """
    image, query = choice.image(), question.query
    policies = policies_of(image, stated, question.requests)
    premises = read_premises(choice, stated.configs())
    existing = existing_topics(topics, [image], [choice])
    allowed: dict[Generation, Iterable[Permission]] = {
        generation: granted(policy, question.needs, query, unnamed=question.only_unnamed)
        for generation, policy in policies.items()
    }
    answers = merged(allowed, permission_key)
    counterexamples = [
        (each, generation)
        for each, generation in tracked(answers, "looking for who may", "permissions")
        if each.region.principals.complement or not question.only_unnamed
    ]
    refuted = bool(counterexamples)
    return PermissionProof(
        claim=question.claim,
        verdict=Verdict(refuted=refuted, premises=premises.turning(allowed=refuted)),
        policies=policies,
        origins=choice.origins,
        counterexamples=counterexamples,
        topics=existing,
    )
