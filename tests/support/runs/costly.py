"""The list of the tests that `make check` leaves to `make test-all` because of what they cost: tests/costly.txt.

    python -m tests.support.runs.costly build/costs-check.json

adds to the list each test of a run of `make check` on an idle machine that took more than LONG seconds of CPU time, but

- for a file all of whose tests took more, the quickest of them, so that `make check` has something of every file;
- for a test that kills a mutation, as benchmarks/results/mutations.md says, which stays, too.

A test of which MANY cases took more is listed as a whole. To have a test in `make check` again, delete its line, and
give it `tier("check")` if it is to stay there.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.kafka.jvm import ROOT
from tests.support.runs.costs import LONG
from tests.support.runs.tiers import COSTLY, costly, is_costly

MANY = 3
KILLERS = ROOT / "benchmarks" / "results" / "mutations.md"
HEAD = """\
# The tests of `make check` that are left to `make test-all`, because each takes more than 0.1 s of CPU time:
# a test, or one case of it. `python -m tests.support.runs.costly` writes this list and says which tests stay.
"""
_KILLED = re.compile(r"^\| \d+ \|.*\| `(?P<killer>tests/.+)` \(\w+\) \|$", re.MULTILINE)


def killers(text: str) -> frozenset[str]:
    """Read from the report of the mutations which test kills each."""
    return frozenset(row["killer"].replace("\\|", "|") for row in _KILLED.finditer(text))


def to_list(seconds: Mapping[str, float], counts: Mapping[str, int], stay: Iterable[str]) -> set[str]:
    """Choose the lines: `seconds` of the tests that took long, `counts` of all tests by file, and tests that stay."""
    over = {nodeid: cost for nodeid, cost in seconds.items() if cost > LONG}
    per_file = Counter(_file(nodeid) for nodeid in over)
    quickest: dict[str, str] = {}
    for nodeid in sorted(over, key=lambda each: -over[each]):
        quickest[_file(nodeid)] = nodeid
    staying = {*stay, *(quickest[path] for path, count in per_file.items() if count == counts[path])}
    whole = {_test(nodeid) for nodeid in staying}
    leaving = over.keys() - staying
    per_test = Counter(map(_test, leaving))
    return {
        _test(each) if _test(each) not in whole and (per_test[_test(each)] >= MANY or not _is_plain(each)) else each
        for each in leaving
        if _test(each) not in whole or _is_plain(each)
    }


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _test(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _is_plain(nodeid: str) -> bool:
    """Whether a line can say it, on every machine: a case can be named by a path, or have any characters."""
    return nodeid.isascii() and nodeid.isprintable() and str(ROOT) not in nodeid and nodeid == nodeid.strip()


def main(costs: str) -> None:
    """Write the list anew: what is in it, and what `costs` adds."""
    figures = json.loads(Path(costs).read_text(encoding="utf-8"))
    seconds = {nodeid: row["own cpu"] + row["child cpu"] for nodeid, row in figures["tests"].items()}
    counts = {path: round(row["count"]) for path, row in figures["files"].items()}
    lines = costly() | to_list(seconds, counts, killers(KILLERS.read_text(encoding="utf-8")))
    needed = {each for each in lines if not is_costly(_test(each), lines - {each})}
    COSTLY.write_text(HEAD + "".join(f"{line}\n" for line in sorted(needed)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
