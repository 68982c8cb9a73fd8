import gzip
import json

import pytest

from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.shell.command import quoted
from aclog.shell.commands import parse_operation, parse_resource
from aclog.shell.engine import complete, run_command
from aclog.snapshots.image import Image
from tests.support.cli.shell_sources import DATA, SMALL, fixture_image, printed, session


@pytest.fixture
def state():
    return session(fixture_image(SMALL, 231))


def run(state, line):
    return printed(run_command(line, state))


def answers(state, line):
    return [text for text in run(state, line).splitlines() if text.startswith(("ALLOWED: ", "DENIED: ", "based on "))]


def test_a_decision_with_all_that_took_part(state):
    text = run(state, "why User:bob WRITE topic:payments.eu")
    assert text.startswith(
        "DENIED: User:bob WRITE TOPIC 'payments.eu' from 127.0.0.1 (assumed: no host given)\n"
        "based on MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=payments., patternType=PREFIXED, "
        "principal=User:bob, host=127.0.0.1, operation=WRITE, permissionType=DENY])\n"
    )
    assert "matches          ALLOW User:bob ALL on TOPIC PREFIXED 'pay' from *" in text
    assert "To allow it:" in text


def test_another_host_another_answer(state):
    assert answers(state, "why User:bob WRITE topic:payments.eu --host 10.0.0.1")[0] == (
        "ALLOWED: User:bob WRITE TOPIC 'payments.eu' from 10.0.0.1"
    )
    assert answers(state, "why --host=10.0.0.1 User:bob WRITE topic:payments.eu")[0].startswith("ALLOWED")


def test_several_resources_are_answered_one_after_the_other(state):
    found = [
        line
        for line in answers(state, "why User:alice read topic:orders group:g cluster --host 127.0.0.1")
        if ": " in line
    ]
    assert found == [
        "ALLOWED: User:alice READ TOPIC 'orders' from 127.0.0.1",
        "DENIED: User:alice READ GROUP 'g' from 127.0.0.1",
        "DENIED: User:alice READ CLUSTER 'kafka-cluster' from 127.0.0.1",
    ]


def test_it_is_asked_of_the_moment_where_one_is():
    then, now = session(fixture_image(SMALL, 2)), session(fixture_image(SMALL, 231))
    assert answers(then, "why User:alice READ topic:orders")[0].startswith("DENIED")
    assert answers(now, "why User:alice READ topic:orders")[0].startswith("ALLOWED")


def test_what_a_broker_is_told_beside_the_rules():
    empty = session(Image.EMPTY)
    asked = "why User:a READ topic:t"
    assert answers(empty, asked)[1] == "based on DefaultDeny"
    assert answers(empty, f"{asked} --super-users 'User:b;User:a'")[1] == "based on SuperUser"
    assert answers(empty, f"{asked} --allow-everyone true")[1] == "based on DefaultAllow"
    assert answers(empty, f"{asked} --allow-everyone false")[1] == "based on DefaultDeny"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("why User:a READ", "too few arguments"),
        ("why User:a REED topic:t", "'REED' is not an operation: expected one of ALL, READ,"),
        ("why User:a ANY topic:t", "'ANY' is not an operation"),
        ("why User:a READ group", "'group' is not a resource: expected TYPE:NAME, such as topic:orders,"),
        ("why User:a READ topic", "'topic' is not a resource"),
        ("why User:a READ any:t", "'any:t' is not a resource"),
        ("why User:a READ topic:t --host nowhere", "'nowhere' is not an IPv4 or IPv6 address"),
        ("why alice READ topic:t", "alice"),
        ("why User:a READ topic:t --super-users admin", "admin"),
    ],
)
def test_what_cannot_be_asked_is_one_line(state, line, complaint):
    (found,) = run_command(line, state)
    assert found.failed
    assert complaint in found.text
    assert "\n" not in found.text


def test_a_name_alone_is_a_topic(state):
    asked = [line.text for line in run_command("why User:a READ 'topic:t-1'", state)]
    assert [line.text for line in run_command("why User:a READ t-1", state)] == asked
    (found,) = run_command("why User:a READ topic", state)
    assert "'topic' is not a resource" in found.text
    (found,) = run_command("why User:a READ tpic:x", state)
    assert "'tpic:x' is not a resource" in found.text


def test_principals_operations_and_topics_are_completed(state):
    image = state.image()
    principal = min(image.acls.principals())
    named = [each.text for each in complete("why ", state).candidates]
    assert quoted(principal) in named
    assert [each.text for each in complete("why User:a DESCRIBE_C", state).candidates] == ["DESCRIBE_CONFIGS"]
    topics = {
        each.name
        for each in image.acls.resource_patterns()
        if (each.resource_type, each.pattern_type) == (ResourceType.TOPIC, PatternType.LITERAL) and each.name != "*"
    }
    offered = {each.text for each in complete("why User:a READ ", state).candidates}
    assert {"topic:", "cluster"} <= offered
    assert {quoted(name) for name in topics if name.isprintable() and ":" not in name} <= offered


def test_a_hostile_name_stays_in_its_line(state):
    lines = list(run_command("why User:a READ 'topic:x\x1b[2J'", state))
    assert all(line.text.isprintable() for line in lines)


def test_operations_and_types_by_any_spelling():
    for text in ("DESCRIBE_CONFIGS", "describe-configs", "DescribeConfigs"):
        assert parse_operation(text) is AclOperation.DESCRIBE_CONFIGS
    for text in ("transactional-id:t:1", "TRANSACTIONAL_ID:t:1", "TransactionalId:t:1"):
        pattern = parse_resource(text)
        assert (pattern.resource_type, pattern.name) == (ResourceType.TRANSACTIONAL_ID, "t:1")
    assert parse_resource("cluster") == parse_resource("cluster:kafka-cluster")
    assert parse_resource("topic:").name == ""
    with pytest.raises(ConfigError):
        parse_resource(":t")


def test_the_answers_of_a_golden_set():
    """`why` decides like the authorizer, on requests with decisions of the real one."""
    directory = DATA / "golden" / "000"
    from aclog.authorizer.acls_image import AclsImage
    from aclog.sources.acl_lines import parse_acl

    def lines(name):
        return gzip.decompress((directory / name).read_bytes()).decode("utf-8").splitlines()

    config = json.loads((directory / "config.json").read_text("utf-8"))
    rules = [json.loads(line) for line in lines("rules.jsonl.gz")]
    acls = AclsImage.from_acls(parse_acl(line.encode()) for line in lines("acls.jsonl.gz"))
    state = session(Image(acls=acls))
    checked = 0
    for request, decision in zip(lines("requests.jsonl.gz"), lines("decisions.txt.gz"), strict=True):
        asked, (letter, number) = json.loads(request), decision.split()
        if "kind" in asked or letter not in "AD" or checked == 200:
            continue
        resource = quoted(f"{asked['resourceType']}:{asked['resourceName']}")
        options = f"--super-users={quoted(config['superUsers'] or '')} --allow-everyone={config['allowEveryone']}"
        options = f"--resource-pattern-type literal {options}"  # a request of a client: its name as it is
        line = f"why {options} --host {asked['host']} -- {quoted(asked['principal'])} {asked['operation']} {resource}"
        first, second, *_ = run(state, line).splitlines()
        assert first.startswith("ALLOWED" if letter == "A" else "DENIED"), line
        if rules[int(number)].isprintable():
            assert second == f"based on {rules[int(number)]}"
        checked += 1
    assert checked == 200


def test_a_prefix_is_answered_if_all_names_are_decided_alike(state):
    assert answers(state, "why User:bob WRITE topic:payments.*")[0] == (
        "DENIED: User:bob WRITE TOPIC payments.* (all names with this prefix) from 127.0.0.1 (assumed: no host given)"
    )
    assert "the decision differs between names" in run(state, "why User:bob WRITE topic:pay*")
    stated = "why User:bob WRITE topic:payments. --resource-pattern-type prefixed"
    assert run(state, stated) == run(state, "why User:bob WRITE topic:payments.*")
    with pytest.raises(ConfigError, match="before its end"):
        parse_resource("topic:p*y")
    assert parse_resource(r"group:a\*").name == "a*"
