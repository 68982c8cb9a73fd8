"""Ask a real Kafka what it makes of configurations, JAAS lines and kafka-storage's flags, all in one JVM."""

import json
from collections.abc import Sequence

from tests.support.kafka.jvm import KAFKA_VERSION, ROOT, run_tool

SOURCE = ROOT / "tests" / "nodes" / "config" / "KafkaConfigs.java"


def ask(questions: Sequence[dict], version: str = KAFKA_VERSION) -> list[dict]:
    """The answers, in order: {"ok": ...} or {"error": ...}; see the Java source for the questions."""
    done = run_tool(str(SOURCE), version=version, stdin=json.dumps(questions))
    assert done.exit_code == 0, done.err[-4000:]
    return json.loads(done.out)
