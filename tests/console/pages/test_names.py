r"""Names in the views are those of questions: `pii-*` is all that begin so, `\*` a star."""

import pytest

from aclog.authorizer.codes import AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.console.pages.page import BadParameterError, Mark, Parameters
from tests.support.builders.acls import acl
from tests.support.web.consoles import cells, column, console_of, view
from tests.support.web.points import HeldSource, image_of

RULES = (
    acl("pii-", "User:audit", pattern_type=PatternType.PREFIXED),
    acl("pii-card", "User:app"),
    acl("a*b", "User:app", resource_type=ResourceType.GROUP),
    acl("glob-*", "User:app"),
    acl("*", "User:root"),
)


@pytest.fixture
def console():
    return console_of(HeldSource(image_of(*RULES)), settings=Settings())


def test_who_can_on_a_prefix_says_on_all_of_it_or_on_some(console):
    page = view(console, "/resource", type="TOPIC", name="pii-*", operation="READ")
    assert page.answer == "READ on TOPIC pii-*: 3 principals"
    covers = {principal: row["covers"] for row in page.data for principal in row["principals"]["in"]}
    assert covers == {"User:app": "SOME", "User:audit": "ALL", "User:root": "ALL"}
    assert set(column(page, "who", "resource")) == {
        "TOPIC pii-card (some queried topics)",
        "TOPIC pii-* (all queried topics)",
    }
    assert page.command == "aclog who-can --log 'a dir' --operation READ --topic pii- --resource-pattern-type prefixed"
    assert page.data == view(console, "/resource", type="TOPIC", name="pii-", pattern="PREFIXED", operation="READ").data


def test_why_is_told_of_a_prefix_if_all_names_are_decided_alike(console):
    page = view(console, "/why", principal="User:audit", operation="READ", type="TOPIC", name="pii-*")
    assert (page.mark, page.data[0]["patternType"]) == (Mark.GOOD, "PREFIXED")
    assert page.command.endswith("--topic pii- --resource-pattern-type prefixed")
    with pytest.raises(BadParameterError, match="ALLOWED on 'pii-card' and DENIED on 'pii-'"):
        view(console, "/why", principal="User:app", operation="READ", type="TOPIC", name="pii-*")
    everything = view(console, "/why", principal="User:root", operation="READ", type="TOPIC", name="*")
    assert everything.data[0]["decision"] == "ALLOWED"


@pytest.mark.parametrize("path", ["/resource", "/why"])
def test_a_star_where_none_can_be_is_said(console, path):
    for name, said in ((r"pii\*", "a topic name cannot contain"), ("p*i", "before its end")):
        with pytest.raises(BadParameterError, match=said):
            view(console, path, principal="User:app", operation="READ", type="TOPIC", name=name)
    with pytest.raises(BadParameterError, match="before its end"):
        view(console, "/names", type="TOPIC", prefix="p*i")
    with pytest.raises(BadParameterError, match="before its end"):
        view(console, "/search", q="p*i")


def test_every_link_of_a_page_is_about_the_name_that_it_shows(console):
    """A name with a star leads to that name, not to a prefix; LITERAL * of a rule to every name."""
    for path, asked in (
        ("/rules", {}),
        ("/names", {"type": "GROUP"}),
        ("/names", {"type": "TOPIC"}),
        ("/search", {"q": ""}),
    ):
        for cell in cells(view(console, path, **asked)):
            if not (cell.url or "").startswith("/resource"):
                continue
            given = Parameters.of(cell.url.partition("?")[2])
            resource = given.resource(given.resource_type())
            assert view(console, "/resource", **given.values).answer
            if given.text("name") == "*":
                assert (resource.name, resource.pattern_type) == ("", PatternType.PREFIXED)
            else:
                assert resource.name == given.text("name")
    group = view(console, "/resource", type="GROUP", name=r"a\*b", operation="READ")
    assert column(group, "who", "who") == ["User:app"]
    assert group.command.endswith("--group 'a*b' --resource-pattern-type literal")


def test_names_and_search_take_a_prefix_with_its_star(console):
    with_star, without = (view(console, "/names", type="TOPIC", prefix=prefix) for prefix in ("pii-*", "pii-"))
    assert column(with_star, "names", "name") == column(without, "names", "name") == ["pii-*", "pii-card"]
    assert column(view(console, "/search", q="pii-*"), "resources", "resourceName") == ["pii-*", "pii-card"]
    assert column(view(console, "/search", q="card*"), "resources", "resourceName") == []
    assert column(view(console, "/search", q="card"), "resources", "resourceName") == ["pii-card"]
    assert column(view(console, "/search", q="app*"), "principals", "principal") == ["User:app"]
    assert column(view(console, "/search", q=r"\*"), "resources", "resourceName") == ["*", '"glob-*"', '"a*b"']


def test_a_viewer_of_his_own_rights_learns_no_name_of_others_rules():
    from attrs import evolve

    from aclog.analysis.policy import Policy
    from aclog.console.login.guard import Own

    whole = console_of(HeldSource(image_of(acl("pii-x", "User:other"))), settings=Settings(allow_everyone=True))
    state = whole.states.now()

    class OfOne:
        def at(self, as_of):
            return evolve(state, policy=Policy(image_of().acls, state.policy.settings), whole=state.policy)

    own = evolve(whole, states=OfOne(), own=Own("User:me"))
    with pytest.raises(BadParameterError, match="enter a single name") as caught:
        view(own, "/why", principal="User:me", operation="READ", type="TOPIC", name="pii-*")
    assert "pii-x" not in str(caught.value)
    assert view(own, "/why", principal="User:me", operation="READ", type="TOPIC", name="pii-y").mark is Mark.GOOD


def test_denied_on_all_is_denied():
    rules = acl("pii-", "User:*", pattern_type=PatternType.PREFIXED, permission_type=AclPermissionType.DENY)
    console = console_of(HeldSource(image_of(rules)), settings=Settings(allow_everyone=True))
    page = view(console, "/why", principal="User:a", operation="READ", type="TOPIC", name="pii-x*")
    assert (page.mark, page.data[0]["decision"]) == (Mark.DENY, "DENIED")


@pytest.mark.parametrize(
    ("path", "others", "names"),
    [
        ("/resource", {"operation": "READ"}, ["pii-*", "pii-card"]),
        ("/why", {"principal": "User:app", "operation": "READ", "host": "::1"}, ["pii-card"]),
    ],
)
def test_a_name_without_rules_has_links_to_similar_names(console, path, others, names):
    [similar] = similar_names(console, path, type="TOPIC", name="pii", **others)
    assert [cell.text for cell in similar.links] == names
    for cell in similar.links:
        asked = Parameters.of(cell.url.partition("?")[2])
        assert {name: asked.text(name) for name in others} == others
    for name in ("pii-card", "nowhere"):
        assert similar_names(console, path, type="TOPIC", name=name, **others) == []


def similar_names(console, path, **fields):
    return [part for part in view(console, path, **fields).parts if part.key == "similar"]


def test_a_request_without_an_operation_has_a_link_for_each(console):
    page = view(console, "/why", principal="app", type="GROUP", name="x")
    [links] = [part for part in page.parts if part.key == "operation"]
    assert [cell.text for cell in links.links][:3] == ["READ", "DELETE", "DESCRIBE"]
    asked = Parameters.of(links.links[0].url.partition("?")[2])
    assert view(console, "/why", **asked.values).title == "Why: User:app READ x"
