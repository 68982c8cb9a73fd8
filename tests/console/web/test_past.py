"""The pages of the past as they are sent: live, with hostile names, and while their source is lost."""

import shutil

import pytest

from aclog.authorizer.codes import AclOperation
from aclog.console.web.app import WebConsole
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog.files import segment_name
from tests.support.builders.acls import acl, acl_record, removal_of
from tests.support.builders.state_logs import write_log
from tests.support.processes.waiting import wait_until
from tests.support.web.asgi import ask
from tests.support.web.histories import console_on, whole

HOSTILE = ("<script>alert(1)</script>", "a\u202eb", "nocolon", "  ", "x" * 249, "lone\ud800", "'\"&amp;")


def log_of(directory, names=("orders", "pay")):
    records = [acl_record(number, acl(name, f"User:{number}")) for number, name in enumerate(names, 1)]
    return write_log(directory, *([record] for record in records))


def more(directory, offset, record):
    with (directory / segment_name(0)).open("ab") as file:
        file.write(build_batch([encode_record(record)], base_offset=offset, leader_epoch=1, timestamp=offset * 1000))


@pytest.fixture
def directory(tmp_path):
    return log_of(tmp_path / "log")


def test_a_change_appears_with_the_next_version(directory):
    with console_on(directory) as console:
        whole(console.history.live)
        app = WebConsole(console=console).app()
        before = ask(app, "GET", "/live").json["version"]
        assert b"offset 1 and offset 2" in ask(app, "GET", "/changes").body
        more(directory, 2, acl_record(9, acl("new-topic", "User:new")))
        wait_until(lambda: ask(app, "GET", "/live").json["version"] != before)
        # what tells of the new state has the change
        reply = ask(app, "GET", "/changes")
        assert b"offset 2 and offset 3" in reply.body
        assert b"new-topic" in reply.body
        found = ask(app, "GET", "/changes?format=json").json
        assert found["changes"]["rows"][0]["resourceName"] == "new-topic"
        assert "User:new" in ask(app, "GET", "/changes?format=csv&table=changes").body.decode()


def test_hostile_names_are_shown_as_text(tmp_path):
    directory = log_of(tmp_path / "log", [name for name in HOSTILE if "\ud800" not in name])
    with console_on(directory) as console:
        whole(console.history.live)
        app = WebConsole(console=console).app()
        html = ask(app, "GET", "/changes?since=0").body.decode()
        assert "<script>alert" not in html
        assert "\u202e" not in html
        when = "/when?principal=User%3A%3Cscript%3E&operation=READ&name=%3Cscript%3E"
        assert "<script>" not in ask(app, "GET", when).body.decode().partition("<main>")[2]


@pytest.mark.parametrize("path", ["/changes?since=soon", "/changes?from=-x", "/when?principal=a&operation=READ&name=b"])
def test_what_cannot_be_asked_is_400(directory, path):
    with console_on(directory) as console:
        whole(console.history.live)
        reply = ask(WebConsole(console=console).app(), "GET", path)
    assert reply.status == 400
    assert b"Invalid request" in reply.body


def test_a_lost_log_is_no_empty_page(directory, tmp_path):
    with console_on(directory) as console:
        whole(console.history.live)
        app = WebConsole(console=console).app()
        ask(app, "GET", "/changes")
        shutil.move(directory, tmp_path / "away")
        wait_until(lambda: console.history.live.current.trouble is not None)
        body = ask(app, "GET", "/changes").body.decode()
        assert "The history after offset 2 is unknown" in body
        assert "orders" in ask(app, "GET", "/changes?since=0").body.decode()


def test_a_rule_that_was_taken_back_is_seen_going(directory):
    with console_on(directory) as console:
        whole(console.history.live)
        app = WebConsole(console=console).app()
        rule = next(iter(each for each in console.states.now().image.acls if each.acl.principal == "User:1"))
        more(directory, 2, removal_of(rule))
        wait_until(lambda: console.states.now().offset == 3)
        found = ask(app, "GET", "/changes?format=json").json
        assert [row["mark"] for row in found["difference"]["rows"]] == ["lost"]
        when = ask(app, "GET", "/when?principal=User%3A1&operation=READ&name=orders&format=json").json
        assert when["answer"].startswith("Not allowed since offset 2, 1970-01-01T00:00:02.000Z: removed ")
        assert AclOperation.READ.name in when["answer"]
