"""Commands on a running node: what they read, change and refuse."""

import json
import re
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import anyio
import pytest

import aclog as library
from aclog.terminal.notices import STALE_SECONDS
from tests.support.cli.command import aclog
from tests.support.cli.mcp_client import with_assistant
from tests.support.nodes.aclog_node import AclogNode, AclogProcess
from tests.support.nodes.server_properties import CLUSTER_ID, Ports
from tests.support.processes.waiting import wait_until

pytestmark = pytest.mark.server

LOGIN = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="{0}" password="{0}-secret";
"""

PREFIXED = ("--resource-pattern-type", "prefixed")


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    home = tmp_path_factory.mktemp("node")
    with AclogProcess(home, Ports.free()).format() as running:
        yield running


@pytest.fixture(autouse=True)
def as_processes(monkeypatch):
    """Run exit handlers at the end of each test: the process of the tests continues."""
    before, at_exit = set(threading.enumerate()), []
    handlers = SimpleNamespace(register=at_exit.append, unregister=at_exit.remove)
    monkeypatch.setattr("aclog.sources.live.atexit", handlers)
    yield
    for close in at_exit:
        close()
    assert not [each for each in set(threading.enumerate()) - before if each.name == "quorum-observer"]


@pytest.fixture(params=["--bootstrap-server", "--bootstrap-controller"])
def place(request, node):
    """Return the flags that name the node, by either listener, with the login of its super user."""
    return places(node, request.param)


def places(node, flag, user="admin"):
    config = node.home / f"{user}.properties"
    config.write_text(LOGIN.format(user))
    port = node.ports.broker if flag == "--bootstrap-server" else node.ports.controller
    return [flag, f"localhost:{port}", "--command-config", str(config)]


def names(found):
    return {json.loads(line)["resourceName"] for line in found.out.splitlines()}


def test_an_address_without_a_flag_is_read_by_what_listens_there(place):
    flag, address, *login = place
    by_word, by_flag = (aclog("acls", "list", *words, *login).ok() for words in ((address,), (flag, address)))
    assert by_word.out == by_flag.out
    # Without the login: API versions need none, what is read then does.
    assert aclog("acls", "list", address).complaint == aclog("acls", "list", flag, address).complaint


def test_a_context_stands_for_the_address_and_the_login(place, tmp_path, monkeypatch):
    monkeypatch.setenv("ACLOG_CONFIG", str(tmp_path / "config.toml"))
    rule = ["--allow-principal", "User:alice", "--operation", "READ", "--topic", f"context{place[0]}"]
    aclog("context", "add", "it", *place, "--use").ok()
    refused = aclog("acls", "add", *rule).complaint
    assert refused.startswith(f"writing to context it ({' '.join(place[:2])}), set by `aclog context use`: ")
    aclog("-c", "it", "acls", "add", *rule).ok()
    assert "User:alice" in aclog("acls", "list", "--topic", rule[-1]).ok().out
    assert f"context{place[0]}" in aclog("diff", "--acls", "-", "--to-context", "it").out
    aclog("acls", "remove", *rule, "--force").ok()
    assert "User:alice" not in aclog("acls", "list", *place, "--topic", rule[-1]).ok().out
    assert CLUSTER_ID in aclog("status").ok().out


def test_the_acls_of_a_principal_are_copied_and_the_history_has_it(place):
    topic = f"copied{place[0]}"
    original, copy = f"User:old{place[0]}", f"User:new{place[0]}"
    rule = ["--operation", "READ", "--topic", topic]
    aclog("acls", "add", *place, "--allow-principal", original, *rule).ok()
    aclog("acls", "add", *place, "--deny-principal", original, "--deny-host", "10.0.0.9", *rule).ok()
    copied = aclog("acls", "copy", *place, "--from-principal", original, "--to-principal", copy).ok()
    assert copied.out.count(f"(principal={copy}, ") == 2
    columns = ("--format", "csv", "--columns", "resourceName,host,operation,permissionType")
    rules = [aclog("acls", "list", *place, "--principal", each, *columns).ok().out for each in (original, copy)]
    assert rules[0] == rules[1]
    if place[0] == "--bootstrap-controller":
        changes = aclog("acls", "history", *place, "--principal", copy, "--format", "jsonl").ok().lines
        assert [json.loads(line)["change"] for line in changes] == ["ADDED", "ADDED"]


@pytest.mark.tier("test")
def test_acls_are_added_listed_and_removed(place):
    topic = f"orders{place[0]}"
    rule = ["--allow-principal", "User:alice", "--operation", "READ", "--topic", topic]
    added = aclog("acls", "add", *place, *rule)
    assert (added.code, added.err) == (0, "")
    assert "Adding ACLs for resource" in added.out
    assert "already exists" in aclog("acls", "add", *place, *rule).out
    assert names(aclog("acls", "list", *place, "--topic", topic, "--format", "jsonl")) == {topic}
    removed = aclog("acls", "remove", *place, "--topic", topic, "--force")
    assert removed.err == "aclog: note: 1 ACL removed\n"
    assert aclog("acls", "list", *place, "--topic", topic, "--format", "jsonl").out == ""


@pytest.mark.slow(4)
@pytest.mark.sample(1)
@pytest.mark.tier("test")
def test_an_assistant_asks_about_a_running_node(place):
    topic = f"asked{place[0]}"
    request = {"principal": "User:alice", "operation": "READ", "topic": topic}
    rule = ["--deny-principal", "User:alice", "--operation", "READ", "--topic", topic]
    has_log = place[0] == "--bootstrap-controller"

    async def questions(asking):
        before = await asking.ask("explain", **request)
        assert before["rows"][0]["rule"] == "DefaultDeny"
        await anyio.run_process([sys.executable, "-m", "aclog", "acls", "add", *place, *rule])
        after = await asking.ask("explain", **request)
        [decides] = [each["rule"] for each in after["rows"][0]["rules"] if each["role"] == "DECIDES"]
        assert (decides["resourceName"], decides["permissionType"]) == (topic, "DENY")
        assert "admin-secret" not in json.dumps(after)
        if not has_log:
            assert after["endOffset"] is None
            assert "--bootstrap-controller" in after["noEndOffset"]
            return
        assert before["endOffset"] <= decides["offset"] < after["endOffset"]
        again = await asking.ask("explain", **request, as_of=str(before["endOffset"]))
        assert again["rows"][0]["rule"] == "DefaultDeny"

    with_assistant(questions, *place)


def test_decisions_and_explanations(place):
    topic = f"decided{place[0]}"
    aclog("acls", "add", *place, "--allow-principal", "User:alice", "--operation", "READ", "--topic", topic)
    request = ["--principal", "User:alice", "--operation", "READ", "--topic", topic]
    assert aclog("authorize", *place, *request).out.startswith("ALLOWED MatchingAcl(")
    assert aclog("authorize", *place, "--operation", "WRITE", *request[:2], *request[4:]).code == 1
    assert "ALLOWED" in aclog("explain", *place, *request).out


def test_a_refusal_of_the_server_is_reported(place):
    refused = aclog("acls", "add", *place, "--allow-principal", "User:alice", "--topic", "")
    assert refused.code == 2
    assert refused.err == "aclog: Invalid empty resource name\n"


def test_a_denied_user_is_reported(node):
    flags = places(node, "--bootstrap-server", "bob")
    refused = aclog("acls", "list", *flags)
    assert refused.code == 2
    assert "needs DESCRIBE permission" in refused.err


def test_a_wrong_password_is_reported(node, tmp_path):
    config = tmp_path / "wrong.properties"
    config.write_text(LOGIN.format("admin").replace("admin-secret", "guess"))
    refused = aclog(
        "acls", "list", "--bootstrap-server", f"localhost:{node.ports.broker}", "--command-config", str(config)
    )
    assert refused.code == 2
    assert "Invalid username or password" in refused.err
    assert "guess" not in refused.err


def test_a_quorum_has_a_history_and_an_admin_api_has_none(node):
    flags = places(node, "--bootstrap-controller")
    before = json.loads(aclog("shell", *flags, "cat", "/local/offset").out)
    aclog("acls", "add", *flags, "--allow-principal", "User:alice", "--operation", "READ", "--topic", "later")
    assert "later" in names(aclog("acls", "list", *flags, "--format", "jsonl"))
    past = aclog("acls", "list", *flags, "--as-of", str(before), "--format", "jsonl")
    assert (past.code, "later" in past.out) == (0, False)
    refused = aclog("acls", "list", *places(node, "--bootstrap-server"), "--as-of", "5")
    assert refused.code == 2
    assert "newest state only" in refused.err


def test_lint_tells_where_a_quorum_got_its_rules_and_how_to_mend_them(node):
    flags = places(node, "--bootstrap-controller")
    aclog(
        "acls", "add", *flags, "--allow-principal", "User:linted", "--operation", "READ", "--topic", "*", *PREFIXED
    ).ok()
    [line] = map(json.loads, aclog("lint", *flags, "--select", "01", "--format", "jsonl").lines)
    assert {"offset", "timestamp"} <= set(line["rules"][0])
    assert line["fix"].startswith(f"kafka-acls.sh --bootstrap-controller {flags[1]} --command-config ")
    flags = places(node, "--bootstrap-server")
    [line] = map(json.loads, aclog("lint", *flags, "--select", "01", "--format", "jsonl").lines)
    assert not {"offset", "timestamp"} & set(line["rules"][0])
    assert line["fix"].startswith(f"kafka-acls.sh --bootstrap-server {flags[1]} --command-config ")


def test_scram_users_in_the_log_are_shown_without_secrets(node):
    found = aclog("shell", *places(node, "--bootstrap-controller"), "tree", "/scram")
    assert "admin" in found.out
    assert "***" in found.out


def test_status(place):
    told = json.loads(aclog("status", *place, "--json").out)
    assert (told["leaderId"], told["clusterId"]) == (1, CLUSTER_ID)
    assert told["features"]["metadata.version"] == 30
    assert [voter["replicaId"] for voter in told["voters"]] == [1]
    assert list(told["authorizers"].values()) == [True]
    lines = aclog("status", *place).lines
    assert any(line.split()[:2] == ["leader", "1,"] for line in lines)
    assert any("high-water mark" in line for line in lines)


def test_the_library_follows_a_quorum(node):
    flags = places(node, "--bootstrap-controller")
    with library.open_log(bootstrap_controller=flags[1], command_config=flags[3]) as log:
        before = len(log.image())
        watch = log.watch()
        aclog("acls", "add", *flags, "--allow-principal", "User:alice", "--operation", "READ", "--topic", "followed")
        wait_until(lambda: len(log.image()) == before + 1, "the rule")
        change = next(watch)
        assert (change.rule.resource_name, str(change.kind)) == ("followed", "ADDED")
        assert list(log.history())[-1] == change


def test_the_death_of_the_controller_is_told(tmp_path):
    """A shell that stays open says how old its state is; the library refuses what is older than `max_age`."""
    with AclogNode(tmp_path, Ports.free()).format() as node:
        flags = places(node, "--bootstrap-controller")
        log = library.open_log(bootstrap_controller=flags[1], command_config=flags[3], max_age=6)
        shell = subprocess.Popen(
            [sys.executable, "-m", "aclog", "shell", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        with log, shell:
            assert log.image().end_offset > 0
            shell.stdin.write("at\n")
            assert "at latest" in shell.stdout.readline()
            node.kill()
            killed = time.monotonic()
            wait_until(lambda: log.age > 6, "a state that is too old for the library")
            wait_until(lambda: time.monotonic() - killed > STALE_SECONDS, "one that the shell calls old")
            stale = r"the state is \d+\.\d s old: nothing was confirmed since .*: expected at most 6 s: .*refused"
            with pytest.raises(library.StaleError, match=stale):
                log.image()
            said = shell.communicate("at\n")
    assert "at latest" in said[0]
    assert re.match(r"aclog: warning: the cluster has not answered for \d+ s; this state is from 20", said[1])
