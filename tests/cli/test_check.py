"""`aclog check`, `who-can` and `what-can` by their own command lines; each example is tried with `aclog authorize`."""

import json
from random import Random

import pytest

from tests.cli.test_diff import random_rows, write  # noqa: F401  # a fixture
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog

ORDERS = acl_row("orders", principal="User:app", operation="READ")
PII = acl_row("pii-", principal="User:audit", operation="READ", patternType="PREFIXED")
OPEN = acl_row("*", principal="User:*", operation="DESCRIBE")
NOT_BOB = acl_row("*", principal="User:bob", operation="DESCRIBE", permissionType="DENY")
GROUP = acl_row("g", principal="User:app", operation="READ", resourceType="GROUP")


def verdict(result):
    word = result.lines[0].partition(":")[0]
    assert {"PROVED": 0, "REFUTED": 1}[word] == result.code
    return word


def allows(path, witness, *flags):
    return aclog("authorize", "--acls", path, "--requests", "-", *flags, stdin=json.dumps(witness).encode()).ok()


@pytest.mark.parametrize("seed", range(4))
def test_no_new_access_and_equal(write, seed):  # noqa: F811
    random = Random(seed)
    rows = random_rows(random)
    old, new = write("old", *rows), write("new", *rows, *random_rows(random))
    for check, changes in (("no-new-access", {"GAINED"}), ("equal", {"GAINED", "LOST"})):
        head, *lines = map(
            json.loads, aclog("check", check, "--acls", old, "--to-acls", new, "--no-cidr", "--format", "jsonl").lines
        )
        compared = aclog("diff", "--acls", old, "--to-acls", new, "--no-cidr", "--format", "jsonl")
        diff = [json.loads(line) for line in compared.lines]
        assert lines == [line for line in diff if line["change"] in changes]
        assert head == {"check": check, "verdict": "REFUTED" if lines else "PROVED", "regions": len(lines)}
        result = aclog("check", check, "--acls", old, "--to-acls", new, "--no-cidr")
        assert verdict(result) == head["verdict"]
        for line in lines:
            for path, gained in ((old, "LOST"), (new, "GAINED")):
                allowed = '"ALLOWED"' in allows(path, line["witness"], "--no-cidr").out
                assert allowed is (line["change"] == gained)


def test_no_new_access_to_named_resources_is_about_these_only(write):  # noqa: F811
    old = write("old", ORDERS, PII)
    more = (acl_row("payments.eu", principal="User:eve", operation="READ"), GROUP)
    new = write("new", PII, *more)
    asked = ("check", "no-new-access", "--acls", old, "--to-acls", new)
    elsewhere = aclog(*asked, "--topic", "orders", "--topic", "pii-*", "--cluster")
    assert verdict(elsewhere) == "PROVED"
    where = "TOPIC orders or TOPIC pii-* or CLUSTER"
    assert elsewhere.lines == [f"PROVED: {new} allows no request on {where} that {old} denies"]
    refuted = aclog(*asked, "--topic", "payments.*")
    assert verdict(refuted) == "REFUTED"
    assert refuted.lines[0] == f"REFUTED: {new} allows requests on TOPIC payments.* that {old} denies"
    assert "User:eve: READ, DESCRIBE on TOPIC payments.eu" in refuted.out
    assert "GROUP" not in refuted.out
    head, line = map(json.loads, aclog(*asked, "--group", "g", "--format", "jsonl").lines)
    assert head == {"check": "no-new-access", "verdict": "REFUTED", "regions": 1, "resources": ["group:g"]}
    assert (line["resourceType"], line["principals"]) == ("GROUP", {"in": ["User:app"]})
    assert verdict(aclog(*asked, "--topic", "payments.*", "--resource-pattern-type", "literal")) == "PROVED"
    assert "on GROUP {}{0} that" in aclog(*asked, "--group", "{}{0}").lines[0]
    assert verdict(aclog(*asked)) == "REFUTED"
    assert (
        aclog(*asked, "--topic", "").complaint == "a TOPIC with an empty name: expected a name, or '*' for every name"
    )


def test_no_new_access_to_a_prefix_sees_what_wider_rules_grant(write):  # noqa: F811
    old, wide = write("old", ORDERS), write("wide", ORDERS, acl_row("*", principal="User:eve", operation="READ"))
    asked = ("check", "no-new-access", "--acls", old, "--to-acls", wide)
    refuted = aclog(*asked, "--topic", "payments.*")
    assert verdict(refuted) == "REFUTED"
    assert "User:eve: READ, DESCRIBE on TOPIC payments.*" in refuted.out
    gone = ("check", "no-new-access", "--acls", old, "--to-acls", write("none"))
    assert verdict(aclog(*gone, "--topic", "orders")) == "PROVED"
    assert verdict(aclog(*gone, "--topic", "orders", "--allow-everyone-if-no-acl-found")) == "REFUTED"
    assert verdict(aclog(*gone, "--topic", "payments.*", "--allow-everyone-if-no-acl-found")) == "PROVED"


def test_a_hole_under_a_prefix_is_found(write):  # noqa: F811
    ask = ("--operation", "READ", "--topic", "pii-", "--resource-pattern-type", "prefixed")
    many = [acl_row(f"app-{number}", principal="User:app") for number in range(2000)]
    closed, leaky = write("closed", *many), write("leaky", *many, acl_row("pii-x", principal="User:eve"))
    assert verdict(aclog("check", "not-granted", "--acls", closed, *ask)) == "PROVED"
    head, line = map(json.loads, aclog("check", "not-granted", "--acls", leaky, *ask, "--format", "jsonl").lines)
    assert (head["verdict"], line["names"], line["rule"]["resourceName"]) == (
        "REFUTED",
        [{"literal": "pii-x"}],
        "pii-x",
    )
    assert '"ALLOWED"' in allows(leaky, line["witness"]).out
    result = aclog("check", "not-granted", "--acls", leaky, *ask)
    assert "for example User:eve READ on a topic named 'pii-x' from 127.0.0.1\n" in result.out
    assert verdict(aclog("check", "not-granted", "--acls", leaky, *ask, "--principal", "User:app")) == "PROVED"
    for named, said in (
        (("User:app",), "User:app may not READ on any TOPIC pii-*"),
        (("User:a", "User:b"), "none of User:a, User:b may"),
    ):
        flags = [word for principal in named for word in ("--principal", principal)]
        assert f"PROVED: {said}" in aclog("check", "not-granted", "--acls", leaky, *ask, *flags).out


def test_only(write):  # noqa: F811
    ask = ("--acls", write("acls", PII, OPEN), "--operation", "READ", "--topic", "pii-a")
    assert verdict(aclog("check", "only", *ask, "--principal", "User:audit")) == "PROVED"
    assert verdict(aclog("check", "only", *ask, "--principal", "User:other")) == "REFUTED"
    assert verdict(aclog("check", "only", *ask, "--principal", "User:audit", "--super-users", "User:root")) == "REFUTED"
    named = ("--principal", "User:audit", "--principal", "User:root")
    assert verdict(aclog("check", "only", *ask, *named, "--super-users", "User:root")) == "PROVED"


def test_no_public(write):  # noqa: F811
    acls = ("--acls", write("acls", PII, OPEN, NOT_BOB))
    refuted = aclog("check", "no-public", *acls)
    assert verdict(refuted) == "REFUTED"
    assert refuted.lines[0] == "REFUTED: principals not named in any rule have some access"
    narrowed = aclog("check", "no-public", *acls, "--group", "g").lines
    assert narrowed == ["PROVED: principals not named in any rule, except super users, may not access GROUP g"]
    assert "principals not named in any rule: DESCRIBE on TOPIC" in refuted.out
    assert verdict(aclog("check", "no-public", *acls, "--operation", "READ")) == "PROVED"
    assert verdict(aclog("check", "no-public", *acls, "--group", "g")) == "PROVED"
    assert verdict(aclog("check", "no-public", *acls, "--group", "g", "--allow-everyone-if-no-acl-found")) == "REFUTED"


def test_intents(write):  # noqa: F811
    def granted(*rows, ask=("--intent", "consume", "--topic", "orders", "--group", "g")):
        return verdict(aclog("check", "not-granted", "--acls", write("acls", *rows), *ask)) == "REFUTED"

    assert granted(ORDERS, GROUP)
    assert not granted(ORDERS)
    assert not granted(GROUP)
    no_describe = acl_row("g", principal="User:*", operation="DESCRIBE", resourceType="GROUP", permissionType="DENY")
    assert not granted(ORDERS, GROUP, no_describe)
    assert granted(ORDERS, GROUP, ask=("--intent", "consume", "--topic", "orders"))
    assert not granted(ORDERS, GROUP, ask=("--intent", "produce", "--topic", "orders"))
    refused = aclog("check", "not-granted", "--acls", write("acls"), "--intent", "produce", "--group", "g")
    assert (refused.code, refused.complaint) == (2, "intent produce: expected resources of type TOPIC, not GROUP")


def test_existing_topics_are_counted(write, tmp_path):  # noqa: F811
    (tmp_path / "topics").write_text("pii-a\npii-b\norders\n")
    ask = ("--acls", write("acls", PII), "--topics", tmp_path / "topics", "--operation", "READ", "--topic", "")
    prefixed = ("--resource-pattern-type", "prefixed")
    head, line = map(json.loads, aclog("check", "not-granted", *ask, *prefixed, "--format", "jsonl").lines)
    assert (head["topics"], line["topics"]) == (2, 2)
    assert "  covers 2 of 3 existing topics" in aclog("check", "not-granted", *ask, *prefixed).lines


def test_who_can_names_everybody_and_the_rules(write):  # noqa: F811
    path = write("acls", ORDERS, OPEN, NOT_BOB)
    acls = ("--acls", path, "--super-users", "User:root")
    lines = aclog("who-can", *acls, "--operation", "DESCRIBE", "--topic", "orders").ok().lines
    assert lines == [
        "anyone except User:bob, User:root: DESCRIBE on TOPIC orders, from any host",
        f"  granted by ALLOW User:* DESCRIBE on TOPIC LITERAL '*' from * ({path}:2)",
        f"  limited by DENY User:bob DESCRIBE on TOPIC LITERAL '*' from * ({path}:3)",
        "super users, who may do everything: User:root",
    ]
    assert aclog("who-can", *acls[:2], "--operation", "WRITE", "--topic", "orders").ok().lines == ["no principal"]
    ask = ("--operation", "READ", "--topic", "orders", "--format", "jsonl")
    app, root = map(json.loads, aclog("who-can", *acls, *ask).ok().lines)
    assert (app["principals"], app["rules"], app["denies"]) == (
        {"in": ["User:app"]},
        [ORDERS | {"file": str(path), "line": 1}],
        [],
    )
    assert (root["principals"], root["rules"], root["denies"]) == ({"in": ["User:root"]}, ["SuperUser"], [])


def test_who_can_without_an_operation_is_about_each(write):  # noqa: F811
    acls = ("--acls", write("acls", ORDERS, GROUP), "--topic", "orders", "--format", "jsonl")
    [line] = map(json.loads, aclog("who-can", *acls).ok().lines)
    assert (line["principals"], line["operations"]) == ({"in": ["User:app"]}, ["READ", "DESCRIBE"])
    assert "no resource is given" in aclog("who-can", *acls[:2]).complaint


def test_a_super_user_is_somebody_who_may_do_everything(write):  # noqa: F811
    deny = acl_row("orders", principal="User:root", operation="WRITE", permissionType="DENY")
    acls = ("--acls", write("acls", deny), "--super-users", "User:root")
    everything = ["super users, who may do everything: User:root"]
    assert aclog("who-can", *acls, "--operation", "READ", "--topic", "orders").ok().lines == everything
    assert aclog("what-can", *acls, "--principal", "User:root").ok().lines == everything


def test_who_can_by_default(write):  # noqa: F811
    ask = ("--operation", "READ", "--topic", "free", "--format", "jsonl")
    [line] = aclog("who-can", "--acls", write("acls", ORDERS), *ask, "--allow-everyone-if-no-acl-found").ok().lines
    assert json.loads(line)["rules"] == ["DefaultAllow"]


def test_who_can_with_an_intent(write):  # noqa: F811
    ask = ("--intent", "consume", "--topic", "orders")
    lines = aclog("who-can", "--acls", write("acls", ORDERS, GROUP), *ask).ok().lines
    assert [line for line in lines if not line.startswith(" ")] == [
        "User:app: READ, DESCRIBE on TOPIC orders, from any host",
        "User:app: READ, DESCRIBE on GROUP g, from any host",
    ]


def test_what_can_has_all_of_a_principal(write):  # noqa: F811
    deny = acl_row("orders", principal="User:bob", operation="WRITE", permissionType="DENY")
    path = write("acls", ORDERS, OPEN, NOT_BOB | {"resourceName": "pay"}, deny)
    assert aclog("what-can", "--acls", path, "--principal", "User:bob").ok().lines == [
        "User:bob: DESCRIBE on TOPIC (* except pay), from any host",
        f"  granted by ALLOW User:* DESCRIBE on TOPIC LITERAL '*' from * ({path}:2)",
        f"  limited by DENY User:bob DESCRIBE on TOPIC LITERAL 'pay' from * ({path}:3)",
        f"denied: DENY User:bob WRITE on TOPIC LITERAL 'orders' from * ({path}:4)",
    ]
    assert aclog("what-can", "--acls", write("none"), "--principal", "User:x").ok().lines == ["nothing"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check not-granted --acls - --topic t", "expected --operation NAME or --intent INTENT"),
        ("check not-granted --acls - --operation READ", "no resource is given: --topic"),
        ("check not-granted --acls - --operation READ --intent admin --topic t", "expected one of them"),
        ("check not-granted --acls - --operation ALL --topic t", "'ALL' is not one of READ, WRITE"),
        ("check not-granted --acls - --operation READ --topic t --principal bob", "'bob': expected TYPE:NAME"),
        ("check not-granted --acls - --operation READ --topic t --principal User:*", "no client has that name"),
        ("check not-granted --acls - --operation READ --topic t --host here", "'here' is not an IPv4 or IPv6 address"),
        ("check not-granted --operation READ --topic t", "exactly one state source must be given"),
        ("check not-granted --acls - --operation READ --topic t --topics none", "none: no such file or directory"),
        (
            "check only --acls - --operation READ --topic t",
            "--principal is missing: expected the principals that may do it",
        ),
        ("check no-public --acls - --operation READ --intent admin", "expected one of them"),
        ("check no-public --acls - --topics -", "--acls - and --topics -: only one of them can be stdin"),
        ("check equal --acls - --to-super-users= --topics -", "--acls - and --topics -: only one of them can be stdin"),
        ("diff --acls a --change - --accesses -", "--change - and --accesses -: only one of them can be stdin"),
        ("check no-new-access --acls -", "no second state is given"),
        ("check equal --acls - --to-acls none", "none: no such file or directory"),
        ("who-can --acls - --intent fly --topic t", "--intent"),
        ("who-can --acls - --operation READ --topic=", "a TOPIC with an empty name"),
        ("what-can --acls -", "--principal"),
        ("what-can --acls none --principal User:a", "none: no such file or directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words, said):
    result = aclog(*words.split(), stdin=json.dumps(ORDERS).encode())
    assert (result.code, result.out) == (2, "")
    assert said in result.complaint


def test_super_users_with_a_comma_are_warned_of_once(write, tmp_path):  # noqa: F811
    acls, log, wrong = write("acls", ORDERS), tmp_path / "log", ("--super-users", "User:a,User:b")
    aclog("import", acls, "--log", log).ok()
    ask, to = ("--operation", "READ", "--topic", "orders"), ("--to-acls", acls)
    for words in (
        ("who-can", "--acls", acls, *ask),
        ("what-can", "--acls", acls, "--principal", "User:app"),
        ("when", "--log", log, *ask, "--principal", "User:app"),
        ("diff", "--acls", acls, *to),
        ("check", "equal", "--acls", acls, *to),
        ("check", "not-granted", "--acls", acls, *ask),
    ):
        warning = "aclog: warning: --super-users: 'User:a,User:b' is a single name,"
        assert [line.startswith(warning) for line in aclog(*words, *wrong).err.splitlines()] == [True]
    told = aclog("diff", "--acls", acls, "--to-super-users", "User:c,User:d").err
    assert told.startswith("aclog: warning: --to-super-users: 'User:c,User:d' is a single name,")
    assert len(told.splitlines()) == 1
