"""Delegation tokens from their creation to their end, over the wire, doing the same on any node.

    python -m tests.support.tokens.script --record   # on a real Kafka; writes the golden file
    python -m tests.support.tokens.script --aclog    # on aclog; prints the differences

What differs from run to run is told in words: a token by its name in the script, a time by how far ahead it lies.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from tests.support.kafka.jvm import ROOT
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import free_port
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports, server_properties
from tests.support.tokens.client import SECRET, TokenClient
from tests.support.tokens.steps import OFF_STEPS, STEPS

GOLDEN = ROOT / "tests" / "data" / "kafka-4.3.1-admin" / "tokens.jsonl"

Row: TypeAlias = dict[str, Any]
_REAUTH = "listener.name.sasl_plaintext.scram-sha-512.connections.max.reauth.ms"


def token_properties(ports: Ports, plaintext: int, **changes: str) -> str:
    """Tokens for two hours that are to be renewed each hour; a PLAINTEXT listener; SCRAM-SHA-512 for ten minutes."""
    places = f"SASL_PLAINTEXT://localhost:{ports.broker},PLAINTEXT://localhost:{plaintext}"
    both = f"{places},CONTROLLER://localhost:{ports.controller}"
    protocols = "SASL_PLAINTEXT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    tokens = {
        "delegation_token_secret_key": SECRET,
        "delegation_token_max_lifetime_ms": "7200000",
        "delegation_token_expiry_time_ms": "3600000",
    }
    listeners = {"listeners": both, "advertised_listeners": both, "listener_security_protocol_map": protocols}
    return server_properties(ports, **listeners | tokens | changes) + f"{_REAUTH}=600000\n"


def run(kind: type[AclogNode] | type[RealNode], home: Path) -> Iterator[Row]:
    """Every step on a node with a secret, then some on one without; one row each."""
    for name, secret, steps in (("on", SECRET, STEPS), ("off", "", OFF_STEPS)):
        ports, plaintext = Ports.free(), free_port()
        properties = token_properties(ports, plaintext, delegation_token_secret_key=secret)
        with ExitStack() as stack:
            stack.enter_context(kind(home / name, ports, properties).format())
            client = stack.enter_context(TokenClient(ports, plaintext))
            for number, step in enumerate(steps):
                yield {"step": f"{name} {number:02d} {step.__name__}", "found": _outcome(step, client)}


def _outcome(step: Callable[[TokenClient], Any], client: TokenClient) -> Any:
    return json.loads(json.dumps(step(client)))


def recorded() -> list[Row]:
    """What the real Kafka's run was."""
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def differences(expected: list[Row], actual: list[Row]) -> list[str]:
    """One text for each step with another outcome."""
    assert [row["step"] for row in expected] == [row["step"] for row in actual], "record the golden file again"
    return [
        f"{kafka['step']}\n  kafka: {json.dumps(kafka['found'])}\n  aclog: {json.dumps(got['found'])}"
        for kafka, got in zip(expected, actual, strict=True)
        if kafka != got
    ]


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--aclog", action="store_true")
    flags = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="aclog-tokens-"))
    rows = list(run(AclogNode if flags.aclog else RealNode, home))
    if flags.record:
        GOLDEN.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return
    texts = differences(recorded(), rows)
    print("\n".join(texts))
    sys.exit(f"{len(texts)} differences" if texts else 0)


if __name__ == "__main__":
    main()
