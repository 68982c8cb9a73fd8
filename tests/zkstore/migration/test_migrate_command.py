"""`aclog migrate` with a real ZooKeeper: what it writes, when it becomes visible, what blocks it, and the way back."""

import json
import signal
import subprocess
import sys
import time
from itertools import count
from types import SimpleNamespace

import jsonschema
import pexpect
import pytest

import aclog as library
from aclog.authorizer.codes import ResourceType
from aclog.cli.schema import schema_of
from aclog.installation import install_command
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import list_segments
from aclog.metalog.machine import disk
from aclog.metalog.records import BeginTransactionRecord
from aclog.protocol.api_keys import CREATE_ACLS, DESCRIBE_ACLS, METADATA
from aclog.snapshots.checkpoints import read_bootstrap
from aclog.snapshots.image import METADATA_VERSION
from aclog.snapshots.publisher import recover
from aclog.targets.log import open_writer
from tests.scenarios.migration.estate import fill, in_image, in_store
from tests.scenarios.migration.running import ended, finish, start
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker, older_apis
from tests.support.processes.waiting import SECONDS
from tests.support.zookeeper.server import ZooKeeperServer, zookeeper_client

RULE = {"principal": "User:a", "permissionType": "Allow", "host": "*", "operation": "Read"}
PATH = "/kafka-acl/Topic/orders"


def rules(*acls):
    return json.dumps({"version": 1, "acls": acls}).encode()


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch):
    monkeypatch.setattr(disk, "fsync", lambda fd: None)


@pytest.fixture
def store(zookeeper, connect):
    """A kazoo client of a store with ACLs, users and tokens."""
    with zookeeper_client(zookeeper.connect) as root:
        root.ensure_path(connect.partition("/")[2])
    with zookeeper_client(connect) as client:
        fill(client, acls=40, users=5, tokens=5)
        client.ensure_path("/kafka-acl/Topic")
        yield client


@pytest.fixture
def migrate(connect):
    """Runs the command with this store."""
    return lambda *arguments, **pipes: aclog("migrate", "--zookeeper", connect, *arguments, **pipes)


def held(log):
    return in_image(recover(log).image)


def record_types(log):
    """Return the types of all records, in order."""
    return [json.loads(line)["type"] for line in aclog("log", "dump", log, "--json").ok().lines]


def test_everything_is_migrated_in_one_transaction(store, migrate, tmp_path):
    log = tmp_path / "log"
    done = migrate("--log", log).ok()
    assert held(log) == in_store(store)
    assert done.lines[-1].startswith("compared: contents the same; ")
    types = record_types(log)
    assert types[1] == "BEGIN_TRANSACTION_RECORD"
    assert types[-1] == "END_TRANSACTION_RECORD"
    assert recover(log).image.features.level(METADATA_VERSION) == 30
    aclog("log", "verify", log).ok()


def test_a_second_run_writes_only_changes(store, migrate, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    before = record_types(log)
    migrate("--log", log).ok()
    assert record_types(log) == before
    store.create(PATH, rules(RULE))
    migrate("--log", log).ok()
    assert held(log) == in_store(store)


def test_a_dry_run_reports_and_writes_nothing(store, migrate, tmp_path):
    log = tmp_path / "log"
    store.create("/config/users/quota", b'{"version":1,"config":{"producer_byte_rate":"1"}}')
    result = migrate("--log", log, "--dry-run").ok()
    assert result.lines[0].endswith(": 40 ACLs, 5 SCRAM credentials, 5 delegation tokens")
    assert result.lines[1:] == [
        "left out: /config/users/quota: producer_byte_rate: client quotas are not migrated",
        f"{log}: 40 ACLs added, 0 removed; 5 SCRAM credentials and 5 delegation tokens changed",
        "dry run: nothing was written",
    ]
    assert not log.exists()


BAD = {
    PATH: rules({**RULE, "operation": "Fly"}),
    "/kafka-acl-extended/prefixed/Group/g": b"{",
    "/delegation_token/tokens/bad": b'{"version":4}',
    "/config/users/bad": b'{"version":1,"config":{"SCRAM-SHA-256":"salt=?"}}',
}


def test_unreadable_entries_are_listed_and_block(store, migrate, tmp_path):
    log = tmp_path / "log"
    for path, data in BAD.items():
        store.ensure_path(path)
        store.set(path, data)
    result = migrate("--log", log, "--dry-run")
    assert result.code == 1
    refused = migrate("--log", log)
    assert refused.code == 2
    assert "4 entries in ZooKeeper cannot be read" in refused.complaint
    assert not log.exists()
    skipped = migrate("--log", log, "--skip-unreadable").ok()
    for path in BAD:
        assert f"left out: {path}: " in result.out
        assert f"warning: left out: {path}: " in skipped.err
    for path in BAD:
        store.delete(path)
    assert held(log) == in_store(store)


def test_entries_of_the_log_only_block(store, migrate, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    aclog("acls", "add", "--log", log, "--topic", "own", "--allow-principal", "User:x").ok()
    assert migrate("--log", log, "--compare").code == 1
    result = migrate("--log", log, "--dry-run")
    assert result.code == 1
    assert "would remove: ALLOW User:x ALL on TOPIC LITERAL 'own' from *" in result.lines
    before = record_types(log)
    assert "1 entries are not in ZooKeeper" in migrate("--log", log).complaint
    assert record_types(log) == before
    migrate("--log", log, "--replace").ok()
    assert held(log) == in_store(store)


def test_more_than_a_share_is_removed_only_if_accepted(store, migrate, connect, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    own = [word for number in range(13) for word in ("--topic", f"own-{number}")]
    aclog("acls", "add", "--log", log, *own, "--operation", "READ", "--allow-principal", "User:x").ok()
    before = record_types(log)
    refused = migrate("--log", log, "--replace")
    assert refused.code == 2
    assert (
        f"{log}: 13 of 63 entries would go: if that is right, accept it with --accept-removal 13" in refused.complaint
    )
    assert migrate("--log", log, "--replace", "--dry-run").code == 1
    assert migrate("--log", log, "--replace", "--accept-removal", 12).code == 2
    assert migrate("--log", log, "--replace", "--max-removal", 20.5).code == 2
    assert record_types(log) == before
    migrate("--log", log, "--replace", "--dry-run", "--accept-removal", 13).ok()
    migrate("--log", log, "--replace", "--max-removal", 21).ok()
    assert held(log) == in_store(store)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_on_a_terminal_it_asks_before_it_removes_more_than_a_share(store, connect, migrate, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    own = [word for number in range(13) for word in ("--topic", f"own-{number}")]
    aclog("acls", "add", "--log", log, *own, "--operation", "READ", "--allow-principal", "User:x").ok()
    before = record_types(log)
    for word, code in (("n", 2), ("y", 0)):
        words = ["-m", "aclog", "migrate", "--zookeeper", connect, "--log", str(log), "--replace"]
        with pexpect.spawn(sys.executable, words, encoding="utf-8", timeout=300) as terminal:
            terminal.expect(r"13 of 63 entries would go\. Remove them\? \(y/n\)")
            assert record_types(log) == before
            terminal.sendline(word)
            terminal.expect(pexpect.EOF)
            terminal.wait()
            assert terminal.exitstatus == code, terminal.before
    assert held(log) == in_store(store)


def test_more_than_a_share_is_not_removed_on_the_way_back_either(store, connect, migrate, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    store.create(PATH, rules(*({**RULE, "principal": f"User:{number}"} for number in range(13))))
    before = in_store(store)
    place = ("--log", log, "--to-zookeeper", connect, "--replace")
    assert aclog("migrate", *place, "--dry-run").code == 1
    assert "13 of 63 entries would go" in aclog("migrate", *place).complaint
    assert in_store(store) == before
    aclog("migrate", *place, "--accept-removal", 13).ok()
    assert held(log) == in_store(store) != before


def test_what_zookeeper_loses_while_it_is_followed_is_not_removed(store, connect, migrate, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    before = held(log)
    process = start("migrate", "--zookeeper", connect, "--log", log, "--follow", stdin=subprocess.PIPE)
    while "copied into" not in process.stderr.readline():
        assert process.poll() is None
    for root in ("/kafka-acl", "/kafka-acl-extended/prefixed"):
        for kind in store.get_children(root):
            for name in store.get_children(f"{root}/{kind}"):
                store.set(f"{root}/{kind}/{name}", rules())
    code, _, err = ended(process)
    assert (code, " of 50 entries would go" in err.splitlines()[-1]) == (2, True), err
    assert held(log) == before


def test_an_open_transaction_is_aborted_first(store, migrate, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    with open_writer(log) as writer:
        writer.append([encode_record(BeginTransactionRecord(name="left"))])
    store.create(PATH, rules(RULE))
    migrate("--log", log).ok()
    assert held(log) == in_store(store)
    assert record_types(log).count("ABORT_TRANSACTION_RECORD") == 1


def test_follow_waits_for_the_word(store, connect, tmp_path):
    log = tmp_path / "log"
    process = start("migrate", "--zookeeper", connect, "--log", log, "--follow", stdin=subprocess.PIPE)
    while "copied into" not in process.stderr.readline():
        assert process.poll() is None
    store.create(PATH, rules(RULE))
    while "followed: 1 ACL added, 0 removed" not in process.stderr.readline():
        assert process.poll() is None
    assert held(log) == set()
    assert list_segments(log)
    process.stdin.write("what?\nswitch\n")
    process.stdin.flush()
    code, out, err = finish(process)
    assert (code, "'what?': not understood" in err) == (0, True), (out, err)
    assert held(log) == in_store(store)


def test_until_quiet_follows_changes(store, migrate, tmp_path, monkeypatch):
    """A minute without a change is waited for, and each change begins it anew."""
    log, now, seen, calls = tmp_path / "log", time.monotonic(), [], count()

    def at_each_look(_: object) -> float:
        nonlocal now
        if next(calls) == 0:
            return SECONDS  # of the first read, before the log is written
        seen.append(held(log))
        if len(seen) <= 3:
            store.create(f"{PATH}-{len(seen)}", rules(RULE))
        now += 59
        return SECONDS

    monkeypatch.setattr("aclog.ops.migrate.time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr("aclog.ops.migrate.patience", at_each_look)
    done = migrate("--log", log, "--until-quiet", "60").ok()
    assert done.err.count("followed: 1 ACL added, 0 removed") == 3
    # Two looks after the last change it is time; one more is taken before the switchover, and one after it, by which
    # ZooKeeper has been read again.
    assert seen == [set()] * 6 + [in_store(store)] * 2
    assert held(log) == in_store(store)


def test_the_library_returns_what_the_command_prints(store, migrate, connect, tmp_path):
    def printed(*flags: object) -> list[object]:
        return json.loads(migrate(*flags, "--format", "json").out)

    log, sides, readable = tmp_path / "log", {"zookeeper": connect, "log": tmp_path / "log"}, in_store(store)
    store.create("/kafka-acl/Topic/broken", b"broken")
    plan = library.migrate("dry-run", **sides)
    assert plan.to_dicts() == printed("--log", log, "--dry-run")
    assert (plan.passed, {each["kind"] for each in plan}) == (False, {"plan", "leftOut", "obstacle"})
    with pytest.raises(library.ConfigError, match="skip-unreadable"):
        library.migrate("run", **sides)
    assert not log.exists()
    done = library.migrate("run", **sides, skip_unreadable=True)
    assert (done.passed, held(log)) == (True, readable)
    assert done.to_dicts() == library.migrate("compare", **sides).to_dicts() == printed("--log", log, "--compare")
    store.delete("/kafka-acl/Topic/broken")
    store.create(PATH, rules(RULE))
    changed = library.migrate("compare", **sides)
    assert (changed.passed, changed.to_dicts()) == (False, printed("--log", log, "--compare"))
    back = {"to_zookeeper": connect, "log": log}
    with pytest.raises(library.ConfigError, match="not in the log"):
        library.migrate("run", **back)
    assert library.migrate("run", **back, replace=True).passed
    assert not store.exists(PATH)
    assert library.migrate("dry-run", **back).to_dicts() == json.loads(
        aclog("migrate", "--to-zookeeper", connect, "--log", log, "--dry-run", "--format", "json").out
    )


def test_without_the_word_nothing_is_switched_over(store, migrate, tmp_path):
    log = tmp_path / "log"
    given_up = migrate("--log", log, "--follow", stdin=b"hello\n")
    assert given_up.code == 2
    assert "not switched over" in given_up.complaint
    assert held(log) == set()
    assert record_types(log)[-1] == "ABORT_TRANSACTION_RECORD"
    migrate("--log", log).ok()
    assert held(log) == in_store(store)


def test_an_interrupt_aborts_and_nothing_is_visible(store, connect, tmp_path):
    log = tmp_path / "log"
    process = start("migrate", "--zookeeper", connect, "--log", log, "--follow", stdin=subprocess.PIPE)
    while "type 'switch'" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert (code, err.splitlines()[-1]) == (130, "aclog: interrupted")
    assert held(log) == set()
    assert record_types(log)[-1] == "ABORT_TRANSACTION_RECORD"


def test_differences_are_listed_and_known_ones_are_not_counted(store, migrate, connect, tmp_path):
    log = tmp_path / "log"
    store.create("/kafka-acl/Topic/*", rules({**RULE, "principal": "User:*"}))
    known = migrate("--log", log).ok()
    assert "by a known difference of Kafka 4.3.1" in known.lines[-1]
    store.create(PATH, rules(RULE))
    store.delete("/delegation_token/tokens/token-1")
    store.set("/config/users/user%201", b'{"version":1,"config":{}}')
    result = migrate("--log", log, "--compare")
    assert result.code == 1
    assert "only in ZooKeeper: ALLOW User:a READ on TOPIC LITERAL 'orders' from *" in result.lines
    assert "differs: delegation token token-1" in result.lines
    assert "differs: SCRAM credential of 'user 1', mechanism 1" in result.lines
    found = json.loads(migrate("--log", log, "--compare", "--format", "json").out)
    jsonschema.validate(found, {"items": schema_of("migration-comparison")})
    assert [row["kind"] for row in found if row["kind"] != "decision"] == [
        "compared", "onlyInZooKeeper", "credential", "token",
    ]  # fmt: skip
    planned = json.loads(migrate("--log", log, "--dry-run", "--format", "json").out)
    jsonschema.validate(planned, {"items": schema_of("migration-plan")})
    assert {row["kind"] for row in planned} == {"plan", "obstacle"}
    assert migrate("--log", log, "--dry-run", "--format", "csv").out.startswith("kind,resourceType,")
    back = aclog("migrate", "--log", log, "--to-zookeeper", connect, "--dry-run", "--format", "jsonl")
    jsonschema.validate([json.loads(line) for line in back.lines], {"items": schema_of("migration-plan")})


def test_a_checkpoint_keeps_its_features_and_users(store, migrate, tmp_path):
    file = tmp_path / "bootstrap.checkpoint"
    migrate("--bootstrap-checkpoint", file).ok()
    assert in_image(recover(file).image) == in_store(store)
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"process.roles=controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:1\n"
        f"listeners=CONTROLLER://localhost:1\ncontroller.listener.names=CONTROLLER\nlog.dirs={tmp_path}/data\n"
    )
    scram = "SCRAM-SHA-256=[name=admin,password=secret]"
    aclog(
        "format",
        properties,
        "-t",
        "c2FtZS1zY3JpcHQtMDAwMQ",
        "--standalone",
        "--release-version",
        "4.1",
        "--add-scram",
        scram,
    ).ok()
    formatted = tmp_path / "data" / "bootstrap.checkpoint"
    before = recover(formatted).image
    migrate("--bootstrap-checkpoint", formatted).ok()
    after = recover(formatted).image
    assert list(after.features.records()) == list(before.features.records())
    assert in_image(after) == in_store(store) | in_image(before)


@pytest.mark.parametrize(
    ("release", "name", "code"),
    [
        ("4.3", "bootstrap.checkpoint", 0),
        ("4.4", "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint", 1),
    ],
)
def test_the_result_is_checked_by_the_rules_of_the_kafka_that_formatted_it(
    store, migrate, tmp_path, release, name, code
):
    """A host with a slash matched nobody: Kafka 4.4 reads it as a range."""
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"process.roles=controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:1\n"
        f"listeners=CONTROLLER://localhost:1\ncontroller.listener.names=CONTROLLER\nlog.dirs={tmp_path}/data\n"
    )
    scram = ("--add-scram", "SCRAM-SHA-256=[name=admin,password=secret]")
    aclog(
        "format", properties, "-t", "c2FtZS1zY3JpcHQtMDAwMQ", "--standalone", "--release-version", release, *scram
    ).ok()
    store.create("/kafka-acl/Topic/ranges", rules(RULE | {"host": "10.0.0.0/8"}))
    before = read_bootstrap(tmp_path / "data" / name)
    done = migrate("--bootstrap-checkpoint", tmp_path / "data")
    assert done.code == code, done
    if code:
        assert any("DENIED by the store, ALLOWED by the target" in line and "10.0.0.0:" in line for line in done.lines)
    after = read_bootstrap(tmp_path / "data" / name)
    assert in_image(after.image) == in_store(store) | in_image(before.image)
    assert list(after.image.features.records()) == list(before.image.features.records())
    assert after.image.provenance == before.image.provenance
    assert (after.image.provenance.voters is None) is (release == "4.3")
    aclog("snapshot", "verify", tmp_path / "data" / name).ok()
    again = migrate("--bootstrap-checkpoint", tmp_path / "data")
    assert again.code == code


def test_a_reverse_migration_writes_the_state_of_the_log(store, connect, migrate, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    wanted = in_store(store)
    back = connect + "-back"
    aclog("migrate", "--log", log, "--to-zookeeper", back).ok()
    with zookeeper_client(back) as again:
        assert in_store(again) == wanted
        again.create(PATH, rules(RULE))
        result = aclog("migrate", "--log", log, "--to-zookeeper", back, "--dry-run")
        assert result.code == 1
        assert "would remove: ALLOW User:a READ on TOPIC LITERAL 'orders' from *" in result.lines
        assert "1 entries are not in the log" in aclog("migrate", "--log", log, "--to-zookeeper", back).complaint
        assert in_store(again) != wanted
        aclog("migrate", "--log", log, "--to-zookeeper", back, "--replace").ok()
        assert in_store(again) == wanted


def test_a_reverse_migration_warns_of_a_downgrade_before_prefixed_acls(connect, tmp_path):
    log = tmp_path / "log"
    open_log(log, create=True).close()
    add = ("acls", "add", "--log", log, "--topic")
    back = ("migrate", "--log", log, "--to-zookeeper", connect)
    aclog(*add, "t", "--deny-principal", "User:x").ok()
    assert "warning" not in aclog(*back).ok().err
    prefixed = ("--resource-pattern-type", "prefixed")
    aclog(*add, "p-", *prefixed, "--deny-principal", "User:x", "--allow-principal", "User:y").ok()
    text = "warning: 2 ACLs are prefixed, 1 of them DENY: a Kafka before 2.0 ignores them, and allows what only such a "
    assert text in aclog(*back, "--dry-run").ok().err
    assert text in aclog(*back).ok().err


def test_a_reverse_migration_lists_what_zookeeper_cannot_hold(store, connect, migrate, tmp_path):
    log = tmp_path / "log"
    migrate("--log", log).ok()
    wanted = in_store(store)
    aclog("acls", "add", "--log", log, "--group", "a/b", "--allow-principal", "User:x").ok()
    refused = aclog("migrate", "--log", log, "--to-zookeeper", connect)
    assert refused.code == 2
    assert "1 entries that ZooKeeper cannot hold" in refused.complaint
    assert "resource name 'a/b': expected no /" in refused.err
    aclog("migrate", "--log", log, "--to-zookeeper", connect, "--skip-unreadable").ok()
    assert in_store(store) == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--log L", "exactly one ZooKeeper must be given"),
        ("--zookeeper H:1 --to-zookeeper H:1 --log L", "exactly one ZooKeeper must be given"),
        ("--zookeeper H:1", "exactly one target must be given"),
        ("--zookeeper H:1 --log L --bootstrap-checkpoint F", "exactly one target must be given"),
        ("--zookeeper H:1 --bootstrap-checkpoint F --force", "--force: expected only with --log"),
        ("--zookeeper H:1 --log L --dry-run --compare", "expected only one of them"),
        ("--zookeeper H:1 --log L --dry-run --follow", "do not follow changes"),
        ("--zookeeper H:1 --log L --until-quiet -1", "expected seconds from 0"),
        ("--zookeeper H:1 --log L --until-quiet nan", "expected seconds from 0"),
        ("--zookeeper H:1 --log L --command-config F", "--command-config: expected only with --bootstrap-controller"),
        ("--zookeeper H:x --log L", "expected HOST:PORT"),
        ("--to-zookeeper H:1", "--to-zookeeper: requires --log DIR"),
        ("--to-zookeeper H:1 --log L --follow", "excludes --follow"),
    ],
)
def test_invalid_combinations_of_flags_are_rejected(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = aclog("migrate", *arguments.split())
    assert refused.code == 2
    assert message in refused.complaint
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("newest", [1, 2])
def test_an_older_quorum_takes_all_but_acls_on_users(store, migrate, newest):
    """Version 1 of the ACL APIs is that of Kafka 2.0, version 2 that of 2.5; USER resources came with 3.3."""
    store.create("/kafka-acl/User/User%3Aowner", rules({**RULE, "operation": "CreateTokens"}), makepath=True)
    of_controllers = tuple(api for api in older_apis(newest) if api.api_key != METADATA)
    with FakeBroker(apis=of_controllers) as quorum:
        done = migrate("--bootstrap-controller", quorum.address)
    assert (quorum.versions[DESCRIBE_ACLS], quorum.versions[CREATE_ACLS]) == (newest, newest)
    assert ResourceType.USER not in {acl.resource_type for acl in quorum.rules}
    assert len(quorum.rules) > 20
    assert done.code == 1
    assert "only in ZooKeeper: ALLOW User:a CREATE_TOKENS on USER" in done.out
    assert "not created: " in done.err
    assert "older than Kafka 3.3, the first with ACLs on USER resources (KIP-373)" in done.err


def test_a_missing_chroot_is_not_created(zookeeper, tmp_path):
    refused = aclog("migrate", "--zookeeper", f"{zookeeper.connect}/nowhere", "--log", tmp_path / "log")
    assert "/nowhere does not exist" in refused.complaint
    with zookeeper_client(zookeeper.connect) as root:
        assert not root.exists("/nowhere")
        root.ensure_path("/empty")
    refused = aclog("migrate", "--zookeeper", f"{zookeeper.connect}/empty", "--log", tmp_path / "log")
    assert "is the chroot correct?" in refused.complaint


@pytest.fixture
def own(tmp_path):
    """A server that a test can stop, with a store; its clients wait long for it, in another session if need be."""
    properties = tmp_path / "zk.properties"
    properties.write_text("zookeeper.session.timeout.ms=2000\nzookeeper.connection.timeout.ms=90000\n")
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        with zookeeper_client(server.connect) as client:
            fill(client, acls=40, users=5, tokens=5)
        yield server, ("--zookeeper", server.connect, "--zk-tls-config-file", properties)


@pytest.mark.server
def test_following_continues_after_a_zookeeper_restart(own, tmp_path):
    log, (server, source) = tmp_path / "log", own
    process = start("migrate", *source, "--log", log, "--follow", stdin=subprocess.PIPE)
    while "copied into" not in process.stderr.readline():
        assert process.poll() is None
    server.kill()
    server.start()
    with zookeeper_client(server.connect) as client:
        client.ensure_path(PATH)
        client.set(PATH, rules(RULE))
        wanted = in_store(client)
    process.stdin.write("switch\n")
    process.stdin.flush()
    code, out, err = finish(process)
    assert code == 0, (out, err)
    assert held(log) == wanted


@pytest.mark.server
def test_a_permanent_zookeeper_outage_leaves_nothing_visible(own, tmp_path, monkeypatch):
    log, (server, source), calls = tmp_path / "log", own, count()

    def killed(_: object) -> float:
        """When it first looks for changes, it loses the server, and waits for it only for a moment."""
        if next(calls) == 0:
            return SECONDS  # of the first read, before the log is written
        server.kill()
        return 0.1

    monkeypatch.setattr("aclog.ops.migrate.patience", killed)
    lost = aclog("migrate", *source, "--log", log, "--until-quiet", "3600")
    assert lost.code == 2
    assert "copied into" in lost.err
    assert "ZooKeeper at" in lost.complaint
    assert held(log) == set()
    assert record_types(log)[-1] == "ABORT_TRANSACTION_RECORD"


def test_a_killed_reverse_migration_is_completed_by_the_next_run(store, connect, migrate, tmp_path):
    log, back = tmp_path / "log", connect + "-back"
    migrate("--log", log).ok()
    wanted = in_store(store)
    process = start("migrate", "--log", log, "--to-zookeeper", back)
    with zookeeper_client(connect.partition("/")[0]) as root:
        chroot = f"/{back.partition('/')[2]}"
        while not (root.exists(f"{chroot}/config/users") and root.get_children(f"{chroot}/config/users")):
            assert process.poll() is None
        process.kill()
        process.communicate()
    aclog("migrate", "--log", log, "--to-zookeeper", back).ok()
    with zookeeper_client(back) as again:
        assert in_store(again) == wanted


@pytest.mark.process
def test_without_kazoo_the_error_names_the_extra(tmp_path):
    code = (
        "import sys; sys.modules['kazoo'] = None; from aclog.__main__ import run; "
        f"sys.exit(run(['migrate', '--zookeeper', 'localhost:1', '--log', {str(tmp_path / 'log')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = f"aclog: ZooKeeper needs kazoo, which is not installed: {install_command('zookeeper')}\n"
    assert (done.returncode, done.stderr) == (2, message)
