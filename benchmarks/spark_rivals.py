"""Decisions on an access log by aclog on Spark, aclog without Spark, DuckDB and a naive UDF, beside reading the log.

All in one run. Each side begins with a log of 100,000 rules and ends with all decisions: aclog on Spark writes every
row with its decision, the others count allowed and denied rows. The counts must be equal, and a sample is decided by a
loop over all rules. Spark's JVM runs already; other processes are measured from their start. CPU is that of all
processes.
"""

import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from random import Random

import duckdb
import psutil
import pyarrow.dataset as ds
from attrs import evolve, frozen
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import aclog
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import ResourceType
from aclog.authorizer.settings import Settings
from aclog.cli.spark.commands import Policy, authorize_command, history_command, simulate_command
from aclog.library.authorizer import Authorizer
from aclog.pipeline.session import open_session
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from benchmarks import shapes
from benchmarks.report import Row
from benchmarks.rival_accesses import Access, decided, with_hot, write_accesses, write_log
from benchmarks.spark import Cost, Costs

AUTHORIZE, SIMULATE, DISTINCT, SMALL_FILES, HISTORY = 1.3, 2.0, 8.0, 1.5, 10.0
"""Limits: as multiples of reading the same columns; of the history in seconds."""
_KINDS = 100_000
_LOOK = 0.05
_TOTALS = re.compile(r"^([\d,]+) access(?:es)? denied .*, ([\d,]+) allowed", re.MULTILINE)


@frozen(kw_only=True)
class Sizes:
    """How much is measured."""

    rules: int = 100_000
    few: int = 2_000_000
    many: int = 20_000_000
    sample: int = 2_000_000
    """The most rows that the naive UDF decides: it is measured on a part of more."""
    small_files: int = 10_000
    changes: int = 365_000
    checked: int = 300
    rounds: int = 3


QUICK = Sizes(rules=1000, few=40_000, many=80_000, sample=40_000, small_files=20, changes=1000, checked=50, rounds=1)


def run(scratch: Path, sizes: Sizes) -> Iterator[Row]:
    """Yield all rows."""
    spark = open_session("local[2]", {"spark.local.dir": str(scratch)})
    try:
        yield from _Run(spark, scratch, sizes).rows()
    finally:
        spark.stop()
    yield from _history_process(scratch)


class _Run:
    def __init__(self, spark: SparkSession, scratch: Path, sizes: Sizes) -> None:
        self.spark, self.scratch, self.sizes = spark, scratch, sizes
        self.acls = list(shapes.million(sizes.rules))
        self.log = write_log(scratch / "log", self.acls)
        self.outputs = 0

    def rows(self) -> Iterator[Row]:
        sizes = self.sizes
        for number in (sizes.few, sizes.many):
            path = write_accesses(self.scratch / f"{number}", self.acls, number, distinct=min(number, _KINDS), files=8)
            yield from self._sides(path, number)
        yield from self._simulate(path, number)
        yield from self._hot(path, number)
        once = write_accesses(self.scratch / "once", self.acls, sizes.few, distinct=sizes.few)
        yield from self._beside_reading(once, f"{sizes.few:,} accesses, nearly all distinct", DISTINCT)
        files = self.scratch / "files"
        write_accesses(files, self.acls, sizes.few, distinct=min(sizes.few, _KINDS), files=sizes.small_files)
        what = f"{sizes.few:,} accesses in {sizes.small_files:,} files"
        yield from self._beside_reading(files, what, SMALL_FILES)
        yield from self._history()

    def read(self, path: Path) -> None:
        """Read the columns of all rows, and drop them."""
        columns = self.spark.read.parquet(str(path)).select(*REQUEST_COLUMNS, "timestamp")
        columns.write.format("noop").mode("overwrite").save()

    def authorize(self, path: Path, log: Path | None = None) -> Path:
        """Run `aclog spark authorize`, except for the start of the session."""
        out = self._new()
        with redirect_stdout(StringIO()):
            authorize_command(self.spark, str(path), out, self._policy(log or self.log))
        return out

    def _policy(self, log: Path) -> Policy:
        rules = Rules.of_image(aclog.open_log(log).image().state.acls)
        return Policy(rules=rules, settings=Settings())

    def _new(self) -> Path:
        self.outputs += 1
        return self.scratch / f"out-{self.outputs}"

    def _sides(self, path: Path, rows: int) -> Iterator[Row]:
        """Compare all sides on one log, and check what they have decided."""
        costs, found = Costs(self.sizes.rounds), {}
        outs: list[Path] = []
        timed = costs.of({"read": lambda: self.read(path), "spark": lambda: outs.append(self.authorize(path))})
        for name, side in (("alone", self._without_spark), ("duckdb", self._duckdb)):
            timed[name], found[name] = _best(self.sizes.rounds, lambda side=side: side(path))
        some = min(rows, self.sizes.sample)
        part = path if some == rows else self._part(path, some)
        counted: list[Mapping[str, int]] = []
        timed["naive"] = Costs(1).of({"naive": lambda: counted.append(self._naive(part))})["naive"]
        found["spark"] = self._counts(outs[-1])
        found["naive"] = counted[-1] if some == rows else found["spark"]
        self._check(outs[-1], found)
        what, times = f"{rows:,} accesses, {self.sizes.rules:,} rules", rows // some
        naive = evolve(timed["naive"], cpu=timed["naive"].cpu * times, wall=timed["naive"].wall * times)
        note = "" if times == 1 else f" ({some:,} rows, times {times})"
        for side, cost in (("spark authorize", timed["spark"]), ("accesses denied", timed["alone"])):
            goal = 1 / AUTHORIZE if side == "spark authorize" and rows == self.sizes.many else None
            yield _row(f"{what}: {side}, vs. Spark reading the columns", cost.cpu, timed["read"].cpu, goal)
            yield _row(f"{what}: {side}, vs. DuckDB with a UDF after GROUP BY", cost.cpu, timed["duckdb"].cpu)
            yield _row(f"{what}: {side}, vs. a PySpark UDF of authorizer.check{note}", cost.cpu, naive.cpu)

    def _without_spark(self, path: Path) -> Mapping[str, int]:
        """Run `aclog accesses denied`, which counts all accesses that are denied and allowed."""
        command = [sys.executable, "-m", "aclog", "accesses", "denied", "--accesses", str(path), "--log", str(self.log)]
        ran = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True, check=False)
        match = _TOTALS.search(f"{ran.stderr}\n{ran.stdout}")
        assert match is not None, (ran.returncode, ran.stderr[-1000:])
        denied, allowed = (int(text.replace(",", "")) for text in match.groups())
        return {"ALLOWED": allowed, "DENIED": denied}

    def _duckdb(self, path: Path) -> Mapping[str, int]:
        """Group equal accesses, and decide each of these once in a Python UDF."""
        check = _check_of(_authorizer(self.log))
        columns = ", ".join(REQUEST_COLUMNS)
        with duckdb.connect() as connection:
            connection.execute("SET threads = 2")
            connection.create_function("decide", check, ["VARCHAR"] * 5, "BOOLEAN")
            grouped = f"SELECT {columns}, count(*) AS n FROM read_parquet('{path}/*.parquet') GROUP BY ALL"
            rows = connection.execute(f"SELECT decide({columns}), sum(n) FROM ({grouped}) GROUP BY 1").fetchall()
        counts = {bool(allowed): int(count) for allowed, count in rows}
        return {"ALLOWED": counts.get(True, 0), "DENIED": counts.get(False, 0)}

    def _naive(self, path: Path) -> Mapping[str, int]:
        """Decide row by row in a Python UDF."""
        log = str(self.log)

        def allowed(principal: str, host: str, operation: str, kind: str, name: str) -> bool:
            return _worker_check(log)(principal, host, operation, kind, name)

        frame = self.spark.read.parquet(str(path)).select(F.udf(allowed, "boolean")(*REQUEST_COLUMNS).alias("allowed"))
        counts = {row["allowed"]: row["count"] for row in frame.groupBy("allowed").count().collect()}
        return {"ALLOWED": counts.get(True, 0), "DENIED": counts.get(False, 0)}

    def _part(self, path: Path, rows: int) -> Path:
        part = self._new()
        self.spark.read.parquet(str(path)).limit(rows).write.parquet(str(part))
        return part

    def _counts(self, out: Path) -> Mapping[str, int]:
        counted = self.spark.read.parquet(str(out)).groupBy("decision").count().collect()
        return {row["decision"]: row["count"] for row in counted}

    def _check(self, out: Path, found: Mapping[str, Mapping[str, int]]) -> None:
        """Compare the counts of all sides, and decisions on a sample with those of a loop over all rules."""
        assert len({tuple(sorted(counts.items())) for counts in found.values()}) == 1, found
        columns = [*REQUEST_COLUMNS, "decision"]
        sample = next(ds.dataset(out, format="parquet").to_batches(columns=columns, batch_size=1 << 16)).to_pylist()
        check, differing = _check_of(_authorizer(self.log)), []
        by_decision: dict[str, list[Access]] = {"ALLOWED": [], "DENIED": []}
        for row in sample:
            by_decision[row["decision"]].append(tuple(row[name] for name in REQUEST_COLUMNS))
        for decision, accesses in by_decision.items():
            distinct = sorted(set(accesses))
            for access in Random(1).sample(distinct, min(len(distinct), self.sizes.checked // 2)):
                truth = decided(self.acls, access)
                if decision != truth or check(*access) != (truth == "ALLOWED"):
                    differing.append((access, decision, truth))
        assert not differing, differing[:3]

    def _beside_reading(self, path: Path, what: str, limit: float | None, log: Path | None = None) -> Iterator[Row]:
        timed = Costs(self.sizes.rounds).of(
            {"read": lambda: self.read(path), "authorize": lambda: self._authorized(path, log)}
        )
        goal = None if limit is None else 1 / limit
        what = f"{what}: spark authorize, vs. Spark reading the columns"
        yield _row(what, timed["authorize"].cpu, timed["read"].cpu, goal)

    def _authorized(self, path: Path, log: Path | None) -> None:
        self.authorize(path, log)

    def _simulate(self, path: Path, rows: int) -> Iterator[Row]:
        """Simulate rules of which a hundredth is removed, vs. reading."""
        fewer = write_log(self.scratch / "fewer", [acl for at, acl in enumerate(self.acls) if at % 100])

        def simulate() -> None:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                simulate_command(self.spark, str(path), self._new(), self._policy(self.log), self._policy(fewer))

        timed = Costs(self.sizes.rounds).of({"read": lambda: self.read(path), "simulate": simulate})
        what = f"{rows:,} accesses, {self.sizes.rules:,} rules and 99 % of these: spark simulate"
        yield _row(f"{what}, vs. Spark reading the columns", timed["simulate"].cpu, timed["read"].cpu, 1 / SIMULATE)

    def _hot(self, path: Path, rows: int) -> Iterator[Row]:
        """Nine of ten accesses are of one principal, which a tenth of the rules name."""
        del path
        acls = with_hot(self.acls)
        log = write_log(self.scratch / "hot-log", acls)
        hot = write_accesses(self.scratch / "hot", acls, rows, distinct=min(rows, _KINDS), files=8, hot=0.9)
        yield from self._beside_reading(hot, f"{rows:,} accesses, 90 % of one principal", AUTHORIZE, log)

    def _history(self) -> Iterator[Row]:
        log = write_log(self.scratch / "changed-log", self.acls, self.sizes.changes)

        def history() -> None:
            with redirect_stdout(StringIO()):
                history_command(self.spark, log, self._new())

        timed = Costs(self.sizes.rounds).of({"history": history})["history"]
        what = f"spark history of {self.sizes.rules + self.sizes.changes:,} records: CPU"
        yield Row(what=f"{what}, session running", ours=timed.cpu, unit="s", target=HISTORY)


def _history_process(scratch: Path) -> Iterator[Row]:
    command = [sys.executable, "-m", "aclog", "spark", "history", "--log", str(scratch / "changed-log")]
    command += ["--out", str(scratch / "history"), "--master", "local[2]"]
    cost = _of_tree(command)
    yield Row(what="the same command from its start: CPU", ours=cost.cpu, unit="s")
    yield Row(what="the same command from its start: clock", ours=cost.wall, unit="s", target=HISTORY)


def _row(what: str, ours: float, theirs: float, target: float | None = None) -> Row:
    return Row(what=f"{what}: CPU", ours=ours, theirs=theirs, unit="s", target=target)


def _best(rounds: int, run: Callable[[], object]) -> tuple[Cost, object]:
    """Return the lowest cost of some rounds in this process and its children that end, and the last result."""
    costs, result = [], None
    for _ in range(rounds):
        cpu, start = _cpu(), time.monotonic()
        result = run()
        costs.append(Cost(_cpu() - cpu, time.monotonic() - start))
    return Cost(min(cost.cpu for cost in costs), min(cost.wall for cost in costs)), result


def _of_tree(command: list[str]) -> Cost:
    """Return the cost of a command whose processes do not wait for one another, such as a JVM: sampled."""
    start, spent = time.monotonic(), {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        root = psutil.Process(process.pid)
        while process.poll() is None:
            for each in [root, *root.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    times = each.cpu_times()
                    spent[each.pid] = times.user + times.system
            time.sleep(_LOOK)
    assert process.returncode == 0, command
    return Cost(sum(spent.values()), time.monotonic() - start)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _authorizer(log: Path) -> Authorizer:
    return aclog.open_log(log).image().authorizer()


def _check_of(authorizer: Authorizer) -> Callable[[str, str, str, str, str], bool]:
    """Return a function of the text of an access, as a user of the library writes it."""

    def check(principal: str, host: str, operation: str, kind: str, name: str) -> bool:
        resource = ResourcePattern(resource_type=ResourceType[kind], name=name)
        return authorizer.check(principal, operation, resource, host=host).allowed

    return check


_CHECKS: dict[str, Callable[[str, str, str, str, str], bool]] = {}


def _worker_check(log: str) -> Callable[[str, str, str, str, str], bool]:
    """Return the function of a worker, which opens the log once."""
    if log not in _CHECKS:
        _CHECKS[log] = _check_of(_authorizer(Path(log)))
    return _CHECKS[log]
