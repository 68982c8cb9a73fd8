from pathlib import Path

import pytest

from aclog.config.node_config import NodeConfig
from aclog.config.server_properties import parse_config
from aclog.metalog.control_records import KRaftVersion, KRaftVoters
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.committed_mark import COMMITTED_FILE
from aclog.metalog.filelog.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from aclog.metalog.primitives import parse_uuid, uuid_text
from aclog.server import storage
from aclog.server.storage import FormatOptions, ensure_formatted, format_storage, require_formatted
from tests.support.kafka.format_bytes import control_records, values_of
from tests.support.nodes.node_properties import BROKER, COMBINED, CONTROLLER, changed

CLUSTER = "ZDUkooY3wL1SfPIPJQqLYw"
VOTERS = {"controller.quorum.bootstrap.servers": None, "controller.quorum.voters": "1@localhost:9093"}
FIRST = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def config_of(base: dict[str, str], directory: Path, changes: dict[str, str | None] | None = None) -> NodeConfig:
    return parse_config(changed(base | {"log.dirs": str(directory)}, changes or {}), "it", host_name=lambda: "here")


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_standalone(tmp_path: Path) -> None:
    config = config_of(COMBINED, tmp_path / "data")
    result = format_storage(config, CLUSTER, FormatOptions(standalone=True))
    assert result.lines == (
        f"Formatting dynamic metadata voter directory {tmp_path}/data with metadata.version 4.3-IV0.",
    )
    assert result.formatted == (tmp_path / "data",)
    assert files(tmp_path / "data") == [FIRST, "bootstrap.checkpoint", "meta.properties"]
    assert (tmp_path / "data" / FIRST).stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "data" / "bootstrap.checkpoint").stat().st_mode & 0o777 == 0o600
    _, version, voters, _ = control_records((tmp_path / "data" / FIRST).read_bytes())
    assert version == KRaftVersion(kraft_version=1)
    assert isinstance(voters, KRaftVoters)
    (voter,) = voters.voters
    assert voter.voter_directory_id == result.meta.directory_id
    assert result.meta.cluster_id == CLUSTER
    assert [(e.name, e.host, e.port) for e in voter.endpoints] == [("CONTROLLER", "localhost", 9093)]


@pytest.mark.parametrize(
    ("listeners", "advertised", "host", "port"),
    [
        ("CONTROLLER://:9093", None, "localhost", 9093),
        ("CONTROLLER://0.0.0.0:9093", None, "localhost", 9093),
        ("CONTROLLER://h:9093", None, "h", 9093),
        ("CONTROLLER://:9093", "CONTROLLER://example.org:1234", "example.org", 1234),
        ("CONTROLLER://h:9093", "CONTROLLER://:1234", "localhost", 1234),
    ],
)
def test_the_voters_endpoint(tmp_path: Path, listeners: str, advertised: str | None, host: str, port: int) -> None:
    config = config_of(CONTROLLER, tmp_path, {"listeners": listeners, "advertised.listeners": advertised})
    format_storage(config, CLUSTER, FormatOptions(standalone=True))
    voters = control_records((tmp_path / FIRST).read_bytes())[2]
    assert isinstance(voters, KRaftVoters)
    assert [(e.host, e.port) for e in voters.voters[0].endpoints] == [(host, port)]


def test_an_initial_controller(tmp_path: Path) -> None:
    text = "1@localhost:20093:JEXY6aqzQY-32P5TStzaFg"
    result = format_storage(config_of(COMBINED, tmp_path), CLUSTER, FormatOptions(initial_controllers=text))
    assert result.meta.directory_id == parse_uuid("JEXY6aqzQY-32P5TStzaFg")


@pytest.mark.parametrize("flags", [{}, {"no_initial_controllers": True}])
def test_a_static_voter_is_not_in_the_log(tmp_path: Path, flags: dict) -> None:
    result = format_storage(config_of(COMBINED, tmp_path, VOTERS), CLUSTER, FormatOptions(**flags))
    assert result.lines == (f"Formatting metadata directory {tmp_path} with metadata.version 4.3-IV0.",)
    assert files(tmp_path) == ["bootstrap.checkpoint", "meta.properties"]


def test_several_directories(tmp_path: Path) -> None:
    changes = {"log.dirs": f"{tmp_path}/b,{tmp_path}/a", "metadata.log.dir": f"{tmp_path}/m"}
    config = config_of(COMBINED, tmp_path, changes)
    result = format_storage(config, CLUSTER, FormatOptions(standalone=True, release_version="4.0"))
    assert [line.split(" /")[0] for line in result.lines] == [
        "Formatting data directory",
        "Formatting data directory",
        "Formatting dynamic metadata voter directory",
    ]
    metas = [read_meta_properties(tmp_path / name) for name in "abm"]
    assert len({meta.directory_id for meta in metas if meta}) == 3
    assert len(values_of((tmp_path / "a" / "bootstrap.checkpoint").read_bytes())) == 3
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()


def test_a_formatted_directory_is_not_changed(tmp_path: Path) -> None:
    config = config_of(COMBINED, tmp_path)
    first = format_storage(config, CLUSTER, FormatOptions(standalone=True))
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    with pytest.raises(ConfigError, match="is already formatted"):
        format_storage(config, CLUSTER, FormatOptions(standalone=True))
    again = format_storage(config, CLUSTER, FormatOptions(standalone=True, ignore_formatted=True))
    assert again.lines == ("All of the log directories are already formatted.",)
    assert (again.meta, again.formatted) == (first.meta, ())
    with pytest.raises(ConfigError, match=r"Invalid cluster\.id in: .*Expected other, but read"):
        format_storage(config, "other", FormatOptions(standalone=True, ignore_formatted=True))
    other = config_of(COMBINED, tmp_path, {"node.id": "5"})
    with pytest.raises(ConfigError, match=r"Invalid node\.id in: .*Expected 5, but read 1"):
        format_storage(other, CLUSTER, FormatOptions(standalone=True, ignore_formatted=True))
    assert before == {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}


@pytest.mark.parametrize(
    ("base", "changes", "flags", "what"),
    [
        (COMBINED, {}, {}, "expected one of --standalone, --initial-controllers, --no-initial-controllers"),
        (COMBINED, VOTERS, {"standalone": True}, "--standalone and controller.quorum.voters contradict"),
        (BROKER, {}, {"standalone": True}, "only a broker"),
        (
            COMBINED,
            {},
            {"standalone": True, "no_initial_controllers": True},
            "--standalone and --no-initial-controllers contradict",
        ),
        (
            COMBINED,
            {},
            {"initial_controllers": "1@a:1:JEXY6aqzQY-32P5TStzaFg,2@b:2:MvDxzVmcRsaTz33bUuRU6A"},
            "2 voters",
        ),
        (COMBINED, {}, {"initial_controllers": "3@a:1:JEXY6aqzQY-32P5TStzaFg"}, "expected this controller, 1"),
        (COMBINED, {}, {"initial_controllers": "1@a:1"}, "expected <id>@<host>:<port>:<directory id>"),
        (COMBINED, {}, {"initial_controllers": "1@a:1:short"}, "not a Kafka uuid"),
        (COMBINED, {}, {"initial_controllers": ""}, "expected <id>@"),
        (COMBINED, {}, {"standalone": True, "add_scram": ["foo"]}, "--add-scram"),
        (
            COMBINED,
            {},
            {"standalone": True, "add_scram": ["SCRAM-SHA-256=[name=a,password=b]"], "release_version": "3.4"},
            "does not support SCRAM",
        ),
        (COMBINED, {}, {"standalone": True, "features": ["kraft.version=0"]}, "kraft.version=0"),
        (COMBINED, {}, {"standalone": True, "release_version": "9.9"}, "--release-version '9.9'"),
    ],
)
def test_nothing_is_written_for_an_invalid_request(
    tmp_path: Path, base: dict[str, str], changes: dict[str, str | None], flags: dict, what: str
) -> None:
    with pytest.raises(ConfigError) as error:
        format_storage(config_of(base, tmp_path / "data", changes), CLUSTER, FormatOptions(**flags))
    assert what in str(error.value)
    assert not (tmp_path / "data").exists()


def test_a_cluster_id_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--cluster-id"):
        format_storage(config_of(COMBINED, tmp_path), " ", FormatOptions(standalone=True))


def test_a_log_without_meta_properties_is_not_formatted_over(tmp_path: Path) -> None:
    open_log(tmp_path / "__cluster_metadata-0", create=True).close()
    with pytest.raises(ConfigError, match="but a log in __cluster_metadata-0"):
        format_storage(config_of(COMBINED, tmp_path), CLUSTER, FormatOptions(standalone=True))
    with pytest.raises(ConfigError, match="not formatted, but contains __cluster_metadata-0/0000"):
        ensure_formatted(config_of(COMBINED, tmp_path))


def test_a_committed_mark_is_not_formatted_over(tmp_path: Path) -> None:
    (tmp_path / COMMITTED_FILE).touch()
    with pytest.raises(ConfigError, match=r"no meta\.properties, but aclog\.committed records a committed log"):
        format_storage(config_of(COMBINED, tmp_path), CLUSTER, FormatOptions(standalone=True))
    with pytest.raises(ConfigError, match=r"not formatted, but contains aclog\.committed"):
        ensure_formatted(config_of(COMBINED, tmp_path))


def test_a_node_needs_a_formatted_directory_of_its_own(tmp_path: Path) -> None:
    config = config_of(COMBINED, tmp_path / "data")
    with pytest.raises(
        ConfigError, match=r"No `meta\.properties` found in .*/data \(have you run `aclog format CONFIG`"
    ):
        require_formatted(config)
    assert not (tmp_path / "data").exists()
    meta = ensure_formatted(config)
    assert require_formatted(config) == meta
    with pytest.raises(ConfigError, match=r"Invalid node\.id"):
        require_formatted(config_of(COMBINED, tmp_path / "data", {"node.id": "9"}))


def test_an_interrupted_run_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise LogError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_meta_properties", stopped)
        with pytest.raises(LogError):
            ensure_formatted(config_of(COMBINED, tmp_path))
    assert files(tmp_path) == [FIRST, "bootstrap.checkpoint"]
    (tmp_path / FIRST.replace(".checkpoint", "-0123.checkpoint.part")).touch()
    meta = ensure_formatted(config_of(COMBINED, tmp_path))
    voters = control_records((tmp_path / FIRST).read_bytes())[2]
    assert isinstance(voters, KRaftVoters)
    assert voters.voters[0].voter_directory_id == meta.directory_id


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LogError, match="Not a directory"):
        format_storage(config_of(BROKER, tmp_path / "file" / "data"), CLUSTER)


def test_a_start_formats_empty_directories_once(tmp_path: Path) -> None:
    config = config_of(COMBINED, tmp_path / "data")
    meta = ensure_formatted(config)
    assert ensure_formatted(config) == meta
    assert not meta.cluster_id.startswith("-")
    assert uuid_text(parse_uuid(meta.cluster_id)) == meta.cluster_id
    assert files(tmp_path / "data") == [FIRST, "bootstrap.checkpoint", "meta.properties"]
    with pytest.raises(ConfigError, match="Expected other, but read"):
        ensure_formatted(config, cluster_id="other")
    with pytest.raises(ConfigError, match=r"Invalid node\.id"):
        ensure_formatted(config_of(COMBINED, tmp_path / "data", {"node.id": "9"}))


def test_random_ids_never_look_like_flags(tmp_path: Path) -> None:
    drawn = iter([b"\xf8" + bytes(15), b"\x00" * 16, *[bytes([n]) * 16 for n in range(1, 9)]])
    meta = ensure_formatted(config_of(COMBINED, tmp_path), token_bytes=lambda _: next(drawn))
    assert not meta.cluster_id.startswith("-")


def test_a_start_with_a_static_voter(tmp_path: Path) -> None:
    ensure_formatted(config_of(COMBINED, tmp_path, VOTERS))
    assert files(tmp_path) == ["bootstrap.checkpoint", "meta.properties"]


def test_a_broker_takes_its_clusters_id(tmp_path: Path) -> None:
    config = config_of(BROKER, tmp_path)
    with pytest.raises(ConfigError, match="expected `aclog format` with the cluster's id"):
        ensure_formatted(config)
    assert files(tmp_path) == []
    assert ensure_formatted(config, cluster_id=CLUSTER).cluster_id == CLUSTER
    assert ensure_formatted(config).node_id == 2


def test_a_start_does_not_format_with_other_controllers(tmp_path: Path) -> None:
    config = config_of(COMBINED, tmp_path, {"controller.quorum.bootstrap.servers": "a:1,b:2,c:3"})
    with pytest.raises(ConfigError, match="names 3 controllers"):
        ensure_formatted(config)


def test_a_start_does_not_format_a_directory_with_files(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / "lost+found").mkdir()
    ensure_formatted(config_of(COMBINED, tmp_path, {"metadata.log.dir": f"{tmp_path}/m", "log.dirs": f"{tmp_path}/l"}))
    (tmp_path / "somebody.txt").touch()
    with pytest.raises(ConfigError, match=r"not formatted, but contains l:|contains somebody\.txt:"):
        ensure_formatted(config_of(COMBINED, tmp_path))


def test_a_directory_formatted_by_kafka_is_used_unchanged(tmp_path: Path) -> None:
    meta = MetaProperties(cluster_id="theirs", node_id=1, directory_id=None)
    write_meta_properties(tmp_path, meta, now_ms=0)
    assert ensure_formatted(config_of(COMBINED, tmp_path)) == meta
    assert files(tmp_path) == ["meta.properties"]
