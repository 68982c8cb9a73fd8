"""The page of a draft: what it says of a change, beside the engine."""

from pathlib import Path

import pytest
from attrs import evolve

from aclog.analysis.comparison import Comparison
from aclog.analysis.rule_tests.case import changed_policy, with_ids
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.console.draft import Drafts, StatedCases, effect_on_tests
from aclog.console.pages.draft import change_file, draft_of
from aclog.console.pages.page import BadParameterError, Mark, Parameters
from aclog.console.pages.states import Console
from aclog.sources.acl_lines import read_changes
from aclog.sources.rule_tests import read_test_file
from tests.support.builders.acls import acl
from tests.support.web.consoles import column, console_of, look, table, view
from tests.support.web.points import HeldSource, image_of

RULES = (
    acl("orders", "User:alice"),
    acl("orders.eu", "User:bob"),
    acl("orders", "User:carol", permission_type=AclPermissionType.DENY),
    acl("pay", "User:dave", pattern_type=PatternType.PREFIXED, operation=AclOperation.ALL),
)
SHOP = "+ ALLOW User:shop READ on TOPIC PREFIXED ord from *"
TESTS = """
tests:
- name: shop
  principal: User:shop
  can: {READ: [topic:orders]}
- name: carol
  principal: User:carol
  cannot: {READ: [topic:orders]}
- name: pay
  principal: User:dave
  can: {WRITE: [topic:pay.eu]}
"""


@pytest.fixture
def console() -> Console:
    return console_of(HeldSource(image_of(*RULES)))


def test_an_empty_draft_says_what_may_be_typed(console: Console) -> None:
    page = view(console, "/draft")
    assert page.answer.startswith("What would a change grant or revoke?")
    assert page.tables() == ()


def test_who_gains_what_is_what_the_engine_says(console: Console) -> None:
    page = view(console, "/draft", rules=SHOP, format="json")
    assert page.answer == "1 rule to add, 0 to remove: access is gained"
    assert column(page, "effect", "who") == ["User:shop"]
    assert column(page, "effect", "before") == ["DefaultDeny"]
    assert "draft:1" in column(page, "effect", "after")[0]
    assert column(page, "sharing", "principal") == ["User:alice", "User:bob"]
    old = with_ids(console.states.now().policy)
    change = RuleChange(added=True, acl=acl("ord", "User:shop", pattern_type=PatternType.PREFIXED))
    wanted = [
        {key: value for key, value in line.items() if key != "new"}
        for line in Comparison.of(old, changed_policy(old, [change]), changes=[change]).json_lines()
    ]
    assert [{key: value for key, value in dict(line).items() if key != "new"} for line in page.data] == wanted
    assert page.command == "aclog diff --log 'a dir' --change CHANGE"


def test_nothing_changes_for_anybody_is_said_plainly(console: Console) -> None:
    page = view(console, "/draft", rules="+ ALLOW User:dave READ on TOPIC payments")
    assert page.answer == "1 rule to add, 0 to remove. No access changes: every request is decided the same"
    assert table(page, "effect").none.startswith("No access changes")
    there = view(console, "/draft", rules="ALLOW User:alice READ on TOPIC orders\n- ALLOW User:no READ on TOPIC t")
    assert there.answer == "No access changes: the rules stay the same"
    assert column(there, "changes", "note") == ["already present", "no such rule"]


def test_the_last_line_about_a_rule_counts(console: Console) -> None:
    page = view(console, "/draft", rules=f"{SHOP}\n{SHOP.replace('+', '-')}\n{SHOP}")
    assert column(page, "effect", "change") == ["GAINED"]
    assert any("2 lines superseded" in notice.text for notice in page.notices)


def test_a_line_that_cannot_be_read_is_left_out_and_said(console: Console) -> None:
    page = view(console, "/draft", rules=f"{SHOP}\nALLOW User:x")
    assert column(page, "problems", "line") == ["2"]
    assert page.notices[0].mark is Mark.ERROR
    assert column(page, "effect", "who") == ["User:shop"]
    with pytest.raises(BadParameterError, match="line 2 is invalid"):
        change_file(console, Parameters({"rules": f"{SHOP}\nALLOW User:x"}))
    assert view(console, "/draft", rules="ALLOW").answer == "No valid line yet"


def test_findings_of_lint_that_it_brings_or_mends(console: Console) -> None:
    brought = view(console, "/draft", rules="ALLOW User:x READ on TOPIC PREFIXED *")
    assert "01 prefixed-star" in column(brought, "lint", "lint")
    fixed = view(console, "/draft", rules="ALLOW User:alice READ on GROUP g\n+ ALLOW User:bob READ on GROUP h")
    assert set(column(fixed, "lint", "change")) == {"fixed"}
    assert "No findings" in table(view(console, "/draft", rules="- DENY User:carol READ on TOPIC orders"), "lint").none


def test_a_fix_names_what_is_redundant_only_with_the_draft(console: Console) -> None:
    redundant = view(console, "/draft", rules="ALLOW User:bob READ on TOPIC PREFIXED orders")
    rows = zip(column(redundant, "lint", "rule"), column(redundant, "lint", "mend"), strict=True)
    assert dict(rows)["ALLOW User:bob READ on TOPIC LITERAL 'orders.eu' from *"] == (
        "It would be redundant with the draft: remove it only after the draft is applied."
    )
    itself = view(console, "/draft", rules="ALLOW User:dave READ on TOPIC pay.eu")
    assert "Leave the rule out of the draft." in column(itself, "lint", "mend")


def test_tests_turn_red_and_green(console: Console, tmp_path: Path) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(TESTS, encoding="utf-8")
    cases = read_test_file(str(path)).cases
    tests = [StatedCases(settings=Settings(), cases=cases)]
    console = evolve(console, drafts=Drafts(tests=lambda _settings: tests))
    text = f"{SHOP}\n- DENY User:carol READ on TOPIC orders\nALLOW User:carol READ on TOPIC orders"
    page = view(console, "/draft", rules=text)
    assert column(page, "tests", "outcome") == ["turns red", "turns green"]
    assert "is allowed" in column(page, "tests", "found")[0]
    assert table(page, "tests").note == "1 other test independent of the changes"
    draft = draft_of(console, Parameters({"rules": text}))
    found = effect_on_tests(draft.effect, tests)
    turned = {each.after.case.text for each in found.cases if each.has_turned}
    policies = draft.effect.ground.policy, draft.effect.after
    assert turned == {case.text for case in cases if len({case.run(each).passed for each in policies}) == 2}


def test_tests_that_cannot_be_read_are_said(console: Console) -> None:
    def gone(_settings: Settings) -> list[StatedCases]:
        raise OSError("tests.yaml: gone")

    page = view(evolve(console, drafts=Drafts(tests=gone)), "/draft", rules=SHOP)
    assert table(page, "tests").none == "Tests cannot be run: tests.yaml: gone"
    assert column(page, "effect", "who") == ["User:shop"]


def test_tests_under_other_settings_are_all_run(console: Console, tmp_path: Path) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(TESTS, encoding="utf-8")
    others = [StatedCases(settings=Settings(allow_everyone=True), cases=read_test_file(str(path)).cases)]
    page = view(
        evolve(console, drafts=Drafts(tests=lambda _settings: others)),
        "/draft",
        rules="ALLOW User:x READ on TOPIC orders",
    )
    assert len(column(page, "tests", "outcome")) == 3


def test_it_is_saved_as_a_change_that_diff_and_plan_read(console: Console, tmp_path: Path) -> None:
    text = f"{SHOP}\n- DENY User:carol READ on TOPIC orders\nALLOW User:alice READ on TOPIC orders"
    file = change_file(console, Parameters({"rules": text}))
    path = tmp_path / file.name
    path.write_text(file.content, encoding="utf-8")
    found = [(each.added, each.acl.principal) for each in read_changes(str(path))]
    assert found == [(True, "User:shop"), (False, "User:carol")]
    with pytest.raises(BadParameterError, match="changes no rule"):
        change_file(console, Parameters({"rules": "ALLOW User:alice READ on TOPIC orders"}))


def test_a_kept_draft_is_the_same_and_a_forgotten_one_says_so(console: Console) -> None:
    kept = console.drafts.texts.keep(SHOP)
    assert view(console, "/draft", id=kept).tables() == view(console, "/draft", rules=SHOP).tables()
    gone = view(console, "/draft", id="0" * 32)
    assert "draft not found" in gone.notices[0].text
    assert not gone.is_settled
    with pytest.raises(BadParameterError, match="draft not found"):
        change_file(console, Parameters({"id": "0" * 32}))


def test_it_is_beside_the_newest_state(console: Console) -> None:
    source = console.states.live.source
    assert isinstance(source, HeldSource)
    source.current = image_of(*RULES, acl("ord", "User:shop", pattern_type=PatternType.PREFIXED))
    look(console)
    assert view(console, "/draft", rules=SHOP).answer == "No access changes: the rules stay the same"


def test_what_is_no_text_or_too_much_is_refused(console: Console) -> None:
    with pytest.raises(BadParameterError, match="not a Unicode character"):
        view(console, "/draft", rules="\ud800")
    kept = console.drafts.texts.keep("#\n" * 2_000_000)
    with pytest.raises(BadParameterError, match="more than 2,000,000 bytes"):
        view(console, "/draft", id=kept)


def test_a_cluster_rule_and_hosts(console: Console) -> None:
    page = view(
        console, "/draft", rules="ALLOW User:x ALTER on CLUSTER from 10.0.0.1\nALLOW User:y READ on GROUP g from h"
    )
    assert {"User:x", "User:y"} >= set(column(page, "effect", "who"))
    assert any("never matches" in note for note in column(page, "changes", "note"))
    assert ResourceType.CLUSTER.name in column(page, "changes", "resourceType")
