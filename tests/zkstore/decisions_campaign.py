"""`make zookeeper-decisions`: 100,000 decisions equal those of the real AclAuthorizer of Kafka 3.9.

    python -m tests.zkstore.decisions_campaign --decisions 100000 --out benchmarks/results/zookeeper-decisions.txt

Each set of ACLs is written by both, and each reads what the other wrote; then both delete a third of it. The seed is
printed; it reproduces the ACLs and requests.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.support.kafka.jvm import KAFKA_39
from tests.support.zookeeper.differential import compare
from tests.support.zookeeper.real_acl_authorizer import RealAclAuthorizer
from tests.support.zookeeper.server import ZooKeeperServer

REQUESTS = 2000
"""Requests for each set of ACLs."""


def run(seed: int, decisions: int) -> Counter[str]:
    """Compare set after set until there are enough decisions; an AssertionError shows differences."""
    random, seen = Random(seed), Counter[str]()
    with (
        tempfile.TemporaryDirectory() as home,
        ZooKeeperServer(Path(home) / "zookeeper") as server,
        RealAclAuthorizer() as real,
    ):
        while decided(seen) < decisions:
            chroot = f"{server.connect}/{seen['estates']}"
            seen += compare(chroot, real, random, requests=min(REQUESTS, decisions - decided(seen)))
    return seen


def decided(seen: Counter[str]) -> int:
    """Return the number of compared decisions."""
    return sum(seen[letter] for letter in "ADE")


def report(seen: Counter[str], seed: int, seconds: float) -> str:
    """Return the figures as text."""
    return f"""\
aclog vs. kafka.security.authorizer.AclAuthorizer {KAFKA_39} on one ZooKeeper, seed {seed}
decisions               {decided(seen):>9,}
  allowed               {seen["A"]:>9,}
  denied                {seen["D"]:>9,}
  both throw            {seen["E"]:>9,}
  of authorizeByResourceType {seen["byResourceType"]:>4,}
differing                       0
states of ACLs          {seen["estates"]:>9,}
  ACLs in them          {seen["rules"]:>9,}
seconds                 {seconds:>9.0f}
"""


def main() -> None:
    """Run the campaign, and print and keep its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(f"seed {options.seed}", file=sys.stderr)
    begin = time.monotonic()
    text = report(run(options.seed, options.decisions), options.seed, time.monotonic() - begin)
    print(text, end="")
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
