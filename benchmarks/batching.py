"""Many requests at once: Arrow columns in and a column of answers out, and the command on JSON lines."""

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.batch import BatchAuthorizer, RequestColumns
from benchmarks import shapes
from benchmarks.report import Row

OPERATIONS = ("READ", "WRITE", "DESCRIBE")
REPEATING_TARGET, UNIQUE_TARGET = 5_000_000.0, 3_000_000.0


def _table(count: int, distinct: int | None) -> pa.Table:
    """`count` requests on the rules of `shapes.million`, drawn from `distinct` combinations, or each drawn anew."""
    draw = np.random.default_rng(1)
    acls = list(shapes.million(min(count, 1000000)))[::5]
    names = [acl.resource_name for acl in acls] + [f"nowhere.{n}" for n in range(len(acls) // 4)]
    principals = sorted({acl.principal for acl in acls})
    hosts = [f"10.0.{n // 256}.{n % 256}" for n in range(1000)]
    size = distinct or count
    picks = [draw.integers(0, len(values), size) for values in (principals, hosts, names, OPERATIONS)]
    if distinct:
        rows = draw.integers(0, distinct, count)
        picks = [pick[rows] for pick in picks]
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(pick.astype(np.int32)), pa.array(values))
        for pick, values in zip(picks, (principals, hosts, names, OPERATIONS), strict=True)
    ]
    kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["TOPIC"]))
    return pa.table([*columns, kind], names=["principal", "host", "resourceName", "operation", "resourceType"])


def run(count: int, lines: int, rounds: int = 3) -> Iterator[Row]:
    """Decisions a second: 100,000 distinct combinations, none that repeats, and end to end on JSON lines."""
    pa.set_cpu_count(1)
    image = AclsImage.from_columns(shapes.columns(shapes.million()))
    for name, distinct, target in (
        ("100,000 distinct combinations", 100_000, REPEATING_TARGET),
        ("none repeats", None, UNIQUE_TARGET),
    ):
        table = _table(count, distinct)
        best = float("inf")
        for _ in range(rounds):
            gc.collect()
            start = time.process_time()
            BatchAuthorizer(image=image).authorize(RequestColumns.from_arrow(table))
            best = min(best, time.process_time() - start)
        what = f"{count:,} requests in Arrow columns, 1,000,000 rules, {name}"
        yield Row(what=what, ours=count / best, unit="decisions/s", target=target, more_is_better=True)
    yield from _command(lines)


def _command(lines: int) -> Iterator[Row]:
    """The command on rules and requests as JSON lines: everything from its start to its end, reading and printing."""
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
        raise AssertionError("a request without an answer")
    what = f"aclog authorize --requests, {lines:,} JSON lines, from start to end"
    yield Row(what=what, ours=lines / took, unit="lines/s", more_is_better=True)
