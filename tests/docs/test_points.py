"""The one table of what each speed goal came to has the figures of the results that it names."""

from benchmarks import points


def test_the_table_is_made_of_the_kept_results():
    text = "\n".join(points.lines()) + "\n"
    assert points.FILE.read_text("utf-8") == text, "run: .venv/bin/python -m benchmarks.points"
