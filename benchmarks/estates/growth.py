"""Growth: one shape from a thousand rules to ten million; what a decision, a base and its building cost at each size.

`python -m benchmarks.estates.growth COUNT DIRECTORY` builds the base of one size, in a process of its own.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import numpy as np
from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.codec import encode_record
from aclog.metalog.columns import AclColumns, read_acls
from benchmarks import shapes
from benchmarks.estates.compare import Effort, ours, say, write_base
from benchmarks.estates.files import write_requests, write_rules
from benchmarks.estates.shape import HOSTS, Asked, rule
from benchmarks.rival import Rival

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
QUICK_SIZES = (1_000, 10_000)
JAVA_MOST = 1_000_000
"""Beyond it Java takes minutes to load and most of the memory of a machine."""
_BYTES_A_RULE = 900
"""What building needs at its peak, generously: a size that does not fit into the free memory is left out."""


@frozen(kw_only=True)
class Size:
    """The figures of one size: ns a decision, cold and asked again, and what the base takes."""

    rules: int
    native: tuple[float, float] | None
    python: tuple[float, float]
    java: tuple[float, float] | None
    build_seconds: float
    base_bytes: int


def run(sizes: tuple[int, ...], effort: Effort, scratch: Path) -> Iterator[Size]:
    """Yield the figures of each size that fits into the memory that is free."""
    for count in sizes:
        if count * _BYTES_A_RULE > _free_bytes():
            say(f"{count:,} rules: left out: needs {count * _BYTES_A_RULE >> 30} GiB of free memory")
            continue
        say(f"{count:,} rules")
        build = [sys.executable, "-m", "benchmarks.estates.growth", str(count), str(scratch)]
        built = json.loads(subprocess.run(build, check=True, stdout=subprocess.PIPE).stdout)
        write_requests(scratch / "requests", _requests(count, effort.requests))
        found = {name: ours(scratch, effort.ours_ms, native=name == "native") for name in ("native", "python")}
        has_core = found["native"]["core"] == "native"
        yield Size(
            rules=count,
            native=_pair(found["native"]) if has_core else None,
            python=_pair(found["python"]),
            java=_java(count, effort, scratch, found["python"]["decisions"]) if count <= JAVA_MOST else None,
            build_seconds=built["seconds"],
            base_bytes=built["bytes"],
        )


def _pair(found: dict[str, float]) -> tuple[float, float]:
    return found["cold"], found["cached"]


def _free_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def _rule(number: int) -> StandardAcl:
    return rule(f"topic-{number:08d}", f"User:service-{number // 5:08d}")


def _requests(count: int, most: int) -> list[Asked]:
    draw, found = Random(7), dict[Asked, None]()
    while len(found) < most:
        acl = _rule(draw.randrange(count))
        name = acl.resource_name if draw.random() < 0.9 else f"unknown-{draw.randrange(10**6)}"
        found[Asked(acl.principal, draw.choice(HOSTS), acl.operation, acl.resource_type, name)] = None
    return list(found)


def _java(count: int, effort: Effort, scratch: Path, decisions: str) -> tuple[float, float]:
    write_rules(scratch / "rules", map(_rule, range(count)))
    with Rival(audited=True, heap="8g") as rival:
        rival.ask("estate", file=str(scratch / "rules"))
        asked = {"file": str(scratch / "requests"), "passes": 7, "budgetMillis": effort.java_ms}
        rival.ask(
            "pass", **{**asked, "passes": 1_000, "budgetMillis": effort.warm_up_ms}
        )  # compiled on these requests:
        rival.ask("estate", file=str(scratch / "rules"))  # only what they lead to is new again
        found = rival.ask("pass", **asked)
    if not decisions.startswith(found["decisions"]):
        raise AssertionError(f"{count:,} rules: other decisions here than in Kafka")
    return found["first"], found["again"]


def _columns(count: int) -> AclColumns:
    """Return the records of all rules: one is encoded, the others differ from it in digits and ids only."""
    record = encode_record(shapes.record(shapes.with_id(0, _rule(0))))
    rows = np.tile(np.frombuffer(record, np.uint8), (count, 1))
    numbers = np.arange(count, dtype=np.int64)
    for text, values in (("topic-", numbers), ("User:service-", numbers // 5)):
        at = record.index(text.encode()) + len(text)
        for place in range(8):
            rows[:, at + place] = values // 10 ** (7 - place) % 10 + ord("0")
    at = record.index(shapes.id_of(0).bytes)
    ids = (np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(">u8")
    rows[:, at : at + 8] = ids.view(np.uint8).reshape(count, 8)
    starts = np.arange(count, dtype=np.int64) * len(record)
    return read_acls(rows.tobytes(), starts, starts + len(record))[0]


def main() -> None:
    """Build the base of one size, and say how long that took (CPU) and how large it is."""
    columns, start = _columns(int(sys.argv[1])), time.process_time()
    image = AclsImage.from_columns(columns)
    taken = time.process_time() - start
    assert image.find(_rule(7)) not in {None, UUID(int=0)}
    print(json.dumps({"seconds": taken, "bytes": write_base(image, Path(sys.argv[2]))}))


if __name__ == "__main__":
    main()
