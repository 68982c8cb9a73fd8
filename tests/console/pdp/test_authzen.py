"""Pages: whatever their size, together they are what one answer has."""

import json

import pytest

from aclog.authorizer.codes import AclOperation
from aclog.console.pdp.authzen import MOST_IN_PAGE as MOST
from tests.support.builders.acls import acl
from tests.support.web.points import HeldSource, image_of, point_of

COUNT = 43
SUBJECT, ACTION = {"type": "User", "id": "a"}, {"name": "READ"}
ASKED = {
    "subject": {"subject": {"type": "User"}, "action": ACTION, "resource": {"type": "topic", "id": "t"}},
    "resource": {"subject": SUBJECT, "action": ACTION, "resource": {"type": "topic"}},
    "action": {"subject": SUBJECT, "resource": {"type": "topic", "id": "t"}},
}


@pytest.fixture(scope="module")
def authzen():
    rules = [acl(f"t{number}", "User:a") for number in range(COUNT - 1)]
    rules += [acl("t", f"User:\u00e9{number}") for number in range(COUNT - 1)]
    rules += [acl("t", "User:a", operation=each) for each in AclOperation if each > AclOperation.ALL]
    return point_of(HeldSource(image_of(*dict.fromkeys(rules)))).authzen


@pytest.mark.parametrize("kind", ["subject", "resource", "action"])
def test_pages_of_every_size_give_the_same(authzen, kind):
    whole = json.loads(authzen.search(kind, ASKED[kind]).text)["results"]
    assert len(whole) == (COUNT if kind != "action" else len(list(AclOperation)) - 3)
    for limit in range(1, MOST + 1):
        found, page = [], {"limit": limit}
        while page != {"token": ""}:
            answer = json.loads(authzen.search(kind, {**ASKED[kind], "page": page}).text)
            assert len(answer["results"]) <= limit
            found += answer["results"]
            page = {"token": answer["page"]["next_token"]}
        assert found == whole, limit
