"""The page of changes: the rows of a naive comparison, who made changes, moments that are none, no history."""

from datetime import UTC, datetime
from random import Random

import pytest
from attrs import evolve

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.review.comment import Risk, by_risk, comment_of_clusters
from aclog.analysis.review.review import Review
from aclog.analysis.rows.report import row_cells
from aclog.authorizer.codes import AclPermissionType
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import Premise, Premises
from aclog.console.live import LivePremises, LiveState
from aclog.console.pages.page import BadParameterError, CommandLine, Facts, Form, Kind, Links, Parameters, Table
from aclog.console.pages.states import Console, States
from aclog.console.pages.why import changes_page, comment_file
from aclog.planning.plan import ApplyNote
from aclog.snapshots.history import history
from aclog.snapshots.moments import end_offset_at
from aclog.snapshots.publisher import recover
from aclog.targets.applies import append_applies, applied_line, done_line
from tests.support.analysis.timelines import batches_of
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.log_files import KAFKA_LOGS
from tests.support.builders.state_logs import write_log
from tests.support.processes.waiting import wait_until
from tests.support.web.histories import console_on, whole
from tests.support.web.points import HeldSource, image_of

SMALL = KAFKA_LOGS[0]


@pytest.fixture(scope="module")
def console():
    with console_on(SMALL) as found:
        whole(found.history.live)
        yield found


def page(console, query=""):
    return changes_page(console, Parameters.of(query))


def part(shown, key):
    return next(each for each in shown.parts if each.key == key)


def texts(table):
    return [tuple(cell.text for cell in row.cells) for row in table.rows]


def offsets():
    """The end offsets of all states of the log."""
    return sorted({0, *(each.end_offset for each in history(SMALL))})


@pytest.mark.parametrize("seed", range(8))
def test_the_difference_is_that_of_two_replays(console, seed):
    first, last = sorted(Random(seed).sample(offsets(), 2))
    shown = page(console, f"since={first}&until={last}&all=1")
    old, new = (Policy(recover(SMALL, each).image.acls) for each in (first, last))
    expected = [(judgement.risk.name.lower(), *row_cells(row)) for row, judgement in by_risk(whole_rows(old, new))]
    assert expected
    rows = texts(part(shown, "difference"))
    between = [row for row in rows if row[1].startswith("opened")]  # tests/console/pages/test_openings.py
    assert [row for row in rows if row not in between] == expected[:200]
    assert part(shown, "difference").total == len(expected) + len(between)
    assert shown.command == f"aclog diff --log DIR --as-of {first} --to-as-of {last}"
    as_json = page(console, f"since={first}&until={last}&all=1&format=json")
    assert list(as_json.data) == list(Comparison.of(old, new).json_lines())


def whole_rows(old, new):
    return Comparison.of(old, new).rows()


@pytest.mark.parametrize("seed", range(4))
def test_the_comment_is_that_of_a_review_of_two_replays_in_the_order_of_the_page(console, seed):
    first, last = sorted(Random(seed).sample(offsets(), 2))
    file = comment_file(console, Parameters.of(f"since={first}&until={last}"))
    assert (file.name, file.media_type) == (f"changes-{first}-{last}.md", "text/markdown")
    comparison = Comparison.of(*(Policy(recover(SMALL, each).image.acls) for each in (first, last)))
    foot = (f"a log: from offset {first:,} to offset {last:,}",)
    review = Review(comparisons={None: comparison}, rows=comparison.rows(), foot=foot, fail_on=())
    assert file.content.splitlines() == list(comment_of_clusters({"": review}))
    marks = {each.mark: each.name.lower() for each in Risk}
    in_comment = [marks[line[2]] for line in file.content.splitlines() if line[:2] == "| " and line[2] in marks]
    shown = texts(part(page(console, f"since={first}&until={last}&all=1"), "difference"))
    assert in_comment == [cells[0] for cells in shown][: len(in_comment)]
    assert len(in_comment) == min(len(shown), 10)


def test_the_comment_has_the_conditions_of_its_answer(tmp_path):
    deny = acl("orders", "User:a", permission_type=AclPermissionType.DENY)
    directory = write_log(tmp_path / "log", [acl_record(1, acl("news", "User:b"))], [acl_record(2, deny)])
    premise = Premise(name="a gap", problem="lost", unless="lost records matter", settled_by="another log", denies=True)
    with console_on(directory) as known:
        whole(known.history.live)
        assert "every request is decided the same" not in comment_file(known, Parameters.of("since=1&until=2")).content
        premises = LivePremises(settings=lambda: Premises((premise,)), tell=lambda _: None)
        states = States(live=known.states.live, settings=Settings(), premises=premises)
        content = comment_file(evolve(known, states=states), Parameters.of("since=1&until=2")).content
    assert "- every request is decided the same unless lost records matter (another log)" in content.splitlines()


def test_the_comment_has_the_notices_on_an_unknown_history():
    with console_on(SMALL, most=10) as console:
        begin = whole(console.history.live).timeline.begin
        lines = comment_file(console, Parameters.of("since=0")).content.splitlines()
    assert any(each.startswith(f"- The history is known from offset {begin:,}") for each in lines)
    assert any(each.startswith("- since 0: unknown state") for each in lines)


@pytest.mark.parametrize("seed", range(4))
def test_the_changes_are_those_of_the_log_the_newest_first(console, seed):
    first, last = sorted(Random(seed).sample(offsets(), 2))
    shown = part(page(console, f"since={first}&until={last}"), "changes")
    expected = [each for each in history(SMALL) if first < each.end_offset <= last]
    assert shown.total == len(expected)
    assert [row.cells[0].text for row in shown.rows] == [f"{each.offset:,}" for each in reversed(expected)][:200]
    assert [row.cells[2].text for row in shown.rows] == [each.kind.value.lower() for each in reversed(expected)][:200]


def test_without_a_question_it_is_the_last_change(console):
    shown = page(console)
    last = list(history(SMALL))[-1].end_offset
    assert shown.offset == recover(SMALL).image.end_offset
    assert {row.cells[0].text for row in part(shown, "changes").rows} == {
        f"{each.offset:,}" for each in history(SMALL) if each.end_offset == last
    }


def test_handles_are_a_question_that_texts_come_before(console):
    first, last = offsets()[3], offsets()[-3]
    by_handles = page(console, f"from={first}&to={last}")
    assert by_handles.command == f"aclog diff --log DIR --as-of {first} --to-as-of {last}"
    both = page(console, f"from=1&to=2&since={first}&until={last}")
    assert both.command == by_handles.command
    form = part(both, "span")
    assert isinstance(form, Form)
    handles = [each for each in form.fields if each.kind is Kind.RANGE]
    assert [(each.name, each.value, each.least) for each in handles] == [("from", str(first), 0), ("to", str(last), 0)]
    assert {each.empties for each in handles} == {"since", "until"}
    assert [(each.name, each.value, each.most) for each in both.handles] == [
        ("from", first, handles[0].most),
        ("to", last, handles[1].most),
    ]


def test_the_earlier_moment_comes_first_however_they_are_given(console):
    first, last = offsets()[2], offsets()[5]
    assert page(console, f"since={last}&until={first}").command == page(console, f"since={first}&until={last}").command


@pytest.mark.parametrize("number", range(0, 60, 7))
def test_a_time_names_the_state_that_the_command_line_shows(console, number):
    changes = list(history(SMALL))
    time = datetime.fromtimestamp(changes[number % len(changes)].timestamp / 1000, UTC)
    shown = page(console, f"since={time.isoformat().replace('+00:00', 'Z')}")
    expected = end_offset_at(console.history.live.log, time)
    assert f"--as-of {expected} " in shown.command


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("since=soon", "since: invalid offset or time 'soon'"),
        ("until=tomorrow", "the time is in the future"),
        ("until=99999", "until 99999: the log ends at offset 2"),
        ("from=x", "from 'x': expected a number"),
        ("to=999999", "to 999999: the log ends at offset 2"),
        ("since=01/02/2026", "which is the month?"),
        ("since=" + "9" * 30, "invalid offset or time"),
    ],
)
def test_moments_that_are_none(console, query, why):
    with pytest.raises(BadParameterError, match=why.replace("?", r"\?")):
        page(console, query)


def test_before_the_log_begins_nothing_is_known_and_it_is_said(console):
    shown = page(console, "since=2001-01-01")
    assert any("unknown state" in each.text for each in shown.notices)
    assert part(shown, "changes").total == len(list(history(SMALL)))


def test_an_empty_span_says_so(console):
    end = offsets()[4]
    shown = page(console, f"since={end}&until={end}")
    assert shown.answer.startswith("No rule changes between")
    assert part(shown, "difference").rows == ()


def test_steps_lead_through_all_changes(console):
    shown, seen = page(console), []
    while True:
        seen += [row.cells[0].text for row in part(shown, "changes").rows]
        steps = part(shown, "steps")
        assert isinstance(steps, Links)
        back = next((each.url for each in steps.links if each.text == "the change before"), None)
        if back is None:
            break
        shown = page(console, back.partition("?")[2])
    assert seen == [f"{each.offset:,}" for each in reversed(list(history(SMALL)))]


def test_moves_name_moments_that_can_be_asked(console):
    shown = page(console, f"since={offsets()[5]}&until={offsets()[9]}")
    links = [link for each in shown.parts if isinstance(each, Links) for link in each.links]
    names = {link.text for link in links}
    assert {"a change earlier", "a change later", "an hour earlier", "a day later"} <= names
    for link in links:
        assert page(console, link.url.partition("?")[2]).title == "Changes"


def test_a_large_difference_is_refused_until_it_is_asked_for(console, monkeypatch):
    monkeypatch.setattr("aclog.console.pages.why.AT_ONCE", 2)
    query = f"since={offsets()[1]}&until={offsets()[-1]}"
    with console_on(SMALL) as fresh:
        whole(fresh.history.live)
        shown = page(fresh, query)
        left_out = part(shown, "not-compared")
        assert isinstance(left_out, Facts)
        assert "effect not computed" in shown.answer
        assert all(each.key != "difference" for each in shown.parts)
        ((_, cell),) = left_out.items
        asked_for = page(fresh, cell.url.partition("?")[2])
        assert isinstance(part(asked_for, "difference"), Table)
        # now it is known
        assert isinstance(part(page(fresh, query), "difference"), Table)
        monkeypatch.setattr("aclog.console.pages.why.MOST", 1)
        ((why, cell),) = part(page(fresh, f"since=0&until={offsets()[-1]}&all=1"), "not-compared").items
        assert "more than 1 are not compared here" in why
        assert cell.url is None
        with pytest.raises(BadParameterError, match="more than 1 are not compared here"):
            comment_file(fresh, Parameters.of(f"since=0&until={offsets()[-1]}"))


def test_who_made_a_change_is_told_as_the_command_line_does(tmp_path):
    directory = write_log(tmp_path / "log", *batches_of(Random(3), 60, odd=0))
    changes = list(history(directory))
    begun = changes[10].offset
    note = ApplyNote(apply="a-1", at="2026-01-01T00:00:00Z", who="ann", plan="p", journal=None, git="abc")
    append_applies(directory, "log", [applied_line(note, offset=begun, steps=3), done_line(note)])
    with console_on(directory) as console:
        whole(console.history.live)
        rows = part(page(console, "since=0"), "changes").rows
        assert {row.cells[0].text for row in rows if row.cells[-3].text == "ann"} == {
            f"{each.offset:,}" for each in changes[10:13]
        }
        # a part of an apply alone is told, too
        last = changes[12]
        only = part(page(console, f"since={changes[11].end_offset}&until={last.end_offset}"), "changes").rows
        assert {row.cells[-2].text for row in only if row.cells[0].text == f"{last.offset:,}"} <= {"ann"}
        (directory / "applies.jsonl").write_bytes(b"nonsense\n")
        assert "author unknown" in part(page(console, "since=0"), "changes").note


def test_an_apply_before_what_is_known_is_nobodys(tmp_path):
    directory = write_log(tmp_path / "log", *batches_of(Random(3), 60, odd=0))
    note = ApplyNote(apply="a-1", at="2026-01-01T00:00:00Z", who="ann", plan="p", journal=None, git=None)
    append_applies(directory, "log", [applied_line(note, offset=0, steps=5), done_line(note)])
    with console_on(directory, most=10) as console:
        timeline = whole(console.history.live).timeline
        assert timeline.begin > 0
        rows = part(page(console, f"since={timeline.begin}"), "changes").rows
        assert rows
        assert {row.cells[-2].text for row in rows} == {""}


def test_what_is_not_kept_is_said(tmp_path):
    with console_on(SMALL, most=10) as console:
        begin = whole(console.history.live).timeline.begin
        shown = page(console, "since=0")
        why = f"The history is known from offset {begin:,}: at most the newest 10 changes are kept."
        assert why in shown.notices[0].text
        assert any("since 0: unknown state" in each.text for each in shown.notices)


def test_a_history_that_is_still_being_read_says_so(monkeypatch):
    monkeypatch.setattr("aclog.console.live.LiveHistory._parts", lambda self: self._stopping.wait() and "")
    with console_on(SMALL) as console:
        wait_until(lambda: console.history.live.current is not None)
        shown = page(console, "since=0")
    assert any("older changes are still being read" in each.text for each in shown.notices)
    assert any("where the history begins so far" in each.text for each in shown.notices)


def test_a_source_without_a_history_says_so():
    live = LiveState(source=HeldSource(image_of()), seconds=1, tell=lambda _: None)
    live.start()
    try:
        wait_until(lambda: live.newest is not None)
        console = Console(
            name="the rules", states=States(live=live, settings=Settings()), command=CommandLine(source=("--acls", "-"))
        )
        shown = page(console, "since=yesterday")
    finally:
        live.stop()
    assert "no history" in shown.answer
    assert "--log DIR" in shown.notices[0].text
    assert (shown.command, shown.tables()) == (None, ())
