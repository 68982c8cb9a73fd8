from uuid import UUID

import pytest
from attrs import define
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.shell.command import split_line
from aclog.shell.engine import COMMANDS, MAX_CANDIDATES, complete, run_command
from aclog.snapshots.image import Image
from tests.support.cli.shell_sources import SMALL, fixture_image, printed, session


@pytest.fixture
def state():
    return session(fixture_image(SMALL, 231))


def completed(line, state):
    """Return all completed lines."""
    found = complete(line, state)
    return [line[: found.start] + candidate.text for candidate in found.candidates]


def test_commands(state):
    assert completed("", state) == list(COMMANDS)
    assert completed("c", state) == ["cat", "cd"]
    assert completed("  hi", state) == ["  history"]
    assert completed("nothing", state) == []
    assert completed("bogus /a", state) == []


def test_paths(state):
    assert completed("ls ", state) == [
        f"ls {name}/" for name in ("acl", "delegationToken", "features", "image", "local", "scram")
    ]
    assert completed("cat /image/p", state) == ["cat /image/provenance"]
    assert completed("ls /image/../s", state) == ["ls /image/../scram/"]
    assert completed("ls /sc*/al", state) == ["ls /sc*/alice/"]
    assert completed("cat /acl/id/3aP", state) == ["cat /acl/id/3aPpDAnMRlu4BAsYOn9-Bg"]
    assert completed("find /image/acls/byId /lo", state) == ["find /image/acls/byId /local/"]
    assert completed("ls /nothing/", state) == []
    assert completed("cat /local/epoch/", state) == []
    list(run_command("cd /scram/alice", state))
    assert completed("cat ", state) == ["cat SCRAM-SHA-256", "cat SCRAM-SHA-512"]


def test_names_that_need_quotes(state):
    assert completed("ls /acl/principal/User:CN=A", state) == [
        "ls /acl/principal/'User:CN=Alice Smith,OU=Eng,O=Acme\\\\, Inc,C=US/'"
    ]
    assert "ls '/acl/principal/User:*/'" in completed("ls '/acl/principal/User:", state)
    assert "ls /acl/principal/'User:*/'" in completed("ls /acl/principal/User:", state)


def test_a_completed_path_is_one_that_is_there(state):
    checked = 0
    for directory in (
        "/acl/principal/",
        "/acl/resource/TOPIC/LITERAL/",
        "/scram/",
        "/image/",
        "/acl/resource/GROUP/LITERAL/",
    ):
        for line in completed(f"ls {directory}", state):
            assert not [each for each in run_command(line, state) if each.failed], line
            checked += 1
            inner = completed(line, state)
            assert inner, line
    assert checked > 40


def test_words_of_the_other_commands(state):
    assert completed("man wa", state) == ["man watch"]
    assert completed("at l", state) == ["at latest"]
    assert completed("diff 1 ", state) == ["diff 1 latest"]
    assert completed("why User:dave DESCRIBE_C", state) == ["why User:dave DESCRIBE_CONFIGS"]
    assert completed("why User:dave READ t", state) == [
        "why User:dave READ topic:",
        "why User:dave READ transactional-id:",
    ]
    assert completed("why User:dave READ topic:t clu", state) == ["why User:dave READ topic:t cluster"]
    assert completed("why User:dave READ topic:t --h", state) == ["why User:dave READ topic:t --host"]
    assert completed("why User:dave READ topic:t --host ", state) == []
    assert "why 'User:*'" in completed("why User:", state)
    assert completed("pwd ", state) == []


def many(count):
    return AclsImage.from_acls(
        StandardAclWithId(
            id=UUID(int=(number << 64) + 77),
            acl=StandardAcl(
                resource_type=2,
                resource_name=f"topic-{number}",
                pattern_type=3,
                principal=f"User:{number}",
                host="*",
                operation=3,
                permission_type=3,
            ),
        )
        for number in range(count)
    )


def test_candidates_are_bounded():
    state = session(Image(acls=many(2 * MAX_CANDIDATES)))
    for line in ("cat /acl/id/", "ls /acl/principal/", "ls /acl/resource/TOPIC/LITERAL/", "why "):
        assert len(completed(line, state)) == MAX_CANDIDATES, line
    assert completed("ls /acl/principal/User:599", state) == ["ls /acl/principal/User:599/"]


def test_an_id_is_completed_without_listing_the_others():
    ranges = []

    @define
    class Ids:
        def ids(self, low, high):
            ranges.append(high - low)
            return iter(())

        def get(self, rule_id):
            return None

    state = session(Image(acls=Ids()))
    complete("cat /acl/id/abcde", state)
    assert len(ranges) == 64
    assert set(ranges) == {1 << 128 - 6 * 6}


def test_a_state_that_cannot_be_read_completes_to_nothing(state):
    state.moment = 5  # there is no such state here
    assert complete("ls /", state).candidates == ()


@given(st.text(st.sampled_from("ls cat/aimge'\"\\*{} %2EUser:"), max_size=20))
@settings(deadline=None)
def test_whatever_is_typed_completion_replaces_its_last_word(line):
    state = session(fixture_image(SMALL, 231))
    found = complete(line, state)
    assert found.start == split_line(line).last_start
    assert len(found.candidates) <= MAX_CANDIDATES
    for candidate in found.candidates:
        assert len(split_line(line[: found.start] + candidate.text).words) >= 1
        assert printed([]) == ""
