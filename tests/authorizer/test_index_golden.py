"""The index against the golden sets: decision and rule of the real StandardAuthorizer."""

from uuid import UUID

import pytest

from authorizer.acl import StandardAclWithId
from authorizer.acls_image import AclsImage, Verdict
from authorizer.errors import InvalidRequestError
from authorizer.super_users import parse_allow_everyone, parse_super_users
from tests.support import golden


def with_ids(acls) -> list[StandardAclWithId]:
    return [
        StandardAclWithId(id=UUID(int=(n + 2) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)), acl=acl)
        for n, acl in enumerate(acls)
    ]


def from_acls(acls) -> AclsImage:
    return AclsImage.from_acls(with_ids(acls))


def answer(image: AclsImage, estate: golden.GoldenEstate, request: golden.GoldenRequest) -> tuple[str, str]:
    """Letter and rule text, as the golden sets hold them."""
    ask = (request.principal, request.host, request.operation, request.resource_type, request.resource_name)
    if request.principal in parse_super_users(estate.super_users):
        return "A", "SuperUser"
    try:
        verdict = image.verdict(*ask)
        if verdict == Verdict.NO_CANDIDATE:
            return ("A", "DefaultAllow") if parse_allow_everyone(estate.allow_everyone) else ("D", "DefaultDeny")
        rule = image.rule(*ask)
    except InvalidRequestError as e:
        return "E", str(e)
    text = "DefaultDeny" if rule is None else f"MatchingAcl(acl={rule.acl})"
    return "A" if verdict == Verdict.ALLOW else "D", text


def is_answered(expected: golden.GoldenAnswer) -> bool:
    """Whether we answer where Kafka hangs or trips over its own bug (point 4)."""
    return expected.letter == "H" or "StringIndexOutOfBounds" in expected.rule


@pytest.mark.parametrize("number", golden.NUMBERS)
def test_decision_and_rule(number):
    estate = golden.load(number)
    image = from_acls(estate.acls)
    for request, expected in zip(estate.requests, estate.answers, strict=True):
        if request.resource_name is None:
            continue
        letter, rule = answer(image, estate, request)
        if is_answered(expected):
            assert letter in "AD", request
        elif expected.letter == "E":
            assert letter == "E", (request, expected)
        else:
            assert (letter, rule) == (expected.letter, expected.rule), request
