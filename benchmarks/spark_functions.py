"""`kafka_authorized` vs. a Python UDF that asks an image row by row, and vs. what `spark authorize` runs."""

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Settings
from aclog.pipeline.authorize import authorize, register
from aclog.pipeline.session import open_session
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from benchmarks import shapes
from benchmarks.report import Row
from benchmarks.spark import Costs, accesses

_CALL = f"kafka_authorized({', '.join(REQUEST_COLUMNS)})"
_AS_FAST = 1 / 1.5


def run(scratch: Path, rows: int, rounds: int) -> Iterator[Row]:
    """Yield rows for `rows` accesses with 1,000 and 100,000 ACLs."""
    spark = open_session("local[2]", {"spark.local.dir": str(scratch)})
    costs = Costs(rounds)
    try:
        for count in (1_000, 100_000):
            image = AclsImage.from_columns(shapes.columns(shapes.million(count)))
            rules = Rules.of_image(image)
            frame = spark.read.parquet(str(accesses(scratch / f"accesses-{count}", rows, count)))
            register(spark, rules)
            found = costs.of(
                {
                    "function": lambda frame=frame: frame.selectExpr(_CALL),
                    "plain": lambda frame=frame, image=image: _plain(frame, image),
                    "authorize": lambda frame=frame, rules=rules: authorize(frame, rules, Settings()),
                }
            )
            what = f"{rows:,} accesses, {count:,} rules: kafka_authorized, vs."
            for other, wanted in (("plain", None), ("authorize", _AS_FAST)):
                name = "a plain Python UDF" if other == "plain" else "what spark authorize runs"
                ours, theirs = found["function"], found[other]
                yield Row(what=f"{what} {name}: CPU", ours=ours.cpu, theirs=theirs.cpu, unit="s", target=wanted)
                yield Row(what=f"{what} {name}: clock", ours=ours.wall, theirs=theirs.wall, unit="s", target=wanted)
    finally:
        spark.stop()


def _plain(frame: DataFrame, image: AclsImage) -> DataFrame:
    """Ask the image in a Python UDF, one row at a time, as one would write it."""
    sent = frame.sparkSession.sparkContext.broadcast(image)

    def asked(principal: str, host: str, operation: str, kind: str, name: str) -> bool:
        verdict = sent.value.verdict(principal, host, AclOperation[operation], ResourceType[kind], name)
        return verdict is Verdict.ALLOW

    return frame.select(F.udf(asked, "boolean")(*REQUEST_COLUMNS))
