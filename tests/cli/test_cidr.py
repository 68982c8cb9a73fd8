"""--cidr: hosts of ACLs that are ranges, in every command that decides."""

import json

import pytest

from tests.support.cli.command import aclog

DENY, ALLOW = "10.66.0.0/16", "10.0.0.0/8"
ASKED = ("--principal", "User:a", "--operation", "READ", "--topic", "t")


def row(host: str, permission: str) -> str:
    return json.dumps(
        {
            "resourceType": "TOPIC", "resourceName": "t", "patternType": "LITERAL", "principal": "User:a",
            "host": host, "operation": "READ", "permissionType": permission,
        }
    )  # fmt: skip


@pytest.fixture
def source(tmp_path):
    rows = [row(ALLOW, "ALLOW"), row(DENY, "DENY"), row("10.0.0.0/99", "ALLOW")]
    (tmp_path / "acls").write_text("\n".join(rows))
    return "--acls", tmp_path / "acls"


@pytest.mark.parametrize(
    ("host", "code", "named"), [("10.1.2.3", 0, ALLOW), ("10.66.0.1", 1, DENY), ("11.0.0.1", 1, "DefaultDeny")]
)
def test_a_decision_and_its_rule(source, host, code, named):
    answer = aclog("authorize", *source, *ASKED, "--host", host, "--cidr")
    assert (answer.code, named in answer.out) == (code, True)
    assert aclog("authorize", *source, *ASKED, "--host", host, "--no-cidr").out == "DENIED DefaultDeny\n"
    shown = aclog("explain", *source, *ASKED, "--host", host, "--cidr")
    assert shown.code == code
    assert shown.lines[1] == f"based on {answer.out.partition(' ')[2].strip()}"
    assert shown.err == "", "no warning of ranges that match nobody"
    why = f"why User:a READ topic:t --host {host} --cidr"
    assert named in aclog("shell", *source, *why.split(), "true").ok().lines[1]
    assert "DefaultDeny" in aclog("shell", *source, *why.split(), "false").ok().lines[1]


def test_explain_says_what_a_range_does(source):
    shown = aclog("explain", *source, *ASKED, "--host", "11.0.0.1", "--cidr").denied().out
    assert f"the range {ALLOW} does not contain 11.0.0.1" in shown
    assert "10.0.0.0/99 is not a range: it matches no client" in shown
    assert "compares hosts as text" not in shown
    assert (
        "Kafka 4.3 does not match it, so it denies nothing"
        in aclog("explain", *source, *ASKED, "--host", "10.66.0.1").denied().out
    )


def test_many_requests(source):
    asked = {"principal": "User:a", "host": "10.1.2.3", "operation": "READ", "resourceType": "TOPIC"}
    lines = [asked | {"resourceName": "t"}, asked | {"kind": "byResourceType"}]
    requests = "\n".join(map(json.dumps, lines)).encode()
    for flags, expected in (("--cidr",), ["ALLOWED", "ALLOWED"]), ((), ["DENIED", "DENIED"]):
        told = aclog("authorize", *source, "--requests", "-", *flags, stdin=requests).ok()
        assert [json.loads(line)["decision"] for line in told.lines] == expected


def test_the_shell_wants_true_or_false(source):
    refused = aclog("shell", *source, "why", "User:a", "READ", "topic:t", "--cidr", "yes")
    assert (refused.code, refused.complaint) == (2, "--cidr: 'yes': expected true or false")
