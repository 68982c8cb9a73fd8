"""The persistent map of overlays beside `immutables`: changes, look-ups, memory, and decisions of the Python path.

Each of the two runs in a process of its own, which puts it in the place of `aclog.metalog.persistent_map.Map` before
anything else imports that.
"""

import gc
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from attrs import evolve

from aclog.metalog import persistent_map
from benchmarks.measurement import percentile
from benchmarks.report import Row

_ROUNDS = 7


def run(rules: int, sizes: list[int]) -> Iterator[Row]:
    """Yield rows for overlays of these sizes above a base of so many rules."""
    found = {name: _figures(name, rules, sizes) for name in ("ours", "immutables")}
    for what, (value, unit) in found["ours"].items():
        yield Row(what=what, ours=value, theirs=found["immutables"][what][0], unit=unit)


def _figures(name: str, rules: int, sizes: list[int]) -> dict[str, tuple[float, str]]:
    command = [sys.executable, "-m", __name__, name, str(rules), *map(str, sizes)]
    ran = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, check=True)
    figures: dict[str, tuple[float, str]] = json.loads(ran.stdout)
    return figures


def _map_figures(size: int) -> Iterator[tuple[str, float, str]]:
    keys = [f"payments.eu.{number}" for number in range(size)]
    random = Random(1)
    ids = [random.getrandbits(128) for _ in range(size)]
    made, set_ns = _timed(persistent_map.Map(), keys, lambda known, key: known.set(key, 1))
    yield f"{size:,} entries: set, p50", percentile(set_ns, 0.5), "ns"
    yield f"{size:,} entries: set, p99", percentile(set_ns, 0.99), "ns"
    random.shuffle(keys)
    yield f"{size:,} entries: get what is there", _each(made.get, keys), "ns"
    yield f"{size:,} entries: get what is not", _each(made.get, [key + "x" for key in keys]), "ns"
    _, delete_ns = _timed(made, keys, lambda known, key: known.delete(key))
    yield f"{size:,} entries: delete, p50", percentile(delete_ns, 0.5), "ns"
    yield f"{size:,} entries: delete, p99", percentile(delete_ns, 0.99), "ns"
    tracemalloc.start()
    kept: persistent_map.Map[int, None] = persistent_map.Map()
    for number in ids:
        kept = kept.set(number, None)
    yield f"{size:,} entries: memory of each", tracemalloc.get_traced_memory()[0] / len(kept), "B"
    tracemalloc.stop()


def _timed(known: Any, keys: list[str], change: Callable[[Any, str], Any]) -> tuple[Any, list[float]]:
    taken, clock = [], time.perf_counter_ns
    for key in keys:
        start = clock()
        known = change(known, key)
        taken.append(float(clock() - start))
    return known, taken


def _each(get: Callable[[str], object], keys: list[str]) -> float:
    """Return nanoseconds per key: the best of some rounds."""
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter_ns()
        for key in keys:
            get(key)
        best = min(best, (time.perf_counter_ns() - start) / len(keys))
    return best


def _overlay_figures(rules: int, size: int) -> Iterator[tuple[str, float, str]]:
    from aclog.authorizer.acls_image import AclsImage
    from aclog.authorizer.index.acl_index import AclIndex
    from aclog.metalog.records import AccessControlEntryRecord
    from benchmarks import shapes

    acls = AclsImage.from_columns(shapes.columns(shapes.million(rules)))
    index = acls.index
    image = AclsImage(AclIndex(evolve(index.base, core=None), index.overlay._replace(core=None)))
    names = [acl.resource_name for acl, _ in zip(shapes.million(rules), range(2 * size), strict=False)]
    random = Random(2)
    records = [
        AccessControlEntryRecord(
            id=UUID(int=random.getrandbits(128)),
            resource_type=2,
            resource_name=names[number] if number % 2 else f"new.{number}",
            pattern_type=3 if number % 10 else 4,
            principal=f"User:{number}",
            host="*",
            operation=3,
            permission_type=3,
        )
        for number in range(size)
    ]
    taken, clock = [], time.thread_time_ns
    for record in records:
        start = clock()
        image = image.apply((record,))
        taken.append((clock() - start) / 1000)
    what = f"Python path, {size:,} changes above {rules:,} rules"
    yield f"{what}: one more, p50", percentile(taken, 0.5), "us"
    yield f"{what}: one more, p99", percentile(taken, 0.99), "us"
    asked = [(record.principal, record.resource_name) for record in random.sample(records, min(size, 1000))]
    asked += [(f"User:service-{number % 500}", random.choice(names)) for number in range(1000)]
    changed = image.index
    subjects = {principal: image.subject(principal, "10.0.0.1") for principal, _ in asked}

    def _decide(ask: tuple[str, str]) -> object:
        return changed.mask(subjects[ask[0]], 2, ask[1], False)

    yield f"{what}: a decision", _each(_decide, asked), "ns"  # type: ignore[arg-type]


def _main(name: str, rules: int, sizes: list[int]) -> None:
    if name != "ours":
        persistent_map.Map = import_module(name).Map  # type: ignore[misc]
        persistent_map.MapMutation = import_module(name).MapMutation  # type: ignore[misc]
    figures: dict[str, tuple[float, str]] = {}
    for size in sizes:
        for part in (_map_figures(size), _overlay_figures(rules, size)):
            gc.collect()
            figures.update((what, (value, unit)) for what, value, unit in part)
    print(json.dumps(figures))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3:]])
