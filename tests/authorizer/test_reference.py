"""The naive model against recorded decisions of the real StandardAuthorizer."""

import pytest

from aclog.authorizer.interface import InvalidRequestError
from aclog.authorizer.settings import parse_allow_everyone, parse_super_users
from tests.support.models import golden
from tests.support.models.reference import ReferenceAuthorizer

_NO_ANSWER_IN_KAFKA = ("HANG", "java.lang.StringIndexOutOfBoundsException")


def answer(reference, request):
    if request.resource_name is None:
        return reference.by_resource_type(request.principal, request.host, request.operation, request.resource_type)
    return reference.decide(
        request.principal, request.host, request.operation, request.resource_type, request.resource_name
    )


@pytest.mark.parametrize("number", golden.NUMBERS)
@pytest.mark.sample(5)
def test_golden_set(number):
    estate = golden.load(number)
    reference = ReferenceAuthorizer(
        estate.acls, parse_super_users(estate.super_users), parse_allow_everyone(estate.allow_everyone)
    )
    differing = []
    for request, kafka in zip(estate.requests, estate.answers, strict=True):
        try:
            decision, rule = answer(reference, request)
        except InvalidRequestError as e:
            if kafka.letter != "E" or str(e) != kafka.rule.partition(": ")[2]:
                differing.append((request, kafka, str(e)))
            continue
        if kafka.letter in "EH":
            as_expected = kafka.rule.startswith(_NO_ANSWER_IN_KAFKA)
        else:
            as_expected = (decision[0], rule) == (kafka.letter, kafka.rule)
        if not as_expected:
            differing.append((request, kafka, decision, rule))
    assert not differing[:3]
    assert len(estate.requests) >= 3508


@pytest.mark.parametrize("number", ["034", "035", "036"])
def test_knows_where_kafka_gives_no_answer(number):
    estate = golden.load(number)
    reference = ReferenceAuthorizer(estate.acls, allow_everyone=True)
    for request, kafka in zip(estate.requests, estate.answers, strict=True):
        if request.resource_name is None:
            continue
        stuck = reference.stuck(
            request.principal, request.host, request.operation, request.resource_type, request.resource_name
        )
        assert stuck == {"E": "throws", "H": "hangs"}.get(kafka.letter), (request, kafka)
