"""Which tests of rules turn as a log goes on; only those are run that a change can bear on."""

from random import Random

import pytest
from attrs import define, evolve, field

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Query
from aclog.analysis.rule_tests.case import Case, CaseSubject, Outcome, parse_resource
from aclog.analysis.rule_tests.expectations import Can, Cannot, CanOnly, WhoCan
from aclog.analysis.rule_tests.recording import recorded
from aclog.authorizer.acl import FileOrigin, ResourcePattern, StandardAcl
from aclog.authorizer.acls_image import RuleChange, changes_between
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Generation, Settings
from aclog.cli.test_follow import Color, Policies, Verdicts
from aclog.metalog.errors import LogError
from tests.support.analysis.policies import NAMES, image_of, random_pair

ORIGIN = FileOrigin(file="tests.yaml", line=1)
READ = 1 << AclOperation.READ


def rule(name: str, principal: str = "User:bob") -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )


@define
class Counted:
    """A case that counts how often it is run, and cannot be judged while `broken`."""

    case: Cannot
    runs: int = 0
    broken: bool = False
    test: str = "counted"
    text: str = "counted"
    origin: FileOrigin = field(default=ORIGIN)

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        return self.case.queries(settings)

    def run(self, policy: Policy) -> Outcome:
        self.runs += 1
        if self.broken:
            raise LogError("prod: no such directory")
        return self.case.run(policy)


def cannot(principal: str, resource: str) -> Counted:
    subject = CaseSubject(principal=principal)
    return Counted(Cannot(test="", origin=ORIGIN, subject=subject, operations=READ, resource=parse_resource(resource)))


def on(policy: Policy) -> Policies:
    """One Kafka decides."""
    return {Generation.V4_3: policy}


def change(acl: StandardAcl, *, added: bool = True) -> RuleChange:
    return RuleChange(added=added, acl=acl)


def test_a_change_turns_what_it_bears_on_and_runs_nothing_else() -> None:
    pii, other, alice = cannot("User:*", "topic:pii.*"), cannot("User:bob", "topic:x"), cannot("User:alice", "topic:*")
    verdicts = Verdicts(cases=[pii, other, alice], settings=Settings())
    assert list(verdicts.first(on(Policy(image_of([]))))) == []
    red = rule("pii.card")
    changed = Policy(image_of([red]))
    (turn,) = verdicts.after(on(changed), [change(red)])
    assert (turn.case, turn.color, turn.changes) == (pii, Color.RED, (change(red),))
    assert (pii.runs, other.runs, alice.runs) == (2, 1, 1)
    assert list(verdicts.after(on(changed), [change(rule("y"))])) == []
    (turn,) = verdicts.after(on(Policy(image_of([]))), [change(red, added=False)])
    assert turn.color is Color.GREEN


def test_what_cannot_be_judged_is_unknown_until_it_can() -> None:
    pii = cannot("User:*", "topic:pii.*")
    verdicts = Verdicts(cases=[pii], settings=Settings())
    assert list(verdicts.first(on(Policy(image_of([]))))) == []
    pii.broken = True
    (turn,) = verdicts.after(on(Policy(image_of([]))), [change(rule("pii.x"))])
    assert (turn.color, turn.problem) == (Color.UNKNOWN, "prod: no such directory")
    pii.broken = False
    (turn,) = verdicts.after(on(Policy(image_of([]))), [change(rule("other"))])  # tried again at any change
    assert turn.color is Color.GREEN


def test_another_kafka_turns_what_only_it_decides_otherwise() -> None:
    pii, other = cannot("User:*", "topic:pii.*"), cannot("User:bob", "topic:x")
    verdicts = Verdicts(cases=[pii, other], settings=Settings())
    acls = image_of([evolve(rule("pii.card"), host="10.0.0.0/8")])
    each = {
        generation: Policy(acls.with_options(documented=False, cidr=generation.has_ranges), own)
        for generation in Generation
        for own in [Settings().of_generation(generation)]
    }
    old, new = ({generation: policy} for generation, policy in each.items())
    assert list(verdicts.first(old)) == []
    (turn,) = verdicts.after(each, [], "the brokers differ")
    assert (turn.case, turn.color, turn.software) == (pii, Color.RED, "the brokers differ")
    assert turn.failures[0].only is Generation.V4_4
    assert turn.failures[0].actual.endswith(" (on Kafka 4.4 only)")
    assert list(verdicts.after(new, [], "all brokers run Kafka 4.4")) == []
    (turn,) = verdicts.after(old, [], "all brokers run Kafka 4.3")
    assert turn.color is Color.GREEN


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sample(6)
def test_what_is_not_run_again_would_not_have_turned(seed: int) -> None:
    random = Random(f"verdicts {seed}")
    for _ in range(6):
        old, new = random_pair(random)
        new = Policy(new.acls, old.settings)
        cases: list[Case] = [
            CanOnly(test="", origin=ORIGIN, subject=each.subject, listed=each.listed) for each in recorded(old)
        ]
        for name in random.sample(NAMES, 4):
            resource = ResourcePattern(resource_type=ResourceType.TOPIC, name=name)
            for principal in ("User:a", "User:*", "User:somebody"):
                subject = CaseSubject(principal=principal, host=random.choice([None, "10.0.0.1"]))
                cases.append(Cannot(test="", origin=ORIGIN, subject=subject, operations=READ, resource=resource))
                cases.append(Can(test="", origin=ORIGIN, subject=subject, operations=READ, resource=resource))
            cases.append(WhoCan(test="", origin=ORIGIN, operations=READ, resource=resource, expected=("User:a",)))
        verdicts = Verdicts(cases=cases, settings=old.settings)
        list(verdicts.first(on(old)))
        list(verdicts.after(on(new), changes_between(old.acls, new.acls)))
        assert [color is Color.GREEN for color in verdicts.colors] == [case.run(new).passed for case in cases]
