"""kafka-storage 4.3.1 and 4.4.0, and ours with the same flags: the same bytes but for ids and times, or both refuse."""

from pathlib import Path

import pytest

from aclog.config.server_properties import parse_config
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.meta_properties import read_meta_properties
from aclog.server.storage import FormatOptions, FormatResult, format_storage
from aclog.snapshots.image import KAFKA_VERSION_CONFIG
from tests.support.kafka.configs import ask
from tests.support.kafka.format_bytes import without_ids, without_times
from tests.support.kafka.jvm import KAFKA_44, KAFKA_VERSION
from tests.support.nodes.node_properties import BROKER, COMBINED, CONTROLLER, changed

pytestmark = pytest.mark.server

CLUSTER = "ZDUkooY3wL1SfPIPJQqLYw"
STATIC = {"controller.quorum.bootstrap.servers": None, "controller.quorum.voters": "1@localhost:9093"}
SALT = "salt=MWluZmQ3cjVlb3BsMTFmc2NnN2k2bjRkYg=="
SCRAM = [
    f"SCRAM-SHA-256=[name=admin,password=admin-secret,{SALT}]",
    'SCRAM-SHA-512=[name=bob,iterations=8192,salt="N3E=",saltedpassword="YCE="]',
    f'SCRAM-SHA-256=[name= odd n\u00e4me ,password=" p\u00e4ss=word",{SALT}]',
]
ONE = "1@localhost:20093:JEXY6aqzQY-32P5TStzaFg"
FLAGS = {
    "standalone": "--standalone",
    "initial_controllers": "--initial-controllers",
    "no_initial_controllers": "--no-initial-controllers",
    "add_scram": "--add-scram",
    "features": "--feature",
    "release_version": "--release-version",
    "ignore_formatted": "--ignore-formatted",
}

RIGHT = (
    (COMBINED, {}, {"standalone": True}),
    (COMBINED, {}, {"standalone": True, "add_scram": SCRAM}),
    (COMBINED, {}, {"standalone": True, "release_version": "4.0"}),
    (COMBINED, {}, {"standalone": True, "release_version": "3.3.2"}),
    (COMBINED, {}, {"standalone": True, "features": ["metadata.version=24"]}),
    (COMBINED, {}, {"standalone": True, "features": ["transaction.version=1", "share.version=0", "kraft.version=1"]}),
    (COMBINED, {}, {"standalone": True, "release_version": "3.9", "features": ["group.version=1"]}),
    (COMBINED, {}, {"initial_controllers": ONE}),
    (COMBINED, {}, {"no_initial_controllers": True}),
    (COMBINED, STATIC, {}),
    (COMBINED, STATIC, {"features": ["kraft.version=0"]}),
    (COMBINED, STATIC, {"no_initial_controllers": True}),
    (COMBINED, {"log.dirs": "DIR/b,DIR/a", "metadata.log.dir": "DIR/m"}, {"standalone": True}),
    (CONTROLLER, {"listeners": "CONTROLLER://:20093"}, {"standalone": True}),
    (CONTROLLER, {"advertised.listeners": "CONTROLLER://example.org:1234"}, {"standalone": True}),
    (
        CONTROLLER,
        {
            "listeners": "ONE://h:1,TWO://h:2",
            "controller.listener.names": "TWO,ONE",
            "listener.security.protocol.map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
        },
        {"standalone": True},
    ),
    (BROKER, {}, {}),
    (BROKER, {}, {"initial_controllers": ONE}),
)

RIGHT_IN_4_4 = (
    (COMBINED, {}, {"standalone": True, "release_version": "4.3"}),
    (COMBINED, {}, {"standalone": True, "release_version": "4.4-IV0", "add_scram": SCRAM[:1]}),
    (COMBINED, {}, {"standalone": True, "features": ["metadata.version=32", "share.version=1"]}),
    (COMBINED, {}, {"standalone": True, "features": ["metadata.version=30", "share.version=2"]}),
)
WRONG = (
    (COMBINED, {}, {}),
    (COMBINED, STATIC, {"standalone": True}),
    (COMBINED, STATIC, {"initial_controllers": ONE}),
    (COMBINED, STATIC, {"features": ["kraft.version=1"]}),
    (BROKER, {}, {"standalone": True}),
    (COMBINED, {}, {"standalone": True, "features": ["kraft.version=0"]}),
    (COMBINED, {}, {"standalone": True, "features": ["foo.version=1"]}),
    (COMBINED, {}, {"standalone": True, "features": ["transaction.version=9"]}),
    (COMBINED, {}, {"standalone": True, "features": ["transaction.version"]}),
    (COMBINED, {}, {"standalone": True, "features": ["metadata.version=34"]}),
    (COMBINED, {}, {"standalone": True, "release_version": "4.5-IV0"}),
    (COMBINED, {}, {"standalone": True, "release_version": "4"}),
    (COMBINED, {}, {"standalone": True, "release_version": "4.0", "features": ["metadata.version=25"]}),
    (COMBINED, {}, {"standalone": True, "release_version": "3.4", "add_scram": SCRAM[:1]}),
    (COMBINED, {}, {"standalone": True, "release_version": "3.9", "features": ["eligible.leader.replicas.version=1"]}),
    (COMBINED, {}, {"initial_controllers": "1@localhost:20093"}),
    (COMBINED, {}, {"standalone": True, "add_scram": ["SCRAM-SHA-256=[name=a]"]}),
    (COMBINED, {}, {"standalone": True, "add_scram": ["SCRAM-SHA-256=[name=a,password=b,iterations=4095]"]}),
    (COMBINED, {}, {"standalone": True, "add_scram": ["SCRAM-SHA-256=[name=a,password=b,iterations=16385]"]}),
    (COMBINED, {}, {"standalone": True, "add_scram": ["SCRAM-SHA-256=[name=a,password=b,c]"]}),
)


def arguments(flags: dict) -> list[str]:
    found: list[str] = []
    for name, value in flags.items():
        values = value if isinstance(value, list) else [value]
        found += [part for each in values for part in ([FLAGS[name]] if each is True else [FLAGS[name], each])]
    return found


def properties_of(base: dict[str, str], changes: dict[str, str | None], directory: Path) -> dict[str, str]:
    values = changed(base | {"log.dirs": "DIR/data"}, changes)
    return {key: value.replace("DIR", str(directory)) for key, value in values.items()}


def question(properties: dict[str, str], flags: dict, path: Path) -> dict:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return {"op": "storage", "args": ["format", "-c", str(path), "-t", CLUSTER, *arguments(flags)]}


def tree(directory: Path) -> dict[str, tuple[int, bytes | str]]:
    """Relative paths and their contents without ids and times; the mode if it matters."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        read_only = not path.stat().st_mode & 0o200
        if path.name == "meta.properties":
            found[str(path.relative_to(directory))] = (read_only, without_ids(path.read_text()))
            continue
        root = path.parent.parent if path.parent.name.startswith("__") else path.parent
        meta = read_meta_properties(root)
        assert meta is not None
        assert meta.directory_id is not None
        found[str(path.relative_to(directory))] = (read_only, without_times(path.read_bytes(), meta.directory_id))
    return found


@pytest.mark.parametrize("version", [KAFKA_VERSION, KAFKA_44])
def test_the_same_flags_write_the_same_bytes(tmp_path: Path, version: str) -> None:
    kafkas, ours = tmp_path / "kafka", tmp_path / "aclog"
    kafkas.mkdir()
    right = RIGHT if version == KAFKA_VERSION else (*RIGHT, *RIGHT_IN_4_4)
    cases = [(*case, str(number)) for number, case in enumerate(right)]
    answers = ask(
        [
            question(properties_of(base, changes, kafkas / name), flags, kafkas / f"{name}.properties")
            for base, changes, flags, name in cases
        ],
        version,
    )
    for (base, changes, flags, name), answer in zip(cases, answers, strict=True):
        assert answer.get("ok", answer).get("exit") == 0, answer
        result = formatted(properties_of(base, changes, ours / name), flags, version)
        said = [line for line in answer["ok"]["out"].splitlines() if not line.startswith("Bootstrap metadata")]
        assert sorted(line.replace(str(ours), str(kafkas)) for line in result.lines) == sorted(said)
        assert tree(ours / name) == tree(kafkas / name), flags
        assert len(tree(ours / name)) >= (1 if version == KAFKA_44 and base is BROKER else 2)


def formatted(properties: dict[str, str], flags: dict, version: str) -> FormatResult:
    return format_storage(
        parse_config({KAFKA_VERSION_CONFIG: version, **properties}, "it"), CLUSTER, FormatOptions(**flags)
    )


@pytest.mark.parametrize("version", [KAFKA_VERSION, KAFKA_44])
def test_the_same_flags_are_refused(tmp_path: Path, version: str) -> None:
    cases = [(*case, str(number)) for number, case in enumerate(WRONG)]
    answers = ask(
        [
            question(properties_of(base, changes, tmp_path / name), flags, tmp_path / f"{name}.properties")
            for base, changes, flags, name in cases
        ],
        version,
    )
    for (base, changes, flags, name), answer in zip(cases, answers, strict=True):
        assert "error" in answer or answer["ok"]["exit"], flags
        with pytest.raises(ConfigError):
            formatted(properties_of(base, changes, tmp_path / name), flags, version)
        assert not (tmp_path / name).exists()
