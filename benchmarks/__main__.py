"""All benchmarks: `python -m benchmarks [PART ...]` prints tables and keeps them under benchmarks/results.

The baseline (the real StandardAuthorizer and Kafka's own log readers in a JVM, or a real Kafka) is measured
alternately, on the same data.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from aclog.pipeline.session import open_session
from benchmarks import (
    access_layouts,
    apply_changes,
    bulk,
    change_rows,
    commands,
    commit,
    console,
    costly,
    crowd,
    decide,
    differences,
    distinct_accesses,
    flood,
    follow_changes,
    former,
    kept_index,
    merge,
    open_image,
    persistent_maps,
    ranges,
    read_back,
    removals,
    replay,
    request_lines,
    serve,
    slider,
    spark,
    spark_functions,
    spark_log,
    spark_rivals,
    spark_usage,
    sync_polls,
    to_arrow,
    tokens,
    topic,
    unused,
    update,
    usage_index,
    zookeeper,
)
from benchmarks.estates import compare, growth, growth_plot, rotation, table
from benchmarks.estates.ten_shapes import TEN
from benchmarks.questions import growth as questions
from benchmarks.questions.kinds import KINDS
from benchmarks.report import Row, keep, show
from benchmarks.rival import Rival

ROOT = Path(__file__).parents[1]


def _disk_scratch() -> Path:
    """Return a directory on the disk of the checkout: the system's temporary directory may be in memory."""
    scratch = ROOT / "build" / "bench"
    scratch.mkdir(parents=True, exist_ok=True)
    return scratch


def _temporary_build_directory() -> "tempfile.TemporaryDirectory[str]":
    (ROOT / "build").mkdir(exist_ok=True)
    return tempfile.TemporaryDirectory(dir=ROOT / "build")


def _commands(*, quick: bool) -> Iterator[Row]:
    yield from commands.run(3 if quick else 11)


def _working_set(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        yield from rotation.run(Path(scratch), 2 if quick else 5, rotation.QUICK_COUNTS if quick else rotation.COUNTS)


def _growth(*, quick: bool) -> Iterator[Row]:
    effort = compare.QUICK if quick else compare.Effort()
    with tempfile.TemporaryDirectory() as scratch:
        found = list(growth.run(growth.QUICK_SIZES if quick else growth.SIZES, effort, Path(scratch)))
    if not quick:
        growth_plot.draw(found)
    yield from growth_plot.rows(found)


def _decide(*, quick: bool) -> Iterator[Row]:
    with Rival() as rival:
        yield from decide.run(rival, [10_000] if quick else [10_000, 50_000, 200_000], 10 if quick else 100)


def _ranges(*, quick: bool) -> Iterator[Row]:
    yield from ranges.run(2 if quick else 15, 2_000 if quick else 10_000)


def _replay(*, quick: bool) -> Iterator[Row]:
    with Rival() as rival, tempfile.TemporaryDirectory() as scratch:
        yield from replay.run(rival, Path(scratch), 100_000 if quick else 1_000_000)


def _open(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from open_image.run(Path(scratch), 100_000 if quick else 1_000_000)


def _to_arrow(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from to_arrow.run(Path(scratch), 10_000 if quick else 1_000_000)


def _bulk(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from bulk.run(Path(scratch), [1_000, 100_000] if quick else [1_000, 1_000_000])


def _sync(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from sync_polls.run(Path(scratch), 20_000 if quick else 1_000_000, 1 if quick else 3)


def _update(*, quick: bool) -> Iterator[Row]:
    yield from update.run(100_000 if quick else 1_000_000, 500 if quick else 2_000)


def _maps(*, quick: bool) -> Iterator[Row]:
    yield from persistent_maps.run(10_000 if quick else 100_000, [100] if quick else [100, 2_000, 30_000])


def _merge(*, quick: bool) -> Iterator[Row]:
    yield from merge.run(100_000 if quick else 1_000_000, 60_000 if quick else 200_000)


def _differences(*, quick: bool) -> Iterator[Row]:
    yield from differences.run(100_000 if quick else 1_000_000, 10_000 if quick else 100_000, 30 if quick else 300)


def _follow(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        yield from follow_changes.run(10_000 if quick else 100_000, 1_000 if quick else 20_000, Path(scratch))


def _slider(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        yield from slider.run(10_000 if quick else 100_000, 1_000 if quick else 5_000, Path(scratch))


def _rows(*, quick: bool) -> Iterator[Row]:
    yield from change_rows.run(2 if quick else 10, 100 if quick else 600)


def _requests(*, quick: bool) -> Iterator[Row]:
    yield from request_lines.run(50_000 if quick else 500_000)


def _apply(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from apply_changes.run(Path(scratch), 5_000 if quick else 80_000, 100 if quick else 1_000)


def _removals(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from removals.run(Path(scratch), 2_000 if quick else 100_000, 40 if quick else 1_000)


def _commit(*, quick: bool) -> Iterator[Row]:
    yield from commit.run(1 if quick else 5, _disk_scratch())


def _serve(*, quick: bool) -> Iterator[Row]:
    yield from serve.run(_disk_scratch(), 1 if quick else 5, 40 if quick else 400)


def _crowd(*, quick: bool) -> Iterator[Row]:
    yield from crowd.run(_disk_scratch(), 2 if quick else 5, 1 if quick else 5)


def _kept_index(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from kept_index.run(
            Path(scratch), [2_000] if quick else [2_000, 100_000], 10 if quick else 150, 1 if quick else 2
        )


def _console(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from console.run(Path(scratch), 10_000 if quick else 100_000, 10 if quick else 60, 5 if quick else 30)


def _costly(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from costly.run(Path(scratch), 10_000 if quick else 100_000, 30 if quick else 300, 3 if quick else 20)


def _flood(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        yield from flood.run(Path(scratch), 1_200 if quick else flood.CONNECTIONS)


def _topic(*, quick: bool) -> Iterator[Row]:
    yield from topic.run(_disk_scratch(), 1 if quick else 10)


def _read_back(*, quick: bool) -> Iterator[Row]:
    yield from read_back.run(_disk_scratch(), 1 if quick else 5, 1 if quick else 7)


def _tokens(*, quick: bool) -> Iterator[Row]:
    yield from tokens.run(_disk_scratch(), 100 if quick else 400)


def _zookeeper(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        yield from zookeeper.run(Path(scratch), 5_000 if quick else 100_000, 20 if quick else 300)


def _unused(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from unused.run(Path(scratch), 30 if quick else 3_650)


def _spark(*, quick: bool) -> Iterator[Row]:
    with _temporary_build_directory() as scratch:
        rows = 100_000 if quick else 10_000_000
        yield from spark.run(Path(scratch), rows, rows * 10, 1 if quick else 3)


def _spark_columns(*, quick: bool) -> Iterator[Row]:
    with _temporary_build_directory() as scratch:
        yield from spark.run_columns(Path(scratch), 100_000 if quick else 10_000_000, 1 if quick else 3)


def _spark_functions(*, quick: bool) -> Iterator[Row]:
    with _temporary_build_directory() as scratch:
        yield from spark_functions.run(Path(scratch), 50_000 if quick else 2_000_000, 1 if quick else 3)


def _spark_rivals(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from spark_rivals.run(Path(scratch), spark_rivals.QUICK if quick else spark_rivals.Sizes())


def _access_layouts(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from access_layouts.run(Path(scratch), 20_000 if quick else 200_000, 1 if quick else 2)


def _distinct_accesses(*, quick: bool) -> Iterator[Row]:
    yield from distinct_accesses.run(20_000 if quick else 1_000_000)


def _usage_index(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from usage_index.run(Path(scratch), 20 if quick else 365)


def _spark_usage(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from spark_usage.run(Path(scratch), 200_000 if quick else 100_000_000, 1 if quick else 3)


def _spark_log(*, quick: bool) -> Iterator[Row]:
    with _temporary_build_directory() as scratch:
        session = open_session("local[2]", {"spark.local.dir": scratch})
        yield from spark_log.run(session, Path(scratch), 100_000 if quick else 1_000_000)
        session.stop()


def _former(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
        yield from former.run(Path(scratch), former.QUICK if quick else former.FULL, os.environ.get("FORMER_PYTHON"))


QUESTIONS = "questions"
"""The part that fails if a figure is not met: it counts, so a busy machine has the same figures. Kept by kind."""
SHAPES = "shapes"
"""The part whose table has columns of its own."""
QUICK_SHAPES = ("tiny",)
"""The shapes of a quick run: the others take minutes to be made."""
PARTS: dict[str, tuple[str, Callable[..., Iterator[Row]]]] = {
    "working-set": ("A working set above the cache of answers vs. no cache", _working_set),
    "growth": ("Decisions and bases from a thousand rules to ten million", _growth),
    "commands": ("Commands from start to end", _commands),
    "decide": ("Authorization decisions vs. the real StandardAuthorizer", _decide),
    "ranges": ("Decisions where a fifth of the hosts are CIDR ranges vs. the same rules without", _ranges),
    "replay": ("Replay of a log or checkpoint into an authorizer vs. Kafka's own readers", _replay),
    "open": ("Many ACLs opened by commands and nodes: the image file of a checkpoint vs. the checkpoint alone", _open),
    "to-arrow": ("All ACLs as tables vs. reading the same tables from Parquet, CPU of all threads", _to_arrow),
    "bulk": ("Commands that write many rules at once", _bulk),
    "sync": ("Polls of `aclog sync` from a node with a million rules", _sync),
    "update": ("One update made visible", _update),
    "maps": ("The persistent map of changed rules vs. immutables, without the native core", _maps),
    "merge": ("Merges while a writer and readers are busy vs. none", _merge),
    "differences": (
        "The exact difference of two policies vs. deciding the same cells, and vs. replaying",
        _differences,
    ),
    "slider": ("A step of the console's slider over the past", _slider),
    "follow": ("What each committed change really gives and takes, as JSON lines", _follow),
    "rows": ("Rows in which the exact difference of a commit reads, vs. folding its rules naively", _rows),
    "requests": ("Authorization requests in a file", _requests),
    "serve": ("Nodes vs. a real Kafka", _serve),
    "crowd": ("Nodes vs. a real Kafka under 1,000 clients", _crowd),
    "kept-index": (
        "A node at 5,000 decisions a second that keeps its index of last use vs. one that does not",
        _kept_index,
    ),
    "console": ("The console on 100,000 rules", _console),
    "costly": ("The console while one viewer asks for states of the past without end, on 100,000 rules", _costly),
    "flood": ("A flood of 5,000 connections from one address, beside an authenticated client of another", _flood),
    "topic": ("Controllers with the log on a topic of a real Kafka vs. its own controller", _topic),
    "read-back": ("Controllers with the log on a topic: reading back before acknowledging vs. not", _read_back),
    "tokens": ("Delegation tokens vs. a real Kafka", _tokens),
    "zookeeper": ("ACLs in ZooKeeper vs. the real AclAuthorizer of Kafka 3.9", _zookeeper),
    "access-layouts": ("An access log in several layouts, in CPU time per million lines", _access_layouts),
    "distinct-accesses": ("Logs of which every access is another one", _distinct_accesses),
    "usage-index": ("The index of last use of a million rules", _usage_index),
    "unused": ("What nobody used of a million rules, from an index of days", _unused),
    "spark": ("Batch authorization on Spark vs. the cheapest possible job", _spark),
    "spark-columns": ("Batch authorization on Spark with all columns vs. copying them", _spark_columns),
    "spark-functions": ("kafka_authorized on Spark vs. a plain Python UDF, and spark authorize", _spark_functions),
    "spark-rivals": ("An access log decided on Spark, without Spark, by DuckDB and by a plain UDF", _spark_rivals),
    "spark-usage": ("Usage of ACLs on Spark vs. reading the columns", _spark_usage),
    "spark-log": ("Reading a log as a Spark table vs. reading prebuilt batches", _spark_log),
    "apply": ("Changes on a real Kafka of many rules vs. one request a rule, and vs. kafka-acls", _apply),
    "removals": ("Removals on a real Kafka of many rules vs. one request with a filter for each rule", _removals),
    "commit": ("Group commit: 64 writers vs. one", _commit),
    "former": ("Whole commands vs. those of an earlier commit", _former),
}


def _run_part(name: str, *, quick: bool) -> None:
    title, rows = PARTS[name]
    _measured(name, title, rows(quick=quick), quick=quick)


def _measured(name: str, title: str, rows: Iterator[Row], *, quick: bool) -> list[Row]:
    """Measure a table's rows, which iterating them does, and show them; keep those of a whole run."""
    before = os.getloadavg()[0]
    measured = list(rows)
    show(title, measured)
    if not quick:
        keep(name, f"{title} (load average {before:.1f} before, {os.getloadavg()[0]:.1f} after)", measured)
    return measured


def _run_questions(names: str | None, *, quick: bool) -> None:
    """Measure the kinds of estates that are named, or all; each is kept once it is complete, as all take hours."""
    unmet = []
    for kind in KINDS if names is None else names.split(","):
        title = f"The growth of questions with the number of rules, on estates of the kind `{kind}`"
        with tempfile.TemporaryDirectory(dir=_disk_scratch()) as scratch:
            rows = questions.run(questions.QUICK_SIZES if quick else questions.SIZES, Path(scratch), kinds=[kind])
            measured = _measured(f"{QUESTIONS}/{kind.replace(' ', '-')}", title, rows, quick=quick)
        unmet += [row.what for row in measured if row.met is False]
    if unmet:
        sys.exit(f"{len(unmet)} questions grow faster than their input: {'; '.join(unmet)}")


def _run_shapes(names: str | None, *, quick: bool) -> None:
    """Measure the ten shapes, or those that are named; a run of some of them is not kept, nor is a quick one of one."""
    all_names = QUICK_SHAPES if quick else [shape.name for shape in TEN]
    chosen = [shape for shape in TEN if shape.name in (all_names if names is None else names.split(","))]
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        found = list(compare.run(chosen, compare.QUICK if quick else compare.Effort(), Path(scratch)))
    title = "Decisions on ten estates vs. the real StandardAuthorizer"
    table.show(title, found)
    if not quick and names is None:
        table.keep(SHAPES, f"{title} (load average {before:.1f} before, {os.getloadavg()[0]:.1f} after)", found)


def main() -> None:
    """Run the parts given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    everything = (SHAPES, *PARTS, QUESTIONS)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*everything, []], help="all if none is given")
    parser.add_argument("--shapes", metavar="NAME,NAME", help=f"of {', '.join(each.name for each in TEN)}; not kept")
    parser.add_argument("--kinds", metavar="NAME,NAME", help=f"of {QUESTIONS}: {', '.join(KINDS)}")
    parser.add_argument("--quick", action="store_true", help="smaller and shorter; results are not kept")
    arguments = parser.parse_args()
    if arguments.parts == [SHAPES] or (arguments.shapes and not arguments.parts):
        _run_shapes(arguments.shapes, quick=arguments.quick)
        return
    if arguments.parts == [QUESTIONS]:
        _run_questions(arguments.kinds, quick=arguments.quick)
        return
    if len(arguments.parts) == 1:
        _run_part(arguments.parts[0], quick=arguments.quick)
        return
    for name in arguments.parts or everything:
        # A process for each part: none is slowed down by the garbage or the frozen objects of another.
        command = [sys.executable, "-m", "benchmarks", name, *(["--quick"] if arguments.quick else [])]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
