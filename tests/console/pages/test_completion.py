"""The search completes names as a naive search of them finds them, and questions that can be asked."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import acl_text
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.console import listing
from aclog.console.listing import Entry, Listing
from aclog.console.login.guard import Own
from aclog.console.pages.completion import are_quick, completions
from aclog.console.pages.page import Parameters, draft_url, rule_url
from aclog.console.pages.questions import LONGEST
from aclog.console.pages.states import Console
from aclog.console.pages.views import VIEWS
from aclog.sources.rule_line import parse_rule_line
from tests.support.builders.acls import acl
from tests.support.web.consoles import column, console_of, look, view
from tests.support.web.points import HeldSource, image_of

RULES = (
    acl("orders", "User:alice"),
    acl("ord", "User:team", pattern_type=PatternType.PREFIXED),
    acl("billing.eu", "User:carol"),
    acl("payments", "User:order-service"),
    acl("readers", "User:alice", resource_type=ResourceType.GROUP),
)
NAMES = st.text(st.sampled_from("abAB:.\né"), min_size=1, max_size=5)
PAIRS = st.lists(st.tuples(NAMES, NAMES), max_size=12, unique=True)


@pytest.fixture
def console() -> Console:
    return console_of(HeldSource(image_of(*RULES)))


def complete(console: Console, text: str, **more: str) -> list[tuple[str, str]]:
    return [(each["kind"], each["text"]) for each in completions(console, Parameters({"q": text, **more}))]


def naive(listing: Listing, text: str) -> list[Entry]:
    """Every entry with the text, in order."""
    needle = text.lower()
    keys = {(rule.acl.resource_type, rule.acl.resource_name, rule.acl.pattern_type) for rule in listing}
    entries: list[Entry] = [*listing.principals, *keys]

    def order(entry: Entry) -> tuple[bool, int, str]:
        lower = (entry if isinstance(entry, str) else entry[1]).lower()
        begins = lower.startswith(needle) or (isinstance(entry, str) and lower.partition(":")[2].startswith(needle))
        return not begins, len(lower), lower

    texts = [(each, each if isinstance(each, str) else each[1]) for each in entries]
    return sorted((entry for entry, name in texts if needle in name.lower()), key=order)


def ranks(entries: list[Entry]) -> list[str]:
    """What is compared: entries with equal texts may be in any order."""
    return [(each if isinstance(each, str) else each[1]).lower() for each in entries]


@given(PAIRS, PAIRS, NAMES, st.integers(1, 5))
def test_names_are_those_of_a_naive_search(before, after, text, most):
    source = HeldSource(image_of(*(acl(name, f"User:{who}") for name, who in before)))
    console = console_of(source)
    listing = console.states.now().listing
    assert ranks(listing.names_index.find(text, most)) == ranks(naive(listing, text)[:most])
    source.current = image_of(*(acl(name, f"User:{who}") for name, who in after))
    look(console)
    later = console.states.now().listing
    assert ranks(later.names_index.find(text, most)) == ranks(naive(later, text)[:most])
    assert set(later.names_index.find(text, 100)) == set(naive(later, text))


def test_the_index_follows_changes_and_is_made_anew_after_many(monkeypatch):
    monkeypatch.setattr("aclog.console.listing._MOST_LATER", 6)
    listing = Listing.of(image_of(*RULES).acls)
    assert listing.names_index
    image = image_of(*RULES)
    for number in range(12):
        image = image_of(*RULES, acl(f"new-{number}", f"User:new-{number}"))
        listing = listing.followed_by(image.acls)
        assert set(listing.names_index.find("new", 100)) == set(naive(listing, "new"))


def test_names_come_with_their_kind_the_ones_that_begin_so_first(console):
    assert complete(console, "ord")[:3] == [
        ("topic prefix", "ord*"),
        ("topic", "orders"),
        ("principal", "User:order-service"),
    ]
    assert ("group", "readers") in complete(console, "READ")
    assert complete(console, "nowhere") == [("rules", "rules with “nowhere”")]


def test_an_empty_search_has_an_example_of_each_question(console):
    examples = complete(console, " ")
    assert {kind for kind, _ in examples} == {"example"}
    assert [text.split()[0] for _, text in examples] == ["who", "since", "is", "what", "what", "unused"]
    for each in completions(console, Parameters({"q": ""})):
        path, _, query = each["url"].partition("?")
        assert VIEWS[path](console, Parameters.of(query)).answer
    own = evolve(console, own=Own(principal="User:alice"))
    assert all(text.startswith(("who can access", "is ")) for _, text in complete(own, ""))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("who can read ord", "who can READ TOPIC ord*"),
        ("who can delete group readers", "who can DELETE GROUP readers"),
        ("Who can read nowhere?", "who can READ TOPIC nowhere"),
        ("who can read orders from 10.0.0.9", "who can READ TOPIC orders from 10.0.0.9"),
        ("why can alice read orders from ::1", "why can User:alice READ TOPIC orders from 0:0:0:0:0:0:0:1"),
        ("what can alice do from 10.0.0.9", "what can User:alice do from 10.0.0.9"),
        ("who can delete topics beginning with billing.", "who can DELETE TOPIC billing.*"),
        ("who can delete topics starting with billing.", "who can DELETE TOPIC billing.*"),
        ("who can delete all topics whose names begin with nowhere.", "who can DELETE TOPIC nowhere.*"),
        ("who can read groups that start with read", "who can READ GROUP read*"),
        ("who can read names with the prefix ord", "who can READ TOPIC ord*"),
        ("who can delete billing.*", "who can DELETE TOPIC billing.*"),
        ("who can alter the cluster", "who can ALTER CLUSTER"),
        ("since when can alice read orders", "when could User:alice READ TOPIC orders"),
        ("when can alice read orders from 10.0.0.9", "when could User:alice READ TOPIC orders from 10.0.0.9"),
        ("why can bob read orders", "why can User:bob READ TOPIC orders"),
        ("why can alice read orders", "why can User:alice READ TOPIC orders"),
        ("can User:alice read group readers", "why can User:alice READ GROUP readers"),
        ("when could alice write orders", "when could User:alice WRITE TOPIC orders"),
        ("what can ali", "what can User:alice do"),
        ("changes since yesterday", "changes since yesterday"),
        ("what changed since 2h ago", "changes since 2h ago"),
        ("What changed last night?", "changes since yesterday 18:00"),
        ("changes on 2020-02-29", "changes on 2020-02-29"),
        ("what changed 2020-02-29", "changes on 2020-02-29"),
        ("2020-02-29", "changes on 2020-02-29"),
        ("changes since 2020-02-29", "changes since 2020-02-29"),
        ("changes since 0", "changes since 0"),
        ("what did last night's deploy open", "changes since yesterday 18:00"),
        ("what was opened last night?", "changes since yesterday 18:00"),
        ("what did the last deploy change", "the last change"),
        ("what would my change do", "what would a change grant or revoke: a draft"),
        ("what if", "what would a change grant or revoke: a draft"),
        ("which rules are unused?", "unused rules"),
        ("who can access ord", "who can access TOPIC ord*"),
        ("who has access to orders", "who can access TOPIC orders"),
        ("who can write to orders", "who can WRITE TOPIC orders"),
        ("since when can alice read from topic orders", "when could User:alice READ TOPIC orders"),
    ],
)
def test_questions_are_understood(console, text, first):
    assert ("question", first) in complete(console, text)[:3]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (f"is {acl_text(RULES[0])} used", rule_url(RULES[0])),
        (f"is the rule {acl_text(RULES[0])} still used?", rule_url(RULES[0])),
        (f"when was {acl_text(RULES[0])} last used", rule_url(RULES[0])),
        ("is alice orders used", "/rules?q=alice%20orders"),
        ("is this rule used", "/rules"),
        ("are rules used", "/rules"),
    ],
)
def test_whether_a_rule_is_used_is_a_question(console, text, address):
    assert view(console, "/search", q=text).leads_to == address
    own = evolve(console, own=Own(principal="User:alice"))
    assert view(own, "/search", q=text).leads_to == address


def test_a_search_for_words_has_the_rules_with_all_of_them(console):
    page = view(console, "/search", q="orders alice")
    assert column(page, "rules", "principal") == ["User:alice"]
    assert [each.key for each in page.tables()] == ["rules"]
    assert "such as" in view(console, "/search", q="orders nowhere").notices[0].text
    assert [each.key for each in view(console, "/search", q="alice").tables()] == ["principals", "resources", "rules"]


@pytest.mark.parametrize(
    "text",
    [
        "who can read billing.eu from nowhere",
        "who can read billing.eu from 10.0.0",
        "who can read not there",
        "why can alice read billing eu",
        "who can read topics beginning with billing eu",
        "who can read bill*ing",
    ],
)
def test_no_question_is_about_a_topic_that_cannot_be(console, text):
    assert [kind for kind, _ in complete(console, text)] == ["rules"]
    page = view(console, "/search", q=text)
    assert page.answer.startswith("Not understood as a question")
    assert "who can read orders" in page.notices[0].text


def test_a_host_in_a_question_is_the_host_of_its_page(console):
    asked = {
        each["text"]: each["url"] for each in completions(console, Parameters({"q": "who can read orders from ::1"}))
    }
    path, _, query = asked["who can READ TOPIC orders from 0:0:0:0:0:0:0:1"].partition("?")
    assert VIEWS[path](console, Parameters.of(query)).command.endswith("--host 0:0:0:0:0:0:0:1")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("who can read billing.eu", "/resource?type=TOPIC&name=billing.eu&operation=READ"),
        ("who can read billing.*", "/resource?type=TOPIC&name=billing.&pattern=PREFIXED&operation=READ"),
        ("who can read nowhere", "/resource?type=TOPIC&name=nowhere&operation=READ"),
        ("what can alice do?", "/principal?name=User%3Aalice"),
        ("why can alice read orders", "/why?principal=User%3Aalice&operation=READ&type=TOPIC&name=orders"),
        ("who can read bill", None),
        ("who can read readers", None),
        ("what can ali", None),
        ("orders", None),
    ],
)
def test_a_question_in_full_leads_to_its_answer(console, text, address):
    assert view(console, "/search", q=text).leads_to == address


@pytest.mark.parametrize("text", ["o", "user", "who can read ord", "why can alice read o", "what can", "f", "w", "c"])
def test_what_is_offered_leads_to_a_page(console, text):
    found = completions(console, Parameters({"q": text}))
    assert found
    for each in found:
        path, _, query = each["url"].partition("?")
        assert VIEWS[path](console, Parameters.of(query)).title


@pytest.mark.parametrize("text", ["last week", "since last week", "on 3000-01-01", "since 999", "since latest", "x"])
def test_changes_since_no_moment_are_not_offered(console, text):
    assert "question" not in dict(complete(console, f"changes {text}"))


def test_the_changes_of_a_day_end_with_it(console):
    assert view(console, "/search", q="changes on 2020-02-29").leads_to == (
        "/changes?since=2020-02-29&until=2020-03-01"
    )
    assert view(console, "/search", q="what changed last night").leads_to == "/changes?since=yesterday%2018%3A00"


# The text of a rule, as plans, findings and explanations print it.


RULE = "ALLOW User:team READ on TOPIC PREFIXED 'ord' from *"
OTHER = "DENY User:team WRITE on TOPIC LITERAL 'orders' from *"


@pytest.mark.parametrize("text", [RULE, f"  {RULE.lower().replace('user', 'User')} ", f"{RULE} (rules.jsonl:3)"])
def test_the_text_of_a_rule_leads_to_the_rule(console, text):
    assert complete(console, text) == [("rule", RULE)]
    address = view(console, "/search", q=text).leads_to
    path, _, query = address.partition("?")
    page = VIEWS[path](console, Parameters.of(query))
    assert page.title == RULE


def test_a_rule_that_does_not_exist_is_offered_as_a_draft(console):
    assert complete(console, OTHER) == [("draft", f"no such rule; draft: + {OTHER}")]
    page = view(console, "/search", q=OTHER)
    assert (page.answer, page.leads_to) == ("No such rule", None)
    [links] = [each for each in page.parts if each.key == "questions"]
    assert links.links[0].url == draft_url(parse_rule_line(OTHER).acl, added=True)


@pytest.mark.parametrize(
    ("text", "added"),
    [
        (f"+ {OTHER}", True),
        (f"what if {OTHER}?", True),
        (f"what if we add {OTHER}", True),
        (f"+ {RULE}", True),
        (f"- {RULE}", False),
        (f"what if we remove {RULE}", False),
    ],
)
def test_a_change_in_words_leads_to_its_draft(console, text, added):
    rule = RULE if RULE in text else OTHER
    address = draft_url(parse_rule_line(rule).acl, added=added)
    assert complete(console, text) == [("draft", f"draft: {'+' if added else '-'} {rule}")]
    assert view(console, "/search", q=text).leads_to == address
    path, _, query = address.partition("?")
    assert not view(console, path, **Parameters.of(query).values).notices


def test_a_rule_that_cannot_be_read_is_reported(console):
    text = "ALLOW User:team REED on TOPIC 'or*d' from *"
    assert complete(console, text) == []
    page = view(console, "/search", q=text)
    assert page.answer == "Not understood as a rule"
    assert "'REED': expected one of" in page.notices[0].text


def test_a_long_rule_is_not_cut():
    long = acl("orders", f"User:CN={'x' * 2 * LONGEST}")
    console = console_of(HeldSource(image_of(long)))
    assert view(console, "/search", q=acl_text(long)).leads_to == rule_url(long)


def test_a_viewer_of_own_rules_gets_no_draft(console):
    own = evolve(console, own=Own("User:alice"))
    assert complete(own, OTHER) == []
    assert "question" not in dict(complete(own, "changes since yesterday"))
    assert view(own, "/search", q=f"+ {OTHER}").answer == "No such rule among those that you see"
    assert complete(own, f"+ {RULE}") == [("rule", RULE)]


def test_a_page_of_the_menu_is_offered_by_its_name(console):
    assert ("page", "Findings") in complete(console, "findi")


def test_names_are_those_of_the_moment(console):
    assert complete(console, "orders", as_of="0") == [("rules", "rules with “orders”")]


def test_completions_are_quick_once_the_names_are_indexed(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    before = complete(console, "ord")
    assert are_quick(console, "ord")
    assert not are_quick(console, "ord\n")  # names with line ends are compared one by one
    assert not are_quick(console, "o" * (LONGEST + 1))
    assert complete(console, "ord") == before
    monkeypatch.setattr(listing, "_SHORT", len(RULES) - 1)
    assert not are_quick(console, "ord")
