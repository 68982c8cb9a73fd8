"""An index in Azure, by its emulator (`make check-clouds`): as one in S3, by the conditions of Azure itself."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from urllib.parse import unquote

import pytest

from aclog.metalog.errors import ConfigError
from aclog.usage.index import stored
from aclog.usage.index.database import FILE
from aclog.usage.index.stored import StoredIndex, index_place, writing_index
from tests.support.cli.command import aclog
from tests.support.processes.cloud_emulators import (
    ACCOUNT,
    KEY,
    READY,
    AzureContainer,
    Response,
    azure_container,
    sas_token,
)
from tests.support.processes.cloud_stores import no_hook
from tests.usage.index.test_stored import RULES, added, indexed, logged, matched, put, take

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not all(each.exists() for each in READY), reason="make check-clouds has the emulators"),
]


@pytest.fixture(scope="module")
def container() -> Iterator[AzureContainer]:
    with azure_container() as container:
        yield container


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path, container):
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(stored, "_PAUSE", 0.01)
    (tmp_path / "scratch").mkdir()
    yield
    container.traffic.hook, container.proxy.lost, container.proxy.instead = no_hook, lambda _: False, lambda *_: None
    assert not list((tmp_path / "scratch").iterdir())


@pytest.fixture
def place(container, request) -> str:
    """An index of its own, as --index names it."""
    name = sha256(request.node.name.encode()).hexdigest()[:9]
    return f"{container.root}/credentials {name}{container.options}"


@pytest.fixture
def log(tmp_path):
    (tmp_path / "acls.jsonl").write_text("".join(json.dumps(each) + "\n" for each in RULES))
    return logged(tmp_path, 10, 11)


def test_every_reader_reports_the_same_as_of_a_directory(container, place, log, tmp_path):
    here = tmp_path / "index"
    for days in ((10, 11), (10, 11, 12), (10, 11, 12)):
        logged(tmp_path, *days)
        runs = [json.loads(indexed(each, log).ok().out) for each in (place, here)]
        assert runs[0] == runs[1]
    shown = [
        aclog(
            "accesses", "unused", "--acls", tmp_path / "acls.jsonl", "--index", each, "--days", 1, "--format", "jsonl"
        )
        for each in (place, here)
    ]
    assert shown[0].out == shown[1].out
    assert shown[0].code == shown[1].code
    prefix = StoredIndex.of(place).prefix
    assert [name for name in container.names() if name.startswith(prefix)] == [f"{prefix}/{FILE}"]


def test_no_index_names_the_command_that_makes_it(place, tmp_path):
    refused = aclog("accesses", "coverage", "--index", place)
    assert "no index: no object usage.sqlite" in refused.complaint


def put_around(place: str, number: int) -> None:
    """Add a run, while another writer adds one."""
    with writing_index(place) as index:
        take(index, f"first-{number}")
        put(place, f"second-{number}")


def test_of_two_writers_at_once_one_is_refused_and_nothing_is_lost(place):
    for number in range(2):  # of a new index, and of one that exists
        with pytest.raises(ConfigError, match="another process has written the index meanwhile, so that this upload"):
            put_around(place, number)
        assert matched(place) == {**{f"second-{each}": 1 for each in range(number + 1)}, "shared": number + 1}


def test_many_writers_at_once_lose_and_double_nothing(place):
    def write(number: int) -> None:
        while True:
            try:
                put(place, f"w-{number}")
            except ConfigError as error:
                assert "another process has written the index meanwhile" in str(error)  # noqa: PT017
            else:
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(8)))
    assert matched(place) == {**{f"w-{each}": 1 for each in range(8)}, "shared": 8}


@pytest.mark.parametrize("is_new", [True, False])
def test_a_put_without_a_response_counts_once(container, place, is_new):
    if not is_new:
        put(place, "before")
    lost = list[str]()

    def is_lost(request: str) -> bool:
        is_first = request.startswith("PUT") and FILE in request and not lost
        lost.extend([request] * is_first)
        return is_first

    container.proxy.lost = is_lost
    put(place, "a")
    assert lost
    assert matched(place) == ({"a": 1, "shared": 1} if is_new else {"a": 1, "before": 1, "shared": 2})


def test_a_lost_response_before_another_writer_is_not_taken_for_a_refusal(container, place):
    put(place, "before")
    lost = list[str]()

    def is_lost(request: str) -> bool:
        if not request.startswith("PUT") or FILE not in request or lost:
            return False
        lost.append(request)
        put(place, "other")
        return True

    container.proxy.lost = is_lost
    with pytest.raises(ConfigError, match="another process has written the index meanwhile, perhaps after this one"):
        put(place, "a")
    assert matched(place) == {"a": 1, "before": 1, "other": 1, "shared": 3}


@pytest.mark.parametrize("ignored", ["If-None-Match", "If-Match"])
def test_a_store_that_ignores_a_condition_is_refused(container, place, ignored):
    put(place, "before")

    def instead(request: str, headers: Mapping[str, str], body: bytes) -> Response | None:
        name = unquote(request.partition("/logs/")[2])
        return container.put(name, body) if request.startswith("PUT") and ignored.lower() in headers else None

    container.proxy.instead = instead
    with pytest.raises(ConfigError, match=f": the store ignores {ignored}: two writers could lose"):
        put(place, "a")
    assert matched(place) == {"before": 1, "shared": 1}


def test_no_message_has_credentials(container, place, log, monkeypatch):
    runs = [indexed(place, log).ok()]
    for status in (400, 401, 403, 404, 409, 412, 500):
        for command in ("PUT", "GET", "POST"):
            container.traffic.hook = lambda request, status=status, command=command: (
                status if request.startswith(command) else None
            )
            runs.append(indexed(place, logged(log.parent, 10, 11, status % 7 + 12)))
            assert runs[-1].code in (0, 2)
            if status == 403:
                assert "expected permission (Storage Blob Data Reader" in runs[-1].complaint
    container.traffic.hook = no_hook
    token = sas_token("r").replace("sig=", "sig=hUsH")
    for name, value in (("KEY", "hUsHhUsH"), ("KEY", "hUsH!"), ("SAS_TOKEN", token), ("SAS_TOKEN", "hUsH x")):
        with monkeypatch.context() as context:
            context.delenv("AZURE_STORAGE_KEY")
            context.setenv(f"AZURE_STORAGE_{name}", value)
            runs.append(indexed(place, log))
            assert runs[-1].code == 2
    runs.append(indexed(place.replace(str(container.proxy.port), "9"), log))
    assert "no connection to the store" in runs[-1].complaint
    for run in runs:
        assert not any(part in run.out + run.err for part in ("hUsH", KEY, "sig="))


def test_variables_of_the_client_change_no_address(container, place, monkeypatch):
    """obstore has a variable for each of its settings; the address names the store."""
    for name, value in {
        "AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:9", "AZURE_STORAGE_USE_EMULATOR": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": "another", "AZURE_STORAGE_ACCOUNT_KEY": "QUJD", "AZURE_SKIP_SIGNATURE": "true",
        "AZURE_CONTAINER_NAME": "another", "AZURE_STORAGE_TOKEN": "QUJD", "AZURE_STORAGE_SAS_KEY": "sig=x",
        "AZURE_CREDENTIAL_TYPE": "managed_identity",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    put(place, "a")
    assert matched(place) == {"a": 1, "shared": 1}
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"?{sas_token()}")
    assert matched(place) == {"a": 1, "shared": 1}


def test_an_identity_that_is_not_there_is_named(container, place, log, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    refused = indexed(place, log)
    assert "no credentials: expected AZURE_STORAGE_KEY" in refused.complaint
    monkeypatch.setenv("AZURE_USE_AZURE_CLI", "true")
    monkeypatch.setenv("PATH", "")
    assert "no credentials: expected AZURE_STORAGE_KEY" in indexed(place, log).complaint


@pytest.mark.parametrize("prefix", ["", "a/b", "a b", "a+b", "a%20b", "ü", "a#b", "..a", "x@y:1"])
def test_each_prefix_is_its_own_key(container, prefix):
    place = f"{container.root}/{prefix}{container.options}"
    before = set(container.names())
    put(place, "a")
    assert set(container.names()) - before == {f"{prefix}/{FILE}".lstrip("/")}
    assert matched(place) == {"a": 1, "shared": 1}


def test_accesses_and_index_are_in_one_container(container, place, log):
    container.put("both/a.log", log.read_bytes())
    words = ("--accesses", f"{container.root}/both{container.options}", "--acls", log.parent / "acls.jsonl")
    run = aclog("accesses", "index", *words, "--index", place, "--format", "jsonl")
    assert added(run) == 48


@pytest.mark.parametrize(
    "place",
    [
        "abfss://logs:hUsH@account1.dfs.core.windows.net/x",
        "abfss://hUsH@account1.dfs.core.windows.net/x",
        "abfss://logs@account1.dfs.core.windows.net/x?sig=hUsH",
        "abfss://logs@account1.dfs.core.windows.net/a/../x",
        "abfss://logs@account1.dfs.core.windows.net/a//x",
        f"abfss://logs@account1.dfs.core.windows.net/x/{FILE}",
    ],
)
def test_addresses_that_are_refused(place):
    with pytest.raises(ConfigError, match="expected") as refused:
        index_place(place)
    assert "hUsH" not in str(refused.value)


def test_an_address_is_read():
    for scheme in ("abfs", "abfss"):
        place = index_place(f"{scheme}://logs@{ACCOUNT}.dfs.core.windows.net/a/")
        assert isinstance(place, StoredIndex)
        assert (place.bucket, place.prefix) == ("logs", "a")
        assert place.address == f"{scheme}://logs@{ACCOUNT}.dfs.core.windows.net/a"
