"""ARCHITECTURE.md, CONTRIBUTING.md and the other pages name what exists."""

import re
from pathlib import Path

import pytest

from tests.docs import architecture
from tests.docs.architecture import BEGIN_AT, PAGE, ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PLACEHOLDERS = {"aclog/cli/X.py", "aclog/cli/X/"}


def test_the_page_says_what_the_code_says():
    page = PAGE.read_text("utf-8")
    assert page == architecture.written(page), "run: .venv/bin/python -m tests.docs.architecture"


@pytest.mark.parametrize("package", BEGIN_AT)
def test_modules_to_begin_with_exist(package: str):
    for module in BEGIN_AT[package]:
        assert (ROOT / "aclog" / package / module).is_file()


def test_every_package_is_in_the_table_or_below_one_that_is():
    packages = {str(path.parent.relative_to(ROOT / "aclog")) for path in (ROOT / "aclog").rglob("__init__.py")} - {"."}
    listed = set(BEGIN_AT)
    unlisted = {package for package in packages if package.split("/")[0] not in listed}
    assert unlisted == set()
    assert listed <= packages


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
