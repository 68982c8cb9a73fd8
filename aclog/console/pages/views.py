"""The views by path, and the menu."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from aclog.console.pages import draft, findings, lists, rule, start, subjects, why
from aclog.console.pages.generations import View, asked_at, of_each_kafka
from aclog.console.pages.page import File, Parameters
from aclog.console.pages.states import Console

# The views by path.


Download: TypeAlias = Callable[[Console, Parameters], File]

VIEWS: Mapping[str, View] = {
    start.PATH: start.start_page,
    subjects.SEARCH_PATH: subjects.search_page,
    lists.NAMES_PATH: lists.names_page,
    subjects.RESOURCE_PATH: of_each_kafka(subjects.resource_page, asked_at),
    subjects.PRINCIPAL_PATH: of_each_kafka(subjects.principal_page, asked_at),
    why.WHY_PATH: of_each_kafka(why.why_page, asked_at),
    rule.RULES_PATH: lists.rules_page,
    why.PATH: why.changes_page,
    why.WHEN_PATH: why.when_page,
    findings.PATH: findings.findings_page,
    draft.DRAFT_PATH: of_each_kafka(draft.draft_page, draft.asked_now),
    draft.PLAN_PATH: draft.plan_page,
}
"""Pure except for the source; each may be called in any thread."""

DOWNLOADS: Mapping[str, Mapping[str, Download]] = {
    why.PATH: {"markdown": why.comment_file},
    draft.DRAFT_PATH: {"change": draft.change_file, "plan": draft.plan_file, "patch": draft.patch_file},
    draft.PLAN_PATH: {"plan": draft.kept_plan_file},
}
"""Downloadable files, by path and `format`."""

MENU = (
    ("/", "Start"),
    ("/resource", "Who can"),
    ("/principal", "Principals"),
    ("/why", "Why"),
    ("/names", "Names"),
    ("/rules", "Rules"),
    ("/changes", "Changes"),
    ("/when", "When"),
    ("/draft", "Draft"),
    ("/findings", "Findings"),
)
"""The menu of every page."""

GROUPS: Mapping[str, str] = {
    "/resource": "Ask",
    "/principal": "Ask",
    "/why": "Ask",
    "/names": "Ask",
    "/rules": "Ask",
    "/changes": "Change",
    "/when": "Change",
    "/draft": "Change",
    "/findings": "Health",
}
"""The group of the menu that a view is in; the others come first, without a heading."""

OWN_VIEWS = frozenset(
    (
        start.PATH,
        subjects.SEARCH_PATH,
        lists.NAMES_PATH,
        subjects.RESOURCE_PATH,
        subjects.PRINCIPAL_PATH,
        why.WHY_PATH,
        rule.RULES_PATH,
    )
)
"""Views that are also for viewers who see their own permissions only; any other view shows other principals."""

AT_A_MOMENT = OWN_VIEWS | {why.PATH}
"""Views of the state at the moment in `as_of`; the others have moments of their own, or show the newest state."""


def is_at_moment(path: str, parameters: Parameters) -> bool:
    """Return whether a page is of the moment in `as_of`: changes are, unless their end is stated."""
    has_end = path == why.PATH and (parameters.word("until") or parameters.word("to"))
    return path in AT_A_MOMENT and not has_end
