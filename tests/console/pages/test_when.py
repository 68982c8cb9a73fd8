"""The page of a request through time: beside a decision on each replayed state."""

from random import Random

import pytest

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import ResourcePattern, acl_text
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.settings import Settings
from aclog.console.pages.completion import completions
from aclog.console.pages.page import BadParameterError, Parameters, url
from aclog.console.pages.why import when_page
from aclog.snapshots.history import history
from aclog.snapshots.publisher import recover
from tests.support.analysis.timelines import batches_of
from tests.support.builders.acls import acl
from tests.support.builders.log_files import DATA
from tests.support.builders.state_logs import write_log
from tests.support.web.consoles import console_of, view
from tests.support.web.histories import console_on, whole
from tests.support.web.points import HeldSource, image_of

WEEK = DATA / "week" / "log"


def page(console, **asked):
    return when_page(console, Parameters.of(url("", **asked).removeprefix("?")))


def table(shown):
    return next(each for each in shown.tables() if each.key == "intervals")


def decided(directory, settings, principal, name, host):
    """The end offset of each state, and whether it allows to read a topic."""
    context = RequestContext(principal=principal, host=host)
    pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name=name)
    action = Action(operation=AclOperation.READ, resource_pattern=pattern)
    for offset in sorted({0, *(each.end_offset for each in history(directory))}):
        policy = Policy(recover(directory, offset).image.acls, settings)
        yield offset, bool(policy.authorizer.decide(context, action))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("allow_everyone", [False, True])
@pytest.mark.sample(3)
def test_the_intervals_are_those_of_decisions_on_each_state(tmp_path, seed, allow_everyone):
    directory = write_log(tmp_path / "log", *batches_of(Random(seed), 80, odd=0))
    settings = Settings(allow_everyone=allow_everyone)
    with console_on(directory, settings) as console:
        timeline = whole(console.history.live).timeline
        for principal, name in (("User:a", "a"), ("User:b", "ab"), ("User:a", "b.x")):
            shown = page(console, principal=principal, operation="READ", name=name, host="10.0.0.1")
            expected, was = [], False
            for offset, allowed in decided(directory, settings, principal, name, "10.0.0.1"):
                if allowed is not was:
                    expected.append(offset)
                    was = allowed
            rows = list(reversed(table(shown).rows))
            found = [offset for row in rows for offset in ends(row, timeline)]
            assert found == expected
            assert shown.mark == ("good" if was else "deny")


def ends(row, timeline):
    """The end offsets of the states with which an interval begins and ends."""
    for cell in (row.cells[0], row.cells[4]):
        if cell.text.endswith("or before"):
            yield timeline.begin
        elif cell.text != "now":
            assert cell.url.startswith("/changes?since=")
            yield int(cell.url.rpartition("=")[2])


def test_why_the_consumer_stopped():
    with console_on(WEEK) as console:
        whole(console.history.live)
        shown = page(console, principal="User:billing", operation="READ", type="TOPIC", name="payments.eu")
    rows = table(shown).rows
    assert rows
    assert shown.command == ("aclog when --log DIR --principal User:billing --operation READ --topic payments.eu")
    assert all(row.cells[-1].url.startswith("/why?principal=User%3Abilling") for row in rows)


def test_a_name_without_its_type_is_the_principal_of_that_name():
    with console_on(WEEK) as console:
        whole(console.history.live)
        assert page(console, principal="contractor", operation="READ", name="payments.eu").title == (
            "When: User:contractor READ payments.eu"
        )
        [question, *_] = completions(console, Parameters({"q": "when could shop write clicks"}))
    assert question["text"] == "when could User:shop WRITE TOPIC clicks"


def test_a_principal_of_the_past_is_resolved_as_one_of_now(tmp_path):
    source = HeldSource(image_of(acl("orders", "User:alice")))
    with console_on(WEEK) as console:
        whole(console.history.live)
        then = console.states.at("0")
        assert "User:contractor" not in then.listing.principals
        assert console.principal(then, "contractor") == "User:contractor"
        assert console_of(source).principal(then, "contractor") == "contractor"


@pytest.mark.parametrize(
    ("asked", "covers"),
    [
        ({"name": "payments.eu"}, lambda name, is_prefix: name == "payments.eu" or (is_prefix and name == "payments.")),
        ({"name": "payments.*"}, lambda name, _: name.startswith("payments.")),
    ],
)
def test_the_last_changes_are_of_all_rules_that_cover_the_resource(asked, covers):
    with console_on(WEEK) as console:
        whole(console.history.live)
        shown = view(console, "/resource", **asked)
    expected = [
        f"{each.kind.value.lower()} {acl_text(each.rule.acl)}"
        for each in reversed(list(history(WEEK)))
        if each.rule.acl.resource_type == ResourceType.TOPIC
        and covers(each.rule.acl.resource_name, each.rule.acl.pattern_type == PatternType.PREFIXED)
    ]
    [latest] = [each for each in shown.tables() if each.key == "latest"]
    assert [f"{row.cells[1].text} {row.cells[2].text}" for row in latest.rows] == expected
    assert latest.total == len(expected)
    assert "User:contractor" in latest.rows[0].cells[2].text


def test_what_was_before_the_known_history_is_not_never(tmp_path):
    directory = write_log(tmp_path / "log", *batches_of(Random(1), 60, odd=0))
    with console_on(directory, most=10) as console:
        whole(console.history.live)
        shown = page(console, principal="User:nobody", operation="ALTER", name="nothing")
    assert shown.answer.startswith("Never allowed since offset ")
    assert "Earlier changes are unknown" in shown.notices[0].text


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"principal": "nobody", "operation": "READ", "name": "a"}, "expected TYPE:NAME"),
        ({"principal": "User:*", "operation": "READ", "name": "a"}, "no client has that name"),
        ({"principal": "User:a", "operation": "ALL", "name": "a"}, "ALL is not a request operation"),
        ({"principal": "User:a", "operation": "EAT", "name": "a"}, "operation: "),
        ({"principal": "User:a", "operation": "READ", "name": "a", "host": "x y"}, "x y"),
    ],
)
def test_requests_that_are_none(asked, why):
    with console_on(WEEK) as console, pytest.raises(BadParameterError, match=why.replace("*", r"\*")):
        page(console, **asked)


def test_what_is_missing_is_asked_for():
    with console_on(WEEK) as console:
        whole(console.history.live)
        assert page(console).answer == "Incomplete request: enter a principal."
        assert page(console, principal="User:a", operation="READ").answer == "Incomplete request: enter a name."
        cluster = page(console, principal="User:ann", operation="ALTER", type="CLUSTER")
    assert cluster.answer.startswith("Allowed since")
