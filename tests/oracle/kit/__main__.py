"""`make oracle KAFKA=x.y.z`: a release of Kafka from 4.0 on beside what aclog assumes of it.

    python -m tests.oracle.kit 4.4.0 --decisions 1000000 --out benchmarks/results/oracle-4.4.0.txt

Fetches the release's jars by Maven, compiles our Java sources against them, and runs every check. Exit code 1 if
anything differs; the seed is printed, and the same seed makes the same cases.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.oracle.kit import apis, codes, creation, decisions, levels, record_schemas, tool_outputs
from tests.oracle.kit.report import report
from tests.oracle.kit.values import Outcome
from tests.support.kafka.jvm import JvmMissingError
from tests.support.kafka.release_facts import ReleaseFacts, ReleaseFactsError, release_facts


def checks(facts: ReleaseFacts, *, decided: int, seed: int, workers: int) -> Mapping[str, Callable[[], Outcome]]:
    """Every check by its name, the quick ones first."""
    return {
        record_schemas.CHECK: partial(record_schemas.check_record_schemas, facts, seed=seed),
        levels.CHECK: partial(levels.check_levels, facts),
        apis.CHECK: partial(apis.check_apis, facts),
        codes.CHECK: partial(codes.check_codes, facts),
        creation.CHECK: partial(creation.check_creation, facts),
        tool_outputs.CHECK: partial(tool_outputs.check_tools, facts, seed=seed),
        decisions.CHECK: partial(
            decisions.check_decisions, facts.version, decisions=decided, seed=seed, workers=workers
        ),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks and report; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    begin = time.perf_counter()
    try:
        facts = release_facts(chosen.version)
        to_run = checks(facts, decided=chosen.decisions, seed=chosen.seed, workers=chosen.workers)
        outcomes = []
        for name, check in to_run.items():
            print(f"{name} ...", file=sys.stderr, flush=True)
            outcomes.append(check())
    except (JvmMissingError, ReleaseFactsError) as error:
        sys.exit(f"oracle: {error}")
    text = report(facts, outcomes, time.perf_counter() - begin)
    print(text, end="")
    if chosen.out is not None:
        chosen.out.write_text(text, encoding="utf-8")
    return 1 if any(outcome.differences for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
