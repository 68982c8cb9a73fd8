"""What formatting leaves for the first leader: which file it is in, and that it is not state before it is committed."""

import json
from pathlib import Path

import pytest

from aclog.config.server_properties import parse_config
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import CheckpointError, ConfigError, LogError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import list_segments
from aclog.ops.migration_targets import first_start_file
from aclog.server.controller.activation import open_controller_log
from aclog.server.storage import FormatOptions, format_storage
from aclog.snapshots.checkpoints import FIRST_CHECKPOINT, find_bootstrap, uncommitted_bootstrap
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl, acl_record, acl_row
from tests.support.cli.command import aclog
from tests.support.nodes.node_properties import BROKER, COMBINED, changed

CLUSTER = "ZDUkooY3wL1SfPIPJQqLYw"
SCRAM = "SCRAM-SHA-256=[name=admin,iterations=4096,password=admin-secret]"
LOG = "__cluster_metadata-0"


def formatted(directory: Path, release: str, base: dict[str, str] = COMBINED, **flags: object) -> Path:
    """A directory that was formatted with one user; its log's directory."""
    config = parse_config(changed(base | {"log.dirs": str(directory)}, {}), "it", host_name=lambda: "here")
    options = FormatOptions(**({"standalone": True} | flags), add_scram=[SCRAM], release_version=release)
    format_storage(config, CLUSTER, options)
    return directory / LOG


@pytest.mark.parametrize(("release", "name"), [("4.3", "bootstrap.checkpoint"), ("4.4", FIRST_CHECKPOINT)])
def test_the_file_that_has_records_is_read(tmp_path: Path, release: str, name: str) -> None:
    found = find_bootstrap(formatted(tmp_path, release))
    assert found is not None
    assert found.path.name == name
    assert [record.name for record in found.image.scram.records()] == ["admin"]
    assert found.image.provenance.voters is None if release == "4.3" else found.image.provenance.voters is not None


def test_a_0_0_checkpoint_with_records_wins_over_a_bootstrap_checkpoint(tmp_path: Path) -> None:
    log = formatted(tmp_path / "new", "4.4")
    formatted(tmp_path / "old", "4.3", standalone=True)
    (tmp_path / "old" / "bootstrap.checkpoint").rename(tmp_path / "new" / "bootstrap.checkpoint")
    found = find_bootstrap(log)
    assert found is not None
    assert found.in_first_checkpoint
    assert found.image.features.level("metadata.version") == 33


def test_its_records_are_no_state_before_a_leader_commits_them(tmp_path: Path) -> None:
    log = formatted(tmp_path, "4.4")
    found = recover(log)
    assert (len(found.image.features), len(found.image.scram), found.image.end_offset) == (0, 0, 0)
    assert found.image.provenance.voters is not None
    (note,) = found.notes
    assert "no node has started: its 0 ACLs and 1 SCRAM credentials come into force with the first start" in note
    with open_log(log, create=True, force=True) as writer:
        writer.append([encode_record(acl_record(1, acl()))], timestamp=1).result(60)
    image = recover(log).image
    assert (len(image.acls), len(image.features), len(image.scram)) == (1, 0, 0)
    assert image.provenance.voters is not None


def test_a_log_that_was_begun_without_them_is_found(tmp_path: Path) -> None:
    log = formatted(tmp_path, "4.4")
    assert uncommitted_bootstrap(log, recover(log).image) is None
    with open_log(log, create=True, force=True) as writer:
        writer.append([encode_record(acl_record(1, acl()))], timestamp=1).result(60)
    problem = uncommitted_bootstrap(log, recover(log).image)
    assert problem is not None
    assert f"begun without the 7 records of {FIRST_CHECKPOINT}, and so without metadata.version" in problem
    verified = aclog("log", "verify", log)
    assert verified.code == 1
    assert any(problem in line for line in verified.lines)
    refused = aclog("acls", "add", "--log", log, "--force", "--allow-principal", "User:a", "--operation", "READ",
                    "--topic", "t")  # fmt: skip
    assert problem in refused.complaint


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_command_begins_the_log_as_the_first_start_does(tmp_path: Path, release: str) -> None:
    log = formatted(tmp_path, release)
    rows = tmp_path / "rules.jsonl"
    rows.write_text(json.dumps(acl_row("t")) + "\n")
    aclog("import", rows, "--log", log, "--force").ok()
    image = recover(log).image
    assert (len(image.acls), len(image.scram)) == (1, 1)
    assert image.features.level("metadata.version") == {"4.3": 30, "4.4": 33}[release]
    assert aclog("log", "verify", log).ok().lines[-1] == "all is well"


@pytest.mark.parametrize(("release", "name"), [("4.3", "bootstrap.checkpoint"), ("4.4", f"{LOG}/{FIRST_CHECKPOINT}")])
def test_a_migration_writes_the_file_that_the_first_start_reads(tmp_path: Path, release: str, name: str) -> None:
    formatted(tmp_path, release)
    right = tmp_path / name
    assert first_start_file(tmp_path) == first_start_file(tmp_path / LOG) == first_start_file(right) == right
    other = ({tmp_path / "bootstrap.checkpoint", tmp_path / LOG / FIRST_CHECKPOINT} - {right}).pop()
    with pytest.raises(ConfigError, match=rf"^{tmp_path}.*expected --bootstrap-checkpoint {right}$"):
        first_start_file(other)
    assert first_start_file(tmp_path / "elsewhere" / "bootstrap.checkpoint").name == "bootstrap.checkpoint"


def test_a_migration_does_not_write_where_no_start_reads_it(tmp_path: Path) -> None:
    formatted(tmp_path / "broker", "4.4", BROKER, standalone=False)
    with pytest.raises(ConfigError, match=r"broker: formatted without bootstrap\.checkpoint, so its first start would"):
        first_start_file(tmp_path / "broker" / "bootstrap.checkpoint")
    with pytest.raises(ConfigError, match="with records is there"):
        first_start_file(tmp_path / "broker")
    log = formatted(tmp_path / "begun", "4.3")
    with open_log(log, create=True, force=True):
        pass
    for path in (tmp_path / "begun", tmp_path / "begun" / "bootstrap.checkpoint", log / FIRST_CHECKPOINT):
        with pytest.raises(ConfigError, match="begun: a node has started there"):
            first_start_file(path)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    log = formatted(tmp_path, "4.4")
    path = log / FIRST_CHECKPOINT
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match=FIRST_CHECKPOINT):
        find_bootstrap(log)
    with open_log(log, create=True, force=True) as writer:
        writer.append([encode_record(acl_record(1, acl()))], timestamp=1).result(60)
    verified = aclog("log", "verify", log)
    assert verified.code == 1
    assert any(FIRST_CHECKPOINT in line for line in verified.lines)


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_controller_without_voters_does_not_lead_alone(tmp_path: Path, release: str) -> None:
    """It was formatted to join a quorum: with --no-initial-controllers."""
    log = formatted(tmp_path, release, standalone=False, no_initial_controllers=True)
    config = parse_config(changed(COMBINED | {"log.dirs": str(tmp_path)}, {}), "it", host_name=lambda: "here")
    with pytest.raises(LogError, match="neither a log nor the checkpoint with the voters"):
        open_controller_log(config)
    assert not log.is_dir() or not list_segments(log)
