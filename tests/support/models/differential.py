"""Our engine and the real StandardAuthorizer on the same estate and the same requests: every difference is an error."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from random import Random

import pyarrow as pa

from aclog.authorizer.acl import ResourcePattern, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage, Basis, Decision, Verdict
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.explain import ExplainOptions, Role, explain
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Generation, Settings, parse_allow_everyone, parse_super_users
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.intervals import AclIntervals, rule_table
from tests.support.builders.acls import record_of
from tests.support.kafka.oracle import Answer, Ask, Estate, OracleProcess, Rule
from tests.support.models.engine_answers import answer_of, decided
from tests.support.models.reference import ReferenceAuthorizer

BASES = {
    Rule.DEFAULT_DENY: Basis.DEFAULT_DENY,
    Rule.DEFAULT_ALLOW: Basis.DEFAULT_ALLOW,
    Rule.SUPER_USER: Basis.SUPER_USER,
}
KAFKA_BUG = "java.lang.StringIndexOutOfBoundsException"
"""What point 4 throws; where it does, and where it never returns, we answer as the rest of the semantics has it."""


def image_of(acls: Sequence[StandardAclWithId], *, changes: int, random: Random) -> AclsImage:
    """An image of these rules of which `changes` in 100 came later, one record after another, amid other comings and
    goings; sometimes merged."""
    late = [entry for entry in acls if random.randrange(100) < changes]
    early = [entry for entry in acls if entry not in late] if late else list(acls)
    removed = random.sample(early, len(early) // 10) if changes else []
    image = AclsImage.from_acls(early)
    for entry in removed:
        image = image.apply([RemoveAccessControlEntryRecord(id=entry.id)])
    image = image.apply([record_of(entry) for entry in (*removed, *late)])
    return image.merged() if changes and random.randrange(4) == 0 else image


def reference_of(estate: Estate, generation: Generation = Generation.V4_3) -> ReferenceAuthorizer:
    """The naive model of an estate."""
    return ReferenceAuthorizer(
        [entry.acl for entry in estate.acls],
        parse_super_users(estate.super_users),
        parse_allow_everyone(estate.allow_everyone),
        cidr=generation.has_ranges,
    )


def with_few_hangs(
    estate: Estate, asks: Sequence[Ask], *, most: int, generation: Generation = Generation.V4_3
) -> list[Ask]:
    """The requests without those on which Kafka never returns, but for the first `most` of them: each takes time."""
    reference, fast = reference_of(estate, generation), []
    for ask in asks:
        hangs = not ask.by_type and ask.principal != "User:*" and reference.stuck(*ask[1:6]) == "hangs"
        most -= hangs
        if not hangs or most >= 0:
            fast.append(ask)
    return fast


class Comparison:
    """One estate in both; `differences` are texts, one a request that was answered otherwise."""

    def __init__(self, estate: Estate, image: AclsImage, generation: Generation = Generation.V4_3) -> None:
        self.estate, self.image = estate, image.with_options(documented=False, cidr=generation.has_ranges)
        self.authorizer = StandardAuthorizer(cache=False, cidr=generation.has_ranges)
        properties = {"super.users": estate.super_users, "allow.everyone.if.no.acl.found": estate.allow_everyone}
        self.authorizer.configure({key: value for key, value in properties.items() if value is not None})
        self.authorizer.load(image)
        self.authorizer.complete_initial_load()
        self.reference = reference_of(estate, generation)

    def both(self, ask: Ask, answer: Answer) -> tuple[str, str] | None:
        """Kafka's answer and ours where they differ, else None."""
        try:
            ours = self._ours(ask)
        except InvalidRequestError as e:
            ours = f"InvalidRequestError: {e}"
        theirs = self._theirs(ask, answer)
        if ours == theirs or (theirs is None and isinstance(ours, str)):
            return None
        return f"{answer} {self._named(answer)}", f"{ours}, expected {theirs}"

    def difference(self, ask: Ask, answer: Answer) -> str | None:
        """What differs, or None."""
        answers = self.both(ask, answer)
        return None if answers is None else f"{ask}: Kafka says {answers[0]}, we say {answers[1]}"

    def _ours(self, ask: Ask) -> tuple[object, ...]:
        context = RequestContext(principal=ask.principal, host=ask.host)
        authorizer, super_user = self.authorizer, ask.principal in self.reference.super_users
        if ask.by_type:
            return self._ours_by_type(ask, context)
        resource = ResourcePattern(resource_type=ask.resource_type, name=ask.name, pattern_type=ask.pattern_type)
        action = Action(operation=ask.operation, resource_pattern=resource)
        (result,) = authorizer.authorize(context, [action])
        decision = authorizer.decide(context, action)
        if decision.result is not result:
            return ("authorize and decide differ", result, decision)
        if not super_user:
            verdict = self.image.verdict(ask.principal, ask.host, ask.operation, ask.resource_type, ask.name)
            if (verdict >= Verdict.ALLOW) != (decision.rule is not None):
                return ("verdict and rule differ", verdict, decision)
        return result is AuthorizationResult.ALLOWED, decision.basis, decision.rule

    def _ours_by_type(self, ask: Ask, context: RequestContext) -> tuple[object, ...]:
        """Our answer for a whole resource type, and the rule that an audit line names: that of the probe."""
        decisions: list[Decision] = []
        self.authorizer.set_audit(lambda _context, _action, decision: decisions.append(decision))
        try:
            result = self.authorizer.authorize_by_resource_type(context, ask.operation, ask.resource_type)
        finally:
            self.authorizer.set_audit(None)
        (probe,) = decisions
        return result is AuthorizationResult.ALLOWED, probe.basis, probe.rule

    def explained_otherwise(self, ask: Ask) -> str | None:
        """Where `explain` marks another rule than the one that `decide` names."""
        if ask.by_type:
            return None
        context = RequestContext(principal=ask.principal, host=ask.host)
        resource = ResourcePattern(resource_type=ask.resource_type, name=ask.name, pattern_type=ask.pattern_type)
        action = Action(operation=ask.operation, resource_pattern=resource)
        try:
            decision = self.authorizer.decide(context, action)
            answer = explain(self.image, decision, context, action, options=ExplainOptions(limit=len(self.estate.acls)))
        except InvalidRequestError:
            return None
        marked = [examined.rule for examined in answer.rules if examined.role is Role.DECIDES]
        expected = [] if decision.rule is None else [decision.rule]
        return None if marked == expected else f"{ask}: {decision} is decided, {marked} explained"

    def decided_in_bulk_otherwise(self, asks: Sequence[Ask]) -> Iterator[str]:
        """Where the bulk authorizer that Spark runs names another rule than `decide`."""
        settings = Settings.of_texts(self.estate.super_users, self.estate.allow_everyone)
        single = [ask for ask in asks if not ask.by_type and ask.operation > AclOperation.ANY]
        requests = [
            (ask.principal, ask.host, AclOperation(ask.operation).name, ResourceType(ask.resource_type).name, ask.name)
            for ask in single
        ]
        columns = [pa.array(column, pa.string()) for column in zip(*requests, strict=True)]
        table = rule_table(self.image)
        codes = BulkAuthorizer.of(AclIntervals.of_table(table), settings).decide(columns).tolist() if columns else []
        for ask, request, code in zip(single, requests, codes, strict=True):
            expected = decided(self.authorizer, *request)
            if answer_of(code, table) != expected[:2]:
                yield f"{ask}: in bulk {answer_of(code, table)}, one by one {expected}"

    def _theirs(self, ask: Ask, answer: Answer) -> tuple[object, ...] | None:
        """What we must answer; None for an error."""
        if answer.letter == "H" or answer.error.startswith(KAFKA_BUG):
            return self._reference(ask)
        if answer.letter == "E":
            return None
        if answer.rule >= 0:
            return answer.letter == "A", Basis.MATCHING_ACL, self.estate.acls[answer.rule]
        return answer.letter == "A", BASES[Rule(answer.rule)], None

    def _reference(self, ask: Ask) -> tuple[object, ...]:
        """Decision and rule of the reference model, in the form of `_ours`."""
        request = ask.principal, ask.host, ask.operation, ask.resource_type
        if ask.by_type:
            result, text = self.reference.by_resource_type(*request)
            text = text.removeprefix("hardcode:")
        else:
            result, text = self.reference.decide(*request, ask.name)
        allowed = result == "ALLOWED"
        rule = next((entry for entry in self.estate.acls if f"MatchingAcl(acl={entry.acl})" == text), None)
        return allowed, Basis.MATCHING_ACL if rule else Basis(text), rule

    def reference_difference(self, ask: Ask, answer: Answer) -> str | None:
        """The same for the reference model, which also tells where Kafka gives no answer."""
        try:
            actual = self._reference(ask)
        except InvalidRequestError:
            actual = None
        expected = self._theirs(ask, answer)
        if actual != expected:
            return f"{ask}: Kafka says {answer} {self._named(answer)}, the reference {actual}"
        if not ask.by_type and answer.letter != "E":
            stuck = self.reference.stuck(*ask[1:6])
            if (stuck == "hangs") != (answer.letter == "H"):
                return f"{ask}: Kafka says {answer}, the reference {stuck}"
        return None

    def _named(self, answer: Answer) -> str:
        return str(self.estate.acls[answer.rule].acl) if answer.rule >= 0 else ""


def compare(oracle: OracleProcess, estate: Estate, image: AclsImage, asks: Sequence[Ask]) -> list[str]:
    """All differences between Kafka and us on one estate, at most twenty."""
    texts = oracle.load(estate)
    printed = [
        f"Kafka prints {text}, we print {entry.acl}"
        for text, entry in zip(texts, estate.acls, strict=True)
        if text != str(entry.acl)
    ]
    return printed[:20] or differences(estate, image, asks, oracle.decide(asks))


def differences(
    estate: Estate,
    image: AclsImage,
    asks: Sequence[Ask],
    answers: Sequence[Answer],
    *,
    reference: bool = False,
    generation: Generation = Generation.V4_3,
) -> list[str]:
    """Where our answers are not Kafka's, at most twenty; with `reference`, also where the reference model's are not."""
    comparison = Comparison(estate, image, generation)
    checks = [comparison.difference, *([comparison.reference_difference] if reference else ())]
    both = zip(asks, answers, strict=True)
    texts = (check(ask, answer) for ask, answer in both for check in checks)
    return list(islice(filter(None, texts), 20))


def other_paths(estate: Estate, image: AclsImage, asks: Sequence[Ask], *, explained: int) -> list[str]:
    """Where `explain`, for the first `explained` requests, or a batch name another rule than a single decision."""
    comparison = Comparison(estate, image)
    texts = filter(None, map(comparison.explained_otherwise, asks[:explained]))
    return list(islice(chain(texts, comparison.decided_in_bulk_otherwise(asks)), 20))
