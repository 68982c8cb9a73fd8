"""Since when: the dates of rows, rows by principal, and spans of a history."""

import csv
import json
import os
import sys
from pathlib import Path

import pexpect
import pytest
from attrs import evolve

from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
from tests.support.cli.command import aclog

WEEK = Path(__file__).parents[1] / "data" / "week"
READ = ("--operation", "READ", "--topic", "t")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """User:alice reads t, not while a DENY exists, and again; User:w reads it since the last record."""
    denied = acl(2, name="t", permission=2)
    return write_log(
        tmp_path / "log",
        [acl(1, name="t")],
        [denied],
        [acl(3, name="other")],
        [removal(2)],
        [evolve(acl(4, name="t"), principal="User:w")],
    )


def test_rows_are_dated_by_the_change_that_made_them(log: Path) -> None:
    text = aclog("who-can", log, *READ, "--since").ok().lines
    assert [line for line in text if line.startswith("  since")] == [
        "  since offset 3, 1970-01-01T00:00:04.000Z: removed DENY User:alice READ on TOPIC LITERAL 't' from *",
        "  since offset 4, 1970-01-01T00:00:05.000Z: added ALLOW User:w READ on TOPIC LITERAL 't' from *",
    ]
    rows = [json.loads(line) for line in aclog("who-can", log, *READ, "--since", "--format", "jsonl").ok().lines]
    assert [(row["since"]["offset"], row["since"]["endOffset"], row["madeBy"]) for row in rows] == [
        (3, 4, None),
        (4, 5, None),
    ]
    assert [row["principals"] for row in rows] == [{"in": ["User:alice"]}, {"in": ["User:w"]}]
    assert [[rule["principal"] for rule in row["rules"]] for row in rows] == [["User:alice"], ["User:w"]]
    [plain] = [json.loads(line) for line in aclog("who-can", log, *READ, "--format", "jsonl").ok().lines]
    assert plain["principals"] == {"in": ["User:alice", "User:w"]}  # in one row, which has no date
    assert {"since", "madeBy"}.isdisjoint(plain)
    assert "SINCE" in aclog("who-can", log, *READ, "--since", "--format", "table").ok().lines[0]
    earlier = aclog("who-can", log, *READ, "--since", "--as-of", "1").ok().lines
    assert "offset 0, 1970-01-01T00:00:01.000Z: added" in earlier[-1]


def test_a_dated_row_keeps_the_rule_that_denies_the_name_it_leaves_out() -> None:
    question = ("who-can", "--log", WEEK / "log", "--operation", "READ", "--topic", "payments.*")
    texts = [aclog(*question, *more).ok().lines for more in ((), ("--since",))]
    _, dated = texts
    assert any(line.startswith("User:fraud") and "except payments.eu), from 10.0.0.9" in line for line in dated)
    assert [sum(line.startswith("  limited by DENY User:fraud READ") for line in lines) for lines in texts] == [2, 2]
    rows = [list(csv.DictReader(aclog(*question, *more, "--format", "csv").ok().lines)) for more in ((), ("--since",))]
    assert [[{key: row[key] for key in rows[0][0]} for row in each] for each in rows] == [rows[0]] * 2


def test_csv_has_since_as_one_value_per_cell(log: Path) -> None:
    rows = list(csv.DictReader(aclog("who-can", log, *READ, "--since", "--format", "csv").ok().lines))
    keys = ("since", "since.offset", "since.change", "madeBy.apply", "madeBy.who", "madeBy.git")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("1970-01-01T00:00:04.000Z", "3", "REMOVE DENY User:alice READ on TOPIC LITERAL 't' from *", "", "", ""),
        ("1970-01-01T00:00:05.000Z", "4", "ADD ALLOW User:w READ on TOPIC LITERAL 't' from *", "", "", ""),
    ]
    assert not [cell for row in rows for cell in row.values() if "{" in cell]
    some = aclog("who-can", log, *READ, "--since", "--format", "csv", "--columns", "principal,since").ok().lines
    assert some[:2] == ["principal,since", "User:alice,1970-01-01T00:00:04.000Z"]


def test_what_a_principal_can_is_dated(log: Path) -> None:
    lines = aclog("what-can", log, "--principal", "User:alice", "--since").ok().lines
    since = [line for line in lines if line.startswith("  since")]
    assert len(since) == len([line for line in lines if not line.startswith("  ")])
    assert any("offset 2" in line for line in since), lines
    assert any("offset 3" in line for line in since)


def test_what_cannot_be_dated_says_why(log: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.jsonl").write_text("")
    assert "a single state has no history" in aclog("who-can", tmp_path / "rules.jsonl", *READ, "--since").complaint
    supers = aclog("who-can", log, *READ, "--since", "--super-users", "User:root", "--format", "jsonl").ok().lines
    assert json.loads(supers[-1])["since"] is None
    ranged = write_log(tmp_path / "ranged", [evolve(acl(1, name="t"), host="10.0.0.0/8")])
    unknown = aclog("who-can", ranged, *READ, "--since").ok().lines
    assert unknown[-1].endswith("the Kafka that decided is not stated (--kafka-version)")
    stated = aclog("who-can", ranged, *READ, "--since", "--kafka-version", "4.4").ok().lines
    assert "since offset 0" in stated[-1]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # pexpect forks a process with threads
@pytest.mark.process
def test_a_history_on_a_terminal_fits_100_columns_a_line_a_record() -> None:
    def shown(*flags: str) -> list[str]:
        words = ["-m", "aclog", "acls", "history", str(WEEK / "log"), "--no-pager", *flags]
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"NO_COLOR": "1"}
        child = pexpect.spawn(
            sys.executable, words, encoding="utf-8", timeout=300, dimensions=(60, 100), env=environment
        )
        return [line for line in child.read().splitlines() if not line.startswith("aclog: ")]

    head, *lines = shown()
    assert head.split() == ["TIME", "OFFSET", "CHANGE", "RULE", "PRINCIPAL", "OPERATION", "RESOURCE", "HOST"]
    assert len(lines) == len(aclog("acls", "history", WEEK / "log", "--format", "jsonl").ok().lines)
    assert max(map(len, lines)) <= 100
    assert any("TOPIC payments.*" in line for line in lines)
    assert shown("--columns", "id,offset")[0].split() == ["ID", "OFFSET"]


def test_when_without_a_principal_has_rows_by_principal_as_with_each(log: Path) -> None:
    lines = aclog("when", log, *READ).ok().lines
    assert [line for line in lines if not line.startswith(" ")] == ["User:alice", "User:w"]
    rows = [json.loads(line) for line in aclog("when", log, *READ, "--format", "jsonl").ok().lines]
    assert [row["principals"] for row in rows] == [{"in": ["User:alice"]}] * 2 + [{"in": ["User:w"]}]
    alone = []
    for name in ("User:alice", "User:w"):
        alone += aclog("when", log, *READ, "--principal", name, "--format", "jsonl").ok().lines
    assert [{key: row[key] for key in row if key != "principals"} for row in rows] == list(map(json.loads, alone))
    assert (
        aclog("when", log, "--operation", "WRITE", "--topic", "t").ok().out
        == "never: any principal WRITE TOPIC t from any host\n"
    )
    asked = ("--principal", "User:x", "--intent", "consume", "--topic", "t", "--group", "g", "--host", "10.0.0.1")
    assert aclog("when", log, *asked).ok().out == "never: User:x to consume TOPIC t, GROUP g from 10.0.0.1\n"
    table = list(csv.DictReader(aclog("when", log, *READ, "--format", "csv").ok().lines))
    assert [row["principal"] for row in table] == ["User:alice"] * 2 + ["User:w"]
    for row, cells in zip(rows, table, strict=True):
        assert (cells["from.offset"], cells["exceptPrincipals"]) == (str(row["from"]["offset"]), "")
        change, rule = row["from"]["change"], row["from"]["change"]["rule"]
        text = f"{change['action']} {rule['permissionType']} {rule['principal']} {rule['operation']} on TOPIC "
        assert cells["from.change"].startswith(text)
