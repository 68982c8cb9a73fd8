"""ARCHITECTURE.md, CONTRIBUTING.md and the other pages name what exists."""

import re
from pathlib import Path

import pytest

from tests.docs import architecture
from tests.docs.architecture import INTERNALS, PAGE, ROOT, TABLE, begin_with, docstring, packages

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PLACEHOLDERS = {"aclog/cli/X.py", "aclog/cli/X/", "aclog/aclog"}  # the last is a repository
QUESTIONS = re.compile(r"(?m)^\| [^|]*\? \| (.*) \|$")


@pytest.mark.parametrize("page", [PAGE, INTERNALS], ids=lambda page: page.name)
def test_the_page_says_what_the_code_says(page: Path):
    text = page.read_text("utf-8")
    assert text == architecture.written(page), "run: .venv/bin/python -m tests.docs.architecture"
    assert len(TABLE.findall(text)) == 1


@pytest.mark.parametrize("package", packages())
def test_a_package_says_in_five_lines_what_it_contains_and_where_to_begin(package: str):
    assert len(docstring(package).splitlines()) <= 5
    files = begin_with(package)
    assert files
    assert [name for name in files if not (ROOT / "aclog" / package / name).is_file()] == []


def test_the_questions_of_a_newcomer_are_answered_by_files_that_exist():
    answers = QUESTIONS.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert len(answers) >= 20
    for answer in answers:
        files = re.findall(r"`(aclog/[\w/]+\.py)`", answer)
        assert files, answer
        assert all((ROOT / file).is_file() for file in files), answer


def mentioned(page: Path) -> set[str]:
    """Files of the repository that a page names, in backquotes or links; `{a,b}` stands for both."""
    text = page.read_text("utf-8")
    names = set(re.findall(r"`((?:aclog|tests|benchmarks|docs|metalog|snapshots)/[\w./{},-]+)`", text))
    return {name for whole in names for name in expanded(whole)}


def expanded(name: str) -> list[str]:
    group = re.search(r"\{([^}]*)\}", name)
    if group is None:
        return [name]
    return [name[: group.start()] + each + name[group.end() :] for each in group[1].split(",")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_pages_name_exist(page: Path):
    names = mentioned(page) - PLACEHOLDERS
    assert [name for name in names if not ((ROOT / name).exists() or (ROOT / "aclog" / name).exists())] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if target and not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors_exist(page: Path):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]*)\)", page.read_text("utf-8")):
        if target.startswith("http"):
            continue
        other = (page.parent / target if target else page).read_text("utf-8")
        headings = re.findall(r"^#+ (.*)$", other, re.MULTILINE)
        slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        marks = set(re.findall(r'<a id="([^"]+)"></a>', other))
        assert anchor in slugs | marks, f"{target}#{anchor}"


@pytest.mark.parametrize("link", ["metalog", "authorizer", "snapshots", "shell"])
def test_the_links_at_the_top_lead_into_the_package(link: str):
    path = ROOT / link
    assert path.is_symlink()
    assert str(path.readlink()) == f"aclog/{link}"


def test_the_changelog_has_one_short_line_an_entry():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    unreleased = text.partition("## Unreleased\n")[2].partition("\n## ")[0]
    entries = [line for line in unreleased.splitlines() if line and not line.startswith(("#", "[", "One line"))]
    assert [line for line in unreleased.splitlines() if len(line) > 120] == []
    assert [line for line in entries if not line.startswith("- ")] == []
