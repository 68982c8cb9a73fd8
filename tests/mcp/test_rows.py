"""The rows of an answer: what fits, what is left off, and what is no answer."""

import json

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.mcp.server import MOST_CHARACTERS, Ended, Rows, answer_of
from aclog.mcp.tools import TOOLS, AskedState, CommandLine
from aclog.metalog.errors import ConfigError

TOOL = {tool.name: tool for tool in TOOLS}
LINE = CommandLine(
    words=("lint",), stdin=None, to_state=None,
    state=AskedState(source="s", end_offset=5, why_none=None, as_of="5"),
)  # fmt: skip
WELL = Ended(code=0, notices=(), error=None)


def taken(rows: list[object], *, skip: int = 0, has_head: bool = False, pieces: int = 1 << 20) -> Rows:
    """Rows as they are printed, in pieces."""
    text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    found = Rows(skip, has_head=has_head)
    for begin in range(0, len(text), pieces):
        found.feed(text[begin : begin + pieces])
    found.end()
    return found


@given(
    st.lists(st.integers(0, 19_000).map(lambda length: {"a": "x" * length}), max_size=12),
    st.integers(0, 14),
    st.integers(1, 5000),
)
def test_what_is_kept_is_a_piece_of_all_and_the_rest_is_counted(rows, skip, pieces):
    found = taken(rows, skip=skip, pieces=pieces)
    assert found.items == rows[skip : skip + len(found.items)]
    assert found.total == len(rows)
    assert found.left_off == len(rows) - min(skip, len(rows)) - len(found.items)
    assert sum(len(json.dumps(row)) for row in found.items) <= MOST_CHARACTERS
    assert found.items or skip >= len(rows), "some row always fits: reading on comes to an end"


def test_reading_on_with_skip_gives_every_row_once():
    rows = [{"n": number, "text": "x" * (number * 37 % 3000)} for number in range(500)]
    read, steps = [], 0
    while len(read) < len(rows):
        read += taken(rows, skip=len(read)).items
        steps += 1
    assert read == rows
    assert steps > 5


@pytest.mark.parametrize(("length", "count"), [(1, 5000), (30_000, 50)])
def test_a_long_row_is_cut_inside_and_says_so(length, count):
    row = {"names": [{"literal": f"{'n' * length}{number}"} for number in range(count)], "id": 7}
    found = taken([row, row])
    [first, *_] = found.items
    assert first["id"] == 7
    assert len(first["names"]) + first["namesLeftOff"] == count
    assert len(json.dumps(found.items)) <= MOST_CHARACTERS + 10
    answer = answer_of(TOOL["what_can"], LINE, WELL, found)
    assert "LeftOff" in answer["note"]


def test_the_first_line_of_a_check_is_its_verdict():
    found = taken([{"verdict": "REFUTED"}, {"a": 1}, {"a": 2}], has_head=True, skip=1)
    answer = answer_of(TOOL["check"], LINE, Ended(code=1, notices=(), error=None), found)
    assert (answer["verdict"], answer["rows"], answer["total"]) == ({"verdict": "REFUTED"}, [{"a": 2}], 2)


def test_an_answer_says_what_is_none_and_what_is_left():
    assert answer_of(TOOL["lint"], LINE, WELL, taken([]))["note"] == "none: no finding"
    assert "note" not in answer_of(TOOL["lint"], LINE, WELL, taken([{}]))
    assert answer_of(TOOL["lint"], LINE, WELL, taken([{}], skip=5))["note"] == "there are 1 rows, and all were skipped"
    rows = [{"a": "x" * 1000}] * 100
    answer = answer_of(TOOL["lint"], LINE, WELL, taken(rows))
    told = "61 of 100 rows are left off: select fewer lints, or read on with"
    assert answer["note"] == f"{told} skip=39 and as_of=5"
    compared = answer_of(TOOL["lint"], evolve(LINE, to_state=evolve(LINE.state, as_of="9")), WELL, taken(rows))
    assert compared["note"] == f"{told} skip=39 and as_of=5 and to_as_of=9"
    assert answer["leftOff"] == 61


@pytest.mark.parametrize(
    ("tool", "ended", "rows", "said"),
    [
        ("lint", Ended(code=2, notices=(), error="x: no such file"), [], "x: no such file"),
        ("lint", Ended(code=2, notices=("note: y",), error=None), [], "exit code 2"),
        ("lint", Ended(code=1, notices=(), error="ValueError: a crash ends with 1, too"), [{}], "a crash"),
        ("lint", Ended(code=1, notices=(), error=None), [], "exit code 1"),
        ("who_can", Ended(code=1, notices=(), error=None), [{}], "exit code 1"),
        ("lint", Ended(code=-9, notices=(), error=None), [{}], "ended by signal 9"),
        ("lint", Ended(code=130, notices=(), error="interrupted"), [{}], "interrupted"),
        ("check", Ended(code=0, notices=(), error=None), [], "exit code 0"),
    ],
)
def test_what_failed_is_no_answer(tool, ended, rows, said):
    with pytest.raises(ConfigError, match=said):
        answer_of(TOOL[tool], LINE, ended, taken(rows, has_head=tool == "check"))


@pytest.mark.parametrize("output", [b"no JSON\n", b"{}\n{", b'{"a": \n', b"\xff\n"])
def test_what_is_no_json_is_no_answer(output):
    found = Rows(0, has_head=False)
    found.feed(output)
    with pytest.raises(ConfigError, match="something else than JSON"):
        found.end()
