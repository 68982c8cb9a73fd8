"""The views by path."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from aclog.console.pages import (
    changes,
    draft,
    draft_plan,
    findings,
    names,
    principal,
    resource,
    rules,
    search,
    start,
    when,
    why,
)
from aclog.console.pages.asked import Asked
from aclog.console.pages.console import Console
from aclog.console.pages.page import File, Page

View: TypeAlias = Callable[[Console, Asked], Page]
Download: TypeAlias = Callable[[Console, Asked], File]

VIEWS: Mapping[str, View] = {
    start.PATH: start.start_page,
    search.PATH: search.search_page,
    names.PATH: names.names_page,
    resource.PATH: resource.resource_page,
    principal.PATH: principal.principal_page,
    why.PATH: why.why_page,
    rules.PATH: rules.rules_page,
    changes.PATH: changes.changes_page,
    when.PATH: when.when_page,
    findings.PATH: findings.findings_page,
    draft.PATH: draft.draft_page,
    draft_plan.PATH: draft_plan.plan_page,
}
"""Pure but for the source; each may be called in any thread."""

DOWNLOADS: Mapping[str, Mapping[str, Download]] = {
    draft.PATH: {"change": draft.change_file, "plan": draft.plan_file},
    draft_plan.PATH: {"plan": draft_plan.kept_plan_file},
}
"""What is saved as a file, by path and `format`."""

MENU = (
    ("/", "Start"),
    ("/names", "Names"),
    ("/resource", "Who can"),
    ("/principal", "Principals"),
    ("/why", "Why"),
    ("/rules", "Rules"),
    ("/changes", "Changes"),
    ("/when", "When"),
    ("/findings", "Findings"),
    ("/draft", "Draft"),
)
"""What every page links to."""

OWN_VIEWS = frozenset((start.PATH, search.PATH, names.PATH, resource.PATH, principal.PATH, why.PATH, rules.PATH))
"""What is shown to who sees his own rights only, too; any other view tells of others."""
