"""Each notebook runs, in order and from its folder, and shows what it is stored with."""

import json

import pytest

from tests.docs.notebook import notebooks, page, recorded, texts


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_shows_when_it_is_run(path):
    stored = json.loads(path.read_text("utf-8"))
    assert texts(recorded(stored)) == texts(stored), "run: .venv/bin/python -m tests.docs.notebook"


def test_a_page_has_the_cells_and_what_they_show():
    [night] = notebooks()
    text = page(json.loads(night.read_text("utf-8")))
    assert "# A night in November" in text
    assert '```python\nbefore.diff(now)\n```\n\n<div class="output">\n<table><caption>' in text
    assert "```text\nTrue\n```" in text
