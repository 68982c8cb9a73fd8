"""The order of the site's pages."""

import json
from collections.abc import Collection
from fnmatch import fnmatch

_SECTIONS = {
    "Home": ["index.md"],
    "Start": ["install.md", "start/admin.md", "start/*.md"],
    "How to": ["how-to/week.md", "how-to/*.md", "notebooks/*.md"],
    "Use": [
        "contexts.md",
        "shell.md",
        "library.md",
        "usage.md",
        "plan.md",
        "console.md",
        "console-pictures.md",
        "console-login.md",
        "decision-point.md",
        "mcp.md",
        "spark.md",
        "scale.md",
        "troubleshooting.md",
    ],
    "Rules in repositories": ["gitops.md", "pull-requests.md", "testing-rules.md", "lint.md", "repository.md"],
    "Nodes": ["operations.md", "configuration.md", "upgrading.md"],
    "Commands": ["commands/index.md", "commands/*.md"],
    "Reference": ["reference/*.md"],
    "How it works": ["semantics.md", "format.md", "conformance.md", "project/architecture.md", "internals.md"],
    "More": ["*.md"],
    "Decisions": ["decisions/*.md"],
    "Project": ["project/readme.md", "project/changelog.md", "project/security.md", "project/contributing.md"],
}
"""Patterns of places: a page is where the most particular of them is, and in "More" if no other fits."""


def navigation(pages: Collection[str]) -> str:
    """Return zensical's settings of the navigation, as TOML that ends a file. Every page is in it, once."""
    places: dict[str, list[str]] = {title: [] for title in _SECTIONS}
    left = sorted(pages, key=lambda page: ("/" in page, page))
    for wanted in (_exact, _folder, _rest):
        for title, patterns in _SECTIONS.items():
            for pattern in filter(wanted, patterns):
                found = [page for page in left if fnmatch(page, pattern)]
                places[title] += found
                left = [page for page in left if page not in found]
    return "\n".join(
        f"[[project.nav]]\n{json.dumps(title)} = {_value(found)}" for title, found in places.items() if found
    )


def _value(pages: list[str]) -> str:
    return json.dumps(pages[0] if pages == ["index.md"] else pages)


def _exact(pattern: str) -> bool:
    return "*" not in pattern


def _folder(pattern: str) -> bool:
    return "*" in pattern and "/" in pattern


def _rest(pattern: str) -> bool:
    return "*" in pattern and "/" not in pattern
