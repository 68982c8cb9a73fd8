"""Decision points as processes: ours and OPA's, each with a question and a batch in the form that it is fastest in."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from attrs import frozen

from benchmarks.measurement import cpu_seconds
from benchmarks.pdp.estate import Question, Rule
from tests.support.kafka.server import free_port

OPA = Path(__file__).parents[2] / "build" / "opa" / "opa"
_START_S = 30
_POLICY = """package kafka.authz

default allow := false

allow if may(input)

answers := [answer | some question in input.questions; answer := decided(question)]

may(question) if {
    operations := data.rules[question.resource.id][question.subject.id]
    operations[question.action.name] == "allow"
}

decided(question) if may(question)

decided(question) := false if not may(question)
"""
"""Literal rules as a tree of objects: two look-ups a question, where OPA would compare with each rule otherwise."""


@frozen(kw_only=True)
class DecisionPoint:
    """A process that answers over HTTP."""

    port: int
    pid: int
    one: str
    """The path of one question."""
    many: str
    """The path of a batch."""
    wraps: bool
    """Whether questions are an input of OPA's."""

    def cpu_seconds(self) -> float:
        """Return what the process has used so far, the system's part included."""
        return cpu_seconds(self.pid)

    def connect(self) -> HTTPConnection:
        """Return a connection that is kept."""
        return HTTPConnection("127.0.0.1", self.port, timeout=_START_S)

    def body(self, question: Question) -> bytes:
        """Return the body of one question."""
        asked = question.to_dict()
        return json.dumps({"input": asked} if self.wraps else asked).encode()

    def batch_body(self, questions: Sequence[Question]) -> bytes:
        """Return the body of a batch."""
        asked = [question.to_dict() for question in questions]
        return json.dumps({"input": {"questions": asked}} if self.wraps else {"evaluations": asked}).encode()

    def decisions(self, answer: bytes) -> list[bool]:
        """Return what was decided in a batch."""
        found: Any = json.loads(answer)
        return found["result"] if self.wraps else [each["decision"] for each in found["evaluations"]]


def post(connection: HTTPConnection, path: str, body: bytes) -> bytes:
    """Return the answer to a body."""
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    with connection.getresponse() as response:
        answer = response.read()
    if response.status != 200:
        raise AssertionError(f"{path}: {response.status}: {answer[:200]!r}")
    return answer


@contextmanager
def ours(rules: Sequence[Rule], scratch: Path) -> Iterator[DecisionPoint]:
    """Run `aclog pdp` on a log with these rules."""
    port, path, log = free_port(), scratch / "rules.jsonl", scratch / "log"
    path.write_text("".join(f"{json.dumps(_acl(rule))}\n" for rule in rules), encoding="utf-8")
    aclog = (sys.executable, "-m", "aclog")
    subprocess.run([*aclog, "import", str(path), "--log", str(log)], check=True, capture_output=True)
    command = [*aclog, "pdp", "--log", str(log), "--listen", f"127.0.0.1:{port}"]
    with _running(command, port, "/readyz") as pid:
        one = "/access/v1/evaluation"
        yield DecisionPoint(port=port, pid=pid, one=one, many=f"{one}s", wraps=False)


@contextmanager
def opa(rules: Sequence[Rule], scratch: Path) -> Iterator[DecisionPoint]:
    """Run OPA on these rules."""
    port, policy, data = free_port(), scratch / "policy.rego", scratch / "data.json"
    policy.write_text(_POLICY, encoding="utf-8")
    tree: dict[str, dict[str, dict[str, str]]] = {}
    for rule in sorted(rules, key=lambda rule: rule.is_deny):  # a deny is put over an allow
        users = tree.setdefault(rule.topic, {})
        users.setdefault(rule.user, {})[rule.operation] = "deny" if rule.is_deny else "allow"
    data.write_text(json.dumps({"rules": tree}), encoding="utf-8")
    address = f"127.0.0.1:{port}"
    command = [str(OPA), "run", "--server", "--addr", address, "--log-level", "error", "--disable-telemetry"]
    with _running([*command, str(policy), str(data)], port, "/health") as pid:
        root = "/v1/data/kafka/authz"
        yield DecisionPoint(port=port, pid=pid, one=f"{root}/allow", many=f"{root}/answers", wraps=True)


def _acl(rule: Rule) -> dict[str, str]:
    return {
        "resourceType": "TOPIC",
        "resourceName": rule.topic,
        "patternType": "LITERAL",
        "principal": f"User:{rule.user}",
        "host": "*",
        "operation": rule.operation,
        "permissionType": "DENY" if rule.is_deny else "ALLOW",
    }


@contextmanager
def _running(command: Sequence[str], port: int, ready: str) -> Iterator[int]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _wait(process, port, ready)
            yield process.pid
        finally:
            process.terminate()


def _wait(process: "subprocess.Popen[bytes]", port: int, ready: str) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"{process.args!r} ended with {process.returncode}")
        connection = HTTPConnection("127.0.0.1", port, timeout=_START_S)
        try:
            connection.request("GET", ready)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    raise AssertionError(f"{process.args!r} is not ready")
