"""Every format, and the first start after it: the users and rules that formatting left are there, or the start says so.

The formats and starts are those of Kafka 3.9, 4.3 and 4.4, and of aclog.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aclog.metalog.batches import iter_batches, read_values
from aclog.metalog.filelog.files import image_checkpoint, list_images, list_segments, segment_name
from aclog.metalog.records import RecordType
from aclog.snapshots.image import METADATA_VERSION
from aclog.snapshots.publisher import recover
from tests.support.admin.requests import CREATE_ACLS, DESCRIBE_ACLS, DESCRIBE_SCRAM, matching, rule
from tests.support.cli.command import aclog
from tests.support.kafka.jvm import KAFKA_39, KAFKA_44, KAFKA_VERSION
from tests.support.kafka.real_node import RealNode
from tests.support.nodes.aclog_node import AclogNode, NodeError
from tests.support.nodes.server_properties import Ports, password, server_properties
from tests.support.nodes.wire_client import WireClient, nested
from tests.support.processes.waiting import wait_until

AS_4_4 = {"aclog.kafka.version": "4.4"}
LEVELS = {"3.9": 21, "4.3": 30, "4.4": 33, "4.4 at 4.3": 30, "aclog": 30, "aclog at 4.4": 33}
"""The metadata.version with which each format begins a cluster."""
LOST = {("4.4", "4.3"), ("aclog at 4.4", "4.3")}
"""What Kafka itself gets wrong: 4.3 does not read the records of a 0-0 checkpoint, and starts without the users."""
STARTS = [
    *((name, "aclog") for name in LEVELS if name != "4.4 at 4.3"),
    *((name, version) for name in ("aclog", "aclog at 4.4") for version in ("4.3", "4.4")),
    ("4.4", "4.3"),  # that Kafka gets it wrong is not due to our format
    ("3.9", "4.4"),  # an upgrade that skips a release, whose log we read
]
"""Formats, and what starts on each; `test_the_first_transaction_is_that_of_kafka` starts Kafka on its own ones."""


@pytest.fixture(scope="module")
def ports() -> Ports:
    """Ports of all nodes here, one after the other: a formatted directory names its controller's."""
    return Ports.free()


@pytest.fixture(scope="module")
def formatted(tmp_path_factory: pytest.TempPathFactory, ports: Ports) -> Callable[[str, Path], Path]:
    """Returns a fresh home with the directory that a format made; each format runs once."""
    made: dict[str, Path] = {}

    def copied(name: str, home: Path) -> Path:
        """Copy what the format wrote."""
        if name not in made:
            made[name] = tmp_path_factory.mktemp("formatted")
            format_(name, made[name], ports)
        shutil.copytree(made[name] / "data", home / "data")
        return home

    return copied


def format_(name: str, home: Path, ports: Ports) -> None:
    """Format `home/data` with the admin's SCRAM credential."""
    if name.startswith("aclog"):
        AclogNode(home, ports).format(*(("--release-version", "4.4") if name.endswith("4.4") else ()))
        return
    version = {"3.9": KAFKA_39, "4.3": KAFKA_VERSION}.get(name, KAFKA_44)
    RealNode(home, ports, version=version).format(*(("--release-version", "4.3") if name.endswith("at 4.3") else ()))


def node_of(name: str, home: Path, ports: Ports) -> AclogNode | RealNode:
    """The node that starts on `home/data`."""
    if name == "aclog":
        return AclogNode(home, ports, server_properties(ports, **AS_4_4))
    return RealNode(home, ports, version={"4.3": KAFKA_VERSION, "4.4": KAFKA_44}[name])


def users(ports: Ports) -> list[str]:
    """The SCRAM users that the broker describes."""
    with WireClient(ports.broker).plain("admin", password("admin")) as client:
        return [result.user for result in client.ask(DESCRIBE_SCRAM, 0, users=()).results]


def topics(ports: Ports) -> list[str]:
    """The topics of the rules that the broker describes."""
    with WireClient(ports.broker).plain("admin", password("admin")) as client:
        return sorted(place.resource_name for place in client.ask(DESCRIBE_ACLS, 3, **matching()).resources)


def add_rule(ports: Ports, topic: str) -> None:
    """Add a rule by SCRAM as the user whom the format left, and wait until the broker shows it."""
    creation = nested(CREATE_ACLS, 3, "AclCreation", **rule(resource_name=topic))
    with WireClient(ports.broker).scram("SCRAM-SHA-256", "admin", password("admin")) as client:
        (result,) = client.ask(CREATE_ACLS, 3, creations=(creation,)).results
        assert result.error_code == 0, result
    wait_until(lambda: topic in topics(ports), f"the rule on {topic}")


@pytest.mark.parametrize(("formats", "starts"), STARTS)
def test_the_first_start_has_what_the_format_left(
    formatted: Callable[[str, Path], Path], ports: Ports, tmp_path: Path, formats: str, starts: str
) -> None:
    home = formatted(formats, tmp_path)
    node = node_of(starts, home, ports)
    with node:
        if (formats, starts) in LOST:
            assert users(ports) == []
            return
        assert users(ports) == ["admin"]
        add_rule(ports, "first")
    image = recover(node.log_directory).image
    assert image.features.level(METADATA_VERSION) == LEVELS[formats]
    verified = aclog("log", "verify", node.log_directory).ok()
    assert verified.lines[-1] == "all is well"
    assert verified.err == ""


@pytest.mark.parametrize(
    ("formats", "settings"),
    [pytest.param("4.4", AS_4_4, marks=pytest.mark.tier("test")), ("4.4 at 4.3", {}), ("aclog at 4.4", AS_4_4)],
)
def test_kafka_4_4_goes_on_where_aclog_began(
    formatted: Callable[[str, Path], Path], ports: Ports, tmp_path: Path, formats: str, settings: dict[str, str]
) -> None:
    home = formatted(formats, tmp_path)
    ours = AclogNode(home, ports, server_properties(ports, **settings))
    with ours:
        add_rule(ports, "ours")
    kafka = RealNode(home, ports, version=KAFKA_44)
    with kafka:
        assert users(ports) == ["admin"]
        add_rule(ports, "kafkas")
        assert topics(ports) == ["kafkas", "ours"]
    with AclogNode(home, ports, server_properties(ports, **settings)):
        assert users(ports) == ["admin"]
        assert topics(ports) == ["kafkas", "ours"]
    verified = aclog("log", "verify", ours.log_directory).ok()
    assert (verified.lines[-1], verified.err) == ("all is well", "")
    aclog("snapshot", "create", "--log", ours.log_directory, "--out", tmp_path).ok()
    (image,) = list_images(tmp_path)
    checkpoint = image_checkpoint(image)
    assert checkpoint is not None
    assert aclog("snapshot", "verify", checkpoint).ok().err == ""
    assert len(recover(checkpoint).image.acls) == 2


def test_aclog_does_not_begin_a_log_at_a_level_that_it_does_not_support(
    formatted: Callable[[str, Path], Path], ports: Ports, tmp_path: Path
) -> None:
    node = AclogNode(formatted("4.4", tmp_path), ports)
    with pytest.raises(NodeError, match=r"metadata\.version 33 .*expected at most 30, or aclog\.kafka\.version=4\.4"):
        node.start()
    # Nothing of the format is in the log yet: the start with another setting is a first start.
    assert [each.base_offset for each in list_segments(node.log_directory)] == [0]
    assert len(recover(node.log_directory).image.features) == 0
    with AclogNode(tmp_path, ports, server_properties(ports, **AS_4_4)):
        assert users(ports) == ["admin"]


def first_records(log: Path) -> list[tuple[int, bytes]]:
    """The offset and the bytes of each record from the beginning of the first transaction of a log to its end."""
    data, found = (log / segment_name(0)).read_bytes(), []
    for position, header in iter_batches(data):
        if header.is_control:
            continue
        for offset, (_, value) in enumerate(read_values(data, position, header), header.base_offset):
            found.append((offset, value))
            if value[1] == RecordType.END_TRANSACTION_RECORD:
                return found
    raise AssertionError(found)


ELR = ("--feature", "eligible.leader.replicas.version=1")
NO_ELR = ("--feature", "eligible.leader.replicas.version=0")


@pytest.mark.parametrize(
    ("version", "flags", "in_sync"),
    [
        pytest.param("4.3", (), "", marks=pytest.mark.tier("test")),
        pytest.param("4.4", (), "", marks=pytest.mark.tier("test")),
        ("4.4", NO_ELR, "2"),
        ("4.3", ("--release-version", "4.0"), "2"),
        ("4.3", ("--release-version", "4.0", *ELR), "2"),
        ("4.4", ("--release-version", "4.3"), "3"),
    ],
)
def test_the_first_transaction_is_that_of_kafka(
    ports: Ports, tmp_path: Path, version: str, flags: tuple[str, ...], in_sync: str
) -> None:
    """The same bytes at the same offsets: min.insync.replicas is among them if eligible leader replicas are on."""
    settings = {"min_insync_replicas": in_sync} if in_sync else {}
    real = KAFKA_44 if version == "4.4" else KAFKA_VERSION
    kafka = RealNode(tmp_path / "kafka", ports, server_properties(ports, **settings), version=real)
    kafka.format(*flags)
    shutil.copytree(kafka.home / "data", tmp_path / "ours" / "data")
    as_kafka = {"aclog.kafka.version": version}
    ours = AclogNode(tmp_path / "ours", ports, server_properties(ports, **settings, **as_kafka))
    found = {}
    for node in (kafka, ours):
        with node:
            assert users(ports) == ["admin"]
        found[node] = first_records(node.log_directory)
    assert found[ours] == found[kafka]
    configs = [value for _, value in found[kafka] if value[1] == RecordType.CONFIG_RECORD]
    is_on = ELR[1] in flags or (NO_ELR[1] not in flags and "4.0" not in flags)
    text = (in_sync or "1").encode()
    assert configs == [b"\1\4\0" + b"\4\1\x14min.insync.replicas\2" + text + b"\0"] * is_on
