"""`aclog spark` on s3a://, by Hadoop's own client: `make check-s3` has its jars, of 660 MB."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.pipeline.test_authorize_command import BOB, LOG
from tests.support.kafka.jvm import BUILD
from tests.support.processes.object_store import object_store
from tests.support.spark.access_logs import audit_text
from tests.support.spark.jvm import submit_arguments

JARS = BUILD.parent / "hadoop-aws"
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not (JARS / ".ready").exists(), reason="make check-s3 has hadoop-aws, of 660 MB"),
]

PATIENCE = 300


@pytest.fixture
def objects() -> dict[str, bytes]:
    log = "".join(f"{audit_text(principal='User:bob', name=name)}\n" for name in ("payments.eu", "a b", "c"))
    requests = "".join(json.dumps(BOB | {"n": n, "timestamp": "2026-11-21T10:00:00Z"}) + "\n" for n in range(50))
    node = {f"lake/node/{LOG.name}/{file.name}": file.read_bytes() for file in LOG.iterdir()}
    return node | {"lake/logs/kafka-authorizer.log": log.encode(), "lake/requests.jsonl": requests.encode()}


@pytest.fixture
def environment(objects) -> Iterator[dict[str, str]]:
    with object_store(objects) as options:
        jars = ",".join(map(str, sorted(JARS.glob("*.jar"))))
        address = options.partition("=")[2].partition("&")[0]
        settings = {
            "spark.jars": jars,
            "spark.hadoop.fs.s3a.endpoint": f"http://{address}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
        keys = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}
        yield {**os.environ, **keys, "PYSPARK_SUBMIT_ARGS": submit_arguments(settings)}


def start(environment, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "aclog", "spark", *map(str, arguments), "--master", "local[2]"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def run(environment, *arguments: object) -> tuple[int, str, str]:
    process = start(environment, *arguments)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, out, err


def rows(files) -> list[str]:
    tables = [pq.read_table(BytesIO(content)) for name, content in files if name.endswith(".parquet")]
    return sorted(str(row) for table in tables for row in table.to_pylist())


def stored(objects, prefix):
    return [(name, content) for name, content in objects.items() if name.startswith(f"{prefix}/")]


def local(directory: Path):
    return [(path.name, path.read_bytes()) for path in directory.rglob("*") if path.is_file()]


def test_commands_on_objects_give_the_rows_of_files(environment, objects, tmp_path):
    flags = ("--log", f"s3a://lake/node/{LOG.name}")
    code, _, err = run(environment, "history", *flags, "--out", "s3a://lake/history")
    assert code == 0, err
    code, there, err = run(environment, "ingest", "s3a://lake/logs", "--out", "s3a://lake/accesses")
    assert code == 0, err
    asked = ("--requests", "s3a://lake/accesses", *flags, "--super-users", "", "--own-time")
    code, decided, err = run(environment, "authorize", *asked, "--out", "s3a://lake/decided")
    assert code == 0, err
    assert run(environment, "history", "--log", LOG, "--out", tmp_path / "history")[0] == 0
    assert rows(stored(objects, "lake/history")) == rows(local(tmp_path / "history")) != []
    (tmp_path / "kafka-authorizer.log").write_bytes(objects["lake/logs/kafka-authorizer.log"])
    code, here, err = run(environment, "ingest", tmp_path / "kafka-authorizer.log", "--out", tmp_path / "accesses")
    assert (code, here) == (0, there), err
    assert rows(stored(objects, "lake/accesses/accesses")) == rows(local(tmp_path / "accesses" / "accesses")) != []
    asked = ("--requests", tmp_path / "accesses", "--log", LOG, "--super-users", "", "--own-time")
    code, expected, err = run(environment, "authorize", *asked, "--out", tmp_path / "decided")
    assert (code, expected) == (0, decided), err
    assert rows(stored(objects, "lake/decided")) == rows(local(tmp_path / "decided")) != []


def test_a_killed_job_leaves_a_table_that_is_refused(environment, objects):
    asked = ("--requests", "s3a://lake/requests.jsonl", "--log", LOG)
    process = start(environment, "authorize", *asked, "--out", "s3a://lake/out")
    marker, end = "lake/out/00-incomplete.parquet", time.monotonic() + PATIENCE
    while marker not in objects and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert marker in objects
    assert "lake/out/_SUCCESS" not in objects
    code, _, err = run(environment, "authorize", *asked, "--out", "s3a://lake/out")
    assert code == 2
    assert "s3a://lake/out: the incomplete output of a job" in err
    code, _, err = run(environment, "authorize", "--requests", "s3a://lake/out", "--log", LOG, "--out", "s3a://lake/x")
    assert code == 2
    assert "00-incomplete" in err or "incomplete output" in err
    assert not stored(objects, "lake/x")
