"""Settings that a live cluster has set and hides: no command proves anything from them, and each says how to settle it.

On a real Kafka: tests/integration/test_settings_of_a_live_cluster.py.
"""

import json
import pickle

import pytest

import aclog as library
from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Settings
from aclog.authorizer.standard import AUTHORIZER_CLASS_NAME_CONFIG, KAFKAS_STANDARD_AUTHORIZER, Premise, Premises
from aclog.client.requests import ClusterDescription
from aclog.config.node_config import ClientSecurity
from aclog.console.live import LivePremises, LiveState
from aclog.console.login.guard import visible_premises
from aclog.console.pages.page import CommandLine, Parameters
from aclog.console.pages.states import Console, States
from aclog.console.pages.views import VIEWS
from aclog.console.pdp.deciding import Deciders, KafkaRequest
from aclog.console.pdp.mapping import NotReadyError, default_mapping
from aclog.console.web.app import WebConsole
from aclog.protocol.api_keys import DESCRIBE_CONFIGS
from aclog.protocol.headers import RequestError
from aclog.sources.choice import premises_of
from aclog.sources.live import AdminSource
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker
from tests.support.web.asgi import ask as asked

ORDERS = acl("orders", "User:a")
CLASS = {AUTHORIZER_CLASS_NAME_CONFIG: KAFKAS_STANDARD_AUTHORIZER}
HIDDEN = {SUPER_USERS_CONFIG: None, ALLOW_EVERYONE_CONFIG: None}
BOTH = ("--super-users", "", "--no-allow-everyone-if-no-acl-found")
SUPER = "the principal is a super user (--super-users USERS)"
OPEN = (
    "a resource without ACLs is open to everyone "
    "(--allow-everyone-if-no-acl-found or --no-allow-everyone-if-no-acl-found)"
)
READ = ("--principal", "User:b", "--operation", "READ", "--topic")


@pytest.fixture
def broker():
    with FakeBroker([ORDERS]) as found:
        found.configs = CLASS | HIDDEN
        yield found


def ask(broker, *words):
    return aclog(*words, "--bootstrap-server", broker.address)


def notes(result):
    return [line.removeprefix("aclog: note: ").partition(" is unknown: ")[0] for line in result.err.splitlines()]


def test_a_denied_request_says_what_could_allow_it(broker):
    found = ask(broker, "authorize", *READ, "other")
    assert (found.code, found.out) == (1, f"DENIED unless {SUPER} or {OPEN}: DefaultDeny\n")
    assert notes(found) == [SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG]
    assert "it is set on broker 1, where the value is hidden" in found.err
    # A resource with an ACL is open to nobody by the other setting.
    assert ask(broker, "authorize", *READ, "orders").out == f"DENIED unless {SUPER}: DefaultDeny\n"
    settled = ask(broker, "authorize", *READ, "other", *BOTH)
    assert (settled.out, settled.err) == ("DENIED DefaultDeny\n", "")


def test_of_all_names_that_begin_so_some_may_be_open(broker):
    # `orders` has an ACL, but not each name that begins so.
    unless = f"DENIED unless {SUPER} or {OPEN}"
    assert ask(broker, "authorize", *READ, "orders*").lines[0] == f"{unless}: DefaultDeny"
    explained = ask(broker, "explain", *READ, "orders*")
    assert explained.lines[0].startswith(f"{unless}: User:b READ TOPIC orders*")
    found = json.loads(ask(broker, "explain", *READ, "orders*", "--format", "json").out)
    assert [each["name"] for each in found["premises"]] == [SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG]
    with library.open_log(bootstrap_server=str(broker.address)) as log:
        answer = log.image().authorizer().check("User:b", "READ", "orders*")
    assert answer.premises.names == (SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG)
    assert answer.explain().startswith(unless)


def test_an_allowed_request_stays_allowed(broker):
    found = ask(broker, "authorize", "--principal", "User:a", "--operation", "READ", "--topic", "orders")
    assert found.code == 0
    assert found.out.startswith("ALLOWED MatchingAcl(")
    explained = ask(broker, "explain", "--principal", "User:a", "--operation", "READ", "--topic", "orders")
    assert explained.lines[0].startswith("ALLOWED: User:a READ")


def test_json_keeps_the_decision_and_has_the_premises(broker):
    for command in ("authorize", "explain"):
        found = json.loads(ask(broker, command, *READ, "orders", "--format", "json").out)
        assert found["decision"] == "DENIED"
        [premise] = found["premises"]
        assert (premise["name"], premise["couldAllow"], premise["couldDeny"]) == (SUPER_USERS_CONFIG, True, False)
        assert premise["settledBy"] == "--super-users USERS"
        assert "premises" not in json.loads(ask(broker, command, *READ, "orders", "--format", "json", *BOTH).out)
    assert ask(broker, "explain", *READ, "orders").lines[0].startswith(f"DENIED unless {SUPER}: User:b READ TOPIC")


def test_each_denied_line_of_a_file_names_what_could_allow_it(broker):
    requests = [
        {"principal": who, "host": "::1", "operation": "READ", "resourceType": "TOPIC", "resourceName": name}
        for who, name in (("User:a", "orders"), ("User:b", "orders"), ("User:b", "other"))
    ]
    requests.append({**requests[1], "kind": "byResourceType"})
    stdin = "\n".join(map(json.dumps, requests)).encode()
    found = aclog("authorize", "--requests", "-", "--bootstrap-server", broker.address, stdin=stdin)
    assert found.code == 0
    both = [SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG]
    assert [json.loads(line).get("premises") for line in found.lines] == [None, [SUPER_USERS_CONFIG], both, both]


CHECKS = [
    ("no-public",),
    ("not-granted", "--operation", "WRITE", "--topic", "orders"),
    ("only", "--operation", "READ", "--topic", "orders", "--principal", "User:a"),
    ("not-granted", "--intent", "produce", "--topic", "orders"),
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_proves_nothing(broker, check):
    found = ask(broker, "check", *check)
    assert found.code == 1
    assert found.out.startswith("UNKNOWN: ")
    assert found.out.endswith(f" unless {SUPER} or {OPEN}\n")
    [head] = map(json.loads, ask(broker, "check", *check, "--format", "jsonl").lines)
    assert head["verdict"] == "UNKNOWN"
    assert [each["name"] for each in head["premises"]] == [SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG]
    settled = ask(broker, "check", *check, *BOTH)
    assert settled.code == 0
    assert settled.out.startswith("PROVED: ")
    assert settled.err == ""


def test_a_refutation_stays(broker):
    found = ask(broker, "check", "not-granted", "--operation", "READ", "--topic", "orders")
    assert found.code == 1
    assert found.out.startswith("REFUTED: at least one principal may READ on TOPIC orders\n")


@pytest.mark.parametrize("name", [SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG])
def test_one_premise_is_enough_and_each_flag_settles_its_own(broker, name):
    broker.configs = CLASS | {name: None}
    flag = {SUPER_USERS_CONFIG: BOTH[:2], ALLOW_EVERYONE_CONFIG: BOTH[2:]}
    assert ask(broker, "check", "no-public").out.startswith("UNKNOWN")
    assert ask(broker, "check", "no-public", *flag.pop(name)).out.startswith("PROVED")
    assert ask(broker, "check", "no-public", *flag.popitem()[1]).out.startswith("UNKNOWN")


def test_a_value_that_is_shown_is_named_with_the_flag_that_gives_it(broker):
    broker.configs = CLASS | {SUPER_USERS_CONFIG: "User:admin", ALLOW_EVERYONE_CONFIG: "false"}
    found = ask(broker, "check", "no-public")
    assert found.out.endswith(" unless the principal is a super user (--super-users User:admin)\n")
    assert ask(broker, "check", "no-public", "--super-users", "User:admin").code == 0


def test_a_cluster_with_nothing_set_is_proved_as_before(broker):
    broker.configs = CLASS
    found = ask(broker, "check", "no-public")
    assert (found.code, found.err) == (0, "")
    assert ask(broker, "authorize", *READ, "other").out == "DENIED DefaultDeny\n"


def test_without_the_right_to_describe_it_the_right_is_named(broker):
    broker.refusals[DESCRIBE_CONFIGS] = 31, "Request(processor=1)"
    found = ask(broker, "check", "no-public")
    assert found.code == 1
    why = "it cannot be read on broker 1: the user of --command-config needs DESCRIBE_CONFIGS on the cluster"
    assert found.err.count(why) == 2


def test_every_broker_is_asked(broker):
    with FakeBroker([ORDERS]) as other:
        broker.others, broker.configs, other.configs = [other.address], CLASS, CLASS | {SUPER_USERS_CONFIG: None}
        found = ask(broker, "check", "no-public")
        assert found.code == 1
        assert "super.users is unknown: it is set on broker 2, where the value is hidden" in found.err
        other.configs = CLASS
        assert ask(broker, "check", "no-public").code == 0
    gone = ask(broker, "check", "no-public")  # the other one is out of reach now
    assert gone.code == 1
    assert "it cannot be read on broker 2: " in gone.err


def test_a_broker_that_leads_to_another_cluster_tells_nothing(broker):
    broker.configs = CLASS
    with FakeBroker([ORDERS], cluster_id="another") as other:
        broker.others, other.configs = [other.address], CLASS
        found = ask(broker, "check", "no-public")
    assert found.code == 1
    assert f"it cannot be read on broker 2: {other.address} leads to another cluster from here" in found.err


def test_a_cluster_that_names_no_broker_tells_nothing(broker, monkeypatch):
    broker.configs = CLASS
    asked_of = ClusterDescription(cluster_id="the-cluster", controller_id=1, nodes=())

    async def none(_connection, *_more):
        return asked_of

    monkeypatch.setattr("aclog.sources.live.describe_cluster", none)
    found = ask(broker, "check", "no-public")
    assert (found.code, notes(found)) == (1, [SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG])
    assert "it names no broker that is alive" in found.err


def test_another_authorizer_may_allow_and_deny_otherwise(broker):
    broker.configs = {AUTHORIZER_CLASS_NAME_CONFIG: "com.example.Own"}
    allowed = ask(broker, "authorize", "--principal", "User:a", "--operation", "READ", "--topic", "orders")
    assert allowed.out.startswith("ALLOWED unless another authorizer decides otherwise (--acls FILE, ")
    refuted = ask(broker, "check", "not-granted", "--operation", "READ", "--topic", "orders", *BOTH)
    assert refuted.code == 1
    assert refuted.out.startswith(
        "REFUTED: at least one principal may READ on TOPIC orders, unless another authorizer decides"
    )


def test_who_and_what_can_say_that_there_may_be_more(broker):
    found = ask(broker, "who-can", "--operation", "READ", "--topic", "orders")
    assert (found.code, found.lines[-1]) == (0, f"and more if {SUPER} or {OPEN}")
    assert (
        ask(broker, "who-can", "--operation", "WRITE", "--topic", "t").out == f"no principal unless {SUPER} or {OPEN}\n"
    )
    assert ask(broker, "what-can", "--principal", "User:z").out == f"nothing unless {SUPER} or {OPEN}\n"
    settled = ask(broker, "who-can", "--operation", "WRITE", "--topic", "t", *BOTH)
    assert (settled.out, settled.err) == ("no principal\n", "aclog: note: no ACL is on TOPIC t\n")


@pytest.fixture
def same(tmp_path):
    path = tmp_path / "same.jsonl"
    path.write_text(json.dumps(_row(ORDERS)) + "\n", encoding="utf-8")
    return path


def _row(rule):
    return {key: value for key, value in StandardAclWithId(id=None, acl=rule).to_dict().items() if key != "id"}


def test_the_same_rules_with_the_same_settings_are_equal_whatever_these_are(broker, same):
    for words in (("check", "equal"), ("check", "no-new-access"), ("diff",)):
        assert ask(broker, *words, "--to-acls", same).code == 0
        backwards = aclog(*words, "--acls", same, "--to-bootstrap-server", broker.address)
        assert backwards.code == 0
    one_sided = ask(broker, "check", "equal", "--to-acls", same, "--to-super-users", "User:root")
    assert one_sided.code == 1


def test_the_last_rule_of_a_resource_keeps_it_shut_where_others_are_open(broker, tmp_path):
    deny = acl("orders", "User:c", permission_type=AclPermissionType.DENY)
    broker.rules = [deny]  # it denies nothing that is allowed: without it, the resource may be open
    removal = tmp_path / "remove.jsonl"
    removal.write_text(json.dumps(_row(deny)) + "\n", encoding="utf-8")
    for words in (("check", "equal"), ("check", "no-new-access"), ("diff",)):
        found = ask(broker, *words, "--remove", removal)
        assert found.code == 1
        assert f"unless {OPEN}" in found.out
        assert SUPER not in found.out
        assert ask(broker, *words, "--remove", removal, "--no-allow-everyone-if-no-acl-found").code == 0
        opened = ask(broker, *words, "--remove", removal, "--allow-everyone-if-no-acl-found")
        assert opened.code == 1
        assert "unless" not in opened.out


def test_two_clusters_may_have_different_settings(broker):
    with FakeBroker([ORDERS], cluster_id="other") as other:
        other.configs = CLASS | {SUPER_USERS_CONFIG: None}
        broker.configs = CLASS
        assert ask(broker, "check", "equal", "--to-bootstrap-server", other.address).code == 1
        # The first one, of which everything is known, can only be denied more.
        back = aclog("check", "no-new-access", "--bootstrap-server", other.address, "--to-bootstrap-server",
                     broker.address)  # fmt: skip
        assert back.code == 0
        there = ask(broker, "check", "no-new-access", "--to-bootstrap-server", other.address)
        assert (there.code, there.lines[0].split(":")[0]) == (1, "UNKNOWN")
        users = ("--super-users", "User:root")
        assert ask(broker, "check", "equal", "--to-bootstrap-server", other.address, *users).code == 0


TESTS = """
tests:
- {name: a, principal: "User:a", can: {READ: ["topic:orders"]}}
- {name: b, principal: "User:b", cannot: {READ: ["topic:orders"]}}
- {name: c, principal: "User:*", cannot: {WRITE: ["topic:orders"]}}
- {name: d, principal: "User:*", cannot: {WRITE: ["topic:other"]}}
"""


def test_a_test_that_a_premise_could_turn_does_not_pass(broker, tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text(TESTS, encoding="utf-8")
    found = ask(broker, "test", file, "--format", "jsonl")
    cases = [json.loads(line) for line in found.lines if "verdict" in json.loads(line)]
    assert found.code == 1
    assert [each["verdict"] for each in cases] == ["PASSED", "FAILED", "PASSED", "FAILED"]
    said = [each["failures"][0]["found"] for each in cases if each["verdict"] == "FAILED"]
    assert said == [
        f"not proven: it fails if {SUPER}",
        f"not proven: it fails if {OPEN}",
    ]
    assert ask(broker, "test", file, *BOTH).code == 0


def test_a_test_that_compares_with_a_live_cluster_is_about_its_settings_too(broker, tmp_path):
    shut = acl("shut", "User:c", permission_type=AclPermissionType.DENY)
    broker.rules = [ORDERS, shut]
    rules, file = tmp_path / "rules.jsonl", tmp_path / "rules.yaml"
    rules.write_text(json.dumps(_row(ORDERS)) + "\n", encoding="utf-8")
    other = f"{{bootstrap-server: '{broker.address}'}}"
    file.write_text(
        f"tests:\n- {{name: s, same_as: {{source: {other}}}}}\n- {{name: n, no_new_access: {{than: {other}}}}}\n"
    )
    found = aclog("test", file, "--acls", rules)
    assert found.code == 1
    assert found.out.count(f"not proven: it fails if {OPEN}") == 2
    assert aclog("test", file, "--acls", rules, BOTH[2]).code == 0
    rules.write_text("".join(json.dumps(_row(each)) + "\n" for each in broker.rules), encoding="utf-8")
    assert aclog("test", file, "--acls", rules).code == 0


def test_lint_calls_needless_only_what_is_so_in_any_case(broker, tmp_path):
    broker.rules = [acl("t", "User:c", permission_type=AclPermissionType.DENY), acl("o", "User:a"),
                    acl("o", "User:a", operation=AclOperation.DESCRIBE)]  # fmt: skip
    known = ask(broker, "lint", *BOTH, "--format", "jsonl")
    unknown = ask(broker, "lint", "--format", "jsonl")
    lints = [[json.loads(line).get("lint") for line in found.lines] for found in (known, unknown)]
    assert {"10", "11"} <= {(each or "")[:2] for each in lints[0]}
    assert "10" not in {(each or "")[:2] for each in lints[1]}
    assert "11" in {(each or "")[:2] for each in lints[1]}
    fix = tmp_path / "fix.jsonl"
    refused = ask(broker, "lint", "--fix", fix)
    assert refused.code == 2
    assert "no removal can be proved to change no decision" in refused.err
    assert not fix.exists()


def test_a_context_and_a_settings_file_settle_it(broker, tmp_path, monkeypatch):
    contexts = tmp_path / "contexts.toml"
    monkeypatch.setenv("ACLOG_CONFIG", str(contexts))
    aclog("context", "add", "live", "--bootstrap-server", broker.address, "--super-users", "User:root").ok()
    found = aclog("-c", "live", "check", "no-public")
    assert "--super-users" not in found.out
    assert OPEN in found.out
    never = ("--super-users", "", "--no-allow-everyone-if-no-acl-found")
    aclog("context", "add", "live", "--replace", "--bootstrap-server", broker.address, *never).ok()
    assert aclog("-c", "live", "check", "no-public").code == 0
    both = aclog("context", "add", "x", "--acls", "-", never[2], "--allow-everyone-if-no-acl-found")
    assert "expected one of them" in both.complaint
    settings = tmp_path / "aclog.toml"
    settings.write_text(
        '[authorizer]\nsuper-users = ["User:root"]\nallow-everyone-if-no-acl-found = false\n', encoding="utf-8"
    )
    assert "is unknown" not in ask(broker, "lint", "--config", settings).err


# what accesses need


def _access(principal, name):
    return {
        "principal": principal, "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": name,
        "timestamp": "2026-11-21T10:00:00Z",
    }  # fmt: skip


@pytest.fixture
def accesses(broker, tmp_path):
    broker.rules = [ORDERS, acl("never", "User:a"), acl("shut", "User:c", permission_type=AclPermissionType.DENY)]
    path = tmp_path / "log.jsonl"
    lines = [_access("User:a", "orders"), _access("User:c", "shut")]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    return path


def _answers(result):
    rows = map(json.loads, result.ok().lines)
    return {row["resourceName"]: (row["answer"], row["removable"]) for row in rows}


def test_no_rule_is_removable_where_its_resource_may_be_open_without_it(broker, accesses):
    words = ("usage", "--accesses", accesses, "--format", "jsonl")
    assert _answers(ask(broker, *words, *BOTH)) == {
        "orders": ("NEEDED", False), "never": ("NEVER_MATCHED", True), "shut": ("NEVER_NEEDED", True)
    }  # fmt: skip
    for flags in ((), BOTH[:2]):
        assert _answers(ask(broker, *words, *flags)) == {
            "orders": ("NEEDED", False), "never": ("NEVER_MATCHED", False), "shut": ("NOT_JUDGED", False)
        }  # fmt: skip
    # Super users need no rule at all.
    assert _answers(ask(broker, *words, BOTH[2]))["never"] == ("NEVER_MATCHED", True)


def test_nothing_is_kept_or_suggested_that_cannot_be_proved(broker, accesses, tmp_path):
    for words in (("suggest",), ("usage-index", "--index", tmp_path / "index")):
        refused = ask(broker, *words, "--accesses", accesses)
        assert (refused.code, refused.out) == (2, "")
        assert "allow.everyone.if.no.acl.found is unknown" in refused.err.splitlines()[-1]
        ask(broker, *words, "--accesses", accesses, BOTH[2]).ok()


def test_an_index_that_was_given_the_settings_says_what_can_go(broker, accesses, tmp_path):
    broker.configs = CLASS
    ask(broker, "usage-index", "--index", tmp_path / "index", "--accesses", accesses).ok()
    words = ("unused", "--index", tmp_path / "index", "--days", "1", "--gap", "3d", "--format", "jsonl")
    known = [json.loads(line)["removable"] for line in ask(broker, *words).lines]
    assert any(known)
    broker.configs = CLASS | HIDDEN
    assert [json.loads(line)["removable"] for line in ask(broker, *words).lines] == known  # it was known then
    rules = tmp_path / "rules.jsonl"
    rules.write_text("".join(json.dumps(_row(each)) + "\n" for each in broker.rules), encoding="utf-8")
    elsewhere = ("usage-index", "--index", tmp_path / "other", "--accesses", accesses, "--acls", rules)
    aclog(*elsewhere).ok()  # of files: nobody says what decides in a cluster
    other = ask(broker, "unused", "--index", tmp_path / "other", *words[3:])
    assert not any(json.loads(line)["removable"] for line in other.lines)
    assert "no ACL counts as removable: make the index anew" in other.err


def test_an_access_that_may_be_allowed_is_listed_as_denied_with_a_note(broker, accesses):
    found = ask(broker, "denied", "--accesses", accesses, "--format", "jsonl")
    assert found.code == 1
    assert notes(found) == [SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG]


def test_accesses_that_flip_only_if_a_resource_is_open_make_a_simulation_unsure(broker, accesses, tmp_path):
    removal = tmp_path / "remove.jsonl"
    removal.write_text(json.dumps(_row(broker.rules[2])) + "\n", encoding="utf-8")
    words = ("simulate", "--accesses", accesses, "--remove", removal)
    assert ask(broker, *words, *BOTH).code == 0
    found = ask(broker, *words)
    assert found.code == 1
    assert f"every access is decided the same unless {OPEN}" in found.err
    removal.write_text(json.dumps(_row(broker.rules[1])) + "\n", encoding="utf-8")
    assert ask(broker, *words).code == 0  # no access is on its resource


# what stays open


def test_the_shell_says_it_too(broker):
    why = ("why", "User:b", "READ", "topic:orders")
    found = aclog("shell", "--bootstrap-server", broker.address, *why)
    assert found.lines[0].startswith(f"DENIED unless {SUPER}: User:b READ")
    given = aclog("shell", "--bootstrap-server", broker.address, *why, "--super-users", "User:root")
    assert given.lines[0].startswith("DENIED: User:b READ")


def test_answers_of_the_library_have_their_premises(broker):
    with library.open_log(bootstrap_server=str(broker.address)) as log:
        image = log.image()
    authorizer = image.authorizer()
    assert authorizer.premises.names == (SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG)
    denied, allowed = authorizer.check("User:b", "READ", "orders"), authorizer.check("User:a", "READ", "orders")
    assert (denied.premises.names, allowed.premises.names) == ((SUPER_USERS_CONFIG,), ())
    assert str(denied).startswith(f"DENIED unless {SUPER}: User:b READ")
    assert denied.explain().startswith("DENIED unless ")
    assert [each["name"] for each in denied.to_dict()["premises"]] == [SUPER_USERS_CONFIG]
    known = image.authorizer(super_users=[], allow_everyone_if_no_acl_found=False)
    assert not known.premises
    same = image.diff(image)
    assert not same.differences
    assert not same.premises  # both have the settings of the cluster
    assert known.diff(image.authorizer()).premises
    assert pickle.loads(pickle.dumps(image)).authorizer().premises == authorizer.premises  # our own


def test_a_decision_point_and_a_console_name_what_could_allow_it(broker):
    source = AdminSource((broker.address,), ClientSecurity(), notify=str)
    told = []
    premises = LivePremises(settings=lambda: premises_of(source, frozenset()), tell=told.append)
    live = LiveState(source=source, seconds=60, tell=told.append)
    deciders = Deciders(live=live, settings=Settings(), mapping=default_mapping(), max_age=60.0, premises=premises)
    live._look()
    decider = deciders.at(None)
    request = KafkaRequest(principal="User:b", host="::1", operation=AclOperation.READ, resource_type=2, name="orders")
    answer = json.loads(decider.decide(request).text(0))
    assert answer["decision"] is False
    assert answer["context"]["premises"] == [SUPER_USERS_CONFIG]
    assert "premises" not in decider.decide(request._replace(principal="User:a")).text(0)
    assert len(told) == 2

    states = States(live=LiveState(source=source, seconds=60, tell=told.append), settings=Settings(), premises=premises)
    states.live._look()
    console = Console(name="c", states=states, command=CommandLine(source=("--bootstrap-server", "b")))
    page = VIEWS["/why"](console, Parameters.of("principal=User:b&operation=READ&type=TOPIC&name=orders"))
    assert page.answer.startswith(f"DENIED unless {SUPER}: ")
    shown = asked(WebConsole(console=console).app(), "GET", "/principal?principal=User:b&format=json").json["notices"]
    assert [name in str(shown) for name in HIDDEN] == [True, True]


def test_a_viewer_of_few_rules_is_not_told_who_the_super_users_are():
    shown = Premise(
        name=SUPER_USERS_CONFIG,
        problem="on broker 1 it is 'User:root', which no flag or context sets",
        unless="the principal is a super user",
        settled_by="--super-users User:root",
    )
    [found] = visible_premises(Premises((shown,))).unknown
    assert "root" not in f"{found.note()} {found.to_dict()} {Premises((found,)).decided('DENIED')}"


def test_a_decision_point_of_a_cluster_without_an_authorizer_decides_nothing(broker):
    def refused():
        raise RequestError(54, "no node has an authorizer")

    told = []
    live = LiveState(source=AdminSource((broker.address,), ClientSecurity(), notify=str), seconds=60, tell=told.append)
    premises = LivePremises(settings=refused, tell=told.append)
    deciders = Deciders(live=live, settings=Settings(), mapping=default_mapping(), max_age=60.0, premises=premises)
    live._look()
    assert told == ["no node has an authorizer"]
    with pytest.raises(NotReadyError, match="no node has an authorizer"):
        deciders.at(None)


def test_a_plan_says_what_is_hidden_and_what_depends_on_it(broker):
    words = ("grant", "--principal", "User:x", "--intent", "produce", "--topic", "t")
    found = ask(broker, *words)
    assert notes(found)[:1] == [SUPER_USERS_CONFIG]
    assert "allow.everyone.if.no.acl.found is unknown" in found.out
    assert "is unknown" not in ask(broker, *words, *BOTH).err
    broker.configs = CLASS
    assert "is unknown" not in ask(broker, *words).err


def test_what_stays_denied_may_be_a_super_users(broker):
    broker.rules = [
        acl("t", "User:x", "10.0.0.1", operation=AclOperation.WRITE, permission_type=AclPermissionType.DENY)
    ]
    words = ("grant", "--principal", "User:x", "--intent", "produce", "--topic", "t")
    assert f"stays denied unless {SUPER}: " in ask(broker, *words).out
    assert "stays denied: " in ask(broker, *words, *BOTH).out


def test_what_is_revoked_may_still_be_a_super_users(broker):
    words = ("revoke", "--principal", "User:a", "--intent", "consume", "--topic", "orders", "--group", "g")
    found = ask(broker, *words)
    assert f"still allowed if {SUPER}\n" in found.out
    assert "still allowed if names without ACLs are open: User:a: READ on TOPIC orders" in found.out
    assert "still allowed" not in ask(broker, *words, *BOTH).out
    opened = ask(broker, *words, *BOTH[:2], "--allow-everyone-if-no-acl-found").out
    assert "still allowed: User:a: READ on TOPIC orders" in opened


def test_a_delete_that_takes_nothing_away_is_tried_both_ways(broker, tmp_path):
    everyone = acl("t", "User:*", operation=AclOperation.ALL)
    broker.rules = [ORDERS, everyone]
    change = tmp_path / "change.jsonl"
    change.write_text(json.dumps({"action": "REMOVE", "rule": _row(everyone)}) + "\n", encoding="utf-8")
    words = ("plan", "--change", change, "--journal", tmp_path / "journal", "--adopt")
    found = ask(broker, *words)
    assert "no effect if resources without ACLs are open" in found.out
    assert "LOST  everyone: ALL on TOPIC t" in found.out
    assert "no difference: every request is decided the same unless names without ACLs are not open" in found.out
    for flags, text in (((), "unless"), (BOTH[:2], "unless"), (BOTH, "LOST  everyone: ALL on TOPIC t")):
        assert text in ask(broker, *words, *flags).out
    opened = ask(broker, *words, *BOTH[:2], "--allow-everyone-if-no-acl-found").out
    assert "no effect: every request is decided the same without it" in opened
    assert "no difference: every request is decided the same\n" in opened


def test_drift_notes_nothing_of_what_decides(broker, tmp_path):
    (tmp_path / "want").write_text(json.dumps(_row(ORDERS)) + "\n", encoding="utf-8")
    found = ask(broker, "drift", "--want", tmp_path / "want", "--journal", tmp_path / "journal")
    assert (found.code, "is unknown" in found.err) == (0, False)
