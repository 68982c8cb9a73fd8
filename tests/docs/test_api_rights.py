"""docs/operations.md has the table of rights as it is declared."""

from tests.docs import api_rights


def test_the_page_has_the_table():
    page = api_rights.PAGE.read_text("utf-8")
    assert api_rights.table() in page, "run: .venv/bin/python -m tests.docs.api_rights"
    assert page == api_rights.written(page)
