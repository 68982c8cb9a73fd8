"""The same script of admin requests against any node; what a real Kafka 4.3.1 answered to it is kept in tests/data.

    python -m tests.support.admin.script --record             # asks a real Kafka and writes the golden file
    python -m tests.support.admin.script --aclog [--home DIR] # asks aclog and prints the differences

A step's answers are whole responses in a form that can be compared: ports, ids, offsets and times aside, what has no
order sorted. The steps are in admin_steps.py.
"""

import argparse
import json
import struct
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.support.admin.answers import comparable
from tests.support.admin.requests import WRITES, Send, Step
from tests.support.admin.steps import steps
from tests.support.kafka.jvm import ROOT
from tests.support.kafka.real_node import RealNode
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.barrier import Barrier
from tests.support.nodes.server_properties import Ports, password
from tests.support.nodes.wire_client import (
    ClosedError,
    NoAnswerError,
    RefusedError,
    WireClient,
    decode_response,
    request_header,
)

GOLDEN = ROOT / "tests" / "data" / "kafka-4.3.1-admin" / "answers.jsonl"

ANSWER_SECONDS = 60.0
Answers = list[dict[str, Any]]


class Script:
    """One run of the steps against one node."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._pool: dict[tuple[str, str], WireClient] = {}
        self._barrier = Barrier(ports)
        self._dead = ""
        """Why the rest of the script is not worth asking: the node does not answer what it must."""
        self._unseen = False

    def run(self, script: Iterable[Step]) -> Answers:
        """Every step in order; what was answered, one object a step."""
        try:
            return [self._answer(number, step) for number, step in enumerate(script, 1)]
        finally:
            self._barrier.close()
            for client in self._pool.values():
                client.close()

    def _answer(self, number: int, step: Step) -> dict[str, Any]:
        about = {"step": f"{number:03d} {step.name}", "to": step.listener, "user": step.user}
        if self._dead:
            return about | {"answers": [f"not asked: {self._dead}"]}
        try:
            if self._unseen and not step.only_writes:
                self._barrier.wait()
                self._unseen = False
            answers = self._login(step) if step.scram else self._exchange(step)
        except (AssertionError, ClosedError, NoAnswerError, OSError, RefusedError) as error:
            self._dead = f"{about['step']}: {error!r}"
            answers = [f"not answered: {error!r}"]
        self._unseen |= any(send.api_key in WRITES for send in step.sends)
        return about | {"answers": answers}

    def _exchange(self, step: Step) -> list[Any]:
        client, answers = self._client(step), []
        for send in step.sends:
            try:
                answers.append(self._ask(client, send))
            except (ClosedError, NoAnswerError) as error:
                answers.append("closed" if isinstance(error, ClosedError) else "no answer")
                self._drop(client)
                return answers
        if step.user is None:
            client.close()
        return answers

    def _ask(self, client: WireClient, send: Send) -> Any:
        client.correlation_id += 1
        if send.raw is not None:
            client.write(send.raw)
        elif send.frame is not None:
            client.write(struct.pack(">i", len(send.frame)) + send.frame)
        else:
            head = request_header(send.api_key, send.version, client.correlation_id, flexible=send.flexible)
            client.write(struct.pack(">i", len(head) + len(send.body)) + head + send.body)
        answer = client.read_frame()
        if send.decode_as is None:
            return f"{len(answer)} bytes"
        try:
            correlation_id, message, rest = decode_response(*send.decode_as, answer)
        except Exception as error:  # noqa: BLE001  (kio has many; the answer is then what it is)
            return f"undecodable: {error!r} {answer.hex()}"
        assert correlation_id == client.correlation_id or send.frame, "an answer to another request"
        fields = comparable(send.decode_as[0], message, self._ports)
        if send.inner and message.response_data is not None:
            _, inner, _ = decode_response(*send.inner, message.response_data)
            fields["response_data"] = comparable(send.inner[0], inner, self._ports)
        return fields if not rest else [fields, f"{len(rest)} bytes too many"]

    def _client(self, step: Step) -> WireClient:
        port = self._ports.broker if step.listener == "broker" else self._ports.controller
        if step.user is None:
            return WireClient(port, ANSWER_SECONDS)
        key = (step.listener, step.user)
        if key not in self._pool:
            self._pool[key] = WireClient(port, ANSWER_SECONDS).plain(step.user, password(step.user))
        return self._pool[key]

    def _drop(self, client: WireClient) -> None:
        client.close()
        self._pool = {key: other for key, other in self._pool.items() if other is not client}

    def _login(self, step: Step) -> list[Any]:
        assert step.scram
        mechanism, user, secret = step.scram
        try:
            with WireClient(self._ports.broker) as client:
                client.scram(mechanism, user, secret)
                return [comparable(18, client.ask(18, 0), self._ports)]
        except RefusedError as error:
            return [str(error)]
        except ClosedError:
            return ["closed"]


def run_script(ports: Ports, only: Sequence[Step] | None = None) -> Answers:
    """What a node answers to all steps."""
    return Script(ports).run(steps() if only is None else only)


def recorded() -> Answers:
    """What the real Kafka answered when the golden file was made."""
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").split("\n") if line]


def differences(expected: Answers, actual: Answers) -> list[str]:
    """One text for each step that was answered otherwise: the step, and both answers."""
    texts = []
    for kafka, got in zip(expected, actual, strict=True):
        if str(got["answers"][0]).startswith("not asked"):
            break
        if as_lines([kafka]) != as_lines([got]):
            assert kafka["step"] == got["step"], "the golden file belongs to another script: record it again"
            both = [json.dumps(side["answers"], ensure_ascii=False)[:3000] for side in (kafka, got)]
            texts.append(
                f"{kafka['step']} ({kafka['user']} to the {kafka['to']})\n  kafka: {both[0]}\n  aclog: {both[1]}"
            )
    return texts


def as_lines(answers: Answers) -> list[str]:
    """One line of JSON a step."""
    return [json.dumps(answer, ensure_ascii=False) for answer in answers]


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--aclog", action="store_true")
    parser.add_argument("--home", type=Path)
    flags = parser.parse_args()
    home = flags.home or Path(tempfile.mkdtemp(prefix="aclog-admin-script-"))
    make = AclogNode if flags.aclog else RealNode
    ports, begun = Ports.free(), time.monotonic()
    with make(home, ports).format() as node:
        started = time.monotonic()
        answers = run_script(ports)
        seconds = [f"{part:.1f} s" for part in (started - begun, time.monotonic() - started)]
        print(f"{node.kind}: {len(answers)} steps; start {seconds[0]}, script {seconds[1]}")
        text = "".join(f"{line}\n" for line in as_lines(answers))
        (home / "answers.jsonl").write_text(text, encoding="utf-8")
        if flags.record:
            GOLDEN.parent.mkdir(parents=True, exist_ok=True)
            GOLDEN.write_text(text, encoding="utf-8")
        elif texts := differences(recorded(), answers):
            print("\n".join(texts))
            sys.exit(f"{len(texts)} steps differ; answers and output in {home}")


if __name__ == "__main__":
    main()
