"""The contract of stores on Google Cloud Storage and Azure, by their emulators: `make check-clouds` has both."""

import gzip
import traceback
from collections.abc import Iterator
from datetime import UTC, timedelta

import pytest

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses import clients
from aclog.usage.accesses import objects as objects_module
from aclog.usage.accesses.access_log import find_accesses
from aclog.usage.accesses.lines import FileChangedError
from tests.support.kafka.server import free_port
from tests.support.processes.cloud_emulators import (
    ACCOUNT,
    KEY,
    READY,
    AzureContainer,
    GcsBucket,
    azure_container,
    gcs_bucket,
    sas_token,
)
from tests.support.processes.cloud_stores import no_hook
from tests.usage.accesses.store_contract import StoreContract
from tests.usage.accesses.test_objects import rows_of, table, text

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not all(each.exists() for each in READY), reason="make check-clouds has the emulators"),
]


@pytest.fixture(scope="module")
def gcs() -> Iterator[GcsBucket]:
    with gcs_bucket() as bucket:
        yield bucket


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureContainer]:
    with azure_container() as container:
        yield container


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """The key of the emulator's account, and no other credentials."""
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    monkeypatch.setenv("HOME", str(tmp_path))


class Clouds(StoreContract):
    """What the emulators do, and the object store of S3 of the tests does not."""

    def test_a_list_of_several_pages_is_complete(self, bucket, monkeypatch):
        for number in range(10):
            bucket.put(f"paged/broker-{number}/a.log", text(f"t-{number}"))
        self.prepare_pages(monkeypatch)
        bucket.proxy.is_paged = True
        del bucket.traffic.requests[:]
        try:
            log = find_accesses([self.at(bucket, "paged")], UTC)
        finally:
            bucket.proxy.is_paged = False
        assert len(rows_of(log)) == 10
        assert [file.path for file in log.files] == sorted(file.path for file in log.files)
        lists = [request for request in bucket.traffic.requests if "prefix=paged" in request]
        assert len(lists) >= 4, lists

    def prepare_pages(self, monkeypatch) -> None:
        """Use requests whose parameters the proxy may change."""

    def test_an_object_that_becomes_shorter_is_refused(self, bucket, monkeypatch):
        monkeypatch.setattr(objects_module, "_BLOCK", 1000)
        refused = 0
        for at in range(1, 9):
            bucket.put("shorter/a.log", text("orders", 20))
            seen = list[str]()

            def hook(request: str, at: int = at, seen: list[str] = seen) -> None:
                seen.append(request)
                if sum("a.log" in each for each in seen) == at:
                    bucket.put("shorter/a.log", text("orders"))

            bucket.traffic.hook = hook
            try:
                rows = rows_of(find_accesses([self.at(bucket, "shorter/a.log")], UTC))
            except FileChangedError as error:
                refused += str(error).startswith(f"{bucket.root}/shorter/a.log: replaced")
            else:
                assert len(rows) in {1, 20}
            bucket.traffic.hook = no_hook
        assert refused >= 2

    def test_a_table_beside_similar_names_is_found(self, bucket):
        """Of which a list has those with `-` and `.` first."""
        for name in ("_delta_log-old/0.json", "_delta_log.txt", "_delta_log/0.json"):
            bucket.put(f"similar/{name}", b"{}")
        bucket.put("similar/day=1/part.parquet", table("deleted"))
        with pytest.raises(ConfigError, match="day=1: in the Delta table"):
            find_accesses([self.at(bucket, "similar/day=1")], UTC)

    def test_names_with_an_empty_part_are_refused(self, bucket):
        bucket.put("empty/a.log", text("orders"))
        bucket.put("empty/b//a.log", text("orders"))
        with pytest.raises(ConfigError, match=f"^{bucket.root}/empty/b.*: an object has an empty part in its name"):
            find_accesses([self.at(bucket, "empty")], UTC)

    def test_a_host_without_a_store_is_named(self, bucket, monkeypatch):
        monkeypatch.setattr(clients, "_PATIENCE", timedelta(seconds=1))
        place = self.at(bucket, "x").replace(str(bucket.proxy.port), str(free_port()))
        with pytest.raises(ConfigError) as refused:
            find_accesses([place], UTC)
        expected = "no connection to the store: expected its host in the address, and a network"
        assert str(refused.value) == f"{bucket.root}/x: {expected}"

    def test_failures_of_the_store_end(self, bucket, monkeypatch):
        monkeypatch.setattr(clients, "_PATIENCE", timedelta(seconds=1))
        bucket.put("busy/a.log", text("orders"))
        bucket.traffic.hook = lambda _: 503
        with pytest.raises(ConfigError) as refused:
            find_accesses([self.at(bucket, "busy")], UTC)
        failed = str(refused.value).replace(" (HTTP status 503)", "")
        assert failed == f"{bucket.root}/busy: the store has failed: run again later"


class TestGcs(Clouds):
    """The contract on Google Cloud Storage."""

    @pytest.fixture
    def bucket(self, gcs):
        return gcs

    def test_errors_name_the_next_step(self, bucket):
        for place in ("gs://none", "gs://none/x", "gs://logs/none"):
            with pytest.raises(ConfigError) as refused:
                find_accesses([place + bucket.options], UTC)
            assert str(refused.value) == f"{place}: not found: expected a bucket and a prefix that exist"
        for status in (401, 403):
            bucket.traffic.hook = lambda _, status=status: status
            with pytest.raises(ConfigError, match=f"^gs://logs/x: HTTP status {status}: expected ") as refused:
                find_accesses([self.at(bucket, "x")], UTC)
            assert "\n" not in str(refused.value)

    def test_a_whole_bucket_takes_no_permission_on_the_bucket(self):
        with gcs_bucket() as bucket:
            bucket.put("broker-1/a.log", text("orders"))
            bucket.traffic.hook = lambda request: 403 if request == "GET /storage/v1/b/logs" else None
            for root in (bucket.root, f"{bucket.root}/"):
                log = find_accesses([f"{root}{bucket.options}"], UTC)
                assert [file.path for file in log.files] == ["gs://logs/broker-1/a.log"]

    @pytest.mark.parametrize("content", ["", "{}", '{"type": "authorized_user", "refresh_token": "SECRET'])
    def test_credentials_that_cannot_be_read_are_in_no_error(self, tmp_path, monkeypatch, content):
        file = tmp_path / "SECRET.json"
        if content:
            file.write_text(content)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        with pytest.raises(ConfigError, match=r"^gs://logs/x: no credentials: expected the application") as refused:
            find_accesses([f"gs://logs/x?endpoint_override=127.0.0.1:{free_port()}"], UTC)
        assert "SECRET" not in "".join(traceback.format_exception(refused.value))

    def test_an_object_that_the_store_unpacks_is_refused(self, bucket):
        bucket.put("encoded/a.log", gzip.compress(text("orders", 9)), "gzip")
        with pytest.raises(ConfigError, match=r"^gs://logs/encoded/a\.log: has a Content-Encoding"):
            find_accesses([self.at(bucket, "encoded")], UTC)


class TestAzure(Clouds):
    """The contract on Azure."""

    @pytest.fixture
    def bucket(self, azure):
        return azure

    def prepare_pages(self, monkeypatch) -> None:
        """A key would sign the parameters."""
        monkeypatch.delenv("AZURE_STORAGE_KEY")
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"?{sas_token()}")

    def test_errors_name_the_next_step(self, bucket):
        domain = f"@{ACCOUNT}.dfs.core.windows.net"
        for place in (f"abfss://none{domain}", f"abfss://none{domain}/x", f"{bucket.root}/none"):
            with pytest.raises(ConfigError) as refused:
                find_accesses([place + bucket.options], UTC)
            assert str(refused.value) == f"{place}: not found: expected a container and a prefix that exist"

    def test_markers_of_directories_are_no_logs(self, bucket):
        bucket.put("marked", b"", is_marker=True)
        bucket.put("marked/day=1", b"", is_marker=True)
        bucket.put("marked/day=1/a.log", text("orders", 2))
        for prefix in ("marked", "marked/", "marked/day=1"):
            log = find_accesses([self.at(bucket, prefix)], UTC)
            assert len(rows_of(log)) == 2
            assert [file.path for file in log.files] == [f"{bucket.root}/marked/day=1/a.log"]
            assert not log.skipped
        bucket.put("marked/day=2", b"", is_marker=True)
        log = find_accesses([self.at(bucket, "marked")], UTC)
        assert len(rows_of(log)) == 2
        assert not log.skipped
        with pytest.raises(ConfigError, match="/marked/day=2: no objects"):
            find_accesses([self.at(bucket, "marked/day=2")], UTC)

    def test_abfs_is_read_as_abfss(self, bucket):
        bucket.put("abfs/a.log", text("orders"))
        log = find_accesses([self.at(bucket, "abfs").replace("abfss:", "abfs:")], UTC)
        assert [file.path for file in log.files] == [f"{bucket.root.replace('abfss:', 'abfs:')}/abfs/a.log"]

    @pytest.mark.parametrize("key", ["QUJD", "SECRET!", "SECRET"])
    def test_a_wrong_key_is_in_no_error(self, bucket, monkeypatch, key):
        monkeypatch.setenv("AZURE_STORAGE_KEY", key)
        expected = "HTTP status 403: expected permission" if key == "QUJD" else "AZURE_STORAGE_KEY is damaged"
        with pytest.raises(ConfigError, match=f"^{bucket.root}/x: {expected}") as refused:
            find_accesses([self.at(bucket, "x")], UTC)
        assert key not in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_credentials_of_another_account_are_not_sent(self, bucket, monkeypatch):
        bucket.put("own/a.log", text("orders"))
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
        assert len(rows_of(find_accesses([self.at(bucket, "own")], UTC))) == 1
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "another")
        del bucket.traffic.requests[:]
        with pytest.raises(ConfigError, match="own: AZURE_STORAGE_ACCOUNT names another account"):
            find_accesses([self.at(bucket, "own")], UTC)
        assert not bucket.traffic.requests

    def test_public_objects_need_no_credentials(self, bucket, monkeypatch):
        monkeypatch.delenv("AZURE_STORAGE_KEY")
        bucket.create("public", is_public=True)
        bucket.put("a/a.log", text("orders"), container="public")
        options = f"{bucket.options}&anonymous=true"
        public = bucket.root.replace("logs@", "public@")
        for place in (public, f"{public}/", f"{public}/a", f"{public}/a/a.log"):
            assert len(rows_of(find_accesses([f"{place}{options}"], UTC))) == 1
        with pytest.raises(
            ConfigError, match=r"^abfss://logs@.*: (?:HTTP status 40[0-9]: expected|not found: expected)"
        ):
            find_accesses([f"{bucket.root}/a{options}"], UTC)

    def test_without_credentials_these_are_named(self, monkeypatch):
        monkeypatch.delenv("AZURE_STORAGE_KEY")
        host = f"127.0.0.1:{free_port()}"
        options = f"?blob_storage_authority={host}&dfs_storage_authority={host}"
        with pytest.raises(ConfigError, match=r"/x: (?:no credentials: expected AZURE_STORAGE_KEY|no connection)"):
            find_accesses([f"abfss://logs@{ACCOUNT}.dfs.core.windows.net/x{options}"], UTC)
