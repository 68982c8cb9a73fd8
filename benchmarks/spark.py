"""Batch authorization on Spark vs. the cheapest possible Python job, pycasbin, and Kafka's StandardAuthorizer.

Costs are CPU time of all processes of the session, since the cores are shared with other work; wall-clock time is
reported too.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import casbin
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen
from pyspark.sql import DataFrame, SparkSession

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.pipeline.authorize import authorize, decision_codes
from aclog.pipeline.session import open_session
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules, rule_table
from benchmarks import decide, shapes
from benchmarks.report import Row
from benchmarks.rival import Rival

NARROW, WIDE, OWN_TIME = 2.0, 1.5, 2.0
"""Limits, as multiples of the cost of the plain job."""

CASBIN = 50.0
DISTINCT = 100_000
FILES = 4
HOSTS = 1000
MONTH_MS = 30 * 86_400_000
BEGIN_MS = 1_790_000_000_000
_SETTINGS = Settings()


@frozen
class Cost:
    """Seconds of CPU and of wall-clock time."""

    cpu: float
    wall: float


class Costs:
    """Runs jobs alternately for some rounds, and keeps the lowest cost of each."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._processes: dict[int, float] = {}

    def of(self, jobs: Mapping[str, Callable[[], DataFrame | None]]) -> dict[str, Cost]:
        """Return the cost of each job: of all rows of the frame that it returns, if any.

        Jobs are built anew in each round, and pay for their broadcasts each time.
        """
        found: dict[str, list[Cost]] = {name: [] for name in jobs}
        for _ in range(self._rounds):
            for name, job in jobs.items():
                found[name].append(self._run(job))
        return {
            name: Cost(min(cost.cpu for cost in costs), min(cost.wall for cost in costs))
            for name, costs in found.items()
        }

    def _run(self, job: Callable[[], DataFrame | None]) -> Cost:
        cpu, start = self._cpu(), time.monotonic()
        frame = job()
        if frame is not None:
            frame.write.format("noop").mode("overwrite").save()
        return Cost(self._cpu() - cpu, time.monotonic() - start)

    def _cpu(self) -> float:
        """Return the CPU time of this process and its descendants, including those that have ended meanwhile."""
        me = psutil.Process()
        for process in [me, *me.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            self._processes[process.pid] = times.user + times.system
        return sum(self._processes.values())


def accesses(path: Path, rows: int, rules: int, *, files: int = FILES, row_group: int = 250_000) -> Path:
    """Write accesses to resources of shapes.million, drawn with a skew from 100,000 combinations."""
    path.mkdir(parents=True)
    draw = np.random.default_rng(1)
    acls = list(shapes.million(rules))
    names = [acl.resource_name for acl in acls] + [f"nowhere.{n}" for n in range(len(acls) // 4)]
    texts = [
        np.array(sorted({acl.principal for acl in acls})),
        np.array([f"10.0.{n // 256}.{n % 256}" for n in range(HOSTS)]),
        np.array(["READ", "WRITE", "DESCRIBE"]),
        np.array(["TOPIC", "GROUP"]),
        np.array(names),
    ]
    combinations = [draw.integers(0, len(text), DISTINCT) for text in texts]
    for file in range(files):
        chosen = (draw.random(rows // files) ** 3 * DISTINCT).astype(np.int64)
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(codes[chosen].astype(np.int32)), pa.array(text)).cast(pa.string())
            for codes, text in zip(combinations, texts, strict=True)
        ]
        when = np.sort(draw.integers(BEGIN_MS, BEGIN_MS + MONTH_MS, rows // files)) * 1000
        table = pa.table([*columns, pa.array(when, pa.timestamp("us", "UTC"))], names=[*REQUEST_COLUMNS, "timestamp"])
        pq.write_table(table, path / f"{file}.parquet", row_group_size=row_group)
    return path


def rules_of(count: int) -> Rules:
    """Return the ACLs of shapes.million, in force at all times."""
    return Rules.of_image(AclsImage.from_columns(shapes.columns(shapes.million(count))))


def moving_rules(count: int) -> Rules:
    """Return the same ACLs, of which a tenth was added and a tenth was removed in the month of the accesses."""
    draw = np.random.default_rng(2)
    table = rule_table(AclsImage.from_columns(shapes.columns(shapes.million(count))))
    times = BEGIN_MS + draw.integers(0, MONTH_MS, (2, count))
    moves = draw.random(count)
    came = pa.array(times[0], pa.int64(), mask=moves >= 0.1)
    went = pa.array(times[1], pa.int64(), mask=(moves < 0.1) | (moves >= 0.2))
    return Rules.of_table(table.append_column("visible_from", came).append_column("visible_to", went))


def floor(frame: DataFrame) -> DataFrame:
    """The cheapest possible job: pass the same columns to Python, and return one number per row."""

    def one(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([pa.array(np.ones(batch.num_rows, np.int32))], names=["one"])

    return frame.select(*REQUEST_COLUMNS).mapInArrow(one, "one int")


def passed(frame: DataFrame) -> DataFrame:
    """Pass all columns through Python and back unchanged."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return frame.mapInArrow(same, frame.schema)


def run(scratch: Path, rows: int, many: int, rounds: int) -> Iterator[Row]:
    """Yield rows for `rows` accesses with 1,000 and 100,000 ACLs, and for `many` accesses once."""
    spark = open_session("local[2]", {"spark.local.dir": str(scratch)})
    costs = Costs(rounds)
    try:
        for count in (1_000, 100_000):
            frame = spark.read.parquet(str(accesses(scratch / f"accesses-{count}", rows, count)))
            yield from _vs_floor(costs, frame, rows, count)
        yield from _own_time(costs, frame, rows, count)
        yield from _once(frame, rows, many, count)
        yield from _by_rules(costs, scratch, spark, rows // 5)
        yield from _by_rows(costs, scratch, spark, rows)
        yield from _vs_java(costs, scratch, spark)
        yield from _vs_casbin(costs, spark, scratch, rows)
    finally:
        spark.stop()


def _rows(what: str, ours: Cost, plain: Cost, times: float) -> Iterator[Row]:
    yield Row(what=f"{what}: CPU", ours=ours.cpu, theirs=plain.cpu, unit="s", target=1 / times)
    yield Row(what=f"{what}: clock", ours=ours.wall, theirs=plain.wall, unit="s", target=1 / times)


def _vs_floor(costs: Costs, frame: DataFrame, rows: int, count: int) -> Iterator[Row]:
    rules = rules_of(count)
    found = costs.of({"floor": lambda: floor(frame), "narrow": lambda: decision_codes(frame, rules, _SETTINGS)})
    what = f"{rows:,} accesses, {count:,} rules: verdicts, vs. a function that returns 1"
    yield from _rows(what, found["narrow"], found["floor"], NARROW)


def run_columns(scratch: Path, rows: int, rounds: int) -> Iterator[Row]:
    """Yield rows for all nine output columns vs. copying columns, with 1,000 and 100,000 ACLs."""
    spark = open_session("local[2]", {"spark.local.dir": str(scratch)})
    costs = Costs(rounds)
    try:
        for count in (1_000, 100_000):
            frame = spark.read.parquet(str(accesses(scratch / f"accesses-{count}", rows, count)))
            yield from _vs_passing(costs, frame, rows, count, scratch=scratch)
    finally:
        spark.stop()


def _vs_passing(costs: Costs, frame: DataFrame, rows: int, count: int, *, scratch: Path) -> Iterator[Row]:
    rules, decided = rules_of(count), scratch / f"decided-{count}"
    authorize(frame, rules, _SETTINGS).write.parquet(str(decided))
    nine = frame.sparkSession.read.parquet(str(decided))
    found = costs.of(
        {
            "six": lambda: passed(frame),
            "ours": lambda: authorize(frame, rules, _SETTINGS),
            "nine": lambda: passed(nine),
        }
    )
    what = f"{rows:,} accesses, {count:,} rules: all nine columns, vs. copying"
    yield from _rows(f"{what} all nine", found["ours"], found["nine"], WIDE)
    yield Row(what=f"{what} the input's six: CPU", ours=found["ours"].cpu, theirs=found["six"].cpu, unit="s")


def _own_time(costs: Costs, frame: DataFrame, rows: int, count: int) -> Iterator[Row]:
    still, moving = rules_of(count), moving_rules(count)
    found = costs.of(
        {
            "still": lambda: decision_codes(frame, still, _SETTINGS),
            "moving": lambda: decision_codes(frame, moving, _SETTINGS, own_time=True),
        }
    )
    what = f"{rows:,} accesses at their own time, {count // 5:,} changes, vs. one state of {count:,} rules"
    yield from _rows(what, found["moving"], found["still"], OWN_TIME)


def _once(frame: DataFrame, rows: int, many: int, count: int) -> Iterator[Row]:
    rules, large = rules_of(count), frame
    for _ in range(many // rows - 1):
        large = large.unionAll(frame)
    cost = Costs(1).of({"once": lambda: decision_codes(large, rules, _SETTINGS)})["once"]
    what = f"{many:,} accesses, {count:,} rules, once"
    yield Row(what=f"{what}: clock", ours=many / cost.wall, unit="accesses/s", more_is_better=True)
    yield Row(what=f"{what}: CPU", ours=cost.cpu, unit="s")


def _by_rules(costs: Costs, scratch: Path, spark: SparkSession, rows: int) -> Iterator[Row]:
    for count in (100, 1_000, 10_000, 100_000, 1_000_000):
        frame = spark.read.parquet(str(accesses(scratch / f"by-rules-{count}", rows, count)))
        rules = rules_of(count)
        cost = costs.of({"ours": lambda rules=rules, frame=frame: decision_codes(frame, rules, _SETTINGS)})["ours"]
        yield Row(what=f"{rows:,} accesses, {count:,} rules: CPU", ours=cost.cpu, unit="s")


def _by_rows(costs: Costs, scratch: Path, spark: SparkSession, rows: int) -> Iterator[Row]:
    rules = rules_of(100_000)
    for part in (100, 10, 3):
        frame = spark.read.parquet(str(accesses(scratch / f"by-rows-{part}", rows // part, 100_000)))
        cost = costs.of({"ours": lambda frame=frame: decision_codes(frame, rules, _SETTINGS)})["ours"]
        yield Row(what=f"{rows // part:,} accesses, 100,000 rules: CPU", ours=cost.cpu, unit="s")


def _vs_java(costs: Costs, scratch: Path, spark: SparkSession) -> Iterator[Row]:
    """Compare with StandardAuthorizer called row by row, without I/O, on the ACLs and requests of Kafka's benchmark."""
    with Rival() as rival:
        for shape, wildcards in (("S", False), ("K", True)):
            resources = 10_000
            rival.ask("build", resources=resources, perResource=10, denyPercent=50, wildcards=wildcards)
            requests = decide.mixed(resources, 10_000)
            theirs = rival.ask("mixed", file=str(_json_lines(scratch / f"{shape}.jsonl", requests)), roundMillis=500)
            acls = shapes.rules(resources, wildcards=wildcards)
            rules = Rules.of_image(AclsImage.from_columns(shapes.columns(acls)))
            repeated = pa.Table.from_pylist(requests).select(REQUEST_COLUMNS)
            for file in range(FILES):
                pq.write_table(pa.concat_tables([repeated] * 50), _made(scratch / shape) / f"{file}.parquet")
            frame = spark.read.parquet(str(scratch / shape))
            rows = 50 * FILES * len(requests)
            cost = costs.of({"ours": lambda rules=rules, frame=frame: decision_codes(frame, rules, _SETTINGS)})["ours"]
            yield Row(
                what=f"{shape} {resources:,}, 100,000 rules and more: CPU of the whole job, vs. StandardAuthorizer",
                ours=cost.cpu / rows * 1e9,
                theirs=theirs["nanos"],
                unit="ns/access",
                target=1.0,
            )


def _vs_casbin(costs: Costs, spark: SparkSession, scratch: Path, rows: int) -> Iterator[Row]:
    """Compare with pycasbin called row by row, without I/O, with the same policy."""
    for count, calls in ((1_000, 100), (100_000, 3)):
        frame = spark.read.parquet(str(scratch / f"accesses-{count}"))
        cost = costs.of({"ours": lambda frame=frame, count=count: decision_codes(frame, rules_of(count), _SETTINGS)})[
            "ours"
        ]
        enforcer, asked = _enforcer(count), frame.select(*REQUEST_COLUMNS).limit(calls).collect()
        start = time.process_time()
        for row in asked:
            enforcer.enforce(row.principal, row.host, row.operation, row.resourceType, row.resourceName)
        theirs = (time.process_time() - start) / calls
        yield Row(
            what=f"{count:,} rules: CPU of the whole job, vs. pycasbin",
            ours=cost.cpu / rows * 1e6,
            theirs=theirs * 1e6,
            unit="us/access",
            target=CASBIN,
        )


_MODEL = """
[request_definition]
r = who, host, op, kind, name
[policy_definition]
p = who, host, op, kind, pattern, name, eft
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = r.kind == p.kind && (r.name == p.name || p.pattern == "PREFIXED" && startsWith(r.name, p.name)) && \
(r.who == p.who || p.who == "User:*") && (p.host == "*" || r.host == p.host) && (p.op == "ALL" || r.op == p.op)
"""


def _enforcer(count: int) -> Any:
    model = casbin.Model()
    model.load_model_from_text(_MODEL)
    enforcer = casbin.Enforcer(model)
    enforcer.add_function("startsWith", str.startswith)
    rules = enforcer.get_model().model["p"]["p"].policy  # add_policy scans all policies for duplicates
    for acl in shapes.million(count):
        row = shapes.as_json(acl)
        effect = row["permissionType"].lower()
        columns = ("principal", "host", "operation", "resourceType", "patternType", "resourceName")
        rules.append([*(row[name] for name in columns), effect])
    return enforcer


def _json_lines(path: Path, rows: list[dict[str, str]]) -> Path:
    import json

    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _made(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path
