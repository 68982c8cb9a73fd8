"""Many requests at once are answered as they are one by one, whichever way they are decided."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import AclOperation, ResourcePattern, ResourceType
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.batch import Answer, BatchAuthorizer, RequestColumns
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index import batch as index_batch
from aclog.authorizer.index.tables import PairedTable
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.authorizer.super_users import parse_allow_everyone, parse_super_users
from aclog.metalog.errors import ConfigError
from tests.support.builders.images import by_changes, with_ids
from tests.support.models import estates, golden


def table_of(requests) -> pa.Table:
    return pa.table(
        {
            "principal": pa.array([r.principal for r in requests], pa.string()),
            "host": pa.array([r.host for r in requests], pa.string()).dictionary_encode(),
            "operation": pa.array([AclOperation(r.operation).name for r in requests], pa.string()),
            "resourceType": pa.array([int(r.resource_type) for r in requests], pa.int8()),
            "resourceName": pa.array([r.resource_name for r in requests], pa.large_string()),
        }
    )


def one_by_one(authorizer: StandardAuthorizer, requests) -> list[Answer]:
    answers = []
    for r in requests:
        pattern = ResourcePattern(resource_type=r.resource_type, name=r.resource_name)
        context = RequestContext(principal=r.principal, host=r.host)
        try:
            (result,) = authorizer.authorize(context, [Action(operation=r.operation, resource_pattern=pattern)])
            answers.append(Answer.ALLOWED if result is AuthorizationResult.ALLOWED else Answer.DENIED)
        except InvalidRequestError:
            answers.append(Answer.ERROR)
    return answers


def check(image: AclsImage, requests, super_users: str | None, allow_everyone: str | None) -> None:
    authorizer = StandardAuthorizer(documented=image.documented, cidr=image.cidr)
    properties = {"super.users": super_users, "allow.everyone.if.no.acl.found": allow_everyone}
    authorizer.configure({key: value for key, value in properties.items() if value is not None})
    authorizer.load(image)
    authorizer.complete_initial_load()
    at_once = BatchAuthorizer(
        image=image,
        super_users=parse_super_users(super_users),
        allow_everyone=parse_allow_everyone(allow_everyone),
    )
    answers = at_once.authorize(RequestColumns.from_arrow(table_of(requests)))
    assert [Answer(code) for code in answers.tolist()] == one_by_one(authorizer, requests)


@pytest.fixture(params=["one by one", "distinct with numpy", "all with numpy"])
def way(request, monkeypatch):
    """Small batches are decided one by one: make believe that they are large."""
    if request.param != "one by one":
        monkeypatch.setattr("aclog.authorizer.batch._FEW", 0)
        monkeypatch.setattr(index_batch, "_CHUNK", 64)
        monkeypatch.setattr(index_batch, "MOST_LEVELS", 2)
    if request.param == "all with numpy":
        monkeypatch.setattr(index_batch.Askings, "repeat", lambda self: False)
    return request.param


@pytest.mark.parametrize("number", [*golden.NUMBERS[::4], "055", "031"])
def test_golden_estates(number, way):
    estate, random = golden.load(number), Random(number)
    image = by_changes(with_ids(estate.acls), random)
    asked = [r for r in estate.requests if r.resource_name is not None]
    requests = random.sample(asked, min(400, len(asked)))
    check(image, requests, estate.super_users, estate.allow_everyone)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), documented=st.booleans(), cidr=st.booleans(), numpy=st.booleans())
def test_any_estate(data, documented, cidr, numpy):
    estate = data.draw(estates.estates(odd=True, cidr=cidr))
    drawn = data.draw(st.lists(estates.requests(odd=True), min_size=1, max_size=20))
    requests = [r for r in drawn if r.resource_name is not None]
    image = AclsImage.from_acls(with_ids(estate.acls)).with_options(documented=documented, cidr=cidr)
    with pytest.MonkeyPatch.context() as patch:
        if numpy:
            patch.setattr("aclog.authorizer.batch._FEW", 0)
        check(image, requests, estate.super_users, estate.allow_everyone)


@given(st.dictionaries(st.tuples(st.integers(0, 50), st.integers(0, 50)), st.integers(1, 2**32 - 1), max_size=200))
def test_tables_find_what_was_put_in(entries):
    first = np.array([key[0] for key in entries], np.int64)
    second = np.array([key[1] for key in entries], np.int64)
    table = PairedTable.of(first, second, np.array(list(entries.values()), np.uint32))
    asked = np.array([(a, b) for a in range(-1, 52) for b in range(-1, 52)], np.int32)
    found = table.get(asked[:, 0], asked[:, 1])
    assert found.tolist() == [entries.get((a, b), 0) for a, b in asked.tolist()]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"principal": None}, "no column principal"),
        ({"host": pa.array([None], pa.string())}, "nulls"),
        ({"resourceName": pa.array([1])}, "expected strings"),
        ({"operation": pa.array(["read"])}, "'read' in column operation"),
        ({"resourceType": pa.array([1.5])}, "expected strings"),
    ],
)
def test_bad_columns(change, word):
    columns = {
        "principal": pa.array(["User:a"]),
        "host": pa.array(["10.0.0.1"]),
        "operation": pa.array(["READ"]),
        "resourceType": pa.array(["TOPIC"]),
        "resourceName": pa.array(["x"]),
    } | change
    with pytest.raises(ConfigError, match=word):
        RequestColumns.from_arrow(pa.table({name: column for name, column in columns.items() if column is not None}))


def test_codes_that_kafka_does_not_know_and_chunks():
    whole = pa.table(
        {
            "principal": pa.chunked_array([["User:a"], ["User:a"]]).dictionary_encode(),
            "host": pa.chunked_array([["10.0.0.1", "10.0.0.1"]]),
            "operation": pa.chunked_array([[99], [-3]]),
            "resourceType": pa.chunked_array([[2], [200]]),
            "resourceName": pa.chunked_array([["x"], ["y"]]),
        }
    )
    requests = RequestColumns.from_arrow(whole)
    assert requests.operations.tolist() == [AclOperation.UNKNOWN] * 2
    assert requests.types.tolist() == [ResourceType.TOPIC, ResourceType.UNKNOWN]
    image = AclsImage.empty()
    assert BatchAuthorizer(image=image).authorize(requests).tolist() == [Answer.DENIED] * 2
    assert BatchAuthorizer(image=image, allow_everyone=True).authorize(requests).tolist() == [Answer.ALLOWED] * 2
    nothing = RequestColumns.from_arrow(whole.slice(0, 0))
    assert BatchAuthorizer(image=image).authorize(nothing).tolist() == []
