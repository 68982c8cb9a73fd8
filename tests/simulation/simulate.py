"""Run seeds of the simulated cluster: `make simulate`, or `python -m tests.simulation.simulate`.

SECONDS of CPU time (30 by default) from a seed drawn from the clock; or the seed SEED, and COUNT in all from there on.
Seeds alternate between the worlds, unless WORLD names one of them: files, topic, quorum, admin or usage.
SHORT=1 gives each seed half a minute of faults instead of three, and no lulls: the most seeds per CPU hour.
TRACE=1 prints every event, and SHRINK=1 the shortest schedule of faults with which SEED still fails.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from attrs import frozen

from tests.simulation import admin_world, files_world, quorum_world, topic_world, usage_world
from tests.simulation.cluster_world import ClusterWorld, Fault, schedule
from tests.simulation.processes import simulated_machine
from tests.simulation.scheduler import Scheduler

SECONDS = 180.0
"""The virtual time with faults of a seed."""
SHORT_SECONDS = 30.0
"""The same with SHORT."""
WORLDS = {
    "files": files_world,
    "topic": topic_world,
    "quorum": quorum_world,
    "admin": admin_world,
    "usage": usage_world,
}
LONG_RUN = 600.0
"""Seconds of CPU time from which on a run must have exercised everything that is expected."""

EXPECTED = frozenset(kind for world in WORLDS.values() for kind, _ in world.KINDS) | {
    "crash at a system call",
    "torn write",
    "lost names",
    "truncated file",
    "bit flip in a slot of the mark",
    "fsync EIO",
    "stopped by itself: fsync",
    "stopped by itself: full",
    "stopped by itself: flip",
    "stopped by itself: copied",
    "stopped by itself: swapped",
    "decision",
    "read of a broker",
    "failed request",
    "takeover",
    "transaction aborted",
    "duplicate produce request",
    "candidate's session expired",
    "leader resigns",
    "uncommitted tail truncated",
    "voter loads a snapshot",
    "mirror opened again",
    "historical read",
    "stopped by itself: formatted",
    "formatted beyond the observers",
    "stopped by itself: other cluster",
    "poll",
    "poll refused",
    "copy opened again",
    "apply",
    "apply: RefusedError",
    "apply: StoppedError",
    "apply reported as done",
    "interval",
    "interval that was there",
    "index opened again",
    "commit that had failed",
}
"""The kinds of faults, and the recovery paths."""


@frozen(kw_only=True)
class Outcome:
    """The outcome of a seed."""

    seed: int
    failures: tuple[str, ...]
    seconds: float
    """Virtual seconds."""
    digest: int
    """The CRC-32 of its trace."""
    covered: Counter[str]
    steps: int
    requests: int
    """Requests that clients got an answer to."""


def run_seed(
    seed: int,
    *,
    world: str = "files",
    seconds: float = SECONDS,
    trace: Callable[[str], object] | None = None,
    faults: Sequence[Fault] | None = None,
) -> Outcome:
    """Run the world of a seed, with its own faults or with the given ones."""
    scheduler = Scheduler(seed, trace=trace)
    with simulated_machine(scheduler):
        requests = _run_world(scheduler, world, seconds, faults)
    return Outcome(
        seed=seed,
        failures=tuple(scheduler.failures),
        seconds=scheduler.now,
        digest=scheduler.digest,
        covered=scheduler.covered,
        steps=scheduler.steps,
        requests=requests,
    )


def _run_world(scheduler: Scheduler, name: str, seconds: float, faults: Sequence[Fault] | None) -> int:
    """Run the world, and let nothing of it remain; return the number of successful requests."""
    world: ClusterWorld = WORLDS[name].build(scheduler, seconds, faults)
    world.run()
    for host in world.hosts.values():
        if host.process is not None:
            host.process.kill()
    return sum(world.done.values())


def shrink(seed: int, world: str, seconds: float = SECONDS) -> list[Fault]:
    """Return a schedule with which the seed still fails, and no longer without any one of its faults."""
    faults = schedule(seed, seconds, WORLDS[world].KINDS, WORLDS[world].target)
    size = len(faults)
    while size:
        start = 0
        while start < len(faults):
            fewer = faults[:start] + faults[start + size :]
            if run_seed(seed, world=world, seconds=seconds, faults=fewer).failures:
                faults = fewer
            else:
                start += size
        size //= 2
    return faults


def main() -> int:
    """Run seeds; return 1 if one has failed, or if a long run has left out a fault or a recovery path."""
    budget, only = float(os.environ.get("SECONDS") or 30), os.environ.get("SEED")
    most = int(os.environ.get("COUNT") or 1)
    trace = print if os.environ.get("TRACE") else None
    seconds = SHORT_SECONDS if os.environ.get("SHORT") else SECONDS
    first = int(only) if only else time.time_ns() % 1_000_000_007
    worlds = [os.environ["WORLD"]] if os.environ.get("WORLD") else list(WORLDS)
    count = failed = 0
    virtual, digest, covered = 0.0, 0, Counter[str]()
    begun = time.process_time()
    while count < most if only else time.process_time() - begun < budget:
        seed = first + count
        world = worlds[seed % len(worlds)]
        outcome = run_seed(seed, world=world, seconds=seconds, trace=trace)
        count, virtual, covered = count + 1, virtual + outcome.seconds, covered + outcome.covered
        digest ^= outcome.digest
        if outcome.failures:
            failed += 1
            print(f"seed {outcome.seed} of world {world}: {outcome.failures[0]}", flush=True)
    took = time.process_time() - begun
    for kind, number in sorted(covered.items()):
        print(f"{number:8} {kind}")
    missing = sorted(EXPECTED - covered.keys()) if took >= LONG_RUN and len(worlds) > 1 and seconds == SECONDS else []
    if missing:
        print(f"never exercised: {', '.join(missing)}")
    if failed and only and os.environ.get("SHRINK"):
        print("\n".join(map(str, shrink(first, worlds[first % len(worlds)], seconds))))
    per_hour = f"{virtual / took:,.0f} cluster hours and {3600 * count / took:,.0f} seeds per CPU hour"
    print(f"trace {digest:08x}; from seed {first}: {per_hour}")
    print(f"{count} seeds, {virtual / 3600:.1f} cluster hours, {failed + bool(missing)} failures")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
