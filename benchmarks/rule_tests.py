"""`aclog test`: Kafka's recorded answers, many requests over many rules, a proof over all of them, and mutants.

    python -m benchmarks.rule_tests --out benchmarks/results/rule-tests.txt

The golden rows are decided with the rule that Kafka names. What reads files is timed by itself.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeVar

from aclog.analysis.policy import Policy
from aclog.analysis.regions import REQUESTED, Request
from aclog.analysis.rule_tests.case import Case, CaseSubject, parse_resource, with_ids
from aclog.analysis.rule_tests.expectations import Cannot, CanOnly, Decides
from aclog.analysis.rule_tests.recording import recorded
from aclog.analysis.rule_tests.results import mutation_results
from aclog.authorizer.acl import FileOrigin, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.sources.rule_tests import read_test_file
from tests.support.models.golden import NUMBERS, load

_PLACE = FileOrigin(file="benchmark", line=1)
_Value = TypeVar("_Value")


def timed(call: Callable[[], _Value]) -> tuple[float, _Value]:
    """Return seconds, and what a call returns."""
    begin = time.perf_counter()
    found = call()
    return time.perf_counter() - begin, found


def policy_of(rules: list[StandardAcl], settings: Settings) -> Policy:
    """Return a policy of rules without ids."""
    return Policy(AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules), settings)


def run(cases: list[Case], policy: Policy) -> int:
    """Return how many cases do not hold."""
    return sum(not case.run(policy).passed for case in cases)


def golden() -> Iterator[str]:
    """Yield the figures of Kafka's recorded answers to concrete requests."""
    reading = running = 0.0
    rows = failed = 0
    with TemporaryDirectory() as home:
        for number in NUMBERS:
            estate = load(number)
            lines = [
                json.dumps(
                    {
                        "principal": request.principal,
                        "host": request.host,
                        "operation": AclOperation(request.operation).name,
                        "resourceType": ResourceType(request.resource_type).name,
                        "resourceName": request.resource_name,
                        "decision": "ALLOWED" if answer.letter == "A" else "DENIED",
                        "rule": answer.rule,
                    }
                )
                for request, answer in zip(estate.requests, estate.answers, strict=True)
                if request.resource_name is not None and request.operation > AclOperation.ALL and answer.letter in "AD"
            ]
            if not lines:
                continue
            path = Path(home) / f"{number}.jsonl"
            path.write_text("\n".join(lines), encoding="utf-8")
            policy = policy_of(list(estate.acls), Settings.of_texts(estate.super_users, estate.allow_everyone))
            seconds, file = timed(lambda path=path: read_test_file(str(path)))
            reading += seconds
            seconds, wrong = timed(lambda file=file, policy=policy: run(list(file.cases), policy))
            running += seconds
            rows, failed = rows + len(lines), failed + wrong
    seconds = f"read in {reading:.1f} s, decided in {running:.1f} s"
    yield f"golden rows          {rows:,}, of which fail {failed:,}: {seconds}"


def large() -> Iterator[str]:
    """Yield the figures of 10,000 requests and of a proof over 100,000 rules."""
    random = Random(7)
    rules = list(dict.fromkeys(random_rule(random, 5000, 800, 400) for _ in range(105000)))[:100_000]
    planted = StandardAcl(
        resource_type=ResourceType.TOPIC, resource_name="pii.card", pattern_type=PatternType.LITERAL,
        principal="User:u7", host="*", operation=AclOperation.READ, permission_type=AclPermissionType.ALLOW,
    )  # fmt: skip
    loading, policy = timed(lambda: policy_of([*rules, planted], Settings()))
    requests = [
        Request(
            principal=random.choice([rule.principal, f"User:u{random.randrange(5000)}"]),
            host="10.0.0.1",
            operation=AclOperation.READ,
            resource_type=ResourceType.TOPIC,
            resource_name=rule.resource_name,
        )
        for rule in random.sample(rules, 10_000)
    ]
    cases: list[Case] = [Decides(test="t", origin=_PLACE, request=each, decision="ALLOWED") for each in requests]
    seconds, _ = timed(lambda: run(cases, policy))
    yield f"100,000 rules        loaded in {loading:.2f} s; 10,000 requests decided in {seconds:.2f} s"
    nobody = Cannot(
        test="t", origin=_PLACE, subject=CaseSubject(principal="User:*"), operations=REQUESTED,
        resource=parse_resource("topic:pii.*"),
    )  # fmt: skip
    proof, outcome = timed(lambda: nobody.run(policy))
    first = outcome.failures[0].actual
    yield f"  nobody can, pii.*  refuted in {proof * 1000:.1f} ms by {len(outcome.failures)} region: {first}"


def random_rule(random: Random, users: int, teams: int, topics: int) -> StandardAcl:
    """Return one rule of a large estate."""
    prefixed = random.random() < 0.3
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=f"team{random.randrange(teams)}.t{random.randrange(topics)}{'.' if prefixed else ''}",
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=f"User:u{random.randrange(users)}" if random.random() < 0.98 else "User:*",
        host="*" if random.random() < 0.8 else f"10.0.{random.randrange(9)}.{random.randrange(9)}",
        operation=random.choice([AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]),
        permission_type=AclPermissionType.ALLOW if random.random() < 0.95 else AclPermissionType.DENY,
    )


def mutants() -> Iterator[str]:
    """Yield the figures of all mutants of 2,000 rules, judged by what was recorded of them."""
    random = Random(3)
    rules = list({random_rule(random, 150, 40, 40): None for _ in range(2_000)})
    policy = with_ids(policy_of(rules, Settings()))
    cases = [CanOnly(test="t", origin=_PLACE, subject=each.subject, listed=each.listed) for each in recorded(policy)]
    seconds, results = timed(lambda: list(mutation_results(policy, cases)))
    counts = Counter("equivalent" if each is None else "killed" if each.killed else "survived" for each in results)
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    yield f"mutants              {len(results):,} of {len(rules):,} rules in {seconds:.1f} s: {listed}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    lines = [line for part in (golden, large, mutants) for line in part()]
    text = "\n".join(["Tests of rules (python -m benchmarks.rule_tests)", "", *lines, ""])
    print(text)
    if chosen.out is not None:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
