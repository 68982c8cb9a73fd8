"""`aclog authorize --requests` on a file of JSON lines, including startup, reading and printing."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import shapes
from benchmarks.report import Row


def run(lines: int) -> Iterator[Row]:
    """Yield a row of decided lines per second."""
    with tempfile.TemporaryDirectory() as scratch:
        rules, requests = Path(scratch, "rules.jsonl"), Path(scratch, "requests.jsonl")
        with rules.open("w") as file:
            for acl in shapes.rules(1_000, wildcards=True):
                file.write(json.dumps(shapes.as_json(acl)) + "\n")
        with requests.open("w") as file:
            for number in range(lines):
                name = f"{shapes.STEM}{number % 5_000}"
                row = {"principal": shapes.user(number % 20), "host": "10.0.0.1", "operation": "READ"}
                file.write(json.dumps({**row, "resourceType": "TOPIC", "resourceName": name}) + "\n")
        command = [sys.executable, "-m", "aclog", "authorize", "--acls", str(rules), "--requests", str(requests)]
        start = time.monotonic()
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        took = time.monotonic() - start
    if done.stdout.count(b"\n") != lines:
        raise AssertionError("not all requests were decided")
    what = f"aclog authorize --requests, {lines:,} JSON lines, from start to end"
    yield Row(what=what, ours=lines / took, unit="lines/s", more_is_better=True)
