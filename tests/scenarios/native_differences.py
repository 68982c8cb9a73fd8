"""`make campaign-native`: the native core beside the Python path, millions of answers.

    python -m tests.scenarios.native_differences --requests 1000000 --out benchmarks/results/native-differences.txt

The Python path is itself beside the real StandardAuthorizer in `make oracle-long`. The same seed makes the same estates
and requests; one estate in four has pattern types that only a record can carry, and in half of them hosts are ranges.
"""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from aclog.authorizer.index import acl_index
from tests.support.models.differential import image_of
from tests.support.models.native_paths import differing
from tests.support.models.shapes import ODD, RANGED, Maker, random_shape

_REQUESTS = 500
"""Per estate, each with both semantics."""
ANSWERS = ("mask", "rule", "has_candidate")


def run(part: tuple[int, int]) -> tuple[Counter[str], list[str]]:
    """Compare a number of requests; return what was counted, and what differs."""
    seed, requests = part
    return differing_worlds(seed=seed, worlds=-(-requests // _REQUESTS), requests=_REQUESTS)


def differing_worlds(*, seed: int, worlds: int, requests: int = 100) -> tuple[Counter[str], list[str]]:
    """Compare so many estates, with so many requests each; return as `run`."""
    random, seen, found = Random(seed), Counter[str](), list[str]()
    few_lengths = acl_index._FEW_LENGTHS
    for _ in range(worlds):
        only, ranged = ODD if random.randrange(4) == 0 else {}, random.randrange(2) == 0
        shape = random_shape(random, **(RANGED | only if ranged else only))
        maker = Maker(shape)
        image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
        image = image.with_options(documented=False, cidr=ranged)
        # Overlays of many lengths are first asked whether they concern a client: here every other estate's are.
        acl_index._FEW_LENGTHS = 0 if seen["estates"] % 2 else few_lengths
        found += [f"{shape}\n  {text}" for text in differing(image, maker.asks(requests), seen)]
        seen["estates"] += 1
        seen["estates with changes"] += image.overlay_size > 0
        seen["estates with ranges"] += image.in_ranges
        seen["rules"] += len(image)
        seen["requests"] += requests
    acl_index._FEW_LENGTHS = few_lengths
    return seen, found


def report(seen: Counter[str], found: list[str], seed: int, seconds: float) -> str:
    """Return the figures, one per line."""
    lines = [
        "The native core's answers beside the Python path's (make campaign-native)\n",
        f"seed                     {seed}",
        f"estates                  {seen['estates']:,} with {seen['rules']:,} rules",
        f"  with changes           {seen['estates with changes']:,}",
        f"  with ranges            {seen['estates with ranges']:,}",
        f"requests                 {seen['requests']:,}, each with both semantics",
    ]
    for what in ANSWERS:
        answered, left = seen[f"{what} answered"], seen[f"{what} left to Python"]
        lines.append(f"  {what:22} {answered:,} answered, {left:,} left to the Python path")
    lines += [f"differing                {len(found):,}", f"wall time                {seconds:,.0f} s\n"]
    return "\n".join(lines)


def main() -> int:
    """Run and report; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    begin, seen, found = time.perf_counter(), Counter[str](), list[str]()
    share = -(-chosen.requests // chosen.workers)
    with ProcessPoolExecutor(chosen.workers) as pool:
        for counted, differences in pool.map(run, [(chosen.seed * 1000 + n, share) for n in range(chosen.workers)]):
            seen += counted
            found += differences
    text = report(seen, found, chosen.seed, time.perf_counter() - begin)
    print(text, *found[:20], sep="\n")
    if chosen.out is not None:
        chosen.out.write_text(text, encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
