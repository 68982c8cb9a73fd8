"""What kafka-acls.sh lists with an authorizer on ZooKeeper: the text of each generation of the tool.

python -m tests.support.zookeeper.acls_listing --record   # writes what a test compares with; Maven fetches old Kafkas
"""

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.kafka.jvm import KAFKA_39, ROOT, jar_directory, program
from tests.support.zookeeper.server import ZooKeeperServer

RECORDED = ROOT / "tests" / "data" / "acls-listings"
"""A file for each version."""
_OLD = ("1.1.1", "2.3.1")

ADDED = (
    ("--allow-principal", "User:alice", "--operation", "Read", "--operation", "DescribeConfigs", "--topic", "orders"),
    ("--deny-principal", "User:mallory", "--deny-host", "10.0.0.1", "--operation", "All", "--topic", "orders"),
    ("--allow-principal", "User:CN=a,O=(b) c", "--operation", "Describe", "--group", "g:1, x=y"),
    ("--allow-principal", "User:*", "--operation", "Write", "--transactional-id", "tx-"),
    ("--allow-principal", "Group:ops", "--operation", "IdempotentWrite", "--cluster"),
    ("--allow-principal", "User:a", "--operation", "All", "--topic", "*"),
)
"""Flags of --add."""
PREFIXED = (
    "--allow-principal",
    "User:p",
    "--operation",
    "Read",
    "--topic",
    "p.",
    "--resource-pattern-type",
    "prefixed",
)
"""Since 2.0."""


def _record(version: str, jars: Path) -> None:
    with tempfile.TemporaryDirectory() as home, ZooKeeperServer(Path(home)) as server:
        for flags in ADDED if version.startswith("1.") else (*ADDED, PREFIXED):
            _run(jars, server.connect, ("--add", *flags))
        (RECORDED / f"{version}.txt").write_text(_run(jars, server.connect, ("--list",)), encoding="utf-8")


def _run(jars: Path, connect: str, arguments: Sequence[str]) -> str:
    """Return what one command line prints on stdout."""
    properties = ("--authorizer-properties", f"zookeeper.connect={connect}")
    command = [program("java"), "-Xmx256m", "-cp", f"{jars}/*", "kafka.admin.AclCommand", *properties, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


def _old_jars(version: str, directory: Path) -> Path:
    pom = ROOT / "tests" / "jvm" / "old-tools" / "pom.xml"
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={directory}")
    subprocess.run([program("mvn"), "-B", "-q", *goal, "-f", str(pom), f"-Dkafka.version={version}"], check=True)
    return directory


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", required=True)
    parser.parse_args()
    _record(KAFKA_39, jar_directory(KAFKA_39))
    for old in _OLD:
        with tempfile.TemporaryDirectory() as place:
            _record(old, _old_jars(old, Path(place)))
