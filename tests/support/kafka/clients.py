"""Kafka's own clients, many at once in one JVM, each of which does what clients of its kind do (ClientPipe.java)."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from tempfile import TemporaryDirectory

from tests.support.kafka.jvm import class_path, compiled, java_command, streams_jar

LOGIN = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256")
PATIENCE = ("max.block.ms=60000", "default.api.timeout.ms=60000", "request.timeout.ms=60000")


def run_clients(bootstrap: str, clients: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Run each to its end; by its `case` what stopped it: empty, `refused: ...`, or any other exception.

    A client has a `case`, what it is (`client`: produce, consume, transact, stream, admin), a `user`, whose password
    for SCRAM is the name and `-secret`, and what ClientPipe.java reads of its kind: `input`, `output`, `group`...
    """
    requests = [json.dumps(client) for client in clients]
    with TemporaryDirectory() as scratch:  # Kafka Streams leaves the directories of its state
        done = _run(bootstrap, requests, ("-Xmx512m", f"-Djava.io.tmpdir={scratch}"))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests), f"the clients' JVM died: {done.stderr[-4000:]}"
    return {answer["case"]: answer["error"] for answer in answers}


def _run(bootstrap: str, requests: Sequence[str], options: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    servers = f"bootstrap.servers={bootstrap}"
    command = java_command("aclog.ClientPipe", servers, *LOGIN, *PATIENCE, options=options)
    paths = command.index("-cp") + 1
    streams = streams_jar()
    own = compiled("classes-clients", ("tests/jvm/java-clients/*.java",), f"{class_path()}{os.pathsep}{streams}")
    command[paths] = os.pathsep.join((command[paths], str(streams), str(own)))
    return subprocess.run(
        command, input="\n".join(requests) + "\n", capture_output=True, encoding="utf-8", timeout=300, check=False
    )
