"""Proofs about one state or two, over all principals, hosts and names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from aclog.analysis.comparison import Compared, turning
from aclog.analysis.intents import Need
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
from aclog.analysis.who_can import Permission, intent_permissions, permission_key, permission_object, permissions
from aclog.authorizer.acl import Origins, StandardAcl
from aclog.authorizer.codes import ResourceType
from aclog.authorizer.settings import Generation
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import ConfigError
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
    negation: str
    """The opposite sentence, which holds if the claim is refuted."""


NO_NEW_ACCESS = Claim(
    check="no-new-access",
    text="the second state allows no request that the first one denies",
    negation="the second state allows requests that the first one denies",
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
        return f"{self.name}: {claim.check}: {self.premises.decided(text)}"


def _head(claim: Claim, verdict: Verdict, regions: Sequence[Region], topics: ExistingNames | None) -> JsonObject:
    head: JsonObject = {"check": claim.check, "verdict": verdict.name, "regions": len(regions)}
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
    compared, unknown = compare(each, direction=direction), sides.premises
    answers = {generation: comparison.differences for generation, comparison in compared.items()}
    counterexamples = [difference for difference, _ in merged(answers)]
    if counterexamples:
        verdict = Verdict(refuted=True, premises=unknown.unknown.turning(allowed=True))
    else:
        could_turn = [turning(unknown, comparison, direction) for comparison in compared.values()]
        verdict = Verdict(refuted=False, premises=next(filter(None, could_turn), ALL_KNOWN))
    return ComparisonProof(
        claim=claim,
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


def question_of(
    check: str,
    query: Query,
    *,
    principals: Sequence[str] = (),
    needs: tuple[Need, ...] = (),
    requests: tuple[tuple[int, int], ...] | None = None,
    narrows: bool = True,
) -> Question:
    """Return the question of a check: not-granted, only or no-public; `query` names no principals.

    `needs` and `requests` as in Question; `narrows`: whether the question is less than every operation on everything.

    Raises:
        ConfigError: `only` without principals.

    """
    named = tuple(principals)
    if check == "not-granted":
        query = evolve(query, principals=only(*named) if named else EVERYONE)
        who = "no principal may" if not named else f"{named[0]} may not" if len(named) == 1 else _none_of(named)
        text, negation = f"{who} do it", f"{_one_of(named)} may do it"
    elif check == "only":
        if not named:
            raise ConfigError("--principal is missing: expected the principals that may do it")
        query = evolve(query, principals=everyone_but(*named))
        text = f"no principal except {', '.join(named)} may do it"
        negation = f"at least one principal other than {', '.join(named)} may do it"
    else:
        none, some = ("none", "some") if narrows else ("no access", "some access")
        what = " of the given permissions" if narrows else ""
        text = f"principals not named in any rule have {none}{what}"
        negation = f"principals not named in any rule have {some}{what}"
    return Question(
        claim=Claim(check=check, text=text, negation=negation),
        query=query,
        needs=needs,
        requests=requests,
        only_unnamed=check == "no-public",
    )


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
        generation: (
            intent_permissions(policy, question.needs, principals=query.principals, host=query.host)
            if question.needs
            else permissions(policy, query, unnamed=question.only_unnamed)
        )
        for generation, policy in policies.items()
    }
    granted = merged(allowed, permission_key)
    counterexamples = [
        (each, generation)
        for each, generation in tracked(granted, "looking for who may", "permissions")
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
