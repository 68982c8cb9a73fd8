"""Pages that begin with a quick start: their command lines print what the pages say."""

import pytest

from tests.docs.recorded import pages, written


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_says_what_its_commands_print(page):
    text = page.read_text("utf-8")
    assert written(text) == text, "run: .venv/bin/python -m tests.docs.recorded"
