import doctest
import gzip
import inspect
import json
import pickle
import pydoc
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve

import aclog
from aclog.authorizer.standard import StandardAuthorizer
from tests.support.builders.acls import acl_row
from tests.support.cli import command

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
LOG = DATA / "kafka-4.3.1-small/__cluster_metadata-0"


@pytest.mark.tier("test")
def test_the_examples_of_the_page_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    found = doctest.testfile(str(ROOT / "docs/library.md"), module_relative=False, optionflags=flags)
    assert found.attempted > 10
    assert found.failed == 0


def test_every_public_name_is_there():
    names = dir(aclog)
    assert sorted(names) == names
    for name in names:
        assert name in ("__version__", "Rule") or getattr(aclog, name).__name__ == name
        assert name == "__version__" or re.search(rf"\b{name}\b", aclog.__doc__), f"{name} is not in help(aclog)"
    assert re.fullmatch(r"\d+\.\d+.*", aclog.__version__)
    with pytest.raises(AttributeError, match="nothing"):
        aclog.nothing  # noqa: B018


def test_help_fits_on_three_screens():
    page = pydoc.plain(pydoc.render_doc(aclog)).splitlines()
    assert len(page) <= 72
    assert max(map(len, page)) <= 120
    for name in dir(aclog):
        assert name == "__version__" or (inspect.getdoc(getattr(aclog, name)) or "").strip(), name


@pytest.mark.process
def test_importing_the_package_loads_almost_nothing():
    code = "import aclog, sys; print([name for name in ('numpy', 'pyarrow', 'click', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_a_log_a_checkpoint_and_a_file_give_the_same_acls(tmp_path):
    newest = command.aclog("snapshot", "create", "--log", LOG, "--out", tmp_path).ok().lines[0]
    lines = command.aclog("acls", "list", "--log", LOG, "--format", "jsonl").ok().out
    (tmp_path / "acls.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    images = [aclog.open_log(path).image() for path in (LOG, newest, tmp_path / "acls.jsonl.gz")]
    assert len({frozenset(image.acls()) for image in images}) == 1
    assert [len(image) for image in images] == [68] * 3
    assert images[0].timestamp == images[1].timestamp == 1795227930840


def test_a_log_that_is_being_written_is_followed(tmp_path):
    copy = tmp_path / "log"
    lines = command.aclog("acls", "list", "--log", LOG, "--format", "jsonl").ok().out
    command.aclog("import", "-", "--log", copy, stdin=lines.encode()).ok()
    log = aclog.open_log(copy)
    before = log.image()
    command.aclog("acls", "add", "--log", copy, "--topic", "new", "--allow-principal", "User:new").ok()
    assert (len(before), len(log.image())) == (68, 69)
    command.aclog("acls", "add", "--log", copy, "--topic", "newer", "--allow-principal", "User:new").ok()
    assert (len(before), len(log.image())) == (68, 70)
    assert len(log.image(as_of=before.end_offset)) == 68


def test_images_outlive_a_closed_log():
    with aclog.open_log(LOG) as log:
        image = log.image()
    log.close()
    assert len(image) == 68
    with pytest.raises(aclog.LogError, match="closed"):
        log.image()


def test_a_time_without_zone_is_utc():
    log = aclog.open_log(LOG)
    naive = datetime(2026, 11, 21, 2, 24, 30)  # noqa: DTZ001
    assert len(log.image(as_of=naive)) == len(log.image(as_of=naive.replace(tzinfo=UTC))) == 31


def test_a_torn_tail_is_noted(tmp_path):
    copy = tmp_path / "log"
    shutil.copytree(LOG, copy)
    with (copy / "00000000000000000183.log").open("ab") as file:
        file.write(b"torn")
    log = aclog.open_log(copy)
    assert len(log.image()) == 68
    assert any("4 bytes that are not a whole batch" in note for note in log.notes)


def test_options_of_the_authorizer():
    image = aclog.open_log(LOG).image()
    ask = ("User:x", aclog.AclOperation.DESCRIBE, aclog.topic("*x", pattern="LITERAL"))
    assert not image.authorizer().check(*ask).allowed
    assert image.authorizer(semantics="documented").check(*ask).allowed
    assert image.authorizer(super_users=["User:x", "User:y"]).check(*ask).rule == "SuperUser"
    unknown = ("User:x", "DESCRIBE", aclog.delegation_token("x"))
    assert not image.authorizer(allow_everyone_if_no_acl_found=True).check(*unknown).allowed
    empty = aclog.open_log(LOG).image(as_of=0)
    assert empty.authorizer(allow_everyone_if_no_acl_found=True).check(*unknown).rule == "DefaultAllow"
    with pytest.raises(aclog.ConfigError, match="semantics 'odd' is neither"):
        image.authorizer(semantics="odd")


def test_only_what_is_allowed_is_true():
    authorizer = aclog.open_log(LOG).image().authorizer()
    for operation, allowed in (("WRITE", False), ("READ", True)):
        answer = authorizer.check("User:bob", operation, aclog.topic("payments.eu"))
        assert answer.allowed is allowed
        results = authorizer.standard.authorize(answer.context, [answer.action])
        assert [bool(each) for each in (answer, answer.decision, answer.explanation(), *results)] == [allowed] * 4
    by_type = authorizer.standard.authorize_by_resource_type(
        answer.context, aclog.AclOperation.READ, aclog.ResourceType.USER
    )
    assert not by_type
    assert not authorizer.check_any("User:nobody", "CREATE", "CLUSTER")


def test_an_authorizer_that_is_not_ready_gives_no_answer():
    answer = aclog.open_log(LOG).image().authorizer().check("User:alice", "READ", aclog.topic("orders"))
    with pytest.raises(aclog.MetadataError, match="has not replayed the log"):
        StandardAuthorizer().decide(answer.context, answer.action)


def test_cidr_ranges_if_requested(tmp_path):
    rule = {
        "resourceType": "GROUP", "resourceName": "g", "patternType": "LITERAL", "principal": "User:a",
        "host": "10.0.0.0/8", "operation": "READ", "permissionType": "ALLOW",
    }  # fmt: skip
    (tmp_path / "acls").write_text(json.dumps(rule))
    image = aclog.open_log(tmp_path / "acls").image()
    for cidr in (False, True):
        answer = image.authorizer(cidr=cidr).check("User:a", "READ", aclog.group("g"), host="10.1.2.3")
        assert answer.allowed is cidr
        assert (answer.acl is not None) is cidr
        assert answer.explanation().allowed is cidr


def test_names_without_a_pattern_mean_any(tmp_path):
    rows = [acl_row("foo"), acl_row("foo", patternType="PREFIXED"), acl_row("fo", patternType="PREFIXED")]
    (tmp_path / "acls").write_text("\n".join(map(json.dumps, rows)))
    image = aclog.open_log(tmp_path / "acls").image()
    for pattern, count in ((None, 2), ("ANY", 2), ("LITERAL", 1), ("PREFIXED", 1), ("MATCH", 3)):
        assert len(list(image.acls(name="foo", pattern=pattern))) == count


def test_every_kind_of_resource():
    authorizer = aclog.open_log(LOG).image().authorizer()
    assert authorizer.check("User:bob", "READ", aclog.group("g-orders")).allowed
    assert authorizer.check("User:bob", "DESCRIBE", aclog.cluster()).allowed
    assert authorizer.check("User:bob", "WRITE", aclog.transactional_id("tx-9")).allowed
    assert authorizer.check("User:bob", "DESCRIBE", aclog.delegation_token("fEZaa5MpSfC4YR7S2J_7jA")).allowed
    assert authorizer.check("User:bob", "DescribeTokens", aclog.user("User:dave")).allowed


@pytest.mark.parametrize(
    ("path", "message"), [("nowhere", "nowhere: no such file or directory"), ("-x", "-x: no such file or directory")]
)
def test_a_missing_file_is_an_error(path, message):
    with pytest.raises(aclog.LogError, match=message):
        aclog.open_log(path)


def test_an_error_about_a_bad_name_lists_the_valid_ones():
    image = aclog.open_log(LOG).image()
    with pytest.raises(aclog.ConfigError, match="'TOPICS' is not one of UNKNOWN, ANY, TOPIC"):
        image.acls(resource_type="TOPICS")
    with pytest.raises(aclog.ConfigError, match="'FLY' is not one of UNKNOWN, ANY, ALL"):
        image.authorizer().check("User:a", "FLY", aclog.topic("t"))
    with pytest.raises(aclog.ConfigError, match="'here' is not an IPv4 or IPv6 address"):
        image.authorizer().check("User:a", "READ", aclog.topic("t"), host="here")


def test_a_file_of_acls_has_no_history():
    log = aclog.open_log(DATA / "kafka-4.3.1-small/expected/acls.jsonl")
    with pytest.raises(aclog.ConfigError, match="has one state only"):
        log.image(as_of=5)
    with pytest.raises(aclog.ConfigError, match="a single state has no history"):
        log.history()


def test_what_prints_is_one_line_for_people():
    image = aclog.open_log(LOG).image()
    rule = next(image.acls(name="after-checkpoint"))
    assert str(rule) == "ALLOW User:alice READ on TOPIC LITERAL 'after-checkpoint' from *"
    assert (
        f"{rule.operation} {rule.permission_type} {rule.resource_type} {rule.pattern_type}"
        == "READ ALLOW TOPIC LITERAL"
    )
    assert repr(rule.acl) == (
        "StandardAcl(resource_type=ResourceType.TOPIC, resource_name='after-checkpoint', "
        "pattern_type=PatternType.LITERAL, principal='User:alice', host='*', operation=AclOperation.READ, "
        "permission_type=AclPermissionType.ALLOW)"
    )
    assert eval(repr(rule.acl), {name: getattr(aclog, name) for name in dir(aclog)}) == rule.acl
    assert repr(evolve(rule.acl, operation=99)).count("operation=99,") == 1
    assert evolve(rule, acl=evolve(rule.acl, operation=99)).operation is aclog.AclOperation.UNKNOWN
    assert str(evolve(rule, acl=evolve(rule.acl, principal="User:\x1b[2J"))).startswith(r"ALLOW User:\x1b[2J READ")
    assert rule.to_dict()["operation"] == "READ"


def test_values_survive_pickling():
    """Spark sends these values to other processes."""
    answer = aclog.open_log(LOG).image().authorizer().check("User:bob", "WRITE", aclog.topic("payments.eu"))
    assert pickle.loads(pickle.dumps(answer.decision)) == answer.decision
    with pytest.raises(aclog.InvalidRequestError) as caught:
        aclog.open_log(LOG).image().authorizer().check("bob", "WRITE", aclog.topic("t"))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
