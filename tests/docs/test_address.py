"""The address of the repository stands in one place, and what is written elsewhere follows from it."""

import pytest

from tests.docs import address
from tests.docs.address import PAGES, PROJECT, RECIPES, written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_the_address(page):
    assert written(page) == page.read_text("utf-8"), "run: .venv/bin/python -m tests.docs.address"


def test_another_address_reaches_each_place(monkeypatch):
    monkeypatch.setattr(address, "address", lambda: "https://git.example.org/kafka/rules")
    project, recipes = written(PROJECT), written(RECIPES)
    assert project.count("https://git.example.org/kafka/rules/") == 5
    assert recipes.count("kafka/rules") == 3
    old = "/".join(address.PROJECT.read_text("utf-8").split('Source = "')[1].split('"')[0].split("/")[-2:])
    assert f"{old}@" not in recipes
    assert [line for line in project.splitlines() if old in line] == [f'Source = "https://github.com/{old}"']
