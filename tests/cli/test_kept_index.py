"""`aclog unused` over the index that a node keeps: what a brute force over its audit lines says."""

import json
from random import Random

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.metalog.primitives import uuid_text
from tests.nodes.usage_index.test_keeper import OPERATIONS, USERS, Node, by_hand, changed, random_rule
from tests.support.builders.images import with_ids
from tests.support.cli.command import aclog


def test_unused_over_a_node_s_own_index(tmp_path):
    random = Random(11)
    rules = with_ids(list(dict.fromkeys(random_rule(random) for _ in range(12))))
    node = Node(tmp_path / "index", start=False, settings=Settings(super_users=frozenset({"User:root"})))
    node.load(AclsImage.from_acls(rules))
    node.keeper.start()
    node.wait_for_writes()
    for number in range(60):
        if number > 10 and random.random() < 0.2:
            node.load(changed(node.image, random, number))
        node.asks(random.choice(USERS), random.choice(OPERATIONS), random.choice(["orders", "orders.eu", "other"]))
    node.keeper.close()
    matched, needed = by_hand(node)
    acls = tmp_path / "acls.jsonl"
    acls.write_text("".join(json.dumps(rule.to_dict()) + "\n" for rule in node.image))
    rows = aclog(
        "unused", "--acls", acls, "--index", tmp_path / "index", "--days", 1, "--gap", "3d", "--format", "jsonl"
    ).lines
    answers = {row["id"]: row for row in map(json.loads, rows)}
    assert len(answers) == len(node.image)
    old = {rule.id for rule in rules}
    for rule in node.image:
        row = answers[uuid_text(rule.id)]
        assert (row["matched"], row["needed"]) == (matched[rule.id], needed[rule.id])
        never = "NEVER_NEEDED" if matched[rule.id] else "NEVER_MATCHED"
        younger = rule.id not in old
        assert row["answer"] == ("NEEDED" if needed[rule.id] else "NOT_JUDGED" if younger else never)
    assert {row["answer"] for row in answers.values()} == {"NEEDED", "NOT_JUDGED", "NEVER_NEEDED", "NEVER_MATCHED"}


def test_other_brokers_leave_a_hole(tmp_path):
    """The index of one node says nothing of what another one's clients need."""
    node = Node(tmp_path / "index", start=False)
    node.brokers = ["7", "8"]
    rules = with_ids([random_rule(Random(1))])
    node.load(AclsImage.from_acls(rules))
    node.keeper.start()
    node.wait_for_writes()
    node.keeper.close()
    acls = tmp_path / "acls.jsonl"
    acls.write_text(json.dumps(rules[0].to_dict()) + "\n")
    asked = [
        "unused",
        "--acls",
        acls,
        "--index",
        tmp_path / "index",
        "--days",
        1,
        "--ignore-broker",
        "7",
        "--format",
        "jsonl",
    ]
    (row,) = map(json.loads, aclog(*asked).lines)
    assert row["answer"] == "NOT_JUDGED"
    assert "broker 8" in row["reason"]
