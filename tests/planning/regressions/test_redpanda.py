"""A copy of rules that only ever grows (redpanda-data/redpanda)."""

from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import Estate, log_with

SOURCE = [acl(f"topic-{number}", "User:app") for number in range(12)]
DIRECT = acl("topic-99", "User:app")
"""Created on the copy itself, of the same kind as those that are copied."""


def test_redpanda_30718_what_is_deleted_at_the_source_is_deleted_at_its_copy(tmp_path):
    """A shadow link created ACLs and deleted none; with its new sync_deletions it deletes the copy's own ones too."""
    source = log_with(tmp_path / "source", SOURCE)
    copy = Estate(tmp_path / "copy", log_with(tmp_path / "log", [DIRECT]))
    assert set(sync(source, copy).added()) == set(SOURCE)
    for change in (("remove", "topic-3"), ("remove", "topic-7"), ("add", "topic-20"), ("remove", "topic-20")):
        changed(source, *change)
        sync(source, copy)
        assert copy.rules() == {*rules(source), DIRECT}
    assert len(rules(source)) == len(SOURCE) - 2


def sync(source, copy):
    copy.wants_file("source.jsonl", aclog("acls", "list", *source, "--format", "jsonl").ok().out)
    return copy.bring()


def changed(source, verb, topic):
    rule = ("--allow-principal", "User:app", "--operation", "READ", "--topic", topic)
    aclog("acls", verb, *source, *rule, "--force").ok()


def rules(source):
    return Estate(source[1].with_name("nobody"), source).rules()
