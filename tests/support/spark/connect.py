"""The answers of `aclog.pipeline` on a session, printed for one of Spark Connect: the server runs in this process.

`python -m tests.support.spark.connect REQUESTS LOG SCRATCH`; another process has the classic session to compare with.
"""

import json
import sys
from pathlib import Path
from unittest import mock

from pyspark.sql import SparkSession

import aclog
from aclog.authorizer.settings import Settings
from aclog.pipeline import source
from aclog.pipeline.access_rows import AccessRows
from aclog.pipeline.authorize import authorize, decision_codes, flips_of, register, simulated, undecided_of
from aclog.pipeline.history.intervals import history, intervals, known_from
from aclog.pipeline.usage import usage
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from tests.support.spark.jvm import settings

_ARGUMENTS = ", ".join(REQUEST_COLUMNS)


def answers(spark, requests: str, log: Path) -> dict[str, list[str]]:
    """Return the rows of each function, as text."""
    frame = spark.read.parquet(requests)
    image = aclog.open_log(log).image()
    now = Rules.of_image(image.state.acls)
    ever = Rules.of_table(intervals(spark, log).toArrow(), known_from=known_from(log))
    strict, open_to_all = Settings(), Settings(allow_everyone=True)
    changes = simulated(frame, (now, strict), (now, open_to_all))
    register(spark, image, super_users="User:root")
    reports = [usage(AccessRows.of_frame(frame), ever, strict, own_time=True, window_days=30)]
    with mock.patch("aclog.pipeline.usage._MOST_ON_DRIVER", 0):
        reports.append(usage(AccessRows.of_frame(frame), ever, strict, own_time=True, window_days=30))
    source.register(spark)
    tables = {
        "log": spark.read.format("aclog").load(str(log)).select("offset", "record_type", "acl"),
        "authorize": authorize(frame, now, strict),
        "own time": authorize(frame, ever, strict, own_time=True),
        "codes": decision_codes(frame, now, open_to_all),
        "simulate": flips_of(changes, now, now),
        "history": history(spark, log),
        "sql": frame.selectExpr(f"kafka_authorized({_ARGUMENTS}) AS allowed", f"kafka_decision({_ARGUMENTS}).rule"),
    }
    rows = {name: table.toArrow().to_pylist() for name, table in tables.items()}
    for number, report in enumerate(reports):
        rows |= {f"{name} {number}": getattr(report, name).to_pylist() for name in ("rules", "denied", "holes")}
    rows["undecided"] = sorted(map(repr, undecided_of(changes).spans.items()))
    return {name: sorted(map(str, each)) for name, each in rows.items()}


def main() -> None:
    """Print the answers."""
    requests, log, scratch = sys.argv[1:]
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC")
    for name, value in {**settings(), "spark.local.dir": scratch, "spark.ui.enabled": "false"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    print(json.dumps(answers(spark, requests, Path(log))))
    spark.stop()


if __name__ == "__main__":
    main()
