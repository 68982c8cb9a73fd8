"""A standalone Spark cluster on this machine: one master and two workers, each a process of its own."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
from attrs import frozen

from tests.support.kafka.jvm import QUICK
from tests.support.spark.jvm import options, settings

_OF_PYTHON = frozenset({"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "VIRTUAL_ENV"})
_PATIENCE = 180.0
"""Seconds for a JVM to come up on a machine that is busy with other tests."""


@frozen
class SparkCluster:
    master: str
    environment: dict[str, str]
    """What spark-submit needs around it."""

    def submit(self, *arguments: str, archive: Path, directory: Path) -> "subprocess.CompletedProcess[str]":
        """Run `aclog ARGUMENTS` by spark-submit in a directory, with the packed environment that the workers run."""
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-submit"), "--master", self.master]
        for name, value in {
            **settings(),
            "spark.executor.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.cores.max": "2",
            "spark.executor.cores": "1",
        }.items():
            command += ["--conf", f"{name}={value}"]
        command += ["--archives", f"{archive}#environment"]
        main = Path(__file__).parents[3] / "aclog" / "__main__.py"
        environment = {**self.environment, "PYSPARK_PYTHON": "./environment/bin/python"}
        return subprocess.run(
            [*command, str(main), *arguments],
            env={**environment, "PYSPARK_DRIVER_PYTHON": sys.executable},
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def spark_cluster(scratch: Path) -> Iterator[SparkCluster]:
    """Two workers of one core each, which keep their files in `scratch` and know of no Python with aclog."""
    home = Path(pyspark.__file__).parent
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _OF_PYTHON},
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": options(),
        "SPARK_LAUNCHER_OPTS": " ".join(QUICK),
    }
    launch = [str(home / "bin" / "spark-class")]
    with ExitStack() as stack:
        arguments = ["org.apache.spark.deploy.master.Master", "-h", "127.0.0.1", "-p", "0", "--webui-port", "0"]
        master = _start(stack, [*launch, *arguments], environment, scratch / "master.log")
        url = _wait_for(scratch / "master.log", r"Starting Spark master at (spark://\S+)", master)
        for number in range(2):
            log, directory = scratch / f"worker-{number}.log", scratch / f"worker-{number}"
            arguments = ["org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", "-h", "127.0.0.1"]
            arguments += ["-p", "0", "--webui-port", "0", "-d", str(directory), url]
            worker = _start(stack, [*launch, *arguments], environment, log)
            _wait_for(log, r"Successfully registered with master (\S+)", worker)
        yield SparkCluster(url, environment)


def _start(stack: ExitStack, command: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    file = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)
    return process


def _wait_for(log: Path, pattern: str, process: "subprocess.Popen[bytes]") -> str:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        match = re.search(pattern, log.read_text(errors="replace"))
        if match:
            return match[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"{pattern!r} is not in {log}:\n{log.read_text(errors='replace')[-3000:]}")
