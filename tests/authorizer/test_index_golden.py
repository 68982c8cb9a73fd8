"""The index against the golden sets, on each path: decision and rule of the real StandardAuthorizer."""

from random import Random

import pytest

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from tests.support.builders.images import by_changes, columns_of, with_ids
from tests.support.models import golden
from tests.support.models.native_paths import PATHS, through


def authorizer_of(estate: golden.GoldenEstate, image: AclsImage) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(cache=False)
    properties = {"super.users": estate.super_users, "allow.everyone.if.no.acl.found": estate.allow_everyone}
    authorizer.configure({key: value for key, value in properties.items() if value is not None})
    authorizer.load(image)
    authorizer.complete_initial_load()
    return authorizer


def answer(authorizer: StandardAuthorizer, request: golden.GoldenRequest) -> tuple[str, str]:
    """Return the letter and the text of the ACL, as in the golden sets."""
    context = RequestContext(principal=request.principal, host=request.host, request_type=request.api)
    try:
        if request.resource_name is None:
            result = authorizer.authorize_by_resource_type(context, request.operation, request.resource_type)
            return "A" if result is AuthorizationResult.ALLOWED else "D", ""
        pattern = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
        decision = authorizer.decide(context, Action(operation=request.operation, resource_pattern=pattern))
    except InvalidRequestError as e:
        return "E", str(e)
    return "A" if decision.result is AuthorizationResult.ALLOWED else "D", decision.text


def check(authorizer: StandardAuthorizer, request: golden.GoldenRequest, expected: golden.GoldenAnswer) -> None:
    letter, rule = answer(authorizer, request)
    if expected.letter == "H" or "StringIndexOutOfBounds" in expected.rule:
        assert letter in {"A", "D"}, request  # Kafka trips over its own bug: rule 1 decides here
    elif expected.letter == "E" or request.resource_name is None:
        assert letter == expected.letter, (request, expected)
    else:
        assert (letter, rule) == (expected.letter, expected.rule), request


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("number", golden.NUMBERS)
@pytest.mark.sample(10)
def test_every_answer_is_kafkas(number, path):
    estate = golden.load(number)
    authorizer = authorizer_of(estate, through(path, AclsImage.from_acls(with_ids(estate.acls))))
    for request, expected in zip(estate.requests, estate.answers, strict=True):
        check(authorizer, request, expected)


@pytest.mark.slow(1)
@pytest.mark.parametrize("number", golden.NUMBERS)
def test_whatever_way_the_image_came_to_be(number):
    estate, random = golden.load(number), Random(number)
    rules = with_ids(estate.acls)
    changed = by_changes(rules, random)
    read = AclsImage.from_columns(columns_of(rules))
    asked = random.sample(range(len(estate.requests)), min(300, len(estate.requests)))
    for image in (changed, changed.merged(), read):
        assert sorted(image, key=str) == sorted(rules, key=str)
        assert len(image) == len(rules)
        for path in PATHS:
            authorizer = authorizer_of(estate, through(path, image))
            for k in asked:
                check(authorizer, estate.requests[k], estate.answers[k])
