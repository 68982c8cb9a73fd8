"""`aclog acls list` of many ACLs, made in columns, prints what it prints of the same ACLs one by one."""

import io
from contextlib import redirect_stderr, redirect_stdout
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import NO_ORIGINS, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index import rule_lines
from aclog.authorizer.settings import Generation
from aclog.cli import acls
from aclog.cli.acls import AclFilters, ListedAcls, print_acls
from aclog.cli.flags.common import Output
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.columns import OutputFormat
from tests.authorizer.test_acls_image import by_changes, estates, examples, with_ids
from tests.support.builders.acls import acl

WHOLE = AclFilters(patterns=(), principals=())
FORMATS = (OutputFormat.KAFKA, OutputFormat.JSONL, OutputFormat.JSON, OutputFormat.CSV, OutputFormat.TABLE)


class Terminal(io.StringIO):
    """An output that is a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def printed(image: AclsImage, output: Output, most_one_by_one: int, out: io.StringIO) -> tuple[str, str]:
    """Print all ACLs, those beyond a number in columns; return the output and the warnings."""
    listed = ListedAcls(
        acls=image, kafka=DecidingKafka(generations=tuple(Generation)), origins=NO_ORIGINS, with_origins=False
    )
    errors = io.StringIO()
    with patch.object(acls, "_MANY", most_one_by_one + 1), redirect_stdout(out), redirect_stderr(errors):
        print_acls(listed, WHOLE, output)
    return out.getvalue(), errors.getvalue()


@settings(max_examples=examples(60), deadline=None)
@given(
    estate=estates.estates(odd=True),
    seed=st.integers(0, 2**32),
    form=st.sampled_from(FORMATS),
    columns=st.sampled_from([(), ("principal", "resourceName", "id")]),
    terminal=st.booleans(),
    at_once=st.sampled_from([1, 3, 1 << 14]),
)
def test_columns_print_what_objects_print(estate, seed, form, columns, terminal, at_once):
    image = by_changes(with_ids(estate.acls), Random(seed))
    output = Output(form=form, columns=() if form in (OutputFormat.KAFKA, OutputFormat.JSON) else columns)
    streams = [Terminal() if terminal else io.StringIO() for _ in range(2)]
    with patch.object(rule_lines, "_AT_ONCE", at_once):
        by_columns = printed(image, output, 0, streams[0])
    by_objects = printed(image, output, 1 << 60, streams[1])
    # ACLs of unknown codes may look alike: their ids are in any order
    assert sorted(by_columns[0].split("\n")) == sorted(by_objects[0].split("\n"))
    assert by_columns[1] == by_objects[1]
    if form is OutputFormat.KAFKA:
        assert by_columns == by_objects


@pytest.mark.parametrize("form", FORMATS)
def test_ranges_are_warned_of_and_ids_may_be_missing(form):
    rules = [StandardAclWithId(id=None, acl=acl(f"t{number % 3}", host=f"10.0.{number}.0/24")) for number in range(9)]
    image = AclsImage.from_acls([*rules, StandardAclWithId(id=None, acl=acl("\u202e", "User:=1\x1b[0m"))])
    by_columns, by_objects = (
        printed(image, Output(form=form, columns=()), number, io.StringIO()) for number in (0, 1 << 60)
    )
    assert by_columns == by_objects
    assert "9 ACLs" in by_columns[1]
