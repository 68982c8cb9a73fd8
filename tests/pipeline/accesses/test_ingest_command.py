"""Output and refusals of `aclog spark ingest`."""

import json
import math
import os
import threading
from contextlib import contextmanager

import jsonschema
import pytest

from aclog.cli.schema import schema_of
from aclog.cli.spark import commands as append_module
from aclog.cli.spark.commands import append_command, ingest_command, write_summary
from aclog.cli.spark.flags import AppendFlags, IngestFlags, ReportFlags, check_report, column_pairs
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import Counts, Ledger, read_accesses
from tests.support.processes.waiting import wait_until
from tests.support.spark.access_logs import audit_text

TIME = "2024-11-21 10:00:00,123"


def test_what_is_said(spark, tmp_path, capsys):
    path, out = tmp_path / "a.log", tmp_path / "out"
    path.write_text("\n".join([*[audit_text()] * 3, "", "bad", "worse", audit_text()[:80]]))
    ingest_command(spark, [str(path)], out, IngestFlags())
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "lines  what",
        "3      accesses",
        "2      rejected: NO_HEAD",
        "1      rejected: TORN",
        "1      blank",
        "7      read",
    ]
    assert said.err == f"aclog: warning: 3 of 7 lines are not accesses: see {out}/rejects\n"
    with pytest.raises(ConfigError, match="out: exists already"):
        ingest_command(spark, [str(path)], out, IngestFlags())


def test_a_summary_and_too_many_rejects(spark, tmp_path, capsys):
    path, out, place = tmp_path / "a.log", tmp_path / "out", tmp_path / "summary.json"
    path.write_text(f"{audit_text()}\n" * 3 + "\nbad\n")
    limited = ReportFlags(summary=str(place), max_reject_rate=0.2)
    assert ingest_command(spark, [str(path)], out, IngestFlags(), limited) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "aclog: 1 of 4 lines are rejected, most as NO_HEAD: 25.00%, above --max-reject-rate 0.2: nothing is written\n"
    )
    assert not out.exists()
    told = json.loads(place.read_text())
    jsonschema.validate(told, schema_of("ingest-summary"))
    assert told["committed"] is False
    assert ingest_command(spark, [str(path)], out, IngestFlags(), ReportFlags(summary="-", max_reject_rate=0.25)) == 0
    assert json.loads(capsys.readouterr().out) == {
        "out": str(out),
        "committed": True,
        "lines": 5,
        "accesses": 3,
        "rejected": 1,
        "blank": 1,
        "rejectRate": 0.25,
        "rejects": {"NO_HEAD": 1},
    }


def test_a_summary_goes_through_a_pipe(tmp_path):
    place = tmp_path / "summary"
    os.mkfifo(place)
    read = list[str]()
    reader = threading.Thread(target=lambda: read.append(place.read_text()), daemon=True)
    reader.start()
    write_summary(str(place), tmp_path / "out", Counts(accesses=3), None, committed=True)
    assert place.is_fifo()
    reader.join(20)
    assert json.loads(read[0])["accesses"] == 3


def test_what_an_append_says(spark, tmp_path, capsys):
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    (logs / "a.log").write_text(f"{audit_text(time=TIME)}\n{audit_text()[:40]}")
    appending = AppendFlags(append=True)
    assert append_command(spark, [str(logs)], out, IngestFlags(), appending=appending, report=ReportFlags()) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "lines  what",
        "1      accesses",
        "1      read",
        "1 file: 1 new, 0 grown, 0 known; complete up to 2024-11-21T10:00:00.123Z",
    ]
    assert said.err == f"aclog: note: {logs}/a.log: ends in an incomplete line, which is read once it is complete\n"
    (logs / "b.log").write_text(f"{audit_text(time='2024-11-20 10:00:00,000')}\nbad\n")
    limited = ReportFlags(summary="-", max_reject_rate=0.1)
    assert append_command(spark, [str(logs)], out, IngestFlags(), appending=appending, report=limited) == 1
    assert json.loads(capsys.readouterr().out)["committed"] is False
    report = ReportFlags(summary="-")
    assert append_command(spark, [str(logs)], out, IngestFlags(), appending=appending, report=report) == 0
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, schema_of("ingest-summary"))
    assert told["files"] == {"seen": 2, "new": 1, "grown": 0, "known": 1, "unfinished": [f"{logs}/a.log"]}
    assert (told["days"], told["late"], told["watermark"]) == (["2024-11-20"], 1, "2024-11-21T10:00:00.123Z")
    assert told["sources"] == {str(logs): "2024-11-21T10:00:00.123Z"}


def test_following_until_a_signal(spark, tmp_path, capsys, monkeypatch):
    log, out = tmp_path / "logs" / "a.log", tmp_path / "out"
    log.parent.mkdir()
    log.write_text(f"{audit_text()}\n")

    @contextmanager
    def stopped_once_both_are_taken(stop):
        def work():
            wait_until(lambda: len(list(out.glob("accesses/day=2026*/*"))) == 1, "an append")
            log.rename(f"{log}.1")
            log.write_text(f"{audit_text(name='later')}\n")
            wait_until(lambda: len(list(out.glob("accesses/day=2026*/*"))) == 2, "an append")
            stop()

        worker = threading.Thread(target=work)
        worker.start()
        yield
        worker.join()

    monkeypatch.setattr(append_module, "on_signals", stopped_once_both_are_taken)
    flags = AppendFlags(follow=True, interval=0.05)
    assert append_command(spark, [str(log.parent)], out, IngestFlags(), appending=flags, report=ReportFlags()) == 0
    said = [line.split(";")[0] for line in capsys.readouterr().out.splitlines()]
    assert said == ["1 access, 0 rejected"] * 2
    assert read_accesses(spark, out).count() == 2


def test_an_append_that_meets_a_rotation_looks_again(spark, tmp_path, capsys, monkeypatch):
    log, out, latest = tmp_path / "logs" / "a.log", tmp_path / "out", Ledger.latest
    log.parent.mkdir()
    log.write_text(f"{audit_text()}\n")

    def rotated_once(ledger):
        if not log.with_suffix(".1").exists():
            log.rename(log.with_suffix(".1"))
            log.write_text(f"{audit_text(name='later')}\n")
        return latest(ledger)

    monkeypatch.setattr(Ledger, "latest", rotated_once)
    flags = AppendFlags(append=True)
    assert append_command(spark, [str(log.parent)], out, IngestFlags(), appending=flags, report=ReportFlags()) == 0
    said = capsys.readouterr()
    assert "a.log: replaced by another file while it was being read" in said.err
    assert said.out.splitlines()[-1].startswith("2 files: 2 new, 0 grown, 0 known;")
    assert read_accesses(spark, out).count() == 2


def test_flags_out_of_range(tmp_path):
    for report, appending, text in (
        (ReportFlags(max_reject_rate=1.5), AppendFlags(), "--max-reject-rate 1.5: expected a share"),
        (ReportFlags(max_reject_rate=math.nan), AppendFlags(), "--max-reject-rate nan: expected a share"),
        (ReportFlags(), AppendFlags(interval=0), "--interval 0: expected seconds"),
        (ReportFlags(summary=str(tmp_path)), AppendFlags(), "--summary .*: expected the name of a file"),
        (ReportFlags(summary=str(tmp_path / "no" / "x")), AppendFlags(), "--summary .*: expected the name of a file"),
    ):
        with pytest.raises(ConfigError, match=text):
            check_report(report, appending)


def test_pairs_of_columns():
    assert column_pairs(["principal=user", "host=a=b"]) == {"principal": "user", "host": "a=b"}
    for bad in (["principal"], ["=x"], ["host="], ["host=a", "host=b"]):
        with pytest.raises(ConfigError, match="--column"):
            column_pairs(bad)
