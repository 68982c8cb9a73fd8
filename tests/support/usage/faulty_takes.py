"""A process that takes a run into an index, and is killed, or finds the disk full, at one write after another.

Arguments: a directory to work in; `kill` or `full`; `new` or `old`, whether there is an index already; and of how many
writes one is tried. write_faults.c must be preloaded. Each write is tried in a child; then a line says whether the
index holds what it did `before` or `after` the run, and the last one is `done`. What is neither ends with an error.
"""

import os
import shutil
import sys
from pathlib import Path

from attrs import evolve

from aclog.metalog.errors import ConfigError
from aclog.usage.index.usage_index import TakenContent, UsageIndex
from tests.support.builders.index_runs import DAY, PlainUse, plain_rules, run_of, tally_of
from tests.support.processes.write_faults import fault_at

RULES = plain_rules([f"rule-{at}" for at in range(40)])


def take(index: UsageIndex, number: int) -> None:
    """Take the run of a file, if it was not taken."""
    digest = number.to_bytes(32)
    if (1, digest) in index.known_contents():
        return
    uses = [
        PlainUse(
            time=(20_000 + at % 20) * DAY + at,
            principal=f"User:{at % 7}",
            host="h",
            matched=frozenset({at % 40, (at + 1) % 40}),
            needed=frozenset({at % 40}),
            set_of=((), (at % 39, at % 39 + 1)),
        )
        for at in range(200)
    ]
    run = run_of(RULES, uses)
    version = index.contents_version
    contents = [TakenContent(1, digest, f"{number}.log", 0)]
    index.take(evolve(run, contents=contents, contents_version=version), [tally_of(uses)])


def contents_of(index: UsageIndex) -> tuple[object, ...]:
    """Return all that the index says."""
    used, window = index.used(0, 30_000), index.window(19_000, 21_000)
    covered, last_use = index.coverage(), index.last_use(used.numbers)
    return (
        used.matched.tobytes(),
        used.needed.tobytes(),
        used.days_matched.tobytes(),
        tuple(window.sets),
        index.sets(window.sets).members.tobytes(),
        covered.rows.tobytes(),
        last_use.times.tobytes(),
        len(index.texts(range(len(index.lives())))),
        tuple(sorted(index.known_contents())),
        len(index.runs()),
    )


def state(directory: Path) -> tuple[object, ...]:
    """Return what a reader is told; nothing if there is no index yet."""
    try:
        with UsageIndex.open(directory) as index:
            return contents_of(index)
    except ConfigError as error:
        if "no index" not in str(error) and "is empty" not in str(error):
            raise
        return ()


def main(work: Path, how: str, age: str, step: int) -> None:
    """Work through the writes."""
    base, whole = work / "base", work / "whole"
    base.mkdir()
    if age == "old":
        with UsageIndex.create(base) as index:
            take(index, 1)
    shutil.copytree(base, whole)
    with UsageIndex.create(whole) as index:
        empty = contents_of(index)
        take(index, 2)
    before, after = state(base), state(whole)
    for write in range(1, 10_000, step):
        here = work / f"{write}"
        shutil.copytree(base, here)
        child = os.fork()
        if not child:
            os._exit(run(here, write, full=how == "full"))
        _, status = os.waitpid(child, 0)
        outcome = state(here)
        # a new index may have been made already, with nothing in it
        name = {before: "before", after: "after"}.get(outcome, "before" if outcome == empty else f"torn: {outcome}")
        with UsageIndex.create(here) as index:  # the same run once more
            take(index, 2)
        name += "" if state(here) == after else " and counted twice"
        shutil.rmtree(here)
        print(name, flush=True)
        if status == 0:
            print("done", flush=True)
            return


def run(directory: Path, write: int, *, full: bool) -> int:
    """Take a run with a fault at a write; return 0 if there were fewer writes."""
    shim = fault_at(write, full=full)
    try:
        with UsageIndex.create(directory) as index:
            take(index, 2)
    except ConfigError:
        return 3
    return 0 if shim.fault_left() > 0 else 4


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
