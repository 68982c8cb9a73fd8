"""Many histories of rules that come and go, each answer of `aclog unused` held against the engine over all accesses.

python -m tests.usage.unused.campaign --histories 200 [--first SEED] [--out FILE]
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from aclog.usage.unused import Answer
from aclog.usage.unused_report import UnusedReport
from tests.usage.unused import test_unused_report as histories

KINDS: dict[str, Callable[[int, Path], None]] = {
    "a log, days in any order, each twice": histories.test_a_log_of_rules_that_come_and_go,
    "a log that grows with the days": histories.test_a_log_that_grows_with_the_days,
    "states without ids, day by day": histories.test_states_without_ids,
    "files of the past taken later": histories.test_files_of_the_past_taken_later,
    "allow.everyone.if.no.acl.found": histories.test_allow_everyone_if_no_acl_found,
}


def counting(found: Counter[str]) -> None:
    """Count the answers of every report from now on."""
    of = UnusedReport.of

    def counted(*arguments) -> UnusedReport:
        report = of(*arguments)
        judgement, removable = report.unused.judgement, report.unused.removable
        for answer in Answer:
            found[answer] += int(judgement.is_(answer).sum())
        found["reports"] += 1
        found["with a hole"] += bool(report.unused.silences)
        found["can go"] += int(removable.sum())
        found["unused, but must stay"] += int((judgement.unused & ~removable).sum())
        return report

    UnusedReport.of = counted


def main() -> int:
    """Run the histories; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200, help="of each kind")
    parser.add_argument("--first", type=int, default=1_000, help="the first seed")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines, wrong = [], 0
    for kind, check in KINDS.items():
        found: Counter[str] = Counter()
        of = UnusedReport.of
        counting(found)
        for seed in range(given.first, given.first + given.histories):
            with tempfile.TemporaryDirectory() as directory:
                try:
                    check(seed, Path(directory))
                except AssertionError as error:
                    wrong += 1
                    print(f"{kind}: seed {seed}: {error}", file=sys.stderr)
        UnusedReport.of = of
        counts = ", ".join(f"{what.lower().replace('_', ' ')} {count:,}" for what, count in found.items())
        lines.append(f"{kind}: {given.histories:,} histories: {counts}")
    text = "\n".join([*lines, f"wrong: {wrong}", ""])
    print(text, end="")
    if given.out is not None:
        given.out.write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
