"""What the views say, beside the engine and the rules."""

import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.console.pages.page import BadParameterError, Facts, Links, Mark, Page, Table
from aclog.console.pages.states import Console, NotReadyError
from aclog.console.pages.views import AT_A_MOMENT, MENU, VIEWS
from tests.support.builders.acls import acl
from tests.support.web.consoles import cells, column, console_of, look, table, view
from tests.support.web.points import HeldSource, image_of

RULES = (
    acl("orders", "User:alice"),
    acl("ord", "User:team", pattern_type=PatternType.PREFIXED, operation=AclOperation.ALL),
    acl("orders", "User:bob", permission_type=AclPermissionType.DENY),
    acl("*", "User:*", operation=AclOperation.DESCRIBE),
    acl("billing.eu", "User:carol"),
    acl("billing.us", "User:carol"),
    acl("g", "User:alice", resource_type=ResourceType.GROUP),
    acl("kafka-cluster", "User:admin", operation=AclOperation.ALTER, resource_type=ResourceType.CLUSTER),
)


@pytest.fixture
def console() -> Console:
    return console_of(HeldSource(image_of(*RULES)), settings=Settings(super_users=frozenset({"User:root"})))


def test_the_menu_leads_to_views() -> None:
    assert {path for path, _ in MENU} <= VIEWS.keys()


def test_the_start_has_names_principals_and_the_ways_in(console: Console) -> None:
    page = view(console, "/")
    assert page.answer == "8 rules for 6 principals"
    assert column(page, "names-topic", "name") == ["*", "billing.", "ord*", "orders"]
    assert column(page, "names-topic", "rules") == ["1", "2", "1", "2"]
    assert column(page, "principals", "principal")[:2] == ["User:alice", "User:carol"]


def test_rules_are_filtered_and_say_so(console: Console) -> None:
    page = view(console, "/rules", principal="carol")
    assert column(page, "rules", "resourceName") == ["billing.eu", "billing.us"]
    assert table(page, "rules").note == "filtered: 2 of 8 rules shown"
    assert table(view(console, "/rules"), "rules").note == ""
    assert column(view(console, "/rules", permission="DENY"), "rules", "principal") == ["User:bob"]
    assert table(view(console, "/rules", q="nobody"), "rules").none == "No matching rules."


def test_who_can_is_all_who_can_and_why(console: Console) -> None:
    page = view(console, "/resource", type="TOPIC", name="orders", operation="READ")
    assert column(page, "who", "who") == ["User:alice", "User:team", "User:root"]
    assert "PREFIXED" in column(page, "who", "why")[1]
    assert page.answer == "READ on TOPIC orders: 3 principals"
    assert column(page, "denies", "principal") == ["User:bob"]
    assert page.command == "aclog who-can --log 'a dir' --operation READ --topic orders"
    everyone = view(console, "/resource", type="TOPIC", name="orders", operation="DESCRIBE")
    assert "all principals" in everyone.answer


def test_matching_rules_are_those_that_match(console: Console) -> None:
    page = view(console, "/resource", type="TOPIC", name="orders", operation="DESCRIBE_CONFIGS")
    assert column(page, "rules", "principal") == ["User:team"]
    assert len(column(view(console, "/resource", type="TOPIC", name="orders"), "rules", "principal")) == 4
    denied = view(console, "/why", principal="User:nobody", operation="READ", name="orders")
    assert (table(denied, "rules").total, table(denied, "rules").none) == (0, "No rule matches the request.")
    others = table(denied, "others")
    assert others.total == len(others.rows) == 4


def test_who_can_consume_a_resource_or_all_that_begin_so(console: Console) -> None:
    assert column(view(console, "/resource", name="orders", intent="consume"), "who", "who")[0] == "User:alice"
    below = view(console, "/resource", name="billing.", pattern="PREFIXED", operation="READ")
    assert {"User:carol", "User:root"} == set(column(below, "who", "who"))
    nobody = view(console_of(HeldSource(image_of())), "/resource", name="orders")
    assert nobody.answer == "any operation on TOPIC orders: no principals"
    assert table(nobody, "who").none == "No principals have access."


def test_what_a_principal_may_do(console: Console) -> None:
    page = view(console, "/principal", name="User:bob")
    assert column(page, "denied", "permissionType") == ["DENY"]
    assert column(page, "may", "operations") == ["DESCRIBE"]
    assert table(view(console, "/principal", name="User:nobody"), "rules").none == "No rules with this principal."
    assert "super user" in view(console, "/principal", name="User:root").answer
    assert column(view(console, "/principal"), "principals", "principal")[0] == "User:*"
    with pytest.raises(BadParameterError, match="expected TYPE:NAME"):
        view(console, "/principal", name="nobody")
    assert view(console, "/principal", name=" alice ").title == "User:alice"


def test_why_is_the_decision_its_rules_and_what_would_change_it(console: Console) -> None:
    page = view(console, "/why", principal="User:bob", operation="READ", name="orders")
    assert page.mark is Mark.DENY
    assert page.answer.startswith("DENIED: User:bob READ TOPIC 'orders'")
    assert column(page, "rules", "role")[0] == "decides"
    assert column(page, "remedy", "change") == ["remove", "add"]
    allowed = view(console, "/why", principal="User:alice", operation="READ", name="orders", host="10.0.0.1")
    assert allowed.mark is Mark.GOOD
    assert allowed.command is not None
    assert allowed.command.endswith("--host 10.0.0.1")
    assert view(console, "/why").answer == "Incomplete request: enter a principal."
    with pytest.raises(BadParameterError, match="ALL is not a request operation"):
        view(console, "/why", principal="User:a", operation="ALL", name="t")


def test_names_below_a_prefix_and_who_shares_it(console: Console) -> None:
    page = view(console, "/names", type="TOPIC", prefix="billing.")
    assert column(page, "names", "name") == ["billing.eu", "billing.us"]
    assert column(page, "sharing", "principal") == ["User:carol"]
    assert column(page, "sharing", "rules") == ["2"]


def test_a_search_finds_principals_and_resources(console: Console) -> None:
    page = view(console, "/search", q="ORD")
    assert column(page, "resources", "resourceName") == ["ord*", "orders"]
    assert column(view(console, "/search", q="alice"), "principals", "principal") == ["User:alice"]


def test_the_past_is_asked_for_by_as_of(console: Console) -> None:
    page = view(console, "/rules", as_of="0")
    assert (page.answer, page.offset) == ("0 rules", 0)
    assert page.command == "aclog acls list --log 'a dir' --as-of 0"
    with pytest.raises(BadParameterError, match="as of 7"):
        view(console, "/rules", as_of="7")


def test_a_new_state_is_shown_and_a_lost_one_stays(console: Console) -> None:
    source = console.states.live.source
    assert isinstance(source, HeldSource)
    version = console.states.version
    source.current = image_of(*RULES, acl("new", "User:dave"))
    look(console)
    assert console.states.version != version
    assert view(console, "/rules").answer == "9 rules"
    source.current = None
    look(console)
    assert view(console, "/rules").answer == "9 rules"
    assert console.states.live.trouble is not None


def test_without_a_state_nothing_is_shown() -> None:
    for path in VIEWS:
        with pytest.raises(NotReadyError):
            view(console_of(HeldSource(None)), path)


def _hostile() -> Page:
    name = "<script>alert(1)</script>\u202e'\"&"
    console = console_of(HeldSource(image_of(acl(name, f"User:{name}"), acl(" ", "colonless"))))
    return view(console, "/rules")


def test_hostile_names_stay_as_they_are_in_the_page() -> None:
    texts = {cell.text for cell in cells(_hostile())}
    assert {"<script>alert(1)</script>\u202e'\"&", " ", "colonless"} <= texts
    assert all(cell.url is None or cell.url.isascii() for cell in cells(_hostile()))


def test_a_page_that_is_older_than_the_newest_version_is_called_so() -> None:
    """What is shown and its version change together, before anybody asks, so that no viewer stays with the old one."""
    source = HeldSource(image_of(*RULES))
    console = console_of(source)
    shown, version = console.states.now(), console.states.version
    source.current = image_of(*RULES, acl("new"))
    assert (console.states.now(), console.states.version) == (shown, version)
    look(console)
    assert console.states.live.newest is not None
    assert console.states.now().image is console.states.live.newest.image
    assert console.states.version != version


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/", {}),
        ("/resource", {}),
        ("/resource", {"type": "TOPIC", "name": "orders"}),
        ("/principal", {"name": "User:alice"}),
        ("/why", {"principal": "User:alice", "operation": "READ", "name": "orders"}),
        ("/names", {"type": "TOPIC"}),
    ],
)
def test_links_of_a_page_of_a_moment_keep_the_moment(path, query):
    source = HeldSource(image_of(acl("orders", "User:alice")))
    source.past = source.current
    page = view(console_of(source), path, **query, as_of="7")
    parts = [part for part in page.parts if isinstance(part, Facts | Links | Table)]
    links = [
        cell.url or ""
        for part in parts
        for cell in (
            part.links
            if isinstance(part, Links)
            else [each for _, each in part.items]
            if isinstance(part, Facts)
            else [*part.pages, *(each for row in part.rows for each in row.cells)]
        )
    ]
    of_moment = [link for link in links if link.partition("?")[0] in AT_A_MOMENT]
    assert of_moment
    assert [link for link in of_moment if "as_of=7" not in link] == []
