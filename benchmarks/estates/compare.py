"""The ten shapes on three sides: Kafka's StandardAuthorizer, aclog with its native core, and aclog in Python alone.

All three are audited at Kafka's default level and their audit lines go nowhere; all are timed by thread CPU, in one
run, on the same requests in the same order, and their decisions are compared one by one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from aclog.authorizer.acls_image import AclsImage
from benchmarks import shapes
from benchmarks.estates.files import read_requests, write_changes, write_requests, write_rules
from benchmarks.estates.shape import Shape, changes, requests
from benchmarks.rival import Rival

STATES = (
    "cold",
    "warm",
    "cached",
    "not audited",
    "in a handler",
    "overlay cold",
    "overlay cached",
    "denied, logged",
    "denied, written",
)
"""Asked for the first time; again, but without a cache of answers; again; again, without an audit hook; by a handler
of a node, which makes context and action for each and counts; with 10,000 changes in the overlay for the first time,
and again. The last two: those that are denied, again, each with its line in the audit log, which is dropped: the CPU
of the deciding thread, and of all threads until the lines are written; Java writes in the deciding thread. All others
ask as the filter of a listing does (logIfDenied is false), so that no line is wanted and the figures are those
of decisions."""
_JAVA = {
    "cold": "cold",
    "warm": "again",
    "cached": "again",
    "not audited": "again",
    "in a handler": "again",
    "overlay cold": "overlay cold",
    "overlay cached": "overlay again",
    "denied, logged": "denied, logged",
    "denied, written": "denied, logged",
}
_SLOW_NS = 5_000
"""Where Java takes this long for a request that it has not seen, aclog should be some times as fast; elsewhere fast."""
WANTED: dict[str, dict[str, tuple[float, float]]] = {
    "native": {
        "cold": (3, 1_000),
        "cached": (8, 600),
        "in a handler": (8, 600),
        "overlay cold": (3, 1_000),
        "overlay cached": (3, 600),
    },
    "python": {"cold": (0.7, 10_000), "cached": (1.5, 2_000)},
}
"""By side and state: how many times as fast as Java where that is slow, and ns at most elsewhere."""


@frozen(kw_only=True)
class Effort:
    """How many requests and changes, and how long passes may take, in ms of CPU."""

    requests: int = 10_000
    changes: int = 10_000
    ours_ms: int = 600
    java_ms: int = 1_500
    warm_up_ms: int = 2_000


QUICK = Effort(requests=500, changes=200, ours_ms=50, java_ms=100, warm_up_ms=200)


@frozen(kw_only=True)
class Figure:
    """One state of one shape: ns a decision on the three sides; None if the side was not there."""

    shape: str
    rules: int
    state: str
    java: float
    native: float | None
    python: float
    is_slow_in_java: bool

    def wanted(self, side: str) -> str:
        """Return what is wanted of a side, as text; empty if nothing is."""
        if self.state not in WANTED[side]:
            return ""
        times, most = WANTED[side][self.state]
        return f">= {times:g}x" if self.is_slow_in_java else f"<= {most / 1000:g} us"

    def met(self, side: str) -> bool | None:
        """Return whether a side has what is wanted of it; None if nothing is, or it was not there."""
        ours = self.native if side == "native" else self.python
        if self.state not in WANTED[side] or ours is None:
            return None
        times, most = WANTED[side][self.state]
        return self.java / ours >= times if self.is_slow_in_java else ours <= most


def run(chosen: Sequence[Shape], effort: Effort, scratch: Path) -> Iterator[Figure]:
    """Yield the figures of each shape. Raises AssertionError: two sides decide differently."""
    for number, shape in enumerate(chosen, 1):
        say(f"{number} of {len(chosen)}: {shape.name} ({shape.what})")
        yield from _shape(shape, effort, scratch)


def say(text: str) -> None:
    """Tell how far the run is."""
    print(f"  {text}", file=sys.stderr, flush=True)


def _shape(shape: Shape, effort: Effort, scratch: Path) -> Iterator[Figure]:
    count = _write(shape, effort, scratch)
    java = _java(shape, effort, scratch)
    say(f"   Java {_us(java['cold'])} cold, {_us(java['again'])} again")
    sides = {name: ours(scratch, effort.ours_ms, native=name == "native") for name in ("native", "python")}
    for name, found in sides.items():
        _agree(java["decisions"], found["decisions"], f"{shape.name}, {name}")
        _agree(java["overlay decisions"], found["overlay decisions"], f"{shape.name} after changes, {name}")
        say(f"   {name} {_us(found['cold'])} cold, {_us(found['cached'])} cached")
    has_core = sides["native"]["core"] == "native"
    for state in STATES:
        yield Figure(
            shape=shape.name,
            rules=count,
            state=state,
            java=java[_JAVA[state]],
            native=sides["native"][state] if has_core else None,
            python=sides["python"][state],
            is_slow_in_java=java["cold"] >= _SLOW_NS,
        )


def _write(shape: Shape, effort: Effort, scratch: Path) -> int:
    """Write the estate for all sides, and another one of its shape, for Java's compiler; return its size."""
    rules = list(shape.rules(""))
    write_rules(scratch / "rules", rules)
    write_requests(scratch / "requests", requests(rules, effort.requests, seed=1))
    write_changes(scratch / "changes", changes(rules, effort.changes, seed=2))
    write_base(AclsImage.from_columns(shapes.columns(iter(rules))), scratch)
    twin = list(shape.rules("-twin"))
    write_rules(scratch / "twin", twin)
    write_requests(scratch / "twin-requests", requests(twin, effort.requests, seed=3))
    return len(rules)


def write_base(image: AclsImage, scratch: Path) -> int:
    """Write the flat base of an image; return its size in bytes."""
    return (scratch / "base").write_bytes(image.index.base.buffer)


def _java(shape: Shape, effort: Effort, scratch: Path) -> dict[str, Any]:
    with Rival(audited=True, heap="8g" if shape.name == "1M" else "4g") as rival:
        rival.ask("estate", file=str(scratch / "twin"))
        rival.ask("pass", file=str(scratch / "twin-requests"), passes=1_000, budgetMillis=effort.warm_up_ms)
        rival.ask("estate", file=str(scratch / "rules"))
        passes = {"file": str(scratch / "requests"), "passes": 7, "budgetMillis": effort.java_ms}
        before = rival.ask("pass", **passes)
        _write_denied(scratch, before["decisions"])
        denied = rival.ask("pass", **{**passes, "file": str(scratch / "denied"), "logIfDenied": True})
        rival.ask("change", file=str(scratch / "changes"))
        after = rival.ask("pass", **passes)
    return {
        "cold": before["first"],
        "again": before["again"],
        "decisions": before["decisions"],
        "denied, logged": denied["again"],
        "overlay cold": after["first"],
        "overlay again": after["again"],
        "overlay decisions": after["decisions"],
    }


def ours(scratch: Path, budget_ms: int, *, native: bool) -> dict[str, Any]:
    """Measure our side in a process of its own; without the native core unless `native`."""
    command = [sys.executable, "-m", "benchmarks.estates.side", str(scratch), str(budget_ms)]
    environment = {**os.environ, "ACLOG_NATIVE": "1" if native else "0", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _write_denied(scratch: Path, decisions: str) -> None:
    asked = read_requests(scratch / "requests")
    write_requests(
        scratch / "denied", [each for each, said in zip(asked, decisions, strict=False) if said == "D"][:2_000]
    )


def _agree(theirs: str, ours: str, where: str) -> None:
    """Compare decisions; Java may have been asked fewer, where it is slow."""
    for number, (one, other) in enumerate(zip(theirs, ours, strict=False)):
        if one != other:
            raise AssertionError(f"{where}: request {number}: {other} here, {one} in Kafka")


def _us(nanos: float) -> str:
    return f"{nanos / 1000:.3g} us"
