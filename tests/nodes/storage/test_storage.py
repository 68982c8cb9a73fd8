from pathlib import Path
from uuid import UUID

import pytest

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from aclog.metalog.primitives import parse_uuid
from tests.support.kafka.jvm import ROOT

KAFKAS = sorted((ROOT / "tests" / "data").glob("kafka-*/meta.properties"))


@pytest.mark.parametrize("path", KAFKAS, ids=lambda path: path.parent.name)
def test_kafkas_files_survive_byte_for_byte(path: Path, tmp_path: Path) -> None:
    from email.utils import parsedate_to_datetime

    meta = read_meta_properties(path.parent)
    assert meta is not None
    text = path.read_text()
    weekday, month, day, clock, zone, year = text.splitlines()[1].removeprefix("#").split()
    written = parsedate_to_datetime(f"{weekday}, {day} {month} {year} {clock} {zone}")
    write_meta_properties(tmp_path, meta, now_ms=int(written.timestamp() * 1000) + 7)
    assert (tmp_path / "meta.properties").read_text() == text


def test_odd_cluster_ids_survive(tmp_path: Path) -> None:
    meta = MetaProperties(cluster_id=" any: =#!thing \u00e9", node_id=0, directory_id=UUID(int=2))
    write_meta_properties(tmp_path, meta, now_ms=0)
    assert read_meta_properties(tmp_path) == meta


def test_none(tmp_path: Path) -> None:
    assert read_meta_properties(tmp_path) is None
    assert read_meta_properties(tmp_path / "absent") is None


def test_a_kafka_before_directory_ids(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=3\n")
    assert read_meta_properties(tmp_path) == MetaProperties(cluster_id="c", node_id=3, directory_id=None)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("version=0\nbroker.id=1\ncluster.id=c\n", "version '0': expected 1"),
        ("cluster.id=c\n", "version '0': expected 1"),
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        ("version=1\ncluster.id=c\n", "node.id '': expected a number"),
        ("version=1\ncluster.id=c\nnode.id=-1\n", "node.id '-1': expected a number"),
        ("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=x\n", "directory.id: 'x' is not a Kafka uuid"),
        ("\\uzzzz", "a malformed"),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(ConfigError) as error:
        read_meta_properties(tmp_path)
    assert f"{tmp_path}/meta.properties: {what}" in str(error.value)


def test_directory_ids_are_kafkas_uuids(tmp_path: Path) -> None:
    id_ = parse_uuid("JCfGj5ocQb6uGSddU7P83A")
    write_meta_properties(tmp_path, MetaProperties(cluster_id="c", node_id=1, directory_id=id_), now_ms=0)
    assert "directory.id=JCfGj5ocQb6uGSddU7P83A\n" in (tmp_path / "meta.properties").read_text()
