"""Intents beside what Kafka's own clients met on a real Kafka (tests/data): each holds where its client worked."""

import json

import pytest

from aclog.analysis.policy import Policy
from aclog.analysis.who_can import holders
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.sources.acl_lines import parse_acl
from tests.support.kafka.intent_trials import KINDS, trials
from tests.support.kafka.intents import RUN, recorded, row

TRIALS = {trial.name: trial for trial in trials(KINDS, RUN)}
ERRORS = {each["trial"]: each["error"] for each in recorded()}


def test_what_intents_say_is_what_was_tried() -> None:
    tried = {each["trial"]: each["rules"] for each in recorded()}
    assert tried == {trial.name: row(trial)["rules"] for trial in TRIALS.values()}


def test_a_client_works_with_the_least_rules_alone() -> None:
    assert [name for name, error in ERRORS.items() if not error] == [f"{kind}: with all rules" for kind in KINDS]
    waiting = [name for name, error in ERRORS.items() if error and not error.startswith("refused: ")]
    assert waiting == ["stream, KIP-1071: without CREATE of internal", "stream, KIP-1071: denied CREATE of internal"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_intent_holds_where_its_client_worked(kind: str) -> None:
    for trial in (each for each in TRIALS.values() if each.name.startswith(f"{kind}: ")):
        policy = Policy(AclsImage.from_acls(parse_acl(json.dumps(rule).encode()) for rule in trial.rules), Settings())
        held = any(f"User:{trial.client['user']}" in each.principals for each in holders(policy, trial.needs))
        assert held == trial.holds, trial.name
        assert ERRORS[trial.name] or held, trial.name
