"""A server of Spark Connect on a loopback port: a process of its own, as commands use one by `--master sc://...`."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection, socket

import pyspark

from tests.support.kafka.jvm import QUICK
from tests.support.spark.jvm import settings

_PATIENCE = 180.0
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(scratch: Path, more: Mapping[str, str]) -> Iterator[str]:
    """Yield the address of a server with two cores and more settings, which keeps its files in `scratch`."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home, log = Path(pyspark.__file__).parent, scratch / "connect.log"
    command = [str(home / "bin" / "spark-submit"), "--class", _CLASS, "--master", "local[2]"]
    for name, value in {
        **settings(),
        **more,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.local.dir": str(scratch / "local"),
        "spark.ui.enabled": "false",
    }.items():
        command += ["--conf", f"{name}={value}"]
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS"}},
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LAUNCHER_OPTS": " ".join(QUICK),
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("wb") as file:
        server = subprocess.Popen([*command, "spark-internal"], env=environment, cwd=scratch, stdout=file, stderr=file)
    try:
        _wait(port, server, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _wait(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(log.read_text(errors="replace")[-3000:])
