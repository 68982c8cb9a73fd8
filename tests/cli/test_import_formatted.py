"""`aclog import` into a formatted directory in which no node has started yet."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from aclog.config.server_properties import load_config
from aclog.metalog.batches import iter_batches
from aclog.metalog.codec import decode_values
from aclog.metalog.control_records import decode_control_batch
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import list_segments, read_quorum_state
from aclog.metalog.records import AccessControlEntryRecord, OpaqueRecord, RecordType
from aclog.ops.migration_targets import LogTarget
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog
from tests.support.nodes.controllers import running
from tests.support.nodes.node_properties import COMBINED, changed

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
STATIC = {"controller.quorum.bootstrap.servers": None, "controller.quorum.voters": "1@localhost:9093"}
ROWS = "".join(json.dumps(acl_row(f"topic-{number}")) + "\n" for number in range(30)).encode()


@pytest.fixture(params=["dynamic", "static"])
def directory(request, tmp_path):
    """The log that a formatted directory will have; its voters will be in the log, or are in the configuration."""
    return formatted(tmp_path / "data", {} if request.param == "dynamic" else STATIC)


def formatted(data, changes, *flags):
    properties = changed(COMBINED | {"log.dirs": str(data)}, changes)
    config = data.with_name("server.properties")
    config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    quorum = () if changes else ("--standalone",)
    scram = "SCRAM-SHA-256=[name=admin,iterations=4096,password=admin-secret]"
    aclog("format", config, "--cluster-id", CLUSTER, *quorum, "--add-scram", scram, *flags).ok()
    return data / "__cluster_metadata-0"


def files(directory):
    return {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def beginning(directory):
    """The records before the first ACL, each with the epoch of its batch."""
    with open_reader(directory) as reader:
        data = reader.read(reader.start_offset(), 1 << 30)
    found = []
    for position, header in iter_batches(data):
        decode = decode_control_batch if header.is_control else decode_values
        found += [(header.leader_epoch, record) for record in decode(data, position, header)]
    kinds = [isinstance(record, AccessControlEntryRecord) for _, record in found]
    return found[: kinds.index(True) if any(kinds) else None]


async def started_once(config):
    async with running(config):
        pass


def test_the_log_begins_as_at_a_nodes_first_start(directory, tmp_path):
    started = tmp_path / "started"
    shutil.copytree(directory.parent, started)
    aclog("import", "-", "--log", directory, "--force", stdin=ROWS).ok()
    properties = (tmp_path / "server.properties").read_text().replace(str(directory.parent), str(started))
    (tmp_path / "started.properties").write_text(properties)
    asyncio.run(started_once(load_config(tmp_path / "started.properties")))
    node = started / directory.name
    of_node = beginning(node)
    # An import does not know the node's min.insync.replicas: a default of 1 for the cluster would override it.
    [config] = [each for each in of_node if isinstance(each[1], OpaqueRecord)]
    assert config[1].api_key == RecordType.CONFIG_RECORD
    assert beginning(directory) == [each for each in of_node if each is not config]
    assert read_quorum_state(directory) == read_quorum_state(node)
    image = recover(directory).image
    assert len(image.acls) == 30
    assert image.features.level("metadata.version") == 30
    assert len(image.scram) == 1
    assert "all is well" in aclog("log", "verify", directory).ok().out


def test_it_wants_force_and_leaves_nothing(directory):
    before = files(directory.parent)
    for arguments in ((), ("--force", "--history")):
        assert "belongs to a" in aclog("import", "-", "--log", directory, *arguments, stdin=ROWS).complaint
    bad = aclog("import", "-", "--log", directory, "--force", stdin=ROWS + b"{}\n")
    assert bad.code == 2
    assert "line 31" in bad.complaint
    assert files(directory.parent) == before


def test_a_second_import_goes_on(directory):
    aclog("import", "-", "--log", directory, "--force", stdin=ROWS).ok()
    more = ROWS + json.dumps(acl_row("more")).encode()
    result = aclog("import", "-", "--log", directory, "--force", stdin=more).ok()
    assert result.lines == ["written: 1 ACL", "existing: 30 ACLs"]
    assert len(recover(directory).image.acls) == 31


def test_an_export_brings_its_users_and_not_its_features(directory, tmp_path):
    small = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"
    export = tmp_path / "state.avro"
    aclog("export", "--log", small, "--format", "avro", "--show-secrets", "--out", export).ok()
    result = aclog("import", export, "--log", directory, "--force").ok()
    assert "left out: 6 features: only a new log accepts them" in result.err
    image = recover(directory).image
    assert (len(image.acls), len(image.features), len(image.opaque)) == (68, 6, 0)
    assert len(image.scram) == 7


def test_what_a_first_start_left_undone_is_done(directory):
    aclog("import", "-", "--log", directory, "--force", stdin=ROWS).ok()
    (segment,) = list_segments(directory)
    data = segment.path.read_bytes()
    _, header = next(iter_batches(data))
    for path in directory.iterdir():  # a node that was killed after its LeaderChange
        if path.suffix not in {".log", ".checkpoint"} and path.name not in {"quorum-state", "leader-epoch-checkpoint"}:
            path.unlink()
    segment.path.write_bytes(data[: header.size])
    aclog("import", "-", "--log", directory, "--force", stdin=ROWS).ok()
    image = recover(directory).image
    assert (len(image.acls), len(image.scram)) == (30, 1)
    assert image.features.level("metadata.version") == 30


def test_other_voters_would_begin_without_it(tmp_path):
    directory = formatted(tmp_path / "data", {})
    meta = directory.parent / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    before = files(directory.parent)
    refused = aclog("import", "-", "--log", directory, "--force", stdin=ROWS)
    assert "the quorum includes 1: expected controller 2 alone" in refused.complaint
    assert files(directory.parent) == before


def test_an_old_metadata_version_takes_one_batch(tmp_path, monkeypatch):
    directory = formatted(tmp_path / "data", STATIC, "--release-version", "3.5")
    monkeypatch.setattr("aclog.targets.log.MAX_BYTES", 1000)
    refused = aclog("import", "-", "--log", directory, "--force", stdin=ROWS)
    assert "does not support transactions" in refused.complaint
    monkeypatch.undo()
    aclog("import", "-", "--log", directory, "--force", stdin=ROWS).ok()
    assert len(recover(directory).image.acls) == 30


def test_a_migration_uses_the_bootstrap_checkpoint(directory, tmp_path):
    impatient = tmp_path / "zookeeper.properties"
    impatient.write_text("zookeeper.connection.timeout.ms=200\n")
    zookeeper = ("--zookeeper", "localhost:1", "--zk-tls-config-file", impatient)
    refused = aclog("migrate", *zookeeper, "--log", directory, "--force")
    assert refused.code == 2  # ZooKeeper is asked first
    with pytest.raises(ConfigError, match=r"expected --bootstrap-checkpoint .*bootstrap.checkpoint"):
        LogTarget(directory=directory, force=True).open().__enter__()


def test_a_log_that_is_gone_is_missed(directory):
    (directory.parent / "aclog.committed").write_text("not a mark")
    before = files(directory.parent)
    assert aclog("import", "-", "--log", directory, "--force", stdin=ROWS).code == 2
    assert files(directory.parent) == before
