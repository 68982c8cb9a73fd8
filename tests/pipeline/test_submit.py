"""The command lines of spark-submit in docs/spark.md, up to where it contacts the cluster.

For Kubernetes that is the pod of the driver, which it posts to a stub of the API server; for YARN, whose
ResourceManager cannot be reached, the arguments of its application.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pyspark
import pytest

from tests.support.kafka.jvm import QUICK
from tests.support.spark.documented import documented

pytestmark = pytest.mark.server


@contextmanager
def api_server(posted: list[tuple[str, dict[str, object]]]) -> Iterator[str]:
    """Yield the address of a server that records what is posted, and refuses it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def do_POST(self) -> None:
            """Record an object."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            posted.append((self.path.partition("?")[0], json.loads(body)))
            self._answer(403, {"kind": "Status", "status": "Failure", "message": "a stub of a test", "code": 403})

        def do_PATCH(self) -> None:
            """Take an object that is applied."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(200, json.loads(body))

        def do_GET(self) -> None:
            """There are no objects."""
            self._answer(404, {"kind": "Status", "status": "Failure", "code": 404})

        def _answer(self, status: int, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def submitted(words: list[str], directory: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a command line in a directory, with what spark-submit prints of it."""
    home, quick = Path(pyspark.__file__).parent, " ".join(QUICK)
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LAUNCHER_OPTS": quick, "SPARK_SUBMIT_OPTS": quick}
    submit = [str(home / "bin" / "spark-submit"), "--verbose", *words[1:]]
    return subprocess.run(
        submit, env={**environment, **more}, cwd=directory, capture_output=True, text=True, check=False
    )


def test_the_driver_pod_of_the_documented_command(tmp_path):
    posted: list[tuple[str, dict[str, object]]] = []
    words = documented("k8s://https://HOST:6443")
    with api_server(posted) as address:
        words[words.index("k8s://https://HOST:6443")] = f"k8s://{address}"
        done = submitted(words, tmp_path)
    pods = [value for path, value in posted if path == "/api/v1/namespaces/aclog/pods"]
    assert pods, done.stdout[-3000:] + done.stderr[-3000:]
    assert "a stub of a test" in done.stderr
    spec = pods[0]["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "REGISTRY/aclog-spark:0.1.0"
    assert spec["serviceAccountName"] == "spark"
    args = container["args"]
    assert args[0] == "driver"
    main = "local:///opt/environment/lib/python3.11/site-packages/aclog/__main__.py"
    assert args[args.index(main) + 1 :] == words[words.index(main) + 1 :]
    memory = {name: container["resources"][name]["memory"] for name in ("requests", "limits")}
    assert memory == {"requests": "6144Mi", "limits": "6144Mi"}
    named = {each["name"]: each.get("value") for each in container["env"]}
    assert named["PYSPARK_PYTHON"] == named["PYSPARK_DRIVER_PYTHON"] == "/opt/environment/bin/python"


SITE = "".join(
    f"<property><name>{name}</name><value>{value}</value></property>"
    for name, value in {
        "yarn.resourcemanager.address": "127.0.0.1:1",
        "yarn.resourcemanager.connect.max-wait.ms": "1",
        "yarn.resourcemanager.connect.retry-interval.ms": "1",
        "ipc.client.connect.max.retries": "0",
    }.items()
)


def test_the_application_of_the_documented_command(tmp_path):
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{SITE}</configuration>")
    words = documented("yarn")
    main = "environment/lib/python3.11/site-packages/aclog/__main__.py"
    for name in ("environment.tar.gz", main):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    done = submitted(words, tmp_path, HADOOP_CONF_DIR=str(tmp_path))
    printed = done.stdout + done.stderr
    assert "127.0.0.1:1" in printed  # it has tried to reach the ResourceManager
    assert "org.apache.spark.deploy.yarn.YarnClusterApplication" in printed
    at = words.index(main)
    arguments = [
        line.strip() for line in printed.partition("Arguments:\n")[2].partition("Spark config:")[0].splitlines()
    ]
    given = [arguments[number + 1] for number, word in enumerate(arguments) if word == "--arg"]
    assert given == words[at + 1 :]
    assert arguments[arguments.index("--primary-py-file") + 1] == f"file:{tmp_path}/{main}"
    config = dict(re.findall(r"^\((spark\.[\w.]+),(.*)\)$", printed, re.MULTILINE))
    assert config["spark.yarn.dist.archives"] == f"file://{tmp_path}/environment.tar.gz#environment"
    python = "./environment/bin/python"
    assert config["spark.yarn.appMasterEnv.PYSPARK_PYTHON"] == config["spark.executorEnv.PYSPARK_PYTHON"] == python
