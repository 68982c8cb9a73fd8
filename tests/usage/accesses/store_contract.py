"""What `--accesses` does in each object store, beside the same files in a directory: the contract suite of
`test_stores.py` and `test_clouds.py`.
"""

import gzip
import json
import tempfile
from datetime import UTC
from typing import Protocol

import pytest

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses import objects as objects_module
from aclog.usage.accesses.access_log import find_accesses
from aclog.usage.accesses.lines import FileChangedError
from tests.support.cli.command import aclog
from tests.support.processes.cloud_stores import Traffic, no_hook
from tests.usage.accesses.test_objects import FILES, RULE, packed, rows_of, table, text

PLAIN = b"[2026-11-21 10:00:00,123] INFO started (kafka.server.KafkaServer)\n"
UNREAD = {
    "delta/_delta_log/0.json": b"{}",
    "delta/part.parquet": table("deleted"),
    "iceberg/metadata/v1.metadata.json": b"{}",
    "hudi/.hoodie/hoodie.properties": b"{}",
    "parts/_delta_log/0.json": b"{}",
    "parts/day=1/part.parquet": table("deleted"),
    "lines/_delta_log/0.json": b"{}",
    "lines/broker/broker.log": text("orders"),
    "plain/server.log": PLAIN,
    "damaged/a.gz": gzip.compress(text("orders", 9))[:-9],
    "hidden/_temporary/part": text("hidden"),
    "hidden/.part": text("hidden"),
}
OF_TABLE = "expected logs: pass a copy of the table on this machine, or read it with aclog spark"
REFUSALS = {
    "delta": f"ROOT/delta: has a table of Delta, Hudi or Iceberg (ROOT/delta/_delta_log/0.json): {OF_TABLE}",
    "iceberg": f"ROOT/iceberg: has a table of Delta, Hudi or Iceberg "
    f"(ROOT/iceberg/metadata/v1.metadata.json): {OF_TABLE}",
    "hudi": f"ROOT/hudi: has a table of Delta, Hudi or Iceberg (ROOT/hudi/.hoodie/hoodie.properties): {OF_TABLE}",
    "parts/day=1": f"ROOT/parts/day=1: in the Delta table ROOT/parts: {OF_TABLE}",
    "parts/day=1/part.parquet": f"ROOT/parts/day=1/part.parquet: in the Delta table ROOT/parts: {OF_TABLE}",
    "hidden": "ROOT/hidden: no objects (names that begin with `.` or `_` are skipped)",
    "damaged": "ROOT/damaged/a.gz: not a complete gzip file",
}
"""The errors of prefixes."""


class Bucket(Protocol):
    """A bucket or a container: `root` is its address, `options` comes after an address."""

    root: str

    @property
    def options(self) -> str: ...

    @property
    def traffic(self) -> Traffic: ...

    def put(self, name: str, content: bytes) -> None:
        """Create or replace an object."""

    def remove(self, name: str) -> None:
        """Delete an object."""


class StoreContract:
    """The tests of a store, which a fixture `bucket` has."""

    @pytest.fixture(autouse=True)
    def scratch(self, monkeypatch, tmp_path, bucket):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
        (tmp_path / "scratch").mkdir()
        yield tmp_path / "scratch"
        bucket.traffic.hook = no_hook

    @pytest.fixture
    def logs(self, tmp_path, bucket):
        """The same files in a directory and in the store."""
        for name, data in FILES.items():
            path = tmp_path / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            bucket.put(f"kafka/{name}", data)
        return tmp_path / "logs"

    @staticmethod
    def at(bucket: Bucket, prefix: str) -> str:
        return f"{bucket.root}/{prefix}{bucket.options}"

    def test_a_prefix_is_read_as_a_directory(self, bucket, logs, scratch):
        found, expected = find_accesses([self.at(bucket, "kafka")], UTC), find_accesses([str(logs)], UTC)
        assert rows_of(found) == rows_of(expected)
        assert len(rows_of(found)) == 6
        names = {file.path.replace(str(logs), f"{bucket.root}/kafka") for file in expected.files}
        assert {file.path for file in found.files} == names
        assert found.skipped == (f"{bucket.root}/kafka/broker-2/server.log",)
        slash = find_accesses([self.at(bucket, "kafka/")], UTC)
        assert {file.path for file in slash.files} == names
        one = find_accesses([self.at(bucket, "kafka/broker-2/kafka-authorizer.log")], UTC)
        assert [file.path for file in one.files] == [f"{bucket.root}/kafka/broker-2/kafka-authorizer.log"]
        assert len(rows_of(one)) == 1
        del found, one, slash
        assert not list(scratch.iterdir())

    def test_names_and_packed_objects_are_read(self, bucket):
        names = ("team@acme/a#1.log", "a b/c%20d+é.log", "x&sig/y.log", "z/kafka-authorizer.log.1")
        for number, name in enumerate(names):
            bucket.put(f"names/{name}", text(f"t-{number}"))
        for kind in ("zst", "zip", "tar.gz"):
            bucket.put(f"names/packed/{kind}", packed(kind, f"p-{kind}"))
        found = find_accesses([self.at(bucket, "names")], UTC)
        assert len(rows_of(found)) == len(names) + 3
        assert {f"{bucket.root}/names/{name}" for name in names} <= {file.path for file in found.files}
        for name in (names[0], names[1], "packed/zip", "team@acme", "a b"):
            assert len(rows_of(find_accesses([self.at(bucket, f"names/{name}")], UTC))) == 1

    @pytest.mark.parametrize("prefix", REFUSALS)
    def test_errors_are_the_same_in_each_store(self, bucket, prefix):
        for name, data in UNREAD.items():
            if name.split("/")[0] == prefix.split("/")[0]:
                bucket.put(name, data)
        with pytest.raises(ConfigError) as refused:
            rows_of(find_accesses([self.at(bucket, prefix)], UTC))
        assert str(refused.value).replace(bucket.root, "ROOT").startswith(REFUSALS[prefix])

    def test_lines_beside_a_table_are_read(self, bucket):
        for name in ("lines/_delta_log/0.json", "lines/broker/broker.log"):
            bucket.put(name, UNREAD[name])
        assert len(rows_of(find_accesses([self.at(bucket, "lines/broker")], UTC))) == 1

    def test_what_does_not_exist_is_named(self, bucket):
        bucket.put("there/server.log", PLAIN)
        for prefix in ("nothing", "there/x.log", "there"):
            with pytest.raises(ConfigError) as refused:
                find_accesses([self.at(bucket, prefix)], UTC)
            what = "no accesses: none of 1 file" if prefix == "there" else f"{bucket.root}/{prefix}: "
            assert what in str(refused.value)
        missing = self.at(bucket, "x").replace("logs", "none", 1)
        with pytest.raises(ConfigError) as refused:
            find_accesses([missing], UTC)
        assert str(refused.value).startswith(missing.partition("?")[0])

    @pytest.mark.parametrize("how", ["deleted", "replaced"])
    def test_an_object_that_changes_while_it_is_read_is_refused(self, bucket, monkeypatch, how):
        """Of the same size: only its version differs."""
        monkeypatch.setattr(objects_module, "_BLOCK", 1000)
        content = text("orders", 20)
        changed, name = content.replace(b"User:a", b"User:b"), f"changes-{how}/a.log"
        refused = whole = missing = 0
        for at in range(1, 60):
            bucket.put(name, content)
            count = 0

            def hook(request: str, at: int = at) -> None:
                nonlocal count
                count += "a.log" in request
                if count == at and "a.log" in request:
                    count += 1
                    if how == "deleted":
                        bucket.remove(name)
                    else:
                        bucket.put(name, changed)

            bucket.traffic.hook = hook
            try:
                rows = rows_of(find_accesses([self.at(bucket, f"changes-{how}")], UTC))
            except FileChangedError as error:
                refused += str(error).startswith(f"{bucket.root}/{name}: {how}")
            except ConfigError as error:  # before the listing had it
                missing += str(error).startswith(f"{bucket.root}/changes-{how}: ")
            else:  # one object as a whole: as it was before, or after
                whole += 1
                assert len(rows) == 20
                assert len({"User:a" in row for row in rows}) == 1
            bucket.traffic.hook = no_hook
            if count < at:
                break
        assert count < at
        assert refused >= 2
        assert refused + whole + missing == at
        assert not missing or how == "deleted"
        assert whole

    def test_denied_objects_are_named(self, bucket):
        bucket.put("open/a.log", text("orders"))
        bucket.put("shut/a.log", text("orders"))
        bucket.traffic.hook = lambda request: 403 if "shut" in request and "a.log" in request else None
        assert len(rows_of(find_accesses([self.at(bucket, "open")], UTC))) == 1
        for place in ("shut", "shut/a.log"):
            with pytest.raises(ConfigError) as refused:
                find_accesses([self.at(bucket, place)], UTC)
            assert str(refused.value).startswith(f"{bucket.root}/shut")
            assert "?" not in str(refused.value)

    def test_commands_read_a_prefix(self, bucket, logs, tmp_path):
        acls = tmp_path / "acls.jsonl"
        acls.write_text(json.dumps(RULE) + "\n")
        place = self.at(bucket, "kafka")
        for command in ("usage", "denied", "coverage"):
            source = () if command == "coverage" else ("--acls", acls)
            ours = aclog(command, "--accesses", place, *source, "--format", "jsonl")
            theirs = aclog(command, "--accesses", logs, *source, "--format", "jsonl")
            assert ours.out.replace(f"{bucket.root}/kafka", str(logs)) == theirs.out, ours.err
            assert ours.code == theirs.code
        index = ("--acls", acls, "--index", tmp_path / "index", "--format", "jsonl")
        (first,) = map(json.loads, aclog("usage-index", "--accesses", place, *index).ok().lines)
        (again,) = map(json.loads, aclog("usage-index", "--accesses", place, *index).ok().lines)
        assert (first["accesses"], first["newFiles"], again["accesses"]) == (6, 4, 0)
        assert "objects do not grow" in aclog("usage-index", "--accesses", place, *index, "--follow").complaint
