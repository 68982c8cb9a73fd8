"""More requests in rotation than the cache of answers holds, beside the same without a cache.

`python -m benchmarks.estates.rotation DIRECTORY ROUNDS`, in a process of its own, as benchmarks.estates.side.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from aclog.authorizer.acls_image import AclsImage
from benchmarks import shapes
from benchmarks.estates.compare import say, write_base
from benchmarks.estates.files import write_requests
from benchmarks.estates.shape import requests
from benchmarks.estates.side import Side, as_a_node, authorizer_of, pass_ns
from benchmarks.estates.ten_shapes import TEN
from benchmarks.report import Row

COUNTS = (30_000, 60_000, 70_000, 140_000)
QUICK_COUNTS = (3_000,)
_TARGET = 1 / 1.2
"""A working set above the cache costs at most 1.2 times the same run without one."""


def run(scratch: Path, rounds: int, counts: tuple[int, ...]) -> Iterator[Row]:
    """Yield a row for each number of requests, with the native core and without."""
    rules = list(next(shape for shape in TEN if shape.name == "S").rules(""))
    write_base(AclsImage.from_columns(shapes.columns(iter(rules))), scratch)
    for count in counts:
        asked = requests(rules, count, seed=4)
        Random(5).shuffle(asked)
        write_requests(scratch / "requests", asked)
        for side in ("native", "python"):
            command = [sys.executable, "-m", "benchmarks.estates.rotation", str(scratch), str(rounds)]
            environment = {**os.environ, "ACLOG_NATIVE": "1" if side == "native" else "0", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
            found = json.loads(done.stdout)
            if found["core"] != side:
                say("the native core is not installed")
                continue
            what = f"{count:,} requests in rotation, {side}: a cache of answers vs. none"
            target = None if count < 65_536 else _TARGET
            yield Row(what=what, ours=found["cached"], theirs=found["without"], unit="ns", target=target)


def main() -> None:
    """Measure one list, alternately with a cache and without; the best pass of each counts."""
    as_a_node()
    side = Side(Path(sys.argv[1]), 0)
    image, calls = side.fresh(changed=False), side.calls()
    both = {"cached": authorizer_of(image), "without": authorizer_of(image, cache=False)}
    for authorizer in both.values():
        pass_ns(authorizer, calls)
        pass_ns(authorizer, calls)
    gc.collect()
    gc.freeze()
    best = dict.fromkeys(both, float("inf"))
    for _ in range(int(sys.argv[2])):
        for name, authorizer in both.items():
            best[name] = min(best[name], pass_ns(authorizer, calls))
    print(json.dumps({"core": "native" if image.index.core is not None else "python", **best}))


if __name__ == "__main__":
    main()
