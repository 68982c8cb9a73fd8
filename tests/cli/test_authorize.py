import gzip
import json
from pathlib import Path

import pytest

from tests.support.cli.command import aclog

DATA = Path(__file__).parents[1] / "data"
LOG = DATA / "kafka-4.3.1-small/__cluster_metadata-0"
GOLDEN = DATA / "golden"
REQUEST = {
    "principal": "User:bob",
    "host": "127.0.0.1",
    "operation": "WRITE",
    "resourceType": "TOPIC",
    "resourceName": "payments.eu",
}
DENIED = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=payments., patternType=PREFIXED, principal=User:bob, "
    "host=127.0.0.1, operation=WRITE, permissionType=DENY])"
)


def ask(*flags, **keywords):
    return aclog("authorize", "--log", LOG, *flags, **keywords)


class TestOne:
    @pytest.mark.parametrize(
        ("flags", "code", "out"),
        [
            ("--principal User:bob --operation WRITE --topic payments.eu", 1, f"DENIED {DENIED}"),
            ("--principal User:bob --operation write --topic nothing", 1, "DENIED DefaultDeny"),
            ("--principal User:bob --operation Write --topic x --super-users User:bob", 0, "ALLOWED SuperUser"),
            (
                "--principal User:bob --operation READ --group nothing --allow-everyone-if-no-acl-found",
                1,
                "DENIED DefaultDeny",
            ),
            (
                "--principal User:bob --operation READ --topic no --allow-everyone-if-no-acl-found --as-of 20",
                0,
                "ALLOWED DefaultAllow",
            ),
        ],
    )
    def test_the_decision_its_rule_and_the_exit_code(self, flags, code, out):
        answer = ask(*flags.split())
        assert (answer.code, answer.out) == (code, f"{out}\n")

    @pytest.mark.parametrize("command", ["authorize", "explain"])
    def test_super_users_with_a_comma_are_warned_of(self, command):
        flags = ("--principal", "User:bob", "--operation", "WRITE", "--topic", "x")
        answer = aclog(command, "--log", LOG, *flags, "--super-users", "User:bob,User:eve")
        assert answer.out.startswith("DENIED")
        assert answer.err == (
            "aclog: warning: --super-users: 'User:bob,User:eve' is a single name, as super users are separated by ';': "
            "did you mean 'User:bob;User:eve'?\n"
        )

    def test_every_resource_type_can_be_decided(self):
        who = ("--principal", "User:bob", "--operation", "DESCRIBE")
        for flags, kind in {
            ("--cluster",): "CLUSTER",
            ("--transactional-id", "tx-1"): "TRANSACTIONAL_ID",
            ("--delegation-token", "fEZaa5MpSfC4YR7S2J_7jA"): "DELEGATION_TOKEN",
            ("--topic", "payx"): "TOPIC",
        }.items():
            answer = ask(*who, *flags)
            assert (answer.code, f"resourceType={kind}," in answer.out) == (0, True), answer
        assert (
            ask("--principal", "User:bob", "--operation", "DESCRIBE_TOKENS", "--user-principal", "User:dave").code == 0
        )
        assert ask("--principal", "User:bob", "--operation", "READ", "--group", "g-orders").code == 0

    def test_the_host_may_have_any_textual_form(self):
        who = ("--principal", "User:alice", "--operation", "CREATE", "--topic", "secret_abc", "--host")
        assert ask(*who, "::1").code == 0
        assert ask(*who, "0:0::1").code == 0
        assert ask(*who, "::2").code == 1

    def test_semantics_documented_lets_the_wildcard_cover_names_that_begin_with_it(self):
        who = (
            "--principal",
            "User:x",
            "--operation",
            "DESCRIBE",
            "--topic",
            "*x",
            "--resource-pattern-type",
            "literal",
        )
        assert (ask(*who).code, ask(*who, "--semantics", "documented").code) == (1, 0)

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            ("--operation READ --topic t", "--principal and --operation must be given, or --requests FILE"),
            ("--principal User:a --operation READ", "exactly one resource must be given: --topic, --group,"),
            ("--principal User:a --operation READ --topic t --cluster", "exactly one resource must be given"),
            (
                "--principal User:a --operation FLY --topic t",
                "Invalid value for '--operation': 'FLY' is not one of ALL,",
            ),
            ("--principal User:a --operation READ --topic t --host h", "'h' is not an IPv4 or IPv6 address"),
            ("--principal User:a --operation READ --topic t --super-users x", "x"),
            (
                "--principal User:a --operation READ --topic t --semantics odd",
                "'odd' is not one of 'kafka', 'documented'",
            ),
            ("--principal User:a --operation READ --topic t --topic u", "exactly one resource must be given"),
            ("--principal User:a --operation READ --topic t --host=", "'' is not an IPv4 or IPv6 address"),
            ("--principal User:a --requests -", "--requests FILE excludes --principal"),
            ("--host 10.0.0.1 --requests -", "--requests FILE excludes --principal, --operation, --host"),
            ("--requests nowhere.jsonl", "nowhere.jsonl: no such file or directory"),
        ],
    )
    def test_bad_flags_are_one_line_and_exit_code_2(self, flags, message):
        answer = ask(*flags.split())
        assert (answer.code, answer.out) == (2, "")
        assert message in answer.complaint


def decisions(answer):
    return [json.loads(line) for line in answer.lines]


class TestMany:
    def test_one_line_per_request_in_order_from_stdin_or_gzip(self, tmp_path):
        lines = b"".join(json.dumps({**REQUEST, "host": host}).encode() + b"\n" for host in ("127.0.0.1", "10.0.0.9"))
        (tmp_path / "requests").write_bytes(gzip.compress(lines))
        for answer in (ask("--requests", "-", stdin=lines), ask("--requests", tmp_path / "requests")):
            assert answer.code == 0
            first, second = answer.lines
            assert first == json.dumps({"decision": "DENIED", "rule": DENIED}, separators=(",", ":"))
            assert json.loads(second)["decision"] == "ALLOWED"

    @pytest.mark.parametrize(
        ("bad", "error"),
        [
            (b"", "not JSON"),
            (b'{"a":}', "not JSON: Expecting value at character 6"),
            (b"\xff", "not UTF-8"),
            (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
            (b"7", "expected a JSON object, not int"),
            ({"host": ...}, "key host is missing"),
            ({"host": "example.com"}, "'example.com' is not an IPv4 or IPv6 address"),
            ({"operation": "FLY"}, "operation 'FLY' is not one of"),
            ({"resourceType": 2}, "resourceType must be a string, not 2"),
            ({"principal": "bob"}, "bob"),
            ({"principal": "User:*"}, "User:*"),
            ({"resourceName": "\ud800"}, "a lone surrogate"),
            ({"resourceName": ...}, "key resourceName is missing"),
            ({"kind": "what"}, "kind must be byResourceType or absent"),
            ({"kind": "byResourceType", "operation": "ANY"}, "ANY"),
        ],
    )
    def test_a_malformed_request_gets_an_error_line_and_the_rest_is_decided(self, bad, error):
        if isinstance(bad, dict):
            fields = {key: value for key, value in {**REQUEST, **bad}.items() if value is not ...}
            bad = json.dumps(fields).encode()
        good = json.dumps(REQUEST).encode()
        answer = ask("--requests", "-", stdin=b"\n".join((good, bad, good, b"")))
        assert answer.code == 2
        assert [each["decision"] for each in decisions(answer)] == ["DENIED", "ERROR", "DENIED"]
        assert error in decisions(answer)[1]["error"]
        said = "stdin: 1 of 3 requests could not be decided: each has a line with ERROR in the output"
        assert answer.complaint == said

    def test_other_keys_are_ignored(self):
        line = json.dumps({"time": 5, **REQUEST, "api": 0}).encode()
        assert decisions(ask("--requests", "-", stdin=line)) == [{"decision": "DENIED", "rule": DENIED}]

    def test_any_resource_of_a_type_can_be_decided(self):
        line = {
            "kind": "byResourceType",
            "principal": "User:alice",
            "host": "10.0.0.1",
            "operation": "READ",
            "resourceType": "TOPIC",
        }
        answer = ask("--requests", "-", stdin=json.dumps(line).encode())
        assert decisions(answer) == [{"decision": "ALLOWED", "rule": "hardcode:DefaultDeny"}]

    def test_two_inputs_cannot_be_stdin(self):
        answer = aclog("authorize", "--acls", "-", "--requests", "-")
        assert (answer.code, answer.complaint) == (2, "--acls - and --requests -: only one of them can be stdin")

    def test_a_malformed_acl_line_is_an_error(self):
        answer = aclog(
            "authorize", "--acls", "-", "--principal", "User:a", "--operation", "READ", "--topic", "t", stdin=b"{}"
        )
        assert (answer.code, answer.complaint) == (2, "stdin: line 1: key resourceType is missing")


@pytest.mark.parametrize("estate", ["001", "013", "031", "034", "040", "046", "052", "055"])
def test_golden_estates_are_decided_as_by_the_real_authorizer(estate):
    """Decisions and rules through the command; tests/authorizer decides all estates without it."""
    directory = GOLDEN / estate
    config = json.loads((directory / "config.json").read_text())
    flags = ["--super-users", config["superUsers"] or ""]
    flags += ["--allow-everyone-if-no-acl-found"] if config["allowEveryone"] else []
    answer = aclog(
        "authorize", "--acls", directory / "acls.jsonl.gz", "--requests", directory / "requests.jsonl.gz", *flags
    )
    rules = [json.loads(line) for line in gzip.decompress((directory / "rules.jsonl.gz").read_bytes()).splitlines()]
    letters = [
        line.split() for line in gzip.decompress((directory / "decisions.txt.gz").read_bytes()).decode().splitlines()
    ]
    found = decisions(answer)
    assert len(found) == len(letters)
    names = {"A": "ALLOWED", "D": "DENIED"}
    for (letter, rule), decision in zip(letters, found, strict=True):
        if letter in names:
            assert decision == {"decision": names[letter], "rule": rules[int(rule)]}
    assert answer.code == (2 if any(decision["decision"] == "ERROR" for decision in found) else 0)
