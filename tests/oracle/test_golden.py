"""The golden requests, put to the real StandardAuthorizer again: it, its recorded answers and our engine are one."""

from collections.abc import Sequence

import pytest

from aclog.authorizer.acls_image import AclsImage
from tests.support.builders.images import with_ids
from tests.support.kafka.oracle import Answer, Ask, Estate, OracleProcess, Rule
from tests.support.models import golden
from tests.support.models.differential import BASES, differences

LETTERS = {golden.NUMBERS[0]: "D", golden.NUMBERS[1]: "A", "034": "ADEH", "055": "ADE"}
"""What must be among the answers to some of the estates: the comparison is not one of nothing."""


@pytest.mark.sample(19)
@pytest.mark.parametrize("number", golden.NUMBERS)
def test_the_real_authorizer_answers_as_recorded_and_so_do_we(number: str, oracle: OracleProcess) -> None:
    recorded = golden.load(number)
    acls = with_ids(recorded.acls)
    estate = Estate(acls=acls, super_users=recorded.super_users, allow_everyone=recorded.allow_everyone)
    asks = [ask_of(request) for request in recorded.requests]
    texts = oracle.load(estate)
    assert texts == [str(acl) for acl in recorded.acls]
    answers = oracle.decide(asks)
    both = zip(asks, answers, recorded.answers, strict=True)
    differing = [(ask, answer, was) for ask, answer, was in both if written(ask, answer, texts) != as_written(was)]
    assert differing[:20] == []
    assert differences(estate, AclsImage.from_acls(acls), asks, answers) == []
    assert {answer.letter for answer in answers} >= set(LETTERS.get(number, ""))


def ask_of(request: golden.GoldenRequest) -> Ask:
    by_type, name = request.resource_name is None, request.resource_name or ""
    return Ask(by_type, request.principal, request.host, request.operation, request.resource_type, name)


def written(ask: Ask, answer: Answer, texts: Sequence[str]) -> tuple[str, str]:
    """Letter and rule, as the golden sets have them."""
    if answer.letter in {"E", "H"}:
        return answer.letter, answer.error
    rule = f"MatchingAcl(acl={texts[answer.rule]})" if answer.rule >= 0 else BASES[Rule(answer.rule)].value
    return answer.letter, f"hardcode:{rule}" if ask.by_type else rule


def as_written(answer: golden.GoldenAnswer) -> tuple[str, str]:
    """Letter and rule; no rule where Kafka never returns."""
    return answer.letter, "" if answer.letter == "H" else answer.rule
