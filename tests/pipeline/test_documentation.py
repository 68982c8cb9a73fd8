"""The examples of docs/spark.md, in Python and in SQL, run as they are, one after another."""

import re
from pathlib import Path

import pytest

from aclog.pipeline.accesses import Layout, Ledger, append
from aclog.pipeline.history.intervals import history
from tests.pipeline.test_authorize import DATA
from tests.support.spark.access_logs import audit_text
from tests.support.spark.versions import HAS_STREAMS, is_refused

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


@pytest.mark.tier("test")
def test_examples(spark, tmp_path, monkeypatch):
    log, accesses = str(DATA / "kafka-4.3.1-small" / "__cluster_metadata-0"), str(tmp_path / "accesses")
    asked = history(spark, log).selectExpr(
        "principal", "'10.0.0.1' as host", "operation", "resourceType", "resourceName", "added_at as timestamp"
    )
    asked.write.parquet(accesses)
    shown = []
    monkeypatch.setattr(type(spark.range(1)), "show", lambda frame: shown.append(frame.collect()))
    names = {"directory": log, "state": str(tmp_path / "state"), "table": str(tmp_path / "table")}
    for language, example in re.findall(r"```(python|sql)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        if "def alert" in example:
            continue  # below
        runnable = example.replace('"backup/__cluster_metadata-0"', repr(log)).replace(
            '("accesses")  #', f"({accesses!r})  #"
        )
        if language == "sql":
            for statement in runnable.replace("backup/__cluster_metadata-0", log).split(";\n"):
                spark.sql(statement).collect()
            continue
        runnable = runnable.replace(".start(table)", ".trigger(availableNow=True).start(table).awaitTermination()")
        if "readStream" in example and is_refused(lambda code=runnable: exec(code, names), since=(4, 2)):
            continue
        exec(runnable, names)
    assert len(shown) >= 6
    assert all(shown)
    if HAS_STREAMS:
        assert spark.read.parquet(names["table"]).count() == spark.read.format("aclog").load(log).count()


def line(name, day):
    return audit_text(name=name, time=f"2026-11-{day:02} 10:00:00,000") + "\n"


def test_alerts_on_denials(spark, tmp_path, capsys):
    (code,) = re.findall(r"```python\n((?:(?!```).)*def alert.*?)```", PAGE.read_text(), re.DOTALL)
    for name in ("accesses/accesses", "denials", "alerts"):
        assert f'"{name}"' in code
        code = code.replace(f'"{name}"', repr(str(tmp_path / name)))
    code = code.replace(
        '.trigger(processingTime="10 seconds").start()', ".trigger(availableNow=True).start().awaitTermination()"
    )
    logs, layout = tmp_path / "logs", Layout.of(spark, "kafka-log", "UTC", None)
    logs.mkdir()
    rounds = [
        (line("a", 1) + line("a", 2) + line("b", 1), {"a", "b"}),
        (line("a", 8) + line("b", 9) + line("c", 9), {"b", "c"}),
    ]
    for number, (text, alerted) in enumerate(rounds):
        (logs / f"{number}.log").write_text(text)
        with Ledger.open(tmp_path / "accesses") as ledger:
            append(spark, [str(logs)], layout, ledger)
        exec(code, {"spark": spark})
        said = [row for row in capsys.readouterr().out.splitlines() if " was denied " in row]
        assert sorted(row.split()[6] for row in said) == sorted(alerted)
