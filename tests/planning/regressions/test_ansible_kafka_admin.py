"""A list of one that is no list (StephenSorriaux/ansible-kafka-admin)."""

from tests.support.builders.acls import acl
from tests.support.planning.estate import Estate, log_with

PREFIXED = 4
PREFIXES = [acl(prefix, "User:user3", pattern_type=PREFIXED) for prefix in ("topic_", "topic_test-", "topic_x")]
THEIRS = acl("legacy", "User:old")


def test_ansible_kafka_admin_190_the_last_element_stays(tmp_path):
    """Of two entries with mark_others_as_absent the one that was taken out stayed: a list of one was another case."""
    estate = Estate(tmp_path / "source", log_with(tmp_path / "log", [THEIRS]))
    for count in (3, 2, 1, 0):
        estate.wants(*PREFIXES[:count])
        # that nothing at all is wanted may be a mistake, and must be said
        planned = estate.bring(*(() if count else ("--max-deletes", 1)))
        assert planned.removed() == (set() if count == 3 else {PREFIXES[count]})
        assert estate.rules() == {THEIRS, *PREFIXES[:count]}
