"""Plans for the log of a formatted directory in which no node has started yet."""

import shutil

import pytest

from aclog.planning.journal import read_journal
from aclog.targets import log
from tests.cli.planning.test_ended_on_its_way import end_on_its_way
from tests.cli.planning.test_plan_and_apply import Source, held
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog

A, B = (acl(name, "User:a") for name in "ab")
CLUSTER, OTHER = "4L6g3nShT-eMCtK--X86sw", "ySpn1o2mQ3yqJ8uNBMBZ8w"


def formatted(home, cluster):
    """Format the directory of a controller; return that of its log to be."""
    data = home / "data"
    shutil.rmtree(data, ignore_errors=True)
    config = home / "controller.properties"
    config.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
        f"listeners=CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\nlog.dirs={data}\n"
    )
    aclog("format", config, "--cluster-id", cluster).ok()
    return data / "__cluster_metadata-0"


@pytest.fixture
def source(tmp_path):
    found = Source(tmp_path)
    found.log = formatted(tmp_path, CLUSTER)
    found.want(A)
    assert found.plan().code == 1
    return found


def test_without_force_it_is_refused_before_the_journal_says_that_it_began(source):
    assert "--force" in source.apply().complaint
    assert not read_journal(source.journal, lambda: "new", print).entries
    source.apply("--force").ok()
    assert held(source.log) == {A}


def test_killed_when_its_log_was_just_begun_it_goes_on(source, monkeypatch):
    end_on_its_way(source, monkeypatch, log, "begun_log", "--force")
    source.apply("--resume", "--force").ok()
    assert (held(source.log), source.owned) == ({A}, 1)
    assert source.plan().code == 0


def test_that_of_another_cluster_is_refused_by_plan_and_apply(source, tmp_path):
    formatted(tmp_path, OTHER)
    assert f"is {OTHER}, but the plan was made for {CLUSTER}" in source.apply("--force").complaint
    formatted(tmp_path, CLUSTER)
    source.apply("--force").ok()
    formatted(tmp_path, OTHER)
    source.want(A, B)
    assert f"the journal of {CLUSTER}" in source.plan().complaint
