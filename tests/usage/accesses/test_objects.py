"""An S3 prefix is read as a directory of the same files is, by every command on access logs."""

import gzip
import json
import tarfile
import tempfile
import traceback
import zipfile
from datetime import UTC
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.cli.flags.accesses import AccessesFlags
from aclog.metalog.errors import ConfigError
from aclog.ops.usage import AccessLog
from aclog.pipeline.storage import local_path
from aclog.sources.accesses import read_accesses, read_seen_accesses
from aclog.usage.accesses import objects as objects_module
from aclog.usage.accesses.access_log import find_accesses, read_part
from aclog.usage.accesses.lines import FileChangedError
from aclog.usage.accesses.objects import ObjectCopies
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from tests.support.cli.command import aclog
from tests.support.processes.object_store import object_store
from tests.support.spark.access_logs import audit_text

pytestmark = pytest.mark.tier("test")

RULE = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip


def text(name: str, count: int = 1) -> bytes:
    line = audit_text(name=name).replace("is Denied", "is Allowed")
    return "".join(f"{line}\n" for _ in range(count)).encode()


def table(name: str) -> bytes:
    file = BytesIO()
    row = dict(zip(REQUEST_COLUMNS, ("User:a", "10.0.0.1", "READ", "TOPIC", name), strict=True))
    pq.write_table(pa.Table.from_pylist([row | {"timestamp": 1_795_255_200_123}]), file)
    return file.getvalue()


FILES = {
    "broker 1/kafka-authorizer.log": text("orders", 3),
    "broker 1/kafka-authorizer.log.2026-11-20.gz": gzip.compress(text("pay")),
    "broker-2/kafka-authorizer.log": text("a+b=c"),
    "broker-2/server.log": b"[2026-11-21 10:00:00,123] INFO started (kafka.server.KafkaServer)\n",
    "broker-2/_temporary/part": text("hidden"),
    "broker-2/.hidden": text("hidden"),
    "table.parquet": table("t"),
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch, tmp_path):
    """Those of no one: nothing of the machine is read."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()


@pytest.fixture
def logs(tmp_path):
    """The same files in a directory."""
    for name, data in FILES.items():
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "logs"


def rows_of(log) -> list[str]:
    return sorted(str(row) for part in log.parts for batch in read_part(part) for row in batch.rows.to_pylist())


def test_a_prefix_is_read_as_a_directory(logs, tmp_path):
    with object_store({f"logs/kafka/{name}": data for name, data in FILES.items()}) as options:
        found, expected = find_accesses([f"s3://logs/kafka{options}"], UTC), find_accesses([str(logs)], UTC)
        assert rows_of(found) == rows_of(expected)
        assert len(rows_of(found)) == 6
        names = {file.path: file.path.replace(str(logs), "s3://logs/kafka") for file in expected.files}
        assert {file.path for file in found.files} == set(names.values())
        assert found.skipped == ("s3://logs/kafka/broker-2/server.log",)
        one = find_accesses([f"s3://logs/kafka/broker-2/kafka-authorizer.log{options}"], UTC)
        assert len(rows_of(one)) == 1
        assert len(rows_of(find_accesses([f"s3://logs{options}"], UTC))) == 6
        assert rows_of(find_accesses([f"s3a://logs/kafka{options}"], UTC)) == rows_of(expected)
        assert rows_of(find_accesses([logs.as_uri()], UTC)) == rows_of(expected)
    del found, one
    assert not list((tmp_path / "scratch").iterdir())


def packed(kind: str, name: str) -> bytes:
    """An archive, or a file, with one access."""
    if kind == "zst":
        return pa.compress(text(name), codec="zstd", asbytes=True)
    file = BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("kafka-authorizer.log.gz", gzip.compress(text(name)))
    else:
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            member = tarfile.TarInfo("broker-1/kafka-authorizer.log")
            member.size = len(text(name))
            tar.addfile(member, BytesIO(text(name)))
    return file.getvalue()


def test_packed_objects_on_several_pages_are_read():
    kinds = ("zst", "zip", "tar.gz")
    objects = {f"logs/b{number}/{kind}": packed(kind, f"{kind}-{number}") for number in range(4) for kind in kinds}
    with object_store(objects) as options:
        found = find_accesses([f"s3://logs{options}"], UTC)
        batches = (batch for part in found.parts for batch in read_part(part))
        names = sorted(name for batch in batches for name in batch.rows.column("resourceName").to_pylist())
    assert names == sorted(f"{kind}-{number}" for number in range(4) for kind in kinds)


class Changing(dict[str, bytes]):
    """Objects of which one changes before it is read for the n-th time."""

    def __init__(self, content: bytes, changed: bytes | None, at: int) -> None:
        super().__init__({"logs/kafka/a.log": content})
        self.changed, self.at, self.reads = changed, at, 0

    def get(self, name, default=None):
        """Return an object, perhaps another one than before."""
        if name == "logs/kafka/a.log":
            self.reads += 1
            if self.reads == self.at and self.changed is None:
                del self[name]
            elif self.reads == self.at:
                self[name] = self.changed
        return super().get(name, default)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_an_object_that_changes_while_it_is_read_is_refused(monkeypatch, how):
    """Of the same size: only its ETag differs."""
    monkeypatch.setattr(objects_module, "_BLOCK", 1000)
    content = text("orders", 20)
    changed = content.replace(b"User:a", b"User:b") if how == "replaced" else None
    refused = 0
    for at in range(1, 30):
        objects = Changing(content, changed, at)
        with object_store(objects) as options:
            try:
                rows = rows_of(find_accesses([f"s3://logs/kafka{options}"], UTC))
            except FileChangedError as error:
                refused += str(error).startswith(f"s3://logs/kafka/a.log: {how}")
            else:  # one object as a whole: as it was before, or after
                assert len(rows) == 20
                assert len({"User:a" in row for row in rows}) == 1
        if objects.reads < at:
            break
    assert refused >= at - 3


def test_denied_objects_are_named():
    objects = {f"logs/{name}/a.log": text("orders") for name in ("open", "shut")} | {"secret/a.log": text("orders")}
    with object_store(objects, denied={"secret", "logs/shut/a.log"}) as options:
        assert len(rows_of(find_accesses([f"s3://logs/open{options}"], UTC))) == 1
        with pytest.raises(ConfigError, match=r"^s3://secret: .*ACCESS_DENIED"):
            find_accesses([f"s3://secret{options}"], UTC)
        for place in ("logs", "logs/shut", "logs/shut/a.log"):
            with pytest.raises(ConfigError, match=rf"^s3://{place}(?:/shut/a\.log|/a\.log)?: .*ACCESS_DENIED"):
                find_accesses([f"s3://{place}{options}"], UTC)


def test_credentials_are_those_of_the_environment(monkeypatch):
    """Without any, the store is read as an unknown client: an address has no place for a secret."""
    seen = list[str]()
    with object_store({"logs/a.log": text("orders")}, seen=seen) as options:
        for identity in ("one", "two"):
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", identity)
            assert len(rows_of(find_accesses([f"s3://logs{options}"], UTC))) == 1
            assert seen
            assert all(f"Credential={identity}/" in each for each in seen)
            seen.clear()
        for option in ("access_key=id&secret_key=SECRET", "session_token=SECRET"):
            with pytest.raises(ConfigError, match="may hold credentials") as refused:
                find_accesses([f"s3://logs{options}&{option}"], UTC)
            assert "SECRET" not in str(refused.value)
    assert not seen


def test_a_prefix_may_have_an_at_sign(tmp_path):
    with object_store({"logs/team@acme/kafka-authorizer.log": text("orders")}) as options:
        assert len(rows_of(find_accesses([f"s3://logs/team@acme{options}"], UTC))) == 1


def test_a_report_copies_a_prefix_once(logs, tmp_path, monkeypatch):
    acls = tmp_path / "acls.jsonl"
    acls.write_text(json.dumps(RULE) + "\n")
    copied, of = [], ObjectCopies.of
    monkeypatch.setattr(ObjectCopies, "of", lambda path: copied.append(path) or of(path))
    with object_store({f"logs/kafka/{name}": data for name, data in FILES.items()}) as options:
        place = f"s3://logs/kafka{options}"
        for sections in ("lint,unused", "unused", "lint"):
            copied.clear()
            out = tmp_path / "report.md"
            aclog("report", acls, "--accesses", place, "--out", out, "--sections", sections).ok()
            assert copied == [place]
            assert not list((tmp_path / "scratch").iterdir())


def test_a_file_uri_may_be_a_glob_or_have_a_number_sign(tmp_path):
    for name in ("broker1/x.log", "broker22/x.log", "a#1/x.log", "x.log", "a/x.log"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text(name.replace("/", ".")))
    for uri, name in (("broker?/x.log", "broker1/x.log"), ("a#1/x.log", "a#1/x.log"), ("a%231/x.log", "a#1/x.log")):
        found = find_accesses([f"{tmp_path.as_uri()}/logs/{uri}"], UTC)
        assert [file.path for file in found.files] == [str(tmp_path / "logs" / name)]
    assert local_path("file:///logs/a%20b/x?#1") == "/logs/a b/x?#1"


def test_an_address_of_hadoop_is_judged_as_one_of_s3(tmp_path):
    flags = AccessesFlags(accesses=["s3a://bucket/p"])
    with pytest.raises(ConfigError, match="s3://bucket/p: a table or objects"):
        AccessLog.of(flags, each=list, copies=False)


def test_an_incomplete_output_is_refused():
    files = {"lake/decided/00-incomplete.parquet": b"aclog", "lake/decided/part-0.parquet": table("t")}
    with object_store(files) as options, pytest.raises(ConfigError, match="s3://lake/decided: the incomplete output"):
        find_accesses([f"s3://lake/decided{options}"], UTC)


def test_commands_read_a_prefix(logs, tmp_path):
    acls = tmp_path / "acls.jsonl"
    acls.write_text(json.dumps(RULE) + "\n")
    with object_store({f"logs/kafka/{name}": data for name, data in FILES.items()}) as options:
        place = f"s3://logs/kafka{options}"
        for command in ("usage", "denied", "coverage"):
            source = () if command == "coverage" else ("--acls", acls)
            ours = aclog(command, "--accesses", place, *source, "--format", "jsonl")
            theirs = aclog(command, "--accesses", logs, *source, "--format", "jsonl")
            assert (ours.code, ours.out.replace("s3://logs/kafka", str(logs))) == (theirs.code, theirs.out), ours.err
        index = ("--acls", acls, "--index", tmp_path / "index", "--format", "jsonl")
        (first,) = map(json.loads, aclog("usage-index", "--accesses", place, *index).ok().lines)
        (again,) = map(json.loads, aclog("usage-index", "--accesses", place, *index).ok().lines)
        assert (first["accesses"], first["newFiles"], again["accesses"]) == (6, 4, 0)
        follow = aclog("usage-index", "--accesses", place, *index, "--follow")
        assert "objects do not grow" in follow.complaint
        assert read_accesses(place) == read_accesses(str(logs))
        assert read_seen_accesses(place).requests == set(read_accesses(str(logs)).counts)


def test_what_cannot_be_read_is_named(monkeypatch):
    objects = {
        "logs/delta/_delta_log/0.json": b"{}",
        "logs/delta/part.parquet": table("deleted"),
        "logs/iceberg/metadata/v1.metadata.json": b"{}",
        "logs/packed/metadata/v1.metadata.json.gz": gzip.compress(b"{}"),
        "logs/plain/server.log": b"[2026-11-21 10:00:00,123] INFO started (kafka.server.KafkaServer)\n",
        "logs/damaged/a.gz": gzip.compress(text("orders", 9))[:-9],
    }
    with object_store(objects) as options:
        for place, error in {
            "s3://logs/delta": "has a table of Delta, Hudi or Iceberg",
            "s3://logs/iceberg": "has a table of Delta, Hudi or Iceberg",
            "s3://logs/packed": "has a table of Delta, Hudi or Iceberg",
            "s3://logs/plain": "no accesses: none of 1 file has a message",
            "s3://logs/nothing": "s3://logs/nothing: ",
            "s3://none/nothing": "s3://none/nothing: ",
            "s3://logs/*.log": "expected s3://BUCKET/PREFIX, without *",
            "s3://id:secret@logs/x": "^an address of s3:// has `@` before its prefix, or `:` in its bucket",
            "s3://id:a/secret@logs/x": "may hold credentials",
            "s3://id:secret/a": "may hold credentials",
            "s3://id/secret@logs/x": "may hold credentials",
            "s3://AKIAX/secret@logs/x": "may hold credentials",
            "s3://secret@logs/x": "may hold credentials",
            "s3://id:a?secret@logs/x": "may hold credentials",
            "s3://": "expected s3://BUCKET/PREFIX",
        }.items():
            with pytest.raises(ConfigError, match=error.replace("*", r"\*")) as refused:
                find_accesses([f"{place}{options}"], UTC)
            assert "secret" not in str(refused.value)
        damaged = find_accesses([f"s3://logs/damaged{options}"], UTC)
        with pytest.raises(ConfigError, match=r"^s3://logs/damaged/a\.gz: not a complete gzip file"):
            rows_of(damaged)
        for buffering in (0, -1):  # a write fails, or the end of the file
            with monkeypatch.context() as context:
                context.setattr(Path, "open", full_disk(Path.open, buffering))
                with pytest.raises(
                    ConfigError, match=r"server\.log: cannot be copied to .*: expected room for it there"
                ):
                    find_accesses([f"s3://logs/plain{options}"], UTC)


def test_credentials_in_a_response_are_in_no_traceback():
    """A response may repeat the address of the request, whose query may have the token of a session."""
    message = "the signature is another one: http://logs/a.log?X-Amz-Security-Token=tOkEn"
    answer = (403, f"<Error><Code>SignatureDoesNotMatch</Code><Message>{message}</Message></Error>".encode())

    def fault(when: str, request: str) -> tuple[int, bytes] | None:
        return answer if when == "before" and request.startswith("GET") else None

    with (
        object_store({"logs/a.log": text("orders")}, fault=fault) as options,
        pytest.raises(ConfigError, match=r"s3://logs/a\.log: ") as caught,  # the client may leave the message out
    ):
        find_accesses([f"s3://logs{options}"], UTC)
    assert "tOkEn" not in "".join(traceback.format_exception(caught.value))


def test_credentials_in_an_address_are_in_no_error(tmp_path):
    place = "s3://AKIAX:ab/SECRETcd@bucket/x"
    for more in ((), ("--version-as-of", 1)):
        refused = aclog("usage", "--accesses", place, "--acls", tmp_path, *more)
        assert "may hold credentials" in refused.complaint
        assert not any(part in refused.err for part in ("AKIAX", "ab/", "SECRET"))
    index = ("--acls", tmp_path, "--index", tmp_path / "index", "--follow", "--version-as-of", 1)
    assert "SECRET" not in aclog("usage-index", "--accesses", place, *index).complaint


@pytest.mark.parametrize(
    ("marker", "name"),
    [("_delta_log/0.json", "Delta"), (".hoodie/hoodie.properties", "Hudi"), ("metadata/v1.metadata.json", "Iceberg")],
)
@pytest.mark.parametrize("part", ["day=1", "day=1/part.parquet", "day=1/hour=2/part"])
def test_a_part_of_a_table_is_refused(marker, name, part):
    objects = {
        f"logs/a/table/{marker}": b"{}",
        "logs/a/table/day=1/part.parquet": table("deleted"),
        "logs/a/table/day=1/hour=2/part": table("deleted"),
        "logs/a/table/broker.log": text("orders"),
        "logs/a/other/part.parquet": table("orders"),
    }
    with object_store(objects) as options:
        with pytest.raises(ConfigError, match=f": in the {name} table s3://logs/a/table: expected logs: pass a copy"):
            find_accesses([f"s3://logs/a/table/{part}{options}"], UTC)
        for of_none in ("other", "other/part.parquet", "table/broker.log"):
            assert len(rows_of(find_accesses([f"s3://logs/a/{of_none}{options}"], UTC))) == 1


def test_errors_of_tables_name_the_object():
    columns = BytesIO()
    pq.write_table(pa.table({"principal": ["User:a"]}), columns)
    damaged = table("orders")[:-9]
    with object_store({"logs/damaged/a.parquet": damaged, "logs/columns/a.parquet": columns.getvalue()}) as options:
        with pytest.raises(ConfigError, match=r"^s3://logs/damaged/a\.parquet: not a Parquet file, or damaged"):
            find_accesses([f"s3://logs/damaged{options}"], UTC)
        found = find_accesses([f"s3://logs/columns{options}"], UTC)
        with pytest.raises(ConfigError, match=r"^s3://logs/columns/a\.parquet: no column"):
            rows_of(found)


def full_disk(opened, buffering=0):
    """Files that can be opened, and not written."""

    def full(path, mode="r", **how):
        if mode != "wb":
            return opened(path, mode, **how)
        return opened(Path("/dev/full"), mode, buffering=buffering)

    return full
