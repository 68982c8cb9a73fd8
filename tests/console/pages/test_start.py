"""The first page: its figures and its chart are those of a naive count, and what was not scanned is unknown."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.console.findings import Kind, LookResult
from aclog.console.pages.page import Chart, Facts, Form, Page
from aclog.snapshots.history import ChangeKind, history
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl
from tests.support.builders.log_files import KAFKA_LOGS
from tests.support.web.consoles import column, console_of, table, view
from tests.support.web.finders import HeldFinder, item, watched
from tests.support.web.histories import console_on, whole
from tests.support.web.points import HeldSource, image_of

SMALL = KAFKA_LOGS[0]
CLUSTER = {"resource_type": ResourceType.CLUSTER}
RULES = (
    acl("orders", "User:alice"),
    acl("news", "User:*"),
    acl("secret", "User:*", permission_type=AclPermissionType.DENY),
    acl("kafka-cluster", "User:admin", operation=AclOperation.ALTER, **CLUSTER),
    acl("kafka-cluster", "User:reader", operation=AclOperation.DESCRIBE, **CLUSTER),
)


def tiles(page: Page) -> dict[str, str]:
    [facts] = [part for part in page.parts if isinstance(part, Facts) and part.key == "tiles"]
    assert facts.is_tiles
    return {name: cell.text for name, cell in facts.items}


def test_the_figures_are_those_of_the_rules() -> None:
    settings = Settings(super_users=frozenset({"User:root", "User:admin"}))
    page = view(console_of(HeldSource(image_of(*RULES)), settings=settings), "/")
    assert tiles(page) == {"ACLs": "5", "Principals": "4", "Open to everyone": "1", "Admins": "2"}
    assert not any(isinstance(part, Form) for part in page.parts)
    assert page.command is None


def test_what_was_not_scanned_is_unknown_and_not_none() -> None:
    console = watched(console_of(HeldSource(image_of(*RULES))), {Kind.LINT: HeldFinder(LookResult(items=()))})
    page = view(console, "/")
    assert (tiles(page)["Unused"], tiles(page)["Lint findings"]) == ("unknown", "unknown")
    assert table(page, "attention").note == "unknown: lint, unused, drift, tests"
    assert console.lookout is not None
    console.lookout.round()
    page = view(console, "/")
    assert (tiles(page)["Unused"], tiles(page)["Lint findings"]) == ("unknown", "0")
    assert table(page, "attention").none == "No findings in what was scanned."


def test_findings_that_are_left_out_are_counted() -> None:
    found = LookResult(items=tuple(item(f"0{number} one", RULES[0]) for number in range(6)))
    console = watched(console_of(HeldSource(image_of(*RULES))), {Kind.LINT: HeldFinder(found)})
    assert console.lookout is not None
    console.lookout.round()
    attention = table(view(console, "/"), "attention")
    assert (len(attention.rows), attention.total) == (5, 6)
    assert attention.note == "the first 5 of 6; unknown: unused, drift, tests"


@pytest.fixture(scope="module")
def logged():
    with console_on(SMALL) as found:
        whole(found.history.live)
        yield found


def test_the_chart_counts_each_change_on_its_day(logged, monkeypatch) -> None:
    changes = list(history(SMALL))
    now = changes[-1].timestamp + 3_600_000
    monkeypatch.setattr("aclog.console.pages.start.current_time_ms", lambda: now)
    page = view(logged, "/")
    [chart] = [part for part in page.parts if isinstance(part, Chart)]
    first = datetime.fromtimestamp(now / 1000, UTC).date() - timedelta(days=89)
    expected: Counter[tuple[str, bool]] = Counter()
    for change in changes:
        day = datetime.fromtimestamp(change.timestamp / 1000, UTC).date()
        if day >= first:
            expected[str(day), change.kind is ChangeKind.ADDED] += 1
    assert expected
    assert len(chart.bars) == 90
    found = {(bar.label, True): bar.added for bar in chart.bars} | {
        (bar.label, False): bar.removed for bar in chart.bars
    }
    assert {key: count for key, count in found.items() if count} == expected
    assert all((bar.url is not None) is bool(bar.added or bar.removed) for bar in chart.bars)


def test_the_last_changes_are_those_of_the_log(logged) -> None:
    changes = list(history(SMALL))
    page = view(logged, "/")
    assert column(page, "latest", "change") == [each.kind.value.lower() for each in reversed(changes)][:10]
    assert table(page, "latest").total == len(changes)


def test_each_rule_is_dated_by_the_change_that_added_it(logged) -> None:
    end = recover(SMALL).image.end_offset
    timeline = logged.history.current(end).timeline
    last = {}
    for change in history(SMALL):
        last[change.rule.acl] = change
    dated = 0
    for rule in recover(SMALL).image.acls:
        found = logged.history.added(timeline, rule.acl, end)
        assert found is not None
        assert found.offset == last[rule.acl].offset
        dated += 1
    assert dated
    for acl_, change in last.items():
        if change.kind is ChangeKind.REMOVED:
            assert logged.history.added(timeline, acl_, end) is None


def test_the_density_of_a_timeline_is_that_of_its_changes(logged) -> None:
    end = recover(SMALL).image.end_offset
    timeline = logged.history.current(end).timeline
    bounds = [0, end // 3, end // 2, end]
    naive = [[each.kind for each in history(SMALL) if low < each.end_offset <= high] for low, high in pairwise(bounds)]
    counts = [(kinds.count(ChangeKind.ADDED), kinds.count(ChangeKind.REMOVED)) for kinds in naive]
    assert logged.history.index.density(timeline, bounds) == counts
