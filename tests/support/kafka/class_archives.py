"""Archives of the classes that Kafka, ZooKeeper and Spark load (CDS), with which a JVM starts in half the time.

    python -m tests.support.kafka.class_archives

The Makefile makes them once, in build/jvm. Without one, or with one that does not fit the class path any more, a JVM
loads its classes as usual.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tests.support.kafka.jvm import (
    CLASS_LISTS,
    KAFKA_39,
    KAFKA_44,
    KAFKA_VERSION,
    QUICK,
    class_archive,
    class_path,
    program,
    run_tool,
)
from tests.support.kafka.oracle import Estate, OracleProcess
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import AdminClient
from tests.support.kafka.tools import MAINS, client_properties, main_class
from tests.support.kafka.warm_jvms import ToolPipe, close_all
from tests.support.nodes.server_properties import Ports
from tests.support.spark.jvm import make_archive
from tests.support.zookeeper.kafka import ZooKeeperKafka
from tests.support.zookeeper.real_acl_authorizer import RealAclAuthorizer
from tests.support.zookeeper.server import ZooKeeperServer


def load_kafka(home: Path) -> None:
    """Run what the tests run of Kafka 4.3: format, a server, clients, tools, the authorizer alone."""
    with KafkaQuorum(home / "kafka", nodes=1) as kafka:
        with AdminClient(kafka.nodes[0].ports.broker) as admin:
            admin.acls()
            admin.scram()
        ToolPipe().run(MAINS["acls"], ["--bootstrap-server", kafka.bootstrap, "--list"])
        kafka.nodes[0].stop()
    with OracleProcess() as oracle:
        oracle.load(Estate(acls=()))
    run_tool("org.apache.kafka.tools.DumpLogSegments", "--version")


def load_kafka_39(home: Path) -> None:
    """Run what the tests run of Kafka 3.9: ZooKeeper, a broker on it, the old authorizer alone."""
    with ZooKeeperServer(home / "zookeeper") as server:
        with ZooKeeperKafka(home / "broker", server.connect):
            pass
        with RealAclAuthorizer({"zookeeper.connect": server.connect}):
            pass


def load_kafka_44(home: Path) -> None:
    """Run what the tests run of Kafka 4.4: format, a server, its tools, the authorizer alone."""
    with RealNode(home / "node", Ports.free(), version=KAFKA_44).format() as node:
        credentials = client_properties(home, "admin")
        for tool, question in (("acls", "--list"), ("configs", "--describe --entity-type users")):
            arguments = f"--bootstrap-server localhost:{node.ports.broker} --command-config {credentials} {question}"
            assert ToolPipe(KAFKA_44).run(main_class(tool, KAFKA_44), arguments.split()).code == 0
    with OracleProcess(KAFKA_44) as oracle:
        oracle.load(Estate(acls=()))
    run_tool("org.apache.kafka.tools.DumpLogSegments", "--version", version=KAFKA_44)


LOADS = {KAFKA_VERSION: load_kafka, KAFKA_39: load_kafka_39, KAFKA_44: load_kafka_44}


def classes_of(lists: Iterable[Path]) -> list[str]:
    """Return the classes of all lists, without those that a class loader of their own has loaded."""
    lines = (line for path in lists for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    names = (re.sub(r" id: \d+$", "", line) for line in lines if "source:" not in line and not line.startswith("#"))
    return list(dict.fromkeys(names))


def archive(version: str) -> None:
    """Make the archive of a Kafka, unless it is newer than its jars."""
    path = class_archive(version)
    classes = class_path(version)
    if path.exists() and path.stat().st_mtime > max(Path(jar).stat().st_mtime for jar in classes.split(os.pathsep)):
        return
    with tempfile.TemporaryDirectory() as scratch:
        home, lists = Path(scratch), Path(scratch) / "lists"
        lists.mkdir()
        os.environ[CLASS_LISTS] = str(lists)
        try:
            LOADS[version](home)
        finally:
            close_all()  # a JVM that runs has not listed all its classes yet
            del os.environ[CLASS_LISTS]
        listed = home / "all.classes"
        listed.write_text("\n".join(classes_of(lists.iterdir())) + "\n", encoding="utf-8")
        flags = ["-Xshare:dump", f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={home / 'classes.jsa'}"]
        quick = [flag for flag in QUICK if not flag.startswith("-Xshare")]
        subprocess.run([program("java"), *quick, *flags, "-cp", classes], capture_output=True, check=True)
        part = path.with_suffix(".part")
        part.write_bytes((home / "classes.jsa").read_bytes())
        part.rename(path)


def main() -> None:
    """Make all archives; tests run without one, only slower."""
    for make in (*(partial(archive, version) for version in LOADS), make_archive):
        try:
            make()
        except subprocess.CalledProcessError as error:
            print(f"no archive of classes, tests will be slower: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
