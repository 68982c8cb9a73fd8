"""Access that opened and closed between two moments is a row of the page of changes, as both states would hide it."""

from uuid import UUID

import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.console.pages.page import Facts, Links, Mark, Page, Parameters
from aclog.console.pages.views import VIEWS
from aclog.console.pages.why import comment_file
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.log_files import DATA
from tests.support.builders.state_logs import write_log
from tests.support.web.consoles import column, table, view
from tests.support.web.histories import console_on, whole

WEEK = DATA / "week" / "log"
HELD = acl("orders", "User:alice")
DENIED = acl("orders", "User:alice", permission_type=AclPermissionType.DENY)
COVERING = acl("ord", "User:alice", pattern_type=PatternType.PREFIXED, operation=AclOperation.ALL)


def changes(directory, *batches, **asked) -> Page:
    with console_on(write_log(directory, *batches) if batches else directory) as console:
        whole(console.history.live)
        return view(console, "/changes", **(asked or {"since": "0"}))


def gone(number: int) -> RemoveAccessControlEntryRecord:
    return RemoveAccessControlEntryRecord(id=UUID(int=number))


def opened(page: Page) -> list[str]:
    return [each for each in column(page, "difference", "change") if each.startswith("opened")]


def test_the_riskiest_row_is_what_was_open_in_between():
    page = changes(WEEK, since="2026-11-18", until="2026-11-21")
    [row, *others] = table(page, "difference").rows
    assert row.cells[1].text == (
        "opened and closed within this range: 2026-11-19T22:40:00.000Z to 2026-11-20T07:15:00.000Z"
    )
    assert row.cells[0].text == "high"
    assert row.mark is Mark.GAINED
    assert "WRITE" in row.cells[3].text
    assert others
    assert page.answer.endswith("; 1 opened and closed within this range")


def test_the_comment_of_changes_has_it():
    with console_on(WEEK) as console:
        whole(console.history.live)
        comment = comment_file(console, Parameters({"since": "2026-11-18", "until": "2026-11-21"})).content
    assert "opened and closed within this range: 2026-11-19T22:40:00.000Z" in comment


@pytest.mark.parametrize(
    ("batches", "count"),
    [
        ([[acl_record(1, HELD)], [gone(1)]], 1),
        ([[acl_record(1, HELD)], [acl_record(2, DENIED)], [gone(2)]], 0),
        ([[acl_record(1, HELD), acl_record(2, DENIED)], [gone(2)], [acl_record(3, DENIED)]], 1),
        ([[acl_record(1, COVERING)], [acl_record(2, HELD)], [gone(2)]], 0),
        ([[acl_record(1, HELD)], [gone(1), acl_record(2, COVERING)]], 0),
        ([[acl_record(1, HELD)], [acl_record(2, COVERING)], [gone(1)]], 0),
    ],
)
def test_it_is_access_that_neither_the_state_before_nor_the_one_after_has(tmp_path, batches, count):
    assert len(opened(changes(tmp_path / "log", *batches))) == count


def test_a_range_without_changes_names_the_last_one():
    page = changes(WEEK, since="2026-11-21")
    [facts] = [each for each in page.parts if isinstance(each, Facts) and each.key == "last-change"]
    last, day = (cell for _, cell in facts.items)
    assert last.text.startswith("2026-11-20T07:15:00.000Z: removed ALLOW User:* WRITE")
    assert (day.text, day.url) == ("2026-11-20", "/changes?since=2026-11-20&until=2026-11-21")


@pytest.mark.parametrize("as_of", ["2026-11-20T09:00:00Z", "40"])
def test_a_relative_range_counts_from_the_moment_shown(as_of):
    with console_on(WEEK) as console:
        whole(console.history.live)
        [link] = [
            cell.url
            for part in view(console, "/", as_of=as_of).parts
            if isinstance(part, Links)
            for cell in part.links
            if cell.text == "What changed last night?"
        ]
        page = VIEWS["/changes"](console, Parameters.of(link.partition("?")[2]))
        assert column(page, "changes", "change") == ["removed", "added", "removed"]
        assert page.offset == 40
        later = view(console, "/changes", since="0", until="33", as_of=as_of)
    assert later.offset == 33
    links = [
        cell.url for part in page.parts if isinstance(part, Links) and part.key == "presets" for cell in part.links
    ]
    assert all("as_of=" in each for each in links)
