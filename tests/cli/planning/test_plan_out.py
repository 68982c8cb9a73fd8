"""The file of --out: nothing but a plan is replaced by one, and no older plan is left to be taken for the new one."""

import pytest

from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import Estate, log_with

A, B = acl("a", "User:shop"), acl("b", "User:shop")


@pytest.fixture
def estate(tmp_path):
    found = Estate(tmp_path / "source", log_with(tmp_path / "log", []))
    found.wants(A)
    found.bring()
    return found


def plan(estate, *flags):
    return aclog("plan", *estate.place, "--want", estate.want, "--journal", estate.journal, *flags)


@pytest.mark.parametrize("victim", ["journal", "want"])
def test_what_is_no_plan_is_not_written_over(estate, victim):
    estate.wants(A, B)
    path = getattr(estate, victim)
    before = path.read_bytes()
    for refused in (
        plan(estate, "--out", path),
        aclog("rollback", *estate.place, "--journal", estate.journal, "--out", path),
        aclog("grant", *estate.place, "--principal", "User:x", "--intent", "produce", "--topic", "t", "--out", path),
    ):
        assert refused.code == 2
        assert refused.complaint == f"--out {path}: a file that is no plan: expected another name"
        assert refused.out == ""
        assert path.read_bytes() == before


def test_an_older_plan_does_not_outlive_a_new_one_that_has_nothing_to_do_or_is_refused(estate):
    out = estate.home / "older"
    for wanted, flags, code in (([A], (), 0), ([B], ("--max-deletes", 0), 2)):
        estate.wants(A, B)
        assert plan(estate, "--out", out).code == 1
        estate.wants(*wanted)
        assert plan(estate, "--out", out, *flags).code == code
        assert not out.exists()


def test_an_empty_file_as_of_mktemp_is_taken(estate):
    out = estate.home / "empty"
    out.touch()
    estate.wants(B)
    assert plan(estate, "--out", out).code == 1
    aclog("apply", out, "--yes").ok()
    assert estate.rules() == {B}
