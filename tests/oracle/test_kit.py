"""Small runs of the kit (`make oracle`) for the releases that aclog supports, and what it reports of a newer one."""

from collections.abc import Sequence

import pytest
from attrs import evolve

from aclog.authorizer.settings import Generation
from tests.oracle.kit.apis import check_apis
from tests.oracle.kit.assumptions import assumed_generation
from tests.oracle.kit.codes import check_codes
from tests.oracle.kit.creation import check_creation
from tests.oracle.kit.decisions import check_decisions
from tests.oracle.kit.levels import check_levels
from tests.oracle.kit.record_schemas import check_record_schemas
from tests.oracle.kit.report import report
from tests.oracle.kit.tool_outputs import check_tools
from tests.oracle.kit.values import Difference, Outcome
from tests.support.kafka.jvm import KAFKA_VERSION
from tests.support.kafka.release_facts import FieldFacts, ReleaseFacts, release_facts

VERSIONS = (KAFKA_VERSION, "4.4.0")
DECISIONS = 4000


@pytest.fixture(params=VERSIONS)
def facts(request: pytest.FixtureRequest) -> ReleaseFacts:
    return release_facts(request.param)


def test_the_facts_are_those_of_the_release(facts: ReleaseFacts) -> None:
    assert facts.version in VERSIONS
    assert len(facts.records) > 20
    assert len(facts.apis) > 80


@pytest.mark.slow(8)
def test_no_decision_and_no_named_rule_differs(facts: ReleaseFacts) -> None:
    outcome = check_decisions(facts.version, decisions=DECISIONS, seed=33, workers=1)
    assert outcome.compared >= DECISIONS
    assert outcome.differences == ()


def test_classes_are_what_aclog_assumes(facts: ReleaseFacts) -> None:
    outcomes = (check_record_schemas(facts, seed=33), check_levels(facts), check_apis(facts), check_codes(facts))
    assert [outcome.differences for outcome in outcomes] == [()] * 4


@pytest.mark.slow(6)
def test_the_controller_refuses_what_aclog_refuses(facts: ReleaseFacts) -> None:
    assert check_creation(facts, every_level=False).differences == ()


@pytest.mark.slow(30)
def test_tools_print_what_those_of_4_3_1_print(facts: ReleaseFacts) -> None:
    assert check_tools(facts, seed=33).differences == ()


def subjects(outcome: Outcome) -> list[str]:
    return [difference.subject for difference in outcome.differences]


def test_a_new_field_a_lost_field_and_a_new_record_are_seen() -> None:
    facts = release_facts(KAFKA_VERSION)
    by_name = {record.name: record for record in facts.records}
    rule, token = by_name["ACCESS_CONTROL_ENTRY_RECORD"], by_name["DELEGATION_TOKEN_RECORD"]
    more = FieldFacts(name="note", type={"plain": "COMPACT_STRING"}, tag=None)
    wider = evolve(rule, versions={0: (*rule.versions[0], more)})
    newer = evolve(rule, versions={**rule.versions, 1: (*rule.versions[0], more)})
    tagged = evolve(rule, versions={0: (*rule.versions[0], evolve(more, tag=0))})
    less = evolve(token, versions={0: token.versions[0][1:]})
    swapped = evolve(token, versions={0: (token.versions[0][1], token.versions[0][0], *token.versions[0][2:])})
    new = evolve(rule, name="SOMETHING_RECORD", api_key=99)
    for record, subject in (
        (wider, "ACCESS_CONTROL_ENTRY_RECORD version 0"),
        (newer, "ACCESS_CONTROL_ENTRY_RECORD version 1"),
        (tagged, "ACCESS_CONTROL_ENTRY_RECORD version 0"),
        (less, "DELEGATION_TOKEN_RECORD version 0"),
        (swapped, "DELEGATION_TOKEN_RECORD version 0"),
        (new, "record 99"),
    ):
        assert subjects(check_record_schemas(evolve(facts, records=(record,)), seed=1)) == [subject]


def test_what_aclog_reads_of_a_record_that_it_keeps_as_bytes_is_compared() -> None:
    facts = release_facts(KAFKA_VERSION)
    (topic,) = (record for record in facts.records if record.name == "TOPIC_RECORD")
    turned = evolve(topic, versions={0: tuple(reversed(topic.versions[0]))})
    assert subjects(check_record_schemas(evolve(facts, records=(turned,)), seed=1)) == ["TOPIC_RECORD version 0"]


def test_a_new_level_a_new_gate_and_a_new_feature_are_seen() -> None:
    facts = release_facts(KAFKA_VERSION)
    newest = [level for level in facts.levels if level.is_production][-1]
    later = evolve(newest, level=99, name="9.9-IV0", gates={**newest.gates, "isSomethingSupported": True})
    levels = (*(evolve(each, gates={**each.gates, "isSomethingSupported": False}) for each in facts.levels), later)
    feature = evolve(facts.features[0], name="something.version")
    outcome = check_levels(evolve(facts, levels=levels, newest_level=99, features=(*facts.features, feature)))
    assert subjects(outcome) == [
        "the newest production level",
        "the rules of decisions by the newest level that a broker registers",
        "metadata.version 99, its name",
        "metadata.version 99, format",
        "MetadataVersion.isSomethingSupported",
        "something.version",
    ]
    assert "True from level 99" in outcome.differences[4].kafka


def test_a_new_api_a_new_version_and_a_new_error_are_seen() -> None:
    facts = release_facts(KAFKA_VERSION)
    by_key = {api.key: api for api in facts.apis}
    acls = evolve(by_key[29], newest=by_key[29].newest + 1, flexible=(*by_key[29].flexible, True))
    new = evolve(by_key[29], key=199, name="Something")
    apis = (*(api for api in facts.apis if api.key != 29), acls, new)
    outcome = check_apis(evolve(facts, apis=apis, errors={**facts.errors, 999: "SOMETHING", 42: "OTHER"}))
    assert subjects(outcome) == [
        "API 199",
        "API 29 DescribeAcls on a broker",
        "API 29 DescribeAcls on a controller",
        "error 42, of clients",
        "error 42, of nodes",
        "error 999, of clients",
    ]


def test_a_new_code_and_a_new_operation_of_a_type_are_seen() -> None:
    facts = release_facts(KAFKA_VERSION)
    codes = {**facts.codes, "AclOperation": {**facts.codes["AclOperation"], "SOMETHING": 16}}
    supported = {**facts.supported_operations, "USER": (*facts.supported_operations["USER"], "SOMETHING")}
    outcome = check_codes(evolve(facts, codes=codes, supported_operations=supported))
    assert subjects(outcome) == ["AclOperation.SOMETHING", "operations on USER"]


def test_of_a_release_that_aclog_does_not_know_the_newest_rules_are_compared() -> None:
    assert assumed_generation("99.0.0") is max(Generation, key=lambda each: each.value) is Generation.V4_4
    facts = evolve(release_facts(KAFKA_VERSION), version="99.0.0")
    assert "the rules of decisions" in subjects(check_levels(facts))


@pytest.mark.parametrize(
    ("differences", "last"), [((), "no difference"), ((Difference(subject="s", kafka="k", aclog="a"),), "1 difference")]
)
def test_the_report_has_a_table_and_every_difference(differences: Sequence[Difference], last: str) -> None:
    outcome = Outcome(check="levels", compared=1234, differences=tuple(differences), notes=("a note",))
    lines = report(release_facts(KAFKA_VERSION), [outcome], 5).splitlines()
    assert f"levels{'1,234':>28}{len(differences):>12}" in lines
    assert "  a note" in lines
    assert lines[-1] == last
    assert ("levels: s" in lines) is bool(differences)
