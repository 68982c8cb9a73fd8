"""`aclog apply` on a real Kafka: others write, rights are taken away, brokers, leaders or apply itself are killed.

`python -m tests.scenarios.planning.kafka_faults --rounds 60 --nodes 3 --out FILE`. Each round plans a random change of
rules under names of its own, where others have rules too, and lets one thing go wrong while it is applied. Then it is
applied to the end, and the log that Kafka's controllers have written is read: it must hold the plan's steps and what
the others did, and nothing else; no request may be denied or allowed for a moment that the plan does not list; and
what is there in the end is what was wanted, and what is the others'.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from unittest import mock

from aclog.authorizer.settings import Settings
from aclog.targets import cluster
from tests.scenarios.planning.kafka_round import AT_ONCE, RIGHTS, Round
from tests.scenarios.planning.zookeeper_kafka import ZooKeeperCluster
from tests.support.kafka.jvm import KAFKA_39, KAFKA_VERSION
from tests.support.kafka.quorum import KafkaQuorum

ALONE = ("nothing", "another elsewhere", "a rule changed before", "the same by another", "rights taken", "apply killed")
HARMED = ("broker killed", "leader killed", "read while a broker restarts")
FAULTS = (*ALONE, *HARMED)


def run(
    home: Path, *, nodes: int, rounds: int, seed: int, faults: tuple[str, ...] = FAULTS, open_by_default: bool = False
) -> str:
    """A whole campaign; returns what to report, or raises AssertionError for what must not be."""
    changes = {"allow.everyone.if.no.acl.found": "true"} if open_by_default else {}
    with KafkaQuorum(home / "kafka", nodes=nodes, changes=changes) as kafka:
        report = _rounds(kafka, home, rounds, seed, faults, open_by_default)
    return f"""\
Kafka {KAFKA_VERSION}, {nodes} nodes, one change in three by --bootstrap-controller; {report}
in Kafka's log: every step once, what others did, and nothing else; denies first and last; each end right"""


def run_with_zookeeper(home: Path, *, rounds: int, seed: int, open_by_default: bool = False) -> str:
    """The same on a Kafka 3.9 with ZooKeeper, by its admin API; of which only the ends can be judged."""
    changes = {"allow.everyone.if.no.acl.found": "true"} if open_by_default else {}
    with ZooKeeperCluster(home / "kafka", **changes) as kafka:
        report = _rounds(kafka, home, rounds, seed, (*ALONE, "broker killed"), open_by_default)
    return f"Kafka {KAFKA_39} with ZooKeeper, one node; {report}\neach end right"


def _rounds(kafka, home: Path, rounds: int, seed: int, faults: tuple[str, ...], open_by_default: bool) -> str:
    begun, seen, total = time.monotonic(), Counter[str](), Counter[str]()
    with mock.patch.multiple(cluster, MOST_ADDED=AT_ONCE, MOST_REMOVED=AT_ONCE):
        for number in range(rounds):
            fault = faults[number % len(faults)]
            by_controllers = bool(kafka.controllers) and number // len(faults) % 3 == 2
            one = Round(kafka, home, number, Random(f"{seed} {number}"), fault, open_by_default, by_controllers)
            if number == 0:
                one.by_another(adds=RIGHTS)
                # A Kafka hides what is set, super.users here, and tells what is not.
                assert one.told_settings() == (None if open_by_default else Settings())
            one.run()
            seen[fault] += 1
            total.update(applies=one.applies, refused=one.refused, midway=one.midway, read=one.read)
    told = ", ".join(f"{fault} {count}" for fault, count in seen.items())
    default = "open" if open_by_default else "closed"
    return f"""\
names {default} by default, seed {seed}, {rounds} rounds, {time.monotonic() - begun:.0f} s
{told}
applies: {total["applies"]}; refused or stopped: {total["refused"]}; gone on after some of the steps: {total["midway"]}
while brokers restarted, the state was read {total["read"]} times, and was each time what there is"""


def main() -> None:
    """The campaign from a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=64)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    sizes = {"rounds": given.rounds, "seed": given.seed}
    reports = []
    for one, open_by_default in itertools.product((partial(run, nodes=given.nodes), run_with_zookeeper), (False, True)):
        with tempfile.TemporaryDirectory() as home:
            reports.append(one(Path(home), **sizes, open_by_default=open_by_default))
        sys.stdout.write(f"{reports[-1]}\n")
    if given.out:
        given.out.write_text("\n\n".join(reports) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
