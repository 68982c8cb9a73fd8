"""Grants on a real Kafka: its own clients work with what `aclog grant` adds, Streams too; not before, and not after."""

from uuid import uuid4

import pytest

from aclog.analysis.intents import Intent
from tests.support.cli.command import aclog
from tests.support.kafka.clients import run_clients
from tests.support.kafka.intent_trials import KINDS, Trial, trials
from tests.support.kafka.server import ADMIN, AdminClient

TRIED = ("produce", "consume", "transact, group", "stream, exactly once", "admin")
FLAGS = {
    "output": "--topic",
    "input": "--topic",
    "topic": "--topic",
    "group": "--group",
    "transaction": "--transactional-id",
}


@pytest.fixture
def place(topic_kafka, tmp_path):
    """The flags of the Kafka."""
    login = tmp_path / "admin.properties"
    login.write_text("".join(f"{key}={value}\n".replace("{user}", "admin") for key, value in ADMIN.items()))
    return "--bootstrap-server", topic_kafka.bootstrap, "--command-config", login


def questions(kind: str, trial: Trial) -> list[tuple[str, ...]]:
    """The command lines that grant what a client needs."""
    chosen, names = KINDS[kind], trial.client
    flags = dict(FLAGS)
    if chosen.intent is Intent.STREAM:
        flags |= {"input": "--input-topic", "output": "--output-topic"}
    asked = ("--principal", f"User:{names['user']}", "--intent")
    named = (word for key in chosen.named for word in (flags[key], names[key]))
    found = [(*asked, str(chosen.intent), *named)]
    if chosen.beside:  # its input, as its group reads it
        found.append((*asked, "consume", "--topic", names["input"], "--group", names["group"]))
    return found


@pytest.mark.server
@pytest.mark.slow(12)
def test_clients_work_by_what_is_granted_and_are_refused_once_it_is_revoked(topic_kafka, place):
    run = f"grant-{uuid4().hex[:8]}"
    tried = {each.name.removesuffix(": with all rules"): each for each in trials(TRIED, run) if "with all" in each.name}
    clients = {kind: trial.client for kind, trial in tried.items()}
    loader = {"case": run, "client": "produce", "user": run, "output": f"{run}-in"}
    asked = [question for kind, trial in tried.items() for question in questions(kind, trial)]
    asked.append(("--principal", f"User:{run}", "--intent", "produce", "--topic", loader["output"]))
    users = [run, *(client["user"] for client in clients.values())]
    with AdminClient(topic_kafka.nodes[0].ports.broker) as admin:
        scram = {"mechanism": "SCRAM-SHA-256", "iterations": 4096}
        admin("alterScram", users=[{"user": user, "password": f"{user}-secret", **scram} for user in users])
        for topic in sorted({client[key] for client in clients.values() for key in ("input", "output")}):
            admin("createTopic", topic=topic)
    for question in asked:
        granted = aclog("grant", *place, *question, "--yes").ok()
        assert "allow.everyone" not in granted.err, "a real Kafka tells its settings"
    works = run_clients(topic_kafka.bootstrap, [loader, *clients.values()])
    assert works == dict.fromkeys(works, "")
    for question in asked:
        aclog("revoke", *place, *question, "--yes").ok()
    # An application counts as working once its output is there, as it is by now.
    refused = [loader, *(client for kind, client in clients.items() if not kind.startswith("stream"))]
    errors = run_clients(topic_kafka.bootstrap, refused)
    assert {case: error for case, error in errors.items() if not error.startswith("refused: ")} == {}
    for user in users:
        assert aclog("acls", "list", *place, "--principal", f"User:{user}", "--format", "jsonl").ok().lines == []
