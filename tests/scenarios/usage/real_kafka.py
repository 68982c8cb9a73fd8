"""A real Kafka's own authorizer log, with clients and rules that come and go, held against a brute force.

`python -m tests.scenarios.usage.real_kafka --minutes 60 --out FILE`. The index takes the log every few minutes, while
Kafka writes and rotates it.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from attrs import define, field

from tests.scenarios.usage.brute_force import Judged, judge, lines_of, rules_of
from tests.scenarios.usage.traffic import Traffic, kafka

_SUPER = ("--super-users", "User:admin")


@define
class Campaign:
    """One run."""

    home: Path
    minutes: float
    seed: int
    told: list[str] = field(factory=list, init=False)
    wrong: int = field(default=0, init=False)

    def run(self) -> None:
        """Run Kafka and its clients, and compare."""
        rotated = max(round(self.minutes / 8), 1)
        server = kafka(self.home, rotated_after=rotated)
        with server:
            traffic = Traffic(server.port, Random(self.seed))
            taken = time.monotonic()
            for _ in traffic.run(60 * self.minutes):
                if time.monotonic() - taken > 60 * rotated / 2:
                    self._take(server.log_directory)
                    taken = time.monotonic()
        self._take(server.log_directory)
        lines = lines_of(sorted((self.home / "logs").iterdir()))
        rules = rules_of(sorted(server.log_directory.glob("*.log")))
        found = judge(lines, rules)
        privileged = sum(line.super_user for line in lines)
        self.told.append(
            f"A real Kafka 4.3.1 for {self.minutes:g} minutes: {traffic.sessions:,} sessions of clients, "
            f"{traffic.changes:,} changes of rules, {len(lines):,} lines, {privileged:,} of them a super user's"
        )
        self._say("decisions that Kafka made otherwise than its rules of that time", found.otherwise)
        self._usage(server.log_directory, found, rules)
        self._unused(server.log_directory, found)
        self._denied(server.log_directory, found)

    def _take(self, metadata: Path) -> None:
        # the log is copied first: a file that is rotated while it is read is refused
        copy, log = self.home / "taken", self.home / "metadata"
        for path, source in ((copy, self.home / "logs"), (log, metadata)):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(source, path)
        index = ("--index", self.home / "index")
        self._aclog("usage-index", "--accesses", copy, "--log", log, *index, *_SUPER)

    def _usage(self, log: Path, found: Judged, rules: list) -> None:
        told = self._aclog("usage", "--accesses", self.home / "logs", "--log", log, *_SUPER, "--format", "jsonl")
        counts = Counter({row["id"]: (row["matched"], row["needed"]) for row in map(json.loads, told)})
        wrong = [
            rule["id"] for rule in rules if counts[rule["id"]] != (found.matched[rule["id"]], found.needed[rule["id"]])
        ]
        self._say(f"usage: matched and needed of {len(rules)} lives of rules", len(wrong))

    def _unused(self, log: Path, found: Judged) -> None:
        index = ("--index", self.home / "index", "--days", "1")
        told = [json.loads(line) for line in self._aclog("unused", "--log", log, *index, "--format", "jsonl")]
        wrong = [
            row["id"]
            for row in told
            if (row["matched"], row["needed"]) != (found.matched[row["id"]], found.needed[row["id"]])
            or (row["answer"] == "NEEDED") is not bool(found.needed[row["id"]])
        ]
        self._say(f"unused, by an index that took the log as it grew: {len(told)} rules", len(wrong))

    def _denied(self, log: Path, found: Judged) -> None:
        told = self._aclog("denied", "--accesses", self.home / "logs", "--log", log, *_SUPER, "--format", "jsonl")
        accesses = sum(json.loads(line)["accesses"] for line in told)
        missing = abs(accesses - found.denied_now.total())
        self._say(f"denied: {found.denied_now.total():,} accesses that the rules at the end refuse", missing)

    def _aclog(self, *arguments: object) -> list[str]:
        command = [sys.executable, "-m", "aclog", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout.splitlines()

    def _say(self, what: str, wrong: int) -> None:
        self.told.append(f"{what}: {wrong} wrong")
        self.wrong += wrong


def main() -> int:
    """Run it, print what was compared, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(Path(scratch) / "kafka", asked.minutes, asked.seed)
        campaign.run()
    text = "".join(f"{line}\n" for line in campaign.told)
    sys.stdout.write(text)
    if asked.out is not None:
        asked.out.write_text(text)
    return int(campaign.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
