"""Pages as HTML leave nothing behind for the collector of cycles, which would look through all of their tables."""

import gc
import weakref

import pytest

from aclog.console.pages.page import Cell, Column, Field, Form, Page, Parameters, Row, Table
from aclog.console.web.rendering import Around, answer_html, page_html


def page() -> Page:
    field = Field(name="q", label="Name", value="a")
    table = Table(
        key="rules",
        title="Rules",
        columns=(Column(key="name", title="Name"),),
        rows=tuple(Row(key=name, cells=(Cell(name),)) for name in ("a" * 2_000, "b", "c")),
        none="None.",
    )
    form = Form(key="find", title="Find", path="/x", fields=(field,), submit="Find")
    return Page(path="/x", title="Names", answer="Three.", parts=(form, table))


@pytest.fixture
def _no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
def test_a_page_that_was_rendered_is_gone():
    around = Around(source="log", status="", trouble=None, version="1")
    made, asked = page(), Parameters({})
    table = made.parts[1]
    left = [weakref.ref(each) for each in (made, table, table.rows[0])]  # short rows are kept for the next page
    html = page_html(made, asked, answer_html(made, asked), around)
    assert "<title>Names" in html
    assert "<td" in html
    del made, table
    assert [each() for each in left] == [None, None, None]


def test_the_menu_says_where_one_is():
    around = Around(source="log", status="", trouble=None, version="1", menu=(("/", "Start"), ("/x", "X"), ("/y", "Y")))
    html = page_html(page(), Parameters({}), "", around)
    assert [line.strip() for line in html.splitlines() if 'aria-current="' in line] == [
        '<li><a href="/x" aria-current="page">X</a></li>'
    ]
