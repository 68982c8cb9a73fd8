"""What the first poll records, in columns, beside the same made of one object per ACL."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, acl_text, record_of, rule_fields
from aclog.authorizer.acls_image import content_of
from aclog.cli.sync import _first_lines, _text_line
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import SYMBOL_MARK, printable
from aclog.metalog.primitives import uuid_text
from aclog.ops.first_poll import FirstPoll, ListedAcls, new_ids
from aclog.snapshots.history import ChangeKind
from tests.support.builders.acls import acl
from tests.support.models import estates

TEXTS = st.text(max_size=4) | st.sampled_from(["User:*", " x", "a on b", "'", "\x1b", "\u2028", "é" * 70, "x" * 200])
ANY = st.builds(
    StandardAcl,
    resource_type=st.sampled_from([2, 3, 4, 7, 8]),
    resource_name=TEXTS,
    pattern_type=st.sampled_from([3, 4]),
    principal=TEXTS,
    host=TEXTS,
    operation=st.integers(2, 20),
    permission_type=st.integers(2, 4),
)
RULES = st.lists(estates.rules() | ANY, max_size=12)


def plain_order(rules):
    return sorted(set(rules), key=lambda each: rule_fields(StandardAclWithId(id=None, acl=each)))


def fields_of(rules):
    return [rule_fields(StandardAclWithId(id=None, acl=each)) for each in rules]


def first_of(rules, offset=7):
    acls = ListedAcls.of({content_of(each) for each in rules})
    return FirstPoll(acls=acls, ids=new_ids(len(acls)), offset=offset, end_offset=offset + len(acls) + 1, timestamp=5)


@given(RULES)
def test_the_order_is_that_of_listings(rules):
    changes = first_of(rules)
    ordered = [each.rule.acl for each in changes]
    assert set(ordered) == set(rules)
    assert len(ordered) == len(set(rules)) == len(changes)
    assert fields_of(ordered) == fields_of(plain_order(rules))  # codes of a newer Kafka have the same text


@given(RULES)
def test_lines_are_those_of_the_objects(rules):
    changes = first_of(rules)
    assert list(changes.acls.lines()) == [printable(acl_text(each.rule.acl)) for each in changes]
    assert list(_first_lines(changes)) == list(map(_text_line, changes))


@given(RULES)
def test_records_add_what_the_changes_have(rules):
    changes = first_of(rules)
    values = [encode_record(record_of(each.rule.acl, each.rule.id)) for each in changes]
    assert changes.values() == values
    assert changes.recorded() == {content_of(each.rule.acl): each.rule.id.bytes for each in changes}
    assert [(each.offset, each.kind) for each in changes] == [
        (7 + row, ChangeKind.ADDED) for row in range(len(changes))
    ]
    assert {(each.end_offset, each.timestamp) for each in changes} <= {(8 + len(changes), 5)}


def test_slices():
    changes = first_of([acl("a"), acl("b"), acl("c")])
    assert [each.rule.acl.resource_name for each in changes[1:]] == ["b", "c"]
    assert changes[-1].rule.acl == acl("c")


def test_symbols_of_a_hostile_name_are_printed_as_by_objects():
    rules = [acl(f"\ufdd0{SYMBOL_MARK}\ufdef:x"), acl("orders"), acl("\ud7ff\ufdd1")]
    changes = first_of(rules)
    assert list(changes.acls.lines()) == [printable(acl_text(each)) for each in plain_order(rules)]


def test_ids_are_as_kafka_makes_them():
    ids = new_ids(5_000)  # one in 64 would begin with a dash
    some = [UUID(bytes=ids[at : at + 16]) for at in range(0, len(ids), 16)]
    assert len(set(some)) == 5_000
    assert {each.version for each in some} == {4}
    assert not any(uuid_text(each).startswith("-") for each in some)
