"""ACLs as columns, beside the same ACLs as objects: any filter, changes over a base, codes that only a record holds."""

from collections import Counter
from random import Random
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.analysis.rows.rule_tables import RULE_KINDS, rule_cells, rules_arrow, rules_pandas
from aclog.authorizer import acls_image
from aclog.authorizer.acl import AclBindingFilter, rule_fields, rule_json
from aclog.authorizer.acls_image import AclsImage, content_of, contents_of, ids_by_content
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index import rule_columns
from aclog.authorizer.index.rule_lines import sorted_lines
from aclog.metalog.errors import SYMBOL_START, DecodeError
from tests.authorizer.test_acls_image import by_changes, estates, examples, with_ids
from tests.support.builders.acls import acl

FILTERS = st.builds(
    AclBindingFilter,
    resource_type=st.sampled_from([*ResourceType, 1, 1, 1, 2, 99]),
    pattern_type=st.sampled_from([*PatternType, 1, 1, 77]),
    operation=st.sampled_from([*AclOperation, *[1] * 20, 99]),
    permission_type=st.sampled_from([*AclPermissionType, 1, 1, 1, 1]),
)


@settings(max_examples=examples(150), deadline=None)
@given(estate=estates.estates(odd=True), seed=st.integers(0, 2**32), wanted=FILTERS, merged=st.booleans())
def test_columns_have_the_rows_of_the_objects(estate, seed, wanted, merged):
    image = by_changes(with_ids(estate.acls), Random(seed))
    image = image.merged() if merged else image
    columns = image.columns(wanted)
    expected = Counter(map(tuple, map(rule_cells, image.matching(wanted))))
    table, frame = rules_arrow(columns), rules_pandas(columns)
    table.validate(full=True)
    assert table.schema == pa.schema([(name, pa.string()) for name in RULE_KINDS])
    assert Counter(tuple(row.values()) for row in table.to_pylist()) == expected
    assert Counter(frame.itertuples(index=False, name=None)) == expected
    assert len(columns) == expected.total()


def in_listing_order(image):
    """Return the lines of the ACLs of an image, made one by one; those of unknown codes may have the same fields."""
    return [rule_json(rule) for rule in sorted(image, key=lambda rule: (rule_fields(rule), rule_json(rule)))]


@settings(max_examples=examples(150), deadline=None)
@given(estate=estates.estates(odd=True), seed=st.integers(0, 2**32), merged=st.booleans())
def test_the_lines_of_columns_are_those_of_the_objects_in_order(estate, seed, merged):
    image = by_changes(with_ids(estate.acls), Random(seed))
    image = image.merged() if merged else image
    lines = list(sorted_lines(image.columns(AclBindingFilter())))
    fields = [line.partition(',"id":')[0] for line in lines]
    assert fields == [line.partition(',"id":')[0] for line in in_listing_order(image)]
    assert Counter(lines) == Counter(in_listing_order(image))


@pytest.mark.parametrize("name", ['"', "\\", "\x7f", "\u202e", "é", "\U0001f600", "a b", ""])
def test_the_line_of_any_name(name):
    image = AclsImage.from_acls(with_ids([acl(f"{name}x"), acl(f"{name}y", f"User:{name}")]))
    assert list(sorted_lines(image.columns(AclBindingFilter()))) == in_listing_order(image)


def test_names_with_a_symbol_have_no_lines_in_columns():
    image = AclsImage.from_acls(with_ids([acl("a"), acl(f"{SYMBOL_START}TEAM}}")]))
    assert sorted_lines(image.columns(AclBindingFilter())) is None


def test_the_lines_without_ids_have_null():
    bare = AclsImage.from_acls([rule.__class__(id=None, acl=rule.acl) for rule in with_ids([acl("a"), acl("b")])])
    lines = list(sorted_lines(bare.columns(AclBindingFilter())))
    assert lines == in_listing_order(bare)
    assert all(line.endswith(',"id":null}') for line in lines)


def test_without_ids_the_ids_are_null():
    columns = AclsImage.from_acls(with_ids([acl("a"), acl("b")])).columns(AclBindingFilter())
    assert None not in rules_arrow(columns)["id"].to_pylist()
    bare = AclsImage.from_acls([rule.__class__(id=None, acl=rule.acl) for rule in with_ids([acl("a"), acl("b")])])
    assert rules_arrow(bare.columns(AclBindingFilter()))["id"].to_pylist() == [None, None]
    assert rules_pandas(bare.columns(AclBindingFilter())).id.tolist() == [None, None]


@pytest.mark.parametrize("named", [{"resource_name": "a"}, {"principal": "User:a"}, {"host": "*"}])
def test_a_filter_with_a_name_is_looked_up_instead(named):
    assert AclsImage.from_acls(with_ids([acl("a")])).columns(AclBindingFilter(**named)) is None


def test_a_name_that_is_no_utf_8_is_an_error():
    with pytest.raises(DecodeError, match="not UTF-8"):
        rules_arrow(AclsImage.from_acls(with_ids([acl("\ud800")])).columns(AclBindingFilter()))


def test_more_rows_than_a_chunk_of_arrow_has(monkeypatch):
    monkeypatch.setattr("aclog.analysis.rows.rule_tables._CHUNK", 3)
    image = AclsImage.from_acls(with_ids([acl(f"t{number}") for number in range(10)]))
    table = rules_arrow(image.columns(AclBindingFilter()))
    assert [len(each) for each in table["id"].chunks] == [3, 3, 3, 1]
    assert sorted(map(tuple, (row.values() for row in table.to_pylist()))) == sorted(map(rule_cells, image))


@settings(max_examples=examples(150), deadline=None)
@given(estate=estates.estates(odd=True), seed=st.integers(0, 2**32), merged=st.booleans(), bare=st.booleans())
def test_contents_in_columns_are_those_of_the_objects(estate, seed, merged, bare):
    image = by_changes(with_ids(estate.acls), Random(seed))
    image = image.merged() if merged else image
    if bare:
        image = AclsImage.from_acls([rule.__class__(id=None, acl=rule.acl) for rule in image])
    with patch.object(acls_image, "_MANY", 0):
        contents, ids = contents_of(image), ids_by_content(image)
    assert contents == {content_of(rule.acl) for rule in image}
    assert ids == {content_of(rule.acl): rule.id.bytes for rule in image if rule.id is not None}


@settings(max_examples=examples(150), deadline=None)
@given(estate=estates.estates(odd=True), seed=st.integers(0, 2**32), merged=st.booleans(), bare=st.booleans())
def test_iteration_in_columns_has_the_acls_of_that_by_object(estate, seed, merged, bare):
    """Also over several parts, changes, and codes that only the records have."""
    image = by_changes(with_ids(estate.acls), Random(seed))
    image = image.merged() if merged else image
    if bare:
        image = AclsImage.from_acls([rule.__class__(id=None, acl=rule.acl) for rule in image])
    with patch.object(acls_image, "_MANY", 0), patch.object(rule_columns, "_ROWS_AT_ONCE", 3):
        rules, acls = list(image), image.without_ids()
    assert Counter(rules) == Counter(image)
    assert acls == [rule.acl for rule in rules]
    assert Counter(acls) == Counter(image.without_ids())
