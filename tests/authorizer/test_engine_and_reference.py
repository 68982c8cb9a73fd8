"""The engine against the naive model, on estates of all kinds, with ranges and ACLs that only records can hold."""

from uuid import UUID

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import ResourcePattern, StandardAclWithId, deciding_filter
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType
from aclog.authorizer.index.queries import filter_matches
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.settings import parse_allow_everyone, parse_super_users
from aclog.authorizer.standard import StandardAuthorizer
from tests.support.models import estates
from tests.support.models.reference import ReferenceAuthorizer
from tests.support.runs.profiles import examples


def authorizer_of(estate, *, documented, cidr):
    authorizer = StandardAuthorizer(documented=documented, cidr=cidr)
    properties = {"super.users": estate.super_users, "allow.everyone.if.no.acl.found": estate.allow_everyone}
    authorizer.configure({key: value for key, value in properties.items() if value is not None})
    authorizer.load(
        AclsImage.from_acls(StandardAclWithId(id=UUID(int=i), acl=rule) for i, rule in enumerate(estate.acls, 2))
    )
    authorizer.complete_initial_load()
    return authorizer


def answer_of_engine(authorizer, request):
    """Return the decision, and the text of the ACL if one is named."""
    context = RequestContext(principal=request.principal, host=request.host)
    if request.resource_name is None:
        answer = authorizer.authorize_by_resource_type(context, request.operation, request.resource_type)
        return answer.value, None
    pattern = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
    action = Action(operation=request.operation, resource_pattern=pattern)
    decision = authorizer.decide(context, action)
    assert authorizer.authorize(context, [action]) == [decision.result]
    return decision.result.value, decision.text


def answer_of_model(model, request):
    if request.resource_name is None:
        answer, _ = model.by_resource_type(
            request.principal, request.host, request.operation, request.resource_type
        )  # fmt: skip
        return answer, None
    return model.decide(
        request.principal, request.host, request.operation, request.resource_type, request.resource_name
    )


def answer_or_error(function, *arguments):
    try:
        return function(*arguments)
    except InvalidRequestError:
        return "error"


@pytest.mark.parametrize(
    ("odd", "cidr", "documented"),
    [(False, False, False), (True, False, False), (False, True, False), (True, True, True)],
    ids=["plain", "odd", "ranges", "all of it"],
)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_same_answers(data, odd, cidr, documented):
    estate = data.draw(estates.estates(odd=odd, cidr=cidr))
    requests = data.draw(st.lists(estates.requests(odd=odd), min_size=8, max_size=8))
    authorizer = authorizer_of(estate, documented=documented, cidr=cidr)
    model = ReferenceAuthorizer(
        estate.acls,
        parse_super_users(estate.super_users),
        parse_allow_everyone(estate.allow_everyone),
        documented=documented,
        cidr=cidr,
    )
    for request in requests:
        ours = answer_or_error(answer_of_engine, authorizer, request)
        assert ours == answer_or_error(answer_of_model, model, request), request


@pytest.mark.parametrize(("cidr", "documented"), [(False, False), (True, False), (False, True)])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_the_acls_that_a_filter_selects_for_a_request_decide_as_all_do(data, cidr, documented):
    """A command requests no others of a running cluster."""
    estate = data.draw(estates.estates(cidr=cidr))
    authorizer = authorizer_of(estate, documented=documented, cidr=cidr)
    for request in data.draw(st.lists(estates.requests(), min_size=8, max_size=8)):
        selection = deciding_filter(request.resource_type, request.resource_name, PatternType.LITERAL)
        own = evolve(estate, acls=[each for each in estate.acls if filter_matches(selection, each)])
        narrow = authorizer_of(own, documented=documented, cidr=cidr)
        assert answer_or_error(answer_of_engine, narrow, request) == answer_or_error(
            answer_of_engine, authorizer, request
        ), request
