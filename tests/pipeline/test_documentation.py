"""The examples of docs/spark.md, in Python and in SQL, run as they are, one after another."""

import re
from pathlib import Path

from aclog.pipeline.history.intervals import history
from tests.pipeline.test_authorize import DATA

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


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
        runnable = example.replace('"backup/__cluster_metadata-0"', repr(log)).replace(
            '("accesses")  #', f"({accesses!r})  #"
        )
        if language == "sql":
            for statement in runnable.replace("backup/__cluster_metadata-0", log).split(";\n"):
                spark.sql(statement).collect()
            continue
        exec(runnable.replace(".start(table)", ".trigger(availableNow=True).start(table).awaitTermination()"), names)
    assert len(shown) >= 6
    assert all(shown)
    assert spark.read.parquet(names["table"]).count() == spark.read.format("aclog").load(log).count()
