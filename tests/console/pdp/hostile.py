"""Hostile bodies, sent to a decision point in a process of its own that allows nobody anything; kept as figures.

    python -m tests.console.pdp.hostile --bodies 100000 --out benchmarks/results/pdp-hostile.txt

None may be answered with a decision that is true, or fail it (a status of 500 or more, a connection that ends), and
what it holds in memory must not grow with them.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.kafka.server import free_port
from tests.support.processes.waiting import wait_until

_PATHS = (
    "/access/v1/evaluation",
    "/access/v1/evaluations",
    *(f"/access/v1/search/{kind}" for kind in ("subject", "resource", "action")),
    "/v1/data/kafka/authz",
    "/v1/data/kafka/authz/allow",
)
_KEYS = (
    "subject", "action", "resource", "type", "id", "name", "properties", "evaluations", "context", "options", "page",
    "input", "limit", "token", "as_of", "host", "ip", "evaluations_semantic", "requestContext", "resourcePattern",
    "principal", "principalType", "patternType", "resourceType", "operation", "clientAddress", "__class__", "", "\x00",
)  # fmt: skip
_TEXTS = (
    "User", "a", "topic", "READ", "TOPIC", "LITERAL", "*", "User:*", "", "\x00", "\u202e", "\U0001f600", "a" * 3_000,
    "0", "now", "latest", "yesterday", "execute_all", "bnVsbA==", "NaN", "::1", "%s%n", "../..", "{id}", "<script>",
)  # fmt: skip
_NUMBERS = (0, -1, 1, 1e308, 2**63, 10**400, -0.0, 1.5)
_FORMS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"\\ud800",
    b"\\u0000",
    b"1e999",
    b"NaN",
    b"\xff",
    b"\xef\xbb\xbf",
    b"null",
)


def hostile_body(draw: random.Random) -> bytes:
    """A body: a question with parts that are of another type, missing, huge, deep, twice, or no JSON."""
    kind = draw.randrange(100)
    if kind == 0:
        return draw.choice((b"[", b'{"a":', b'{"evaluations":[')) * draw.randrange(1, 200_000)
    if kind == 1:
        return json.dumps({"evaluations": [{}] * draw.randrange(1, 11_000)}).encode()
    if kind == 2:
        return draw.randbytes(draw.randrange(3_000))
    data = bytearray(json.dumps(_question(draw)).encode())
    for _ in range(draw.choice((0, 0, 0, 1, 2, 8))):
        at = draw.randrange(len(data) + 1)
        data[at : at + draw.choice((0, 1, 5))] = draw.choice(_FORMS)
    return bytes(data)


def _question(draw: random.Random) -> dict[str, object]:
    parts: dict[str, Callable[[], object]] = {
        "subject": lambda: {"type": "User", "id": draw.choice(_TEXTS), **_odd(draw)},
        "action": lambda: {"name": draw.choice(_TEXTS), **_odd(draw)},
        "resource": lambda: {"type": "topic", "id": draw.choice(_TEXTS), **_odd(draw)},
        "context": lambda: {draw.choice(("as_of", "host", "ip")): _value(draw, 1)},
        "page": lambda: {draw.choice(("limit", "token")): _value(draw, 1)},
        "options": lambda: {"evaluations_semantic": _value(draw, 1)},
        "evaluations": lambda: [_odd(draw) for _ in range(draw.randrange(4))],
        "input": lambda: _question(draw) if draw.random() < 0.5 else _value(draw, 4),
    }
    chosen = {"subject", "action", "resource", *draw.sample(sorted(parts), draw.randrange(4))}
    return {key: make() if draw.random() < 0.8 else _value(draw, 3) for key, make in parts.items() if key in chosen}


def _odd(draw: random.Random) -> dict[str, object]:
    return {draw.choice(_KEYS): _value(draw, 3)} if draw.random() < 0.4 else {}


def _value(draw: random.Random, depth: int) -> object:
    kind = draw.randrange(7 if depth else 4)
    if kind < 4:
        return (None, draw.random() < 0.5, draw.choice(_NUMBERS), draw.choice(_TEXTS))[kind]
    if kind == 4:
        return [_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {draw.choice(_KEYS): _value(draw, depth - 1) for _ in range(draw.randrange(4))}


def memory_mib(pid: int) -> float:
    """What a process holds in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def attack(port: int, pid: int, bodies: int) -> tuple[Counter[str], float, float]:
    """Send bodies; return statuses, and the memory after a tenth of them and at the end."""
    draw, found, early = random.Random(7), Counter[str](), 0.0
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    for number in range(bodies):
        path, body = draw.choice(_PATHS), hostile_body(draw)
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        with connection.getresponse() as response:
            answer = response.read()
        if response.status >= 500 or any(
            told in answer for told in (b'"decision":true', b'"allow":true', b'"result":true')
        ):
            raise AssertionError(f"{path}: {response.status}: {body[:500]!r}: {answer[:300]!r}")
        found[str(response.status)] += 1
        if number == bodies // 10:
            early = memory_mib(pid)
    connection.close()
    return found, early, memory_mib(pid)


def run(bodies: int, scratch: Path) -> str:
    """Attack a decision point without rules; return what came of it."""
    port, rules = free_port(), scratch / "rules"
    rules.write_text("")
    audit = ("--audit", str(scratch / "audit"), "--decision-log", str(scratch / "decisions"))
    aclog = (sys.executable, "-m", "aclog")
    subprocess.run([*aclog, "import", str(rules), "--log", str(scratch / "log")], check=True, capture_output=True)
    command = [*aclog, "pdp", "--log", str(scratch / "log"), "--listen", f"127.0.0.1:{port}", *audit]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: _is_ready(port), "ready")
            found, early, late = attack(port, process.pid, bodies)
        finally:
            process.terminate()
        told = process.stderr.read() if process.stderr is not None else ""
    lines = sum(len([json.loads(line) for line in (scratch / name).open()]) for name in ("audit", "decisions"))
    statuses = ", ".join(f"{count:,} answered {status}" for status, count in sorted(found.items()))
    if told or late > 2 * early + 100:
        raise AssertionError(f"memory {early:.0f} MiB, then {late:.0f}; it said {told[:500]!r}")
    return (
        f"{bodies:,} hostile bodies: {statuses}; none true, none failed it; {lines:,} lines of JSON written; "
        f"memory {early:.0f} MiB after a tenth, {late:.0f} at the end"
    )


def _is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bodies", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        text = run(options.bodies, Path(scratch))
    print(text)
    if options.out is not None:
        options.out.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
