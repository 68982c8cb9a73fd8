"""Rows in each format are the same data, and tables fit."""

import csv
import html
import io
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from aclog.metalog.errors import ConfigError
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat, cell_text, selected
from aclog.terminal.fitted_table import LOOKAHEAD, cut_in_the_middle, fitted
from aclog.terminal.tables import print_rows

COLUMNS = (
    Column(key="name", cut=True),
    Column(key="operation"),
    Column(key="count", title="HOW MANY"),
    Column(key="id", spare=True),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ROWS = st.lists(
    st.fixed_dictionaries({"name": TEXT, "operation": TEXT, "count": st.integers() | st.none() | st.lists(TEXT)}),
    max_size=5,
)
PRINTABLE = st.lists(
    st.fixed_dictionaries({"name": st.text(st.sampled_from("a|*\\_<>&@#`[]~ é界 http://"), max_size=12)}), max_size=5
)


def printed(capsys, rows, form, **options):
    print_rows(COLUMNS, rows, form, **options)
    return capsys.readouterr().out


UNSEEN = r"\x00-\x08\x0b\x0c\x0e- \x7f-\xa0\xad\u061c\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
COVERED = re.compile(rf"(\A|[;\t\r\n])([{UNSEEN}]*)'(?=[=+\-@\uff1d\uff0b\uff0d\uff20'])")


def uncovered(cell):
    """A cell of csv as the text that it stands for: without the first apostrophe where a formula may be."""
    cell = cell[1:] if re.match("'[\t\r\n]", cell) else cell
    return COVERED.sub(r"\1\2", cell)


@given(rows=ROWS)
def test_json_json_lines_and_csv_are_the_same_rows(rows):
    with pytest.MonkeyPatch.context() as patch:
        out = captured_by(patch)
        assert json.loads(out(rows, OutputFormat.JSON)) == rows
        assert [json.loads(line) for line in out(rows, OutputFormat.JSONL).splitlines()] == rows
        header, *cells = csv.reader(io.StringIO(out(rows, OutputFormat.CSV), newline=""))
        assert header == [column.key for column in COLUMNS]
        assert [list(map(uncovered, row)) for row in cells] == [
            [cell_text(row.get(key)) for key in header] for row in rows
        ]


@given(rows=PRINTABLE)
def test_markdown_is_the_same_rows(rows):
    with pytest.MonkeyPatch.context() as patch:
        header, ruler, *lines = captured_by(patch)(rows, OutputFormat.MARKDOWN, keys=("name",)).splitlines()
    assert (header, ruler) == ("| name |", "|---|")
    found = [html.unescape(re.sub(r"\\(.)", r"\1", line[2:-2])).replace("\u200b", "") for line in lines]
    assert found == [row["name"] for row in rows]


def captured_by(patch):
    """What `print_rows` prints."""

    def captured(rows, form, **options):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")
        with patch.context() as inner:
            inner.setattr("sys.stdout", stream)
            print_rows(COLUMNS, rows, form, **options)
        stream.flush()
        return stream.buffer.getvalue().decode()

    return captured


@given(
    text=st.text(st.sampled_from("=+-@\uff1d\uff0b\uff0d\uff20\t\r'ab,;\"\n \u00a0\u200b\0"), min_size=1, max_size=6)
)
@example(text=";=1+1")
@example(text="\uff1dcmd")
@example(text="'=1")
@example(text="a; \t=1")
def test_no_cell_of_csv_is_a_formula(text):
    with pytest.MonkeyPatch.context() as patch:
        out = captured_by(patch)([{"name": text, "count": -1}], OutputFormat.CSV)
    _, row = csv.reader(io.StringIO(out, newline=""))
    for cell in re.split(r"[;\t\r\n]", row[0]):  # as spreadsheets of other locales separate them
        assert cell.lstrip(" \u00a0\u200b\0")[:1] not in tuple("=+-@\uff1d\uff0b\uff0d\uff20"), row[0]
    assert row[0][0] not in "\t\r\n"
    assert uncovered(row[0]) == text
    assert row[2] == "-1"  # a number is none


@pytest.mark.parametrize("form", ROW_FORMATS)
def test_columns_are_chosen_and_ordered(form, capsys):
    found = printed(capsys, [{"name": "n", "operation": "o", "id": "i", "more": 1}], form, keys=("ID", "name"))
    assert re.sub(r"[^a-z]", "", found.lower()) in {"idnamein", "idiname", "idinamen"}
    assert "more" not in found


def test_an_unknown_column_names_those_that_exist():
    with pytest.raises(ConfigError, match=r"no column 'x': expected some of name, operation, count, id$"):
        selected(COLUMNS, ["name", "x"])


def test_lines_come_before_all_rows_are_known(capsys):
    seen = []

    def rows():
        for number in range(3000):
            seen.append(number)
            yield {"name": str(number)}

    for form in ROW_FORMATS:
        seen.clear()
        printed(capsys, rows(), form)
        assert len(seen) == 3000
    lines = fitted(COLUMNS, ((str(number), "", "", "") for number in rows()), width=80, left_out=seen.append)
    seen.clear()
    next(lines)
    assert len(seen) == LOOKAHEAD


NAMES = st.text(st.sampled_from("abc界é\u0301-."), max_size=60)


@given(rows=st.lists(st.tuples(NAMES, st.sampled_from(["READ", "ALTER"]), st.just("1"), st.just("i" * 22))), width=...)
def test_a_table_fits_and_never_cuts_what_is_copied(rows, width: int):
    width = 30 + width % 120
    gone = []
    lines = list(fitted(COLUMNS, rows, width=width, left_out=gone.extend))
    is_table = bool(lines) and lines[0].startswith("NAME")
    if is_table:
        assert max(map(cell_len, lines)) <= width
        assert len(lines) == len(rows) + 1
        for line, row in zip(lines[1:], rows, strict=True):
            assert row[1] in line
            assert gone == ["id"] or row[3] in line
    else:
        assert [line for line in lines if line.startswith("name: ")] == [f"name: {row[0] or '-'}" for row in rows]


@given(text=NAMES, width=st.integers(2, 70))
def test_what_is_cut_keeps_its_ends(text, width):
    found = cut_in_the_middle(text, width)
    assert cell_len(found) <= width
    if cell_len(text) <= width:
        assert found == text
    else:
        head, tail = found.split("…")
        assert text.startswith(head.rstrip(" "))
        assert text.endswith(tail.lstrip(" "))


def test_a_narrow_terminal_gets_blocks():
    lines = fitted(COLUMNS, [("n" * 99, "READ", "1", ""), ("m", "ALTER", "2", "x")], width=20, left_out=print)
    assert list(lines) == [
        f"name: {'n' * 99}", "operation: READ", "count: 1", "id: -", "",
        "name: m", "operation: ALTER", "count: 2", "id: x",
    ]  # fmt: skip
