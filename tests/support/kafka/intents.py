"""Intents on a real Kafka: what stops clients with the least rules, with one of them less, and with one thing denied.

python -m tests.support.kafka.intents        # records all trials on a Kafka of its own; about a minute and a half
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.kafka.clients import run_clients
from tests.support.kafka.intent_trials import KINDS, Trial, trials
from tests.support.kafka.jvm import ROOT
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.server import AdminClient

RECORDED = ROOT / "tests" / "data" / "kafka-4.3.1-clients" / "intents.jsonl"
RUN = "intents"
"""What begins the names of the recorded trials."""
LOADER = {"case": RUN, "client": "produce", "user": RUN, "output": f"{RUN}-in"}
"""Puts a record where the others read."""


def outcomes(kafka: KafkaQuorum) -> list[dict[str, object]]:
    """Try all clients; a row for each trial, its `error` as run_clients has it."""
    tried = list(trials(KINDS, RUN))
    with AdminClient(kafka.nodes[0].ports.broker) as admin:
        _prepare(admin, tried)
    [stopped] = run_clients(kafka.bootstrap, [LOADER]).values()
    assert not stopped
    errors = run_clients(kafka.bootstrap, [trial.client for trial in tried])
    return [row(trial) | {"error": errors[trial.client["case"]]} for trial in tried]


def row(trial: Trial) -> dict[str, object]:
    """What is recorded of a trial beside its error."""
    rules = [f"{rule['permissionType']} {rule['operation']} {_pattern(rule)}" for rule in trial.rules]
    return {"trial": trial.name, "rules": rules}


def recorded() -> list[dict[str, object]]:
    """What the real Kafka's clients met."""
    return [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


def _pattern(rule: dict[str, str]) -> str:
    return f"{rule['resourceType']} {rule['patternType']} {rule['resourceName']}"


def _rules(tried: Sequence[Trial]) -> list[dict[str, str]]:
    write = {**tried[0].rules[0], "resourceType": "TOPIC", "resourceName": LOADER["output"], "operation": "WRITE"}
    own = {**write, "patternType": "LITERAL", "principal": f"User:{LOADER['user']}"}
    return [own, *(rule for trial in tried for rule in trial.rules)]


def _prepare(admin: AdminClient, tried: Sequence[Trial]) -> None:
    """Make users, rules and topics."""
    users = [LOADER["user"], *(trial.client["user"] for trial in tried)]
    scram = {"mechanism": "SCRAM-SHA-256", "iterations": 4096}
    admin("alterScram", users=[{"user": user, "password": f"{user}-secret", **scram} for user in users])
    admin("createAcls", acls=_rules(tried))
    for topic in sorted({trial.client[key] for trial in tried for key in ("input", "output")}):
        admin("createTopic", topic=topic)


def main() -> None:
    """Record."""
    with KafkaQuorum(Path(tempfile.mkdtemp(prefix="aclog-intents-")), nodes=1) as kafka:
        results = outcomes(kafka)
    RECORDED.parent.mkdir(parents=True, exist_ok=True)
    RECORDED.write_text("".join(f"{json.dumps(each)}\n" for each in results), encoding="utf-8")
    print(f"{len(results)} trials, {sum(not each['error'] for each in results)} worked: {RECORDED}")


if __name__ == "__main__":
    main()
